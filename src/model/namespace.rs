//! A namespace, reduced to what it says about its workloads.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::annotations::{AUTO_RELOAD, SUSPEND, WINDOW};
use crate::api::auto_reload::{AutoReload, InvalidAnnotation};
use crate::api::opt_in;
use crate::model::counting::Counting;
use crate::model::names::{Name, Uid};
use crate::model::rollout::suspension::Suspension;
use crate::model::rollout::window::Windows;
use crate::model::workload::{Owned, Workload};

/// What restamp keeps of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: Name,
    /// Its uid.
    pub uid: Option<Uid>,
    /// Its labels: they may say whose annotations count in it.
    pub labels: BTreeMap<String, String>,
    /// The default for its workloads, if there is one; an annotation that does not parse is no default, and never
    /// silently means "off".
    pub auto_reload: Result<Option<AutoReload>, InvalidAnnotation>,
    /// What it says of when its workloads roll.
    pub timing: Timing,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// What a namespace says of when its workloads roll.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timing {
    /// `restamp.dev/suspend`: whether they don't for now.
    pub suspension: Suspension,
    /// `restamp.dev/window`: when they may, where they say nothing of it themselves.
    pub windows: Option<Box<Windows>>,
    /// What does not parse, and counts for nothing.
    pub problems: Vec<InvalidAnnotation>,
}

impl Timing {
    fn read(annotations: Option<&BTreeMap<String, String>>) -> Self {
        let said = |name: &str| annotations.and_then(|annotations| annotations.get(name));
        let mut problems = Vec::new();
        let suspension = said(SUSPEND).and_then(|value| opt_in::noted(opt_in::suspension(value), &mut problems));
        let windows = said(WINDOW).and_then(|value| opt_in::noted(opt_in::windows(value), &mut problems));
        Self { suspension: suspension.unwrap_or_default(), windows: windows.map(Box::new), problems }
    }
}

impl Namespace {
    /// Reads a namespace; `None` without a name.
    pub fn of(metadata: &ObjectMeta) -> Option<Self> {
        let annotation = metadata.annotations.as_ref().and_then(|annotations| annotations.get(AUTO_RELOAD));
        Some(Self {
            name: metadata.name.as_deref()?.into(),
            uid: metadata.uid.as_deref().map(Uid::from),
            labels: metadata.labels.clone().unwrap_or_default(),
            auto_reload: annotation.map(|value| value.parse()).transpose(),
            timing: Timing::read(metadata.annotations.as_ref()),
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }

    /// What it has wrong.
    pub fn problems(&self) -> impl Iterator<Item = &InvalidAnnotation> {
        self.auto_reload.as_ref().err().into_iter().chain(&self.timing.problems)
    }

    /// Whether it says the same about its workloads.
    pub fn says_what(&self, other: &Self) -> bool {
        self.auto_reload == other.auto_reload
            && self.timing == other.timing
            && self.labels == other.labels
            && self.deleting == other.deleting
    }
}

/// Its workloads are the cluster's own: no default counts there.
const NO_DEFAULT: &str = "kube-system";

/// What a workload's namespace says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamespaceDefault {
    /// This.
    Is(AutoReload),
    /// Nothing.
    Silent,
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
            Some(Ok(Some(default))) => Self::Is(*default),
            Some(Ok(None)) => Self::Silent,
            Some(Err(_)) => Self::Unreadable,
            None => Self::Unknown,
        }
    }

    /// What counts for a workload that says nothing, where for one of which nobody says anything this does.
    pub fn or(&self, unsaid: AutoReload, before: Option<&Counting>) -> AutoReload {
        match self {
            Self::Is(default) => *default,
            Self::Silent | Self::Barred(Barred::NamedNamespaces) => unsaid,
            Self::Barred(Barred::KubeSystem | Barred::Controlled(_)) => AutoReload::Off,
            Self::Unreadable | Self::Unknown => before.map_or(AutoReload::Off, |before| before.config_maps),
        }
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
    #[case::no_annotation(json!({}), Ok(None))]
    #[case::on(json!({"restamp.dev/auto-reload": "true"}), Ok(Some(AutoReload::Everything)))]
    #[case::off(json!({"restamp.dev/auto-reload": "false"}), Ok(Some(AutoReload::Off)))]
    #[case::at_start(json!({"restamp.dev/auto-reload": "at-start"}), Ok(Some(AutoReload::AtStart)))]
    #[case::not_to_be_read(json!({"restamp.dev/auto-reload": "yes"}), "yes".parse().map(Some))]
    fn its_annotation_is_the_default(
        #[case] annotations: Value,
        #[case] expected: Result<Option<AutoReload>, InvalidAnnotation>,
    ) {
        let metadata = json!({"name": "n", "uid": "u", "labels": {"team": "x"}, "annotations": annotations});
        let namespace = Namespace::of(&serde_json::from_value(metadata).unwrap());
        let labels = [("team".to_owned(), "x".to_owned())].into();
        let (name, uid) = ("n".into(), Some("u".into()));
        let timing = Timing::default();
        let expected = Namespace { name, uid, labels, auto_reload: expected, timing, deleting: false };
        assert_eq!(namespace, Some(expected));
    }

    #[rstest]
    #[case::it_asks(deployment("w").build(), Ok(Some(AutoReload::AtStart)), NamespaceDefault::Is(AutoReload::AtStart))]
    #[case::it_says_nothing(deployment("w").build(), Ok(None), NamespaceDefault::Silent)]
    #[case::a_typo(deployment("w").build(), "yes".parse().map(Some), NamespaceDefault::Unreadable)]
    #[case::kube_system(
        Workload { id: WorkloadId { namespace: NO_DEFAULT.into(), ..deployment("w").build().id }, ..deployment("w").build() },
        Ok(Some(AutoReload::Everything)), NamespaceDefault::Barred(Barred::KubeSystem))]
    #[case::an_operators_own(
        Workload { owned: Owned::ByController("Database/d".to_owned()), ..deployment("w").build() },
        Ok(Some(AutoReload::Everything)), NamespaceDefault::Barred(Barred::Controlled("Database/d".to_owned())))]
    fn its_default_does_not_count_for_every_workload(
        #[case] workload: Workload,
        #[case] auto_reload: Result<Option<AutoReload>, InvalidAnnotation>,
        #[case] expected: NamespaceDefault,
    ) {
        let namespace = Namespace {
            name: "ns".into(),
            uid: None,
            labels: [].into(),
            auto_reload,
            timing: Timing::default(),
            deleting: false,
        };
        assert_eq!(NamespaceDefault::of(&workload, Some(&namespace)), expected);
    }
}
