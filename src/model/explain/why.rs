//! Whether a change would roll a workload, and why.

use std::fmt;

use serde::Serialize;

use super::sought::Unknown;
use crate::api::annotations::{AUTO_RELOAD, IGNORE, RELOAD_EXCLUDE, RELOAD_ON};
use crate::api::auto_reload::AutoReload;
use crate::api::ignore::Ignore;
use crate::api::published::CONFIG_MAP;
use crate::api::stakater;
use crate::model::names::WorkloadKind;
use crate::model::namespace::Barred;

/// Whether a change would roll the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Rolls {
    /// It would.
    Yes,
    /// It would not.
    No,
    /// That is not known.
    Unknown,
}

impl fmt::Display for Rolls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
        })
    }
}

/// Why a change would roll a workload, or would not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The workload, or its pod template, asks for it.
    OptedIn(AutoReload),
    /// Its namespace asks for it.
    ByNamespace(AutoReload),
    /// Reloader's annotations ask for it.
    ByStakater(AutoReload),
    /// Reloader's annotations would ask for it, and it is not known whether they count.
    StakaterUnheard,
    /// The operator takes every workload for opted in of which nobody says anything.
    ByFlag(AutoReload),
    /// The workload names the config.
    Named,
    /// Nobody asks for it.
    NotOptedIn,
    /// Nobody asks for it, and the operator's flags, which might, are not known.
    FlagsUnknown(Unknown),
    /// Reloader's annotations ask for it, and they don't count here.
    StakaterDoesNotCount,
    /// The operator in this namespace does not watch the workload's.
    NamespaceNotWatched(String),
    /// The operator watches the namespaces with these labels, and those of the workload's are not known.
    ScopeUnknown(String, Unknown),
    /// The operator is not told of the custom kind.
    KindNotWatched(String),
    /// It takes this flag for the operator to act on the kind, and whether it has it is not known.
    KindUnheard(String),
    /// The operator is told to roll nothing.
    ReloadOff,
    /// The operator is told never to roll the kind.
    KindIgnored(WorkloadKind),
    /// Its namespace asks for it, and that does not count for this workload.
    NamespaceBarred(Barred),
    /// It does not ask for it itself, and its namespace is not known.
    NamespaceUnknown(Unknown),
    /// The workload, or its pod template, says no.
    OptedOut,
    /// Its annotation does not parse, and what counted before is not known.
    UnreadableAnnotation,
    /// The kubelet swaps the files, and `at-start` leaves these out.
    ReadInPlace,
    /// The workload excludes the config or the key.
    Excluded,
    /// The config says that its changes roll nobody.
    Ignored(Ignore),
    /// The config says so by Reloader's annotation.
    IgnoredByStakater,
    /// The workload wants configs that match, and this one does not.
    NotMatching,
    /// Objects of this kind don't roll.
    KindDoesNotRoll(WorkloadKind),
    /// This workload counts in its place, as `Kind/name`.
    CountsAs(String),
    /// The operator is told not to look at the config.
    ConfigNotWatched,
    /// Nothing is known of the config.
    ConfigUnknown(Unknown),
}

impl Why {
    /// Whether a change rolls the workload.
    pub fn rolls(&self) -> Rolls {
        match self {
            Self::OptedIn(_) | Self::ByNamespace(_) | Self::ByStakater(_) | Self::ByFlag(_) | Self::Named => Rolls::Yes,
            Self::UnreadableAnnotation
            | Self::StakaterUnheard
            | Self::FlagsUnknown(_)
            | Self::ScopeUnknown(..)
            | Self::KindUnheard(_)
            | Self::NamespaceUnknown(_)
            | Self::ConfigUnknown(_) => Rolls::Unknown,
            Self::NotOptedIn
            | Self::StakaterDoesNotCount
            | Self::NamespaceNotWatched(_)
            | Self::KindNotWatched(_)
            | Self::ReloadOff
            | Self::KindIgnored(_)
            | Self::ConfigNotWatched
            | Self::NamespaceBarred(_)
            | Self::OptedOut
            | Self::ReadInPlace
            | Self::Excluded
            | Self::Ignored(_)
            | Self::IgnoredByStakater
            | Self::NotMatching
            | Self::KindDoesNotRoll(_)
            | Self::CountsAs(_) => Rolls::No,
        }
    }

    /// Whether it is about the workload as a whole: that something names a config makes no difference.
    pub(super) fn is_of_scope(&self) -> bool {
        matches!(self, Self::ScopeUnknown(..) | Self::KindUnheard(_))
    }

    /// The reason in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::OptedIn(_) => "OptedIn",
            Self::ByNamespace(_) => "ByNamespace",
            Self::ByStakater(_) => "ByStakater",
            Self::StakaterUnheard => "StakaterUnheard",
            Self::ByFlag(_) => "ByFlag",
            Self::FlagsUnknown(_) => "FlagsUnknown",
            Self::StakaterDoesNotCount => "StakaterDoesNotCount",
            Self::NamespaceNotWatched(_) => "NamespaceNotWatched",
            Self::ScopeUnknown(..) => "ScopeUnknown",
            Self::KindNotWatched(_) => "KindNotWatched",
            Self::KindUnheard(_) => "KindUnheard",
            Self::ReloadOff => "ReloadOff",
            Self::KindIgnored(_) => "KindIgnored",
            Self::ConfigNotWatched => "ConfigNotWatched",
            Self::Named => "Named",
            Self::NotOptedIn => "NotOptedIn",
            Self::NamespaceBarred(_) => "NamespaceDoesNotCount",
            Self::NamespaceUnknown(_) => "NamespaceUnknown",
            Self::OptedOut => "OptedOut",
            Self::UnreadableAnnotation => "UnreadableAnnotation",
            Self::ReadInPlace => "ReadInPlace",
            Self::Excluded => "Excluded",
            Self::Ignored(_) => "Ignored",
            Self::IgnoredByStakater => "IgnoredByStakater",
            Self::NotMatching => "NotMatching",
            Self::KindDoesNotRoll(_) => "KindDoesNotRoll",
            Self::CountsAs(_) => "CountsAsItsOwner",
            Self::ConfigUnknown(_) => "ConfigUnknown",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OptedIn(auto_reload) => write!(f, "{AUTO_RELOAD} is {:?}", auto_reload.as_str()),
            Self::ByNamespace(auto_reload) => {
                write!(f, "{AUTO_RELOAD} of its namespace is {:?}", auto_reload.as_str())
            }
            Self::ByStakater(AutoReload::Matching) => {
                f.write_str("Reloader's annotation search asks for it, for configs that match")
            }
            Self::ByStakater(_) => f.write_str("Reloader's annotation auto asks for it"),
            Self::StakaterUnheard => f.write_str(
                "Reloader's annotations ask for it; they count where restamp runs with --stakater-annotations, and \
                 there is no record of the workload that says so",
            ),
            Self::Named => write!(f, "{RELOAD_ON}, or Reloader's annotation reload, names it"),
            Self::NotOptedIn => write!(f, "not opted in: no {AUTO_RELOAD} on it, its pod template or its namespace"),
            Self::FlagsUnknown(unknown) => write!(
                f,
                "no {AUTO_RELOAD} on it, its pod template or its namespace; whether restamp runs with --auto-reload-all is \
                 not known: of ConfigMap {CONFIG_MAP}, {unknown}"
            ),
            Self::ByFlag(_) => f.write_str("the operator runs with --auto-reload-all, and nobody says otherwise"),
            Self::StakaterDoesNotCount => f.write_str(
                "Reloader's annotations ask for it, and don't count: the operator runs without --stakater-annotations, or \
                 not for this namespace",
            ),
            Self::NamespaceNotWatched(operator) => {
                write!(f, "the operator in namespace {operator} does not watch this namespace")
            }
            Self::ScopeUnknown(labels, unknown) => write!(
                f,
                "the operator watches namespaces that are labelled {labels}, and the labels of this one are not known: {unknown}"
            ),
            Self::KindNotWatched(kind) => write!(f, "the operator runs without --workload-kind {kind}"),
            Self::KindUnheard(flag) => write!(
                f,
                "restamp acts on it where it runs with {flag}; what it publishes does not tell here, and \
                 there is no record of the workload that does"
            ),
            Self::ReloadOff => f.write_str("the operator runs with --reload=off"),
            Self::KindIgnored(kind) => write!(f, "the operator runs with --ignore-workload-kind {kind}"),
            Self::ConfigNotWatched => f.write_str(
                "the operator does not look at the config: it runs with --config-selector or --ignore-config-kind",
            ),
            Self::NamespaceBarred(barred) => {
                write!(f, "not opted in: {AUTO_RELOAD} of its namespace does not count for it, since {barred}")
            }
            Self::NamespaceUnknown(unknown) => {
                write!(f, "no {AUTO_RELOAD} on it or its pod template, and its namespace is not known: {unknown}")
            }
            Self::OptedOut => write!(f, "opted out: {AUTO_RELOAD} is \"false\""),
            Self::UnreadableAnnotation => {
                write!(f, "{AUTO_RELOAD} does not parse: what counted before still does, and that is not known here")
            }
            Self::ReadInPlace => write!(f, "{AUTO_RELOAD} is \"at-start\", and these files change in place"),
            Self::Excluded => write!(f, "{RELOAD_EXCLUDE} excludes it"),
            Self::Ignored(ignore) => write!(f, "{IGNORE} of the config is {:?}", ignore.to_string()),
            Self::IgnoredByStakater => write!(f, "{} of the config is \"true\"", stakater::IGNORE),
            Self::NotMatching => {
                write!(f, "the workload searches, and the config has no {}: \"true\"", stakater::MATCH)
            }
            Self::KindDoesNotRoll(kind) => f.write_str(does_not_roll(*kind)),
            Self::CountsAs(owner) => write!(f, "{owner} owns it and counts in its place; explain that one"),
            Self::ConfigUnknown(unknown) => write!(f, "the config is not known: {unknown}"),
        }
    }
}

fn does_not_roll(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::Job => {
            "a Job runs once: what it read stays, and a new run reads anew; with --rerun-jobs, one that has not succeeded is \
             made again"
        }
        WorkloadKind::CronJob => {
            "the next run of a CronJob reads anew by itself; with --rerun-jobs, it runs once at a change"
        }
        WorkloadKind::Pod => "nothing makes a pod anew that no controller owns",
        WorkloadKind::ReplicaSet => "a ReplicaSet replaces no pods when its template changes",
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet | WorkloadKind::Custom(_) => {
            "its controller rolls it"
        }
    }
}

/// An answer in full: whether, the reason in one word, and in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Whether a change would roll the workload.
    pub rolls: Rolls,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in words.
    pub message: String,
}

impl From<&Why> for Verdict {
    fn from(why: &Why) -> Self {
        Self { rolls: why.rolls(), reason: why.reason(), message: why.to_string() }
    }
}
