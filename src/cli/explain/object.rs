//! `KIND/NAME` as kubectl takes it: which object to explain.

use std::fmt;
use std::str::FromStr;

use crate::model::custom::group_of;
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// ConfigMap or Secret.
    Config(ConfigKind),
    /// What reads them.
    Workload(WorkloadKind),
    /// Another one: the cluster, or the files, tell whether there is such a kind.
    Other(OtherKind),
}

/// A kind that is not built in, as kubectl would call it: `rollout`, `rollouts.argoproj.io`,
/// `rollouts.v1alpha1.argoproj.io`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherKind(String);

impl OtherKind {
    /// Argo's Rollout.
    pub fn rollout() -> Self {
        Self("rollout.argoproj.io".to_owned())
    }

    /// Whether it says which group it is of.
    pub fn has_group(&self) -> bool {
        self.0.contains('.')
    }

    /// Whether this is what a kind of this group and version is called, that has these names.
    pub fn is<'n>(&self, group: &str, version: &str, names: impl IntoIterator<Item = &'n str>) -> bool {
        let (name, rest) = self.0.split_once('.').unwrap_or((&self.0, group));
        let is_group = rest == group || rest.split_once('.') == Some((version, group));
        is_group && names.into_iter().any(|known| known.to_lowercase() == name)
    }
}

impl Kind {
    fn all() -> impl Iterator<Item = Self> {
        ConfigKind::WITH_KEYS.into_iter().map(Self::Config).chain(WorkloadKind::ALL.into_iter().map(Self::Workload))
    }

    /// The kind as manifests spell it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Config(kind) => kind.as_str(),
            Self::Workload(kind) => kind.as_str(),
            Self::Other(kind) => &kind.0,
        }
    }

    /// The kind as RBAC and kubectl's lists spell it; of a custom kind, which may have any plural, as kubectl takes it.
    pub fn plural(&self) -> String {
        match self {
            Self::Config(_) | Self::Workload(_) if self.group().is_some() => {
                format!("{}s", self.as_str().to_lowercase())
            }
            Self::Workload(WorkloadKind::Custom(kind)) => format!("{}.{}", kind.kind.to_lowercase(), kind.group()),
            Self::Config(_) | Self::Workload(_) | Self::Other(_) => self.as_str().to_owned(),
        }
    }

    fn short(&self) -> Option<&'static str> {
        match self {
            Self::Config(ConfigKind::ConfigMap) => Some("cm"),
            Self::Config(ConfigKind::Secret | ConfigKind::SecretProviderClass)
            | Self::Workload(WorkloadKind::Job | WorkloadKind::Custom(_))
            | Self::Other(_) => None,
            Self::Workload(WorkloadKind::Deployment) => Some("deploy"),
            Self::Workload(WorkloadKind::StatefulSet) => Some("sts"),
            Self::Workload(WorkloadKind::DaemonSet) => Some("ds"),
            Self::Workload(WorkloadKind::ReplicaSet) => Some("rs"),
            Self::Workload(WorkloadKind::CronJob) => Some("cj"),
            Self::Workload(WorkloadKind::Pod) => Some("po"),
        }
    }

    /// Its group, if it is built in.
    fn group(&self) -> Option<&'static str> {
        match self {
            Self::Config(_) => Some(""),
            Self::Workload(WorkloadKind::Custom(_)) | Self::Other(_) => None,
            Self::Workload(kind) => Some(group_of(kind.api_version())),
        }
    }

    /// Whether this is what kubectl would call it: `deploy`, `deployments`, `deployment.apps`, in any case.
    fn is_called(&self, text: &str) -> bool {
        let Some(own) = self.group() else { return false };
        let text = text.to_lowercase();
        let (kind, group) = text.split_once('.').unwrap_or((&text, own));
        let names = kind == self.as_str().to_lowercase() || kind == self.plural() || Some(kind) == self.short();
        names && group == own
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
    /// It can't be a kind.
    #[error("{0:?} can't be a kind; it can be {known}, or another kind with a pod template, such as rollout.argoproj.io",
        known = kinds())]
    Kind(String),
}

/// The kinds that are built in.
pub fn kinds() -> String {
    Kind::all().map(|kind| kind.as_str().to_lowercase()).collect::<Vec<_>>().join(", ")
}

impl FromStr for ObjectName {
    type Err = NoObject;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = text.split_once('/').ok_or(NoObject::Form)?;
        if kind.is_empty() || name.is_empty() || name.contains('/') {
            return Err(NoObject::Form);
        }
        let is_kind = kind.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
        let kind = match Kind::all().find(|known| known.is_called(kind)) {
            Some(known) => known,
            None if is_kind => Kind::Other(OtherKind(kind.to_lowercase())),
            None => return Err(NoObject::Kind(kind.to_owned())),
        };
        Ok(Self { kind, name: name.into() })
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
    #[case("my kind/x", NoObject::Kind("my kind".to_owned()))]
    fn anything_else_is_refused(#[case] text: &str, #[case] expected: NoObject) {
        assert_eq!(text.parse::<ObjectName>(), Err(expected));
    }

    #[rstest]
    #[case::kind("Rollout", true)]
    #[case::plural("rollouts", true)]
    #[case::short("ro", true)]
    #[case::with_group("rollout.argoproj.io", true)]
    #[case::with_version("rollouts.v1alpha1.argoproj.io", true)]
    #[case::of_another_group("rollouts.example.org", false)]
    #[case::of_another_version("rollouts.v1.argoproj.io", false)]
    #[case::another("rollouter", false)]
    fn another_kind_is_named_as_kubectl_names_it(#[case] text: &str, #[case] expected: bool) {
        let object: ObjectName = format!("{text}/w").parse().unwrap();
        let Kind::Other(kind) = object.kind else { panic!("{text} is built in") };
        assert_eq!(kind.is("argoproj.io", "v1alpha1", ["Rollout", "rollouts", "ro"]), expected);
    }

    #[rstest]
    #[case("deployment.extensions/x")]
    #[case("deployments.v1.apps.example/x")]
    fn a_kind_of_another_group_is_another_kind(#[case] text: &str) {
        assert!(matches!(text.parse::<ObjectName>().unwrap().kind, Kind::Other(_)));
    }
}
