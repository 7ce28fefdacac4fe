//! A namespace, reduced to what it says about its workloads.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::annotations::AUTO_RELOAD;
use crate::api::auto_reload::{AutoReload, InvalidAnnotation};
use crate::api::opt_in::OptIn;
use crate::model::counting::Counting;
use crate::model::names::{Name, Uid};
use crate::model::workload::{Owned, Workload};

/// What restamp keeps of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: Name,
    /// Its uid.
    pub uid: Option<Uid>,
    /// The default for its workloads; an annotation that does not parse is no default, and never silently means "off".
    pub auto_reload: Result<AutoReload, InvalidAnnotation>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl Namespace {
    /// Reads a namespace; `None` without a name.
    pub fn of(metadata: &ObjectMeta) -> Option<Self> {
        let annotation = metadata.annotations.as_ref().and_then(|annotations| annotations.get(AUTO_RELOAD));
        Some(Self {
            name: metadata.name.as_deref()?.into(),
            uid: metadata.uid.as_deref().map(Uid::from),
            auto_reload: annotation.map_or(Ok(AutoReload::Off), |value| value.parse()),
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }

    /// Whether it says the same about its workloads.
    pub fn says_what(&self, other: &Self) -> bool {
        self.auto_reload == other.auto_reload && self.deleting == other.deleting
    }
}

/// Its workloads are the cluster's own: no default counts there.
const NO_DEFAULT: &str = "kube-system";

/// What a workload's namespace says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamespaceDefault {
    /// This.
    Is(AutoReload),
    /// Whatever it says, it does not count.
    Barred(Barred),
    /// Nothing that can be read: what counted before still does.
    Unreadable,
    /// The namespace was not seen.
    Unknown,
}

/// Why a namespace's default does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Barred {
    /// The namespace's workloads are the cluster's own.
    KubeSystem,
    /// A controller made the workload and looks after it, as `Kind/name`.
    Controlled(String),
    /// The operator watches named namespaces, and nothing of the cluster as a whole.
    NamedNamespaces,
}

impl fmt::Display for Barred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KubeSystem => write!(f, "it is in {NO_DEFAULT}"),
            Self::Controlled(owner) => write!(f, "{owner} owns it"),
            Self::NamedNamespaces => f.write_str("the operator watches named namespaces only"),
        }
    }
}

impl NamespaceDefault {
    /// What this namespace, if it was seen, says about this workload.
    pub fn of(workload: &Workload, namespace: Option<&Namespace>) -> Self {
        if workload.id.namespace.as_str() == NO_DEFAULT {
            return Self::Barred(Barred::KubeSystem);
        }
        if let Owned::ByController(owner) = &workload.owned {
            return Self::Barred(Barred::Controlled(owner.clone()));
        }
        match namespace.map(|namespace| &namespace.auto_reload) {
            Some(Ok(default)) => Self::Is(*default),
            Some(Err(_)) => Self::Unreadable,
            None => Self::Unknown,
        }
    }

    /// What counts for a workload with these annotations.
    pub fn counting(&self, opt_in: &OptIn, before: Option<&Counting>) -> Counting {
        let default = match self {
            Self::Is(default) => *default,
            Self::Barred(_) => AutoReload::Off,
            Self::Unreadable | Self::Unknown => before.map_or(AutoReload::Off, |before| before.config_maps),
        };
        opt_in.counting(default, before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::deployment;
    use crate::model::names::WorkloadId;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case::no_annotation(json!({}), Ok(AutoReload::Off))]
    #[case::on(json!({"restamp.dev/auto-reload": "true"}), Ok(AutoReload::Everything))]
    #[case::at_start(json!({"restamp.dev/auto-reload": "at-start"}), Ok(AutoReload::AtStart))]
    #[case::not_to_be_read(json!({"restamp.dev/auto-reload": "yes"}), "yes".parse())]
    fn its_annotation_is_the_default(
        #[case] annotations: Value,
        #[case] expected: Result<AutoReload, InvalidAnnotation>,
    ) {
        let metadata = json!({"name": "n", "uid": "u", "annotations": annotations});
        let namespace = Namespace::of(&serde_json::from_value(metadata).unwrap());
        let expected = Namespace { name: "n".into(), uid: Some("u".into()), auto_reload: expected, deleting: false };
        assert_eq!(namespace, Some(expected));
    }

    #[rstest]
    #[case::it_asks(deployment("w").build(), Ok(AutoReload::AtStart), NamespaceDefault::Is(AutoReload::AtStart))]
    #[case::a_typo(deployment("w").build(), "yes".parse(), NamespaceDefault::Unreadable)]
    #[case::kube_system(
        Workload { id: WorkloadId { namespace: NO_DEFAULT.into(), ..deployment("w").build().id }, ..deployment("w").build() },
        Ok(AutoReload::Everything), NamespaceDefault::Barred(Barred::KubeSystem))]
    #[case::an_operators_own(
        Workload { owned: Owned::ByController("Database/d".to_owned()), ..deployment("w").build() },
        Ok(AutoReload::Everything), NamespaceDefault::Barred(Barred::Controlled("Database/d".to_owned())))]
    fn its_default_does_not_count_for_every_workload(
        #[case] workload: Workload,
        #[case] auto_reload: Result<AutoReload, InvalidAnnotation>,
        #[case] expected: NamespaceDefault,
    ) {
        let namespace = Namespace { name: "ns".into(), uid: None, auto_reload, deleting: false };
        assert_eq!(NamespaceDefault::of(&workload, Some(&namespace)), expected);
    }
}
