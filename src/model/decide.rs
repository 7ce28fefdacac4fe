//! What is due for one workload. Pure: the same state gives the same answer, whoever asks, whenever.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::model::consumption::Missing;
use crate::model::custom::rollout::Lever;
use crate::model::delivered;
use crate::model::names::WorkloadKind;
use crate::model::observe::Sight;
use crate::model::record::Record;
use crate::model::rerun;
use crate::model::revision;
use crate::model::workload::{Progress, Strategy, Workload};

/// What is due, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// No entry is open.
    Nothing,
    /// Every open entry is delivered.
    Close,
    /// The template carries our stamp for this state: the workload's own controller is at it.
    RollingOut,
    /// Not yet.
    Wait {
        /// When to look again, at the latest.
        until: Timestamp,
        /// What for.
        reason: WaitReason,
    },
    /// Due, and harmful now.
    Hold(Hold),
    /// Now.
    Stamp,
}

/// What a due rollout waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// The configs are still changing.
    Settling,
    /// Somebody else's rollout is in progress, and its pods will have read the change.
    OthersRollout,
    /// Somebody took our stamp away: we try again after a while.
    StampGone,
    /// The last rollout was not long enough ago.
    MinInterval,
    /// A run is under way that no other one may overlap.
    RunInProgress,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Settling => "waits until the configs are quiet",
            Self::OthersRollout => "waits for the rollout in progress, whose pods read the change as they start",
            Self::StampGone => "waits before it stamps again, since somebody removed the stamp",
            Self::MinInterval => "waits until the last rollout is as long ago as restamp.dev/min-interval asks",
            Self::RunInProgress => {
                "waits for the run in progress, since its concurrencyPolicy allows no other beside it"
            }
        })
    }
}

/// Why something that is due waits, since doing it now would do harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// New pods could not start without it.
    Missing(Missing),
    /// It is being deleted.
    BeingDeleted,
    /// Its namespace is being deleted.
    NamespaceBeingDeleted,
    /// Somebody removed the stamp again and again.
    StampStripped,
    /// Another installation of restamp keeps its report.
    OtherInstance {
        /// The other installation's namespace.
        instance: String,
    },
    /// A watch that it needs has not had its first full list.
    NotSynced {
        /// The kind that is watched.
        kind: &'static str,
    },
}

impl Hold {
    /// Every reason, as the metric's label has it.
    pub const REASONS: [&'static str; 6] =
        ["MissingReference", "BeingDeleted", "NamespaceBeingDeleted", "StampStripped", "OtherInstance", "NotSynced"];

    /// The reason in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Missing(_) => "MissingReference",
            Self::BeingDeleted => "BeingDeleted",
            Self::NamespaceBeingDeleted => "NamespaceBeingDeleted",
            Self::StampStripped => "StampStripped",
            Self::OtherInstance { .. } => "OtherInstance",
            Self::NotSynced { .. } => "NotSynced",
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(Missing { config, key: None }) => {
                write!(
                    f,
                    "required {} {} does not exist, new pods could not start; create it",
                    config.kind, config.name
                )
            }
            Self::Missing(Missing { config, key: Some(key) }) => write!(
                f,
                "required key {key} of {} {} does not exist, new pods could not start; add it",
                config.kind, config.name
            ),
            Self::BeingDeleted => f.write_str("it is being deleted"),
            Self::NamespaceBeingDeleted => f.write_str("its namespace is being deleted"),
            Self::StampStripped => write!(
                f,
                "the stamp was removed from the pod template again and again; let other managers leave {} alone",
                crate::api::annotations::CONFIG_HASH
            ),
            Self::OtherInstance { instance } => {
                write!(f, "the restamp in namespace {instance} keeps its report; delete the report to take it over")
            }
            Self::NotSynced { kind } => write!(f, "the watch of {kind} is not synced yet"),
        }
    }
}

/// The longest that configs which keep changing put a rollout off.
const SETTLE_AT_MOST: SignedDuration = SignedDuration::from_secs(60);
/// The longest that somebody else's rollout is waited for, counted from the change.
const OTHERS_AT_MOST: SignedDuration = SignedDuration::from_mins(10);
/// How often a stamp that was taken away is put on again.
const STRIPPED_AT_MOST: u8 = 2;
/// The pause before a stamp that was taken away is put on again, for the first time; six times as long for the next.
const STRIPPED_PAUSE: SignedDuration = SignedDuration::from_secs(10);

/// Decides.
pub fn decide(record: &Record, sight: &Sight<'_>) -> Decision {
    if record.open_entries().next().is_none() {
        return Decision::Nothing;
    }
    if let Some(decision) = rerun::decide(record, sight) {
        return decision;
    }
    if sight.workload.deleting {
        return Decision::Hold(Hold::BeingDeleted);
    }
    if sight.namespace_deleting {
        return Decision::Hold(Hold::NamespaceBeingDeleted);
    }
    if delivered::is_delivered(record, sight) || is_empty_behind_the_stamp(record, sight) {
        return Decision::Close; // whoever rolled it
    }
    if carries_the_stamp(record, sight) {
        return Decision::RollingOut;
    }
    if let Some(hold) = must_not_roll(record, sight) {
        return Decision::Hold(hold);
    }
    let waits = [
        settling(record, sight),
        stamp_gone(record, sight),
        others_rollout(record, sight),
        min_interval(record, sight),
        rerun::running(sight),
    ];
    waits.into_iter().flatten().next().unwrap_or(Decision::Stamp)
}

/// The stamp answers every open change, and is still there.
fn carries_the_stamp(record: &Record, sight: &Sight<'_>) -> bool {
    let stamp = record.stamp.as_ref().map(|stamp| stamp.text.as_str());
    record.is_answered() && stamp.is_some() && sight.workload.stamp.as_deref() == stamp
}

/// There are no pods, and whichever come are made from the stamped template.
fn is_empty_behind_the_stamp(record: &Record, sight: &Sight<'_>) -> bool {
    carries_the_stamp(record, sight)
        && !sight.has_unplaced_pods
        && delivered::active(sight).next().is_none()
        && its_controller_is_done(sight.workload)
}

/// Whether all pods that it counts were made from its template. Where pods are of a built-in kind they are seen.
fn its_controller_is_done(workload: &Workload) -> bool {
    match (workload.progress, workload.id.kind, workload.lever) {
        (Progress::Complete { pods: 0 }, ..) => true,
        // Its pods may belong to objects that are not watched.
        (Progress::Complete { .. }, WorkloadKind::Custom(_), Lever::Template) => true,
        _ => false,
    }
}

fn must_not_roll(record: &Record, sight: &Sight<'_>) -> Option<Hold> {
    if let Some(missing) = sight.workload.consumption.missing(sight.configs).into_iter().next() {
        return Some(Hold::Missing(missing));
    }
    record.stamp.as_ref().filter(|stamp| stamp.stripped > STRIPPED_AT_MOST).map(|_| Hold::StampStripped)
}

/// Waits for so long since then. A clock that was set back since then would make that any time: it ends the wait.
fn wait(since: Timestamp, pause: SignedDuration, now: Timestamp, reason: WaitReason) -> Option<Decision> {
    let until = delivered::later(since, pause);
    (since <= now && now < until).then_some(Decision::Wait { until, reason })
}

/// The configs have not been quiet for long enough.
fn settling(record: &Record, sight: &Sight<'_>) -> Option<Decision> {
    let last = record.unanswered().map(|change| change.last_seen).max()?;
    let first = record.unanswered().map(|change| change.first_seen).min()?;
    let policy = sight.policy;
    let at_most = SETTLE_AT_MOST.max(policy.settle).saturating_sub(last.duration_since(first));
    wait(last, policy.settle.min(at_most), sight.now, WaitReason::Settling)
}

/// Somebody took the stamp away a while ago, and not too often.
fn stamp_gone(record: &Record, sight: &Sight<'_>) -> Option<Decision> {
    let stamp = record.stamp.as_ref().filter(|stamp| stamp.stripped > 0)?;
    let pause = if stamp.stripped == 1 { STRIPPED_PAUSE } else { STRIPPED_PAUSE * 6 };
    wait(stamp.time, pause, sight.now, WaitReason::StampGone)
}

/// Its owner wants more time between two rollouts. The last stamp's time is in the record, so that a restart of restamp
/// does not shorten it.
fn min_interval(record: &Record, sight: &Sight<'_>) -> Option<Decision> {
    let stamp = record.stamp.as_ref()?;
    wait(stamp.time, sight.workload.opt_in.min_interval?, sight.now, WaitReason::MinInterval)
}

/// A rollout that is not ours is in progress, and all pods that it leaves will have been made after the change.
fn others_rollout(record: &Record, sight: &Sight<'_>) -> Option<Decision> {
    let waits = match (sight.workload.progress, sight.workload.strategy) {
        // Somebody has just changed the spec: in a moment it is known which pods that leaves.
        (Progress::Unobserved, _) => true,
        (Progress::InProgress, Strategy::Rolling) => leaves_only_proven_pods(record, sight),
        // The watch of pods is behind if it still shows those of earlier revisions.
        (Progress::Complete { .. }, _) => {
            leaves_only_proven_pods(record, sight) && delivered::unproven(record, sight).next().is_some()
        }
        (Progress::InProgress, Strategy::ByHand(_)) | (Progress::Unknown, _) => false,
    };
    let first = record.unanswered().map(|change| change.first_seen).min()?;
    waits.then(|| wait(first, OTHERS_AT_MOST, sight.now, WaitReason::OthersRollout)).flatten()
}

/// Whether the pods of the present revision have all read the changes; not if they can't be told from others.
fn leaves_only_proven_pods(record: &Record, sight: &Sight<'_>) -> bool {
    revision::current(&sight.own_pods()).is_some_and(|is_current| !delivered::unproven(record, sight).any(is_current))
}

#[cfg(test)]
mod tests;
