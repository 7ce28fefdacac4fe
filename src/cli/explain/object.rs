//! `KIND/NAME` as kubectl takes it: which object to explain.

use std::fmt;
use std::str::FromStr;

use crate::model::names::{ConfigKind, Name, WorkloadKind};

/// Which object, within its namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
}

/// The kinds that can be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// ConfigMap or Secret.
    Config(ConfigKind),
    /// What reads them.
    Workload(WorkloadKind),
}

impl Kind {
    fn all() -> impl Iterator<Item = Self> {
        ConfigKind::WITH_KEYS.into_iter().map(Self::Config).chain(WorkloadKind::ALL.into_iter().map(Self::Workload))
    }

    /// The kind as manifests spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config(kind) => kind.as_str(),
            Self::Workload(kind) => kind.as_str(),
        }
    }

    /// The kind as RBAC and kubectl's lists spell it.
    pub fn plural(self) -> String {
        format!("{}s", self.as_str().to_lowercase())
    }

    fn short(self) -> Option<&'static str> {
        match self {
            Self::Config(ConfigKind::ConfigMap) => Some("cm"),
            Self::Config(ConfigKind::Secret | ConfigKind::SecretProviderClass)
            | Self::Workload(WorkloadKind::Job | WorkloadKind::Custom(_)) => None,
            Self::Workload(WorkloadKind::Deployment) => Some("deploy"),
            Self::Workload(WorkloadKind::StatefulSet) => Some("sts"),
            Self::Workload(WorkloadKind::DaemonSet) => Some("ds"),
            Self::Workload(WorkloadKind::ReplicaSet) => Some("rs"),
            Self::Workload(WorkloadKind::CronJob) => Some("cj"),
            Self::Workload(WorkloadKind::Pod) => Some("po"),
        }
    }

    fn group(self) -> &'static str {
        match self {
            Self::Config(_) => "",
            Self::Workload(kind) => kind.api_version().split_once('/').map_or("", |(group, _)| group),
        }
    }

    /// Whether this is what kubectl would call it: `deploy`, `deployments`, `deployment.apps`, in any case.
    fn is_called(self, text: &str) -> bool {
        let text = text.to_lowercase();
        let (kind, group) = text.split_once('.').unwrap_or((&text, self.group()));
        let names = kind == self.as_str().to_lowercase() || kind == self.plural() || Some(kind) == self.short();
        names && group == self.group()
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.as_str(), self.name)
    }
}

/// An object in a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The object.
    pub object: ObjectName,
    /// Its namespace.
    pub namespace: Name,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.object.kind.as_str(), self.namespace, self.object.name)
    }
}

/// A text that names no object that can be explained.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoObject {
    /// There is no slash in it, or nothing on one side.
    #[error("write KIND/NAME, such as deployment/web or secret/web-env")]
    Form,
    /// It is of a kind that reads no configs.
    #[error("{0:?} is no kind that can be explained; it can be {known}", known = kinds())]
    Kind(String),
}

fn kinds() -> String {
    Kind::all().map(|kind| kind.as_str().to_lowercase()).collect::<Vec<_>>().join(", ")
}

impl FromStr for ObjectName {
    type Err = NoObject;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = text.split_once('/').ok_or(NoObject::Form)?;
        if kind.is_empty() || name.is_empty() || name.contains('/') {
            return Err(NoObject::Form);
        }
        let known = Kind::all().find(|known| known.is_called(kind));
        Ok(Self { kind: known.ok_or_else(|| NoObject::Kind(kind.to_owned()))?, name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("deploy/w", "Deployment/w")]
    #[case("Deployment/w", "Deployment/w")]
    #[case("deployments/w", "Deployment/w")]
    #[case("deployment.apps/w", "Deployment/w")]
    #[case("STS/w", "StatefulSet/w")]
    #[case("ds/w", "DaemonSet/w")]
    #[case("rs/w", "ReplicaSet/w")]
    #[case("cronjob.batch/w", "CronJob/w")]
    #[case("cj/w", "CronJob/w")]
    #[case("job/w", "Job/w")]
    #[case("po/w", "Pod/w")]
    #[case("cm/c", "ConfigMap/c")]
    #[case("configmaps/c", "ConfigMap/c")]
    #[case("secret/s.x", "Secret/s.x")]
    fn an_object_is_named_as_kubectl_names_it(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(text.parse::<ObjectName>().map(|object| object.to_string()), Ok(expected.to_owned()));
    }

    #[rstest]
    #[case("deployment", NoObject::Form)]
    #[case("deployment/", NoObject::Form)]
    #[case("/w", NoObject::Form)]
    #[case("a/b/c", NoObject::Form)]
    #[case("service/x", NoObject::Kind("service".to_owned()))]
    #[case("deployment.extensions/x", NoObject::Kind("deployment.extensions".to_owned()))]
    fn anything_else_is_refused(#[case] text: &str, #[case] expected: NoObject) {
        assert_eq!(text.parse::<ObjectName>(), Err(expected));
    }
}
