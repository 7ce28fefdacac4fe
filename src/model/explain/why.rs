//! Whether a change would roll a workload, and why.

use std::fmt;

use serde::Serialize;

use super::sought::Unknown;
use crate::api::annotations::{AUTO_RELOAD, IGNORE, RELOAD_EXCLUDE, RELOAD_ON};
use crate::api::auto_reload::AutoReload;
use crate::api::ignore::Ignore;
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
    /// The workload names the config.
    Named,
    /// Nobody asks for it.
    NotOptedIn,
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
    /// Nothing is known of the config.
    ConfigUnknown(Unknown),
}

impl Why {
    /// Whether a change rolls the workload.
    pub fn rolls(&self) -> Rolls {
        match self {
            Self::OptedIn(_) | Self::ByNamespace(_) | Self::ByStakater(_) | Self::Named => Rolls::Yes,
            Self::UnreadableAnnotation | Self::StakaterUnheard | Self::NamespaceUnknown(_) | Self::ConfigUnknown(_) => {
                Rolls::Unknown
            }
            Self::NotOptedIn
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

    /// The reason in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::OptedIn(_) => "OptedIn",
            Self::ByNamespace(_) => "ByNamespace",
            Self::ByStakater(_) => "ByStakater",
            Self::StakaterUnheard => "StakaterUnheard",
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
