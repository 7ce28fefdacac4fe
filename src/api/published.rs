//! The ConfigMap in which the operator publishes what it watches, for everybody who asks why nothing happens. It holds
//! no secret: every authenticated user may read it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::api::auto_reload::AutoReload;
use crate::model::custom::{self, KindName};
use crate::model::drift_scope::{DriftScope, DriftSubjects};
use crate::model::names::Name;
use crate::model::participation::{Participation, Reloading, Stakater};
use crate::model::rerun::Reruns;
use crate::model::scope::{Namespaces, Scope};
use crate::model::selector::LabelSelector;
use crate::model::unread::Unread;

/// Its name, in the operator's own namespace.
pub const CONFIG_MAP: &str = "restamp-scope";
/// The name of the Lease that the leader holds, in the same namespace.
pub const LEASE: &str = "restamp-leader";
/// The namespace that the operator is usually installed in.
pub const USUAL_NAMESPACE: &str = "restamp-system";

/// What the leader says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The operator's version.
    pub version: String,
    /// Which part of the cluster it watches.
    pub scope: Scope,
    /// Who takes part in reloading.
    pub participation: Participation,
    /// Of what it reports drift.
    pub drift: DriftScope,
    /// Whether it writes stamps.
    pub mode: Mode,
    /// What it can't read at present.
    pub unread: BTreeSet<Unread>,
}

/// Whether stamps are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// They are.
    #[default]
    Live,
    /// They are decided, counted and told, and not written.
    DryRun,
}

impl Mode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::DryRun => "dry-run",
        }
    }
}

/// A ConfigMap that is none of ours, or of a version that says something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ConfigMap {CONFIG_MAP} has no usable entry {entry}")]
pub struct Unreadable {
    entry: &'static str,
}

const VERSION: &str = "version";
const MODE: &str = "mode";
const NAMESPACES: &str = "namespaces";
const EXCLUDED: &str = "excludedNamespaces";
const NAMESPACE_SELECTOR: &str = "namespaceSelector";
const CONFIG_SELECTOR: &str = "configSelector";
const IGNORED_CONFIG_KINDS: &str = "ignoredConfigKinds";
const WORKLOAD_KINDS: &str = "workloadKinds";
const IGNORED_WORKLOAD_KINDS: &str = "ignoredWorkloadKinds";
const AUTO_RELOAD_ALL: &str = "autoReloadAll";
const RELOAD: &str = "reload";
const RERUN_JOBS: &str = "rerunJobs";
const STAKATER: &str = "stakaterAnnotations";
const STAKATER_NAMESPACES: &str = "stakaterNamespaceSelector";
const DRIFT: &str = "drift";
const DRIFT_NAMESPACES: &str = "driftNamespaceSelector";
const UNREAD: &str = "unread";

impl Published {
    /// As the ConfigMap's data.
    pub fn to_data(&self) -> BTreeMap<String, String> {
        let Self { version, scope, participation, drift, mode, unread } = self;
        let selector = |selector: Option<&LabelSelector>| selector.map(ToString::to_string).unwrap_or_default();
        let yes_or_no = |yes: bool| if yes { "true" } else { "false" }.to_owned();
        let stakater_namespaces = match &participation.stakater {
            Stakater::Labelled(labels) => Some(labels),
            Stakater::Nowhere | Stakater::Everywhere => None,
        };
        let entries = [
            (VERSION, version.clone()),
            (MODE, mode.as_str().to_owned()),
            (NAMESPACES, joined(scope.named(), ",")),
            (EXCLUDED, joined(scope.excluded(), ",")),
            (NAMESPACE_SELECTOR, selector(scope.namespace_labels())),
            (CONFIG_SELECTOR, selector(scope.configs.as_ref())),
            (IGNORED_CONFIG_KINDS, joined(&scope.ignored, ",")),
            (WORKLOAD_KINDS, joined(scope.kinds, ",")),
            (IGNORED_WORKLOAD_KINDS, joined(&participation.ignored, ",")),
            (AUTO_RELOAD_ALL, yes_or_no(participation.unsaid == AutoReload::Everything)),
            (RELOAD, yes_or_no(participation.reload == Reloading::On)),
            (RERUN_JOBS, yes_or_no(participation.reruns == Reruns::Yes)),
            (STAKATER, yes_or_no(participation.stakater.is_anywhere())),
            (STAKATER_NAMESPACES, selector(stakater_namespaces)),
            (DRIFT, drift.subjects.as_str().to_owned()),
            (DRIFT_NAMESPACES, selector(drift.namespaces.as_ref())),
            (UNREAD, joined(unread, "\n")),
        ];
        entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// From the ConfigMap's data. What an older version does not say is a flag that it does not have.
    pub fn from_data(data: &BTreeMap<String, String>) -> Result<Self, Unreadable> {
        let entries = Entries(data);
        let namespaces = {
            let named: BTreeSet<Name> = entries.names(NAMESPACES)?;
            let but: BTreeSet<Name> = entries.names(EXCLUDED)?;
            match entries.optional(NAMESPACE_SELECTOR)? {
                _ if !named.is_empty() => Namespaces::Only(named),
                Some(labels) => Namespaces::Labelled { labels, but },
                None => Namespaces::AllBut(but),
            }
        };
        let kinds: Vec<KindName> = entries.list(WORKLOAD_KINDS, ",")?;
        let stakater = match entries.optional(STAKATER_NAMESPACES)? {
            Some(labels) => Stakater::Labelled(labels),
            None if entries.flag(STAKATER) => Stakater::Everywhere,
            None => Stakater::Nowhere,
        };
        Ok(Self {
            version: entries.required(VERSION)?.to_owned(),
            scope: Scope {
                namespaces,
                configs: entries.optional(CONFIG_SELECTOR)?,
                ignored: entries.list(IGNORED_CONFIG_KINDS, ",")?,
                kinds: custom::kinds(&kinds),
                unasked: BTreeSet::new(),
            },
            participation: Participation {
                // An older version knows no other way.
                reload: if entries.text(RELOAD) == "false" { Reloading::Off } else { Reloading::On },
                stakater,
                unsaid: if entries.flag(AUTO_RELOAD_ALL) { AutoReload::Everything } else { AutoReload::Off },
                ignored: entries.list(IGNORED_WORKLOAD_KINDS, ",")?,
                reruns: if entries.flag(RERUN_JOBS) { Reruns::Yes } else { Reruns::No },
            },
            drift: DriftScope {
                subjects: entries.optional::<DriftSubjects>(DRIFT)?.unwrap_or_default(),
                namespaces: entries.optional(DRIFT_NAMESPACES)?,
            },
            mode: if entries.required(MODE)? == Mode::DryRun.as_str() { Mode::DryRun } else { Mode::Live },
            unread: entries.list(UNREAD, "\n")?,
        })
    }
}

fn joined<T: fmt::Display>(items: impl IntoIterator<Item = T>, between: &str) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(between)
}

/// The data of a ConfigMap that may be ours.
struct Entries<'a>(&'a BTreeMap<String, String>);

impl<'a> Entries<'a> {
    fn text(&self, entry: &str) -> &'a str {
        self.0.get(entry).map(String::as_str).unwrap_or_default()
    }

    fn required(&self, entry: &'static str) -> Result<&'a str, Unreadable> {
        self.0.get(entry).map(String::as_str).ok_or(Unreadable { entry })
    }

    fn flag(&self, entry: &str) -> bool {
        self.text(entry) == "true"
    }

    fn optional<T: FromStr>(&self, entry: &'static str) -> Result<Option<T>, Unreadable> {
        let text = Some(self.text(entry)).filter(|text| !text.is_empty());
        text.map(|text| text.parse().map_err(|_| Unreadable { entry })).transpose()
    }

    fn list<T: FromStr, L: FromIterator<T>>(&self, entry: &'static str, between: &str) -> Result<L, Unreadable> {
        let items = self.text(entry).split(between).filter(|item| !item.is_empty());
        items.map(|item| item.parse().map_err(|_| Unreadable { entry })).collect()
    }

    fn names(&self, entry: &'static str) -> Result<BTreeSet<Name>, Unreadable> {
        Ok(self.required(entry)?.split(',').filter(|name| !name.is_empty()).map(Name::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::{ConfigKind, WorkloadKind};
    use crate::model::unread::WhyUnread;
    use rstest::rstest;

    fn published(namespaces: Namespaces, stakater: Stakater) -> Published {
        let kinds = ["argoproj.io/v1alpha1/Rollout".parse().unwrap(), "a.b/v1/StatefulSet".parse().unwrap()];
        Published {
            version: "0.1.0".to_owned(),
            scope: Scope {
                namespaces,
                configs: Some("app in (x,y),!legacy".parse().unwrap()),
                ignored: [ConfigKind::Secret].into(),
                kinds: custom::kinds(&kinds),
                unasked: BTreeSet::new(),
            },
            participation: Participation {
                reload: Reloading::Off,
                stakater,
                unsaid: AutoReload::Everything,
                ignored: [WorkloadKind::DaemonSet, WorkloadKind::StatefulSet].into(),
                reruns: Reruns::Yes,
            },
            drift: DriftScope { subjects: DriftSubjects::All, namespaces: Some("team=x".parse().unwrap()) },
            mode: Mode::DryRun,
            unread: [
                Unread { kind: "Secret".to_owned(), namespace: None, why: WhyUnread::Forbidden },
                Unread { kind: "Rollout".to_owned(), namespace: Some("a".into()), why: WhyUnread::NotInstalled },
            ]
            .into(),
        }
    }

    #[rstest]
    #[case::named(Namespaces::Only(["a".into(), "b".into()].into()), Stakater::Everywhere)]
    #[case::excluded(Namespaces::AllBut(["a".into()].into()), Stakater::Nowhere)]
    #[case::labelled(
        Namespaces::Labelled { labels: "team=x".parse().unwrap(), but: ["a".into()].into() },
        Stakater::Labelled("team in (x,y)".parse().unwrap())
    )]
    fn it_reads_what_it_writes(#[case] namespaces: Namespaces, #[case] stakater: Stakater) {
        let published = published(namespaces, stakater);
        assert_eq!(Published::from_data(&published.to_data()), Ok(published));
    }

    #[test]
    fn what_an_older_version_does_not_say_it_does_not_do() {
        let said = [("version", "0.0.9"), ("mode", "live"), ("namespaces", ""), ("excludedNamespaces", "")];
        let data = said.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let expected = Published {
            version: "0.0.9".to_owned(),
            scope: Scope::default(),
            participation: Participation::default(),
            drift: DriftScope::default(),
            mode: Mode::Live,
            unread: BTreeSet::new(),
        };
        assert_eq!(Published::from_data(&data), Ok(expected));
    }

    #[rstest]
    #[case::nothing(&[], "namespaces")]
    #[case::a_selector_of_another_form(&[("namespaceSelector", "a b")], "namespaceSelector")]
    #[case::a_kind_of_another_form(&[("workloadKinds", "Rollout")], "workloadKinds")]
    #[case::a_word_of_a_later_version(&[("drift", "some")], "drift")]
    fn another_config_map_is_not_taken_for_it(#[case] data: &[(&str, &str)], #[case] entry: &'static str) {
        let mut all = if data.is_empty() {
            BTreeMap::new()
        } else {
            published(Namespaces::default(), Stakater::Nowhere).to_data()
        };
        all.extend(data.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        assert_eq!(Published::from_data(&all), Err(Unreadable { entry }));
    }
}
