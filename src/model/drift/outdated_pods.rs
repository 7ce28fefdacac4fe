//! `OutdatedPods`: containers run that started before what they read at their start last changed.
//!
//! Certain is what the operator saw: the change as it happened, and the container running before it. Otherwise
//! managedFields say when a manager last wrote the config; not what it wrote, so that is likely at most. Each container counts by its
//! own start: one that restarted in its pod has read anew. One that mounts the config sees the change as it is.
//!
//! While a rollout brings the change to the pods, nothing is said: it is not drift.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use super::{Finding, Obstacle, Reloading, WorkloadSight, rollout_stalled};
use crate::api::annotations::CONFIG_HASH;
use crate::api::ignore::Ignore;
use crate::model::cause::Cause;
use crate::model::config::Config;
use crate::model::consumption::Refresh;
use crate::model::decide::{Decision, Hold};
use crate::model::delivered::{CLOCK_SKEW, later};
use crate::model::managed_fields::LastWrite;
use crate::model::names::{ConfigId, ConfigName, KeyName, Name};
use crate::model::pod::{Activity, Pod, RunningContainer, Started};
use crate::model::record::{Change, Seen};
use crate::model::revision;
use crate::model::workload::{ByHand, Progress, Strategy};

/// Containers that started too early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outdated {
    /// The config that changed since.
    pub config: ConfigName,
    /// In how many pods they are.
    pub pods: u32,
    /// When the first of them started.
    pub oldest_start: Timestamp,
    /// How that is known.
    pub evidence: Evidence,
}

/// How it is known that a config changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// The operator saw it.
    Seen {
        /// When.
        at: Timestamp,
        /// What changed.
        change: Cause,
        /// Why the pods are still there.
        why: Why,
    },
    /// This manager wrote it.
    Written {
        /// Who, and when.
        write: LastWrite,
        /// How pods are replaced.
        strategy: Strategy,
    },
}

/// Why a change that the operator saw doesn't come to the pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The workload's owner decides when pods are replaced.
    ByHand(ByHand),
    /// Somebody removes the stamp: this one, if it wrote the pod template since.
    Stripped(Option<LastWrite>),
    /// The rollout makes no progress.
    Stalled,
    /// It is held, as the text says.
    Held(String),
    /// The stamp can't be written, as the text says.
    Failing(String),
    /// It is a dry run.
    DryRun,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByHand(by_hand) => by_hand.fmt(f),
            Self::Stripped(Some(writer)) => write!(
                f,
                "restamp's stamp was removed again and again, and {} wrote the pod template since: let it leave \
                 {CONFIG_HASH} alone",
                writer.manager
            ),
            Self::Stripped(None) => {
                write!(f, "restamp's stamp was removed again and again: let other managers leave {CONFIG_HASH} alone")
            }
            Self::Stalled => f.write_str("its rollout makes no progress: see RolloutStalled"),
            Self::Held(hold) => f.write_str(hold),
            Self::Failing(failure) => f.write_str(failure),
            Self::DryRun => f.write_str("restamp runs with --dry-run"),
        }
    }
}

/// One finding for each config.
pub(super) fn find(sight: &WorkloadSight<'_>) -> Vec<Finding> {
    let workload = sight.workload;
    // What a Job, or a pod of its own, has read belongs to its one run.
    if workload.deleting || !workload.id.kind.rolls_by_template() {
        return Vec::new();
    }
    let outdated = frozen(sight).into_iter().filter(|id| !is_ignored(sight, id));
    let outdated = outdated.filter_map(|id| match sight.reloading {
        Some(reloading) => seen_or_written(sight, &reloading, id),
        None => written(sight, id),
    });
    outdated.map(Finding::OutdatedPods).collect()
}

/// The configs that some container reads at its start.
fn frozen<'a>(sight: &WorkloadSight<'a>) -> BTreeSet<&'a ConfigId> {
    let references = sight.workload.consumption.references();
    references
        .filter(|reference| reference.via.refresh() == Refresh::AtStart)
        .map(|reference| reference.config)
        .collect()
}

fn is_ignored(sight: &WorkloadSight<'_>, id: &ConfigId) -> bool {
    sight.configs.get(id).is_some_and(|config| matches!(Ignore::read(&config.annotations), Ok(Some(_))))
}

/// Where the operator follows a config, managedFields say something only of the time before.
fn seen_or_written(sight: &WorkloadSight<'_>, reloading: &Reloading<'_>, id: &ConfigId) -> Option<Outdated> {
    let entry = reloading.record.entry(&id.local())?;
    match (&entry.change, entry.last_changed) {
        (Some(change), _) => seen(sight, reloading, id, change),
        // All have read that change, and there was none since.
        (None, Some(_)) => None,
        (None, None) => written(sight, id),
    }
}

fn seen(sight: &WorkloadSight<'_>, reloading: &Reloading<'_>, id: &ConfigId, change: &Change) -> Option<Outdated> {
    if change.seen != Seen::Happening {
        return None;
    }
    let why = why(sight, reloading)?;
    let readers = readers_of_change(sight, id, change);
    let stamp = reloading.record.stamp.as_ref().map(|stamp| stamp.text.as_str());
    let unstamped = sight.active().filter(|pod| pod.stamp.is_none() || pod.stamp.as_deref() != stamp);
    let before = |pod: &Pod, container: &RunningContainer, started| {
        let was_there = pod.version.is_some() && pod.version < change.version && started <= change.last_seen;
        readers.contains(&container.name) && (was_there || later(started, CLOCK_SKEW) <= change.last_seen)
    };
    let (pods, oldest_start) = count(unstamped, before)?;
    let change_text = Cause::of_config(id.local(), change.keys.clone());
    let evidence = Evidence::Seen { at: change.last_seen, change: change_text, why };
    Some(Outdated { config: id.local(), pods, oldest_start, evidence })
}

/// Why a change stays away from the pods; `None` while it is on its way.
fn why(sight: &WorkloadSight<'_>, reloading: &Reloading<'_>) -> Option<Why> {
    match reloading.decision {
        Decision::Hold(Hold::StampStripped) => Some(Why::Stripped(stripper(sight, reloading))),
        Decision::Hold(hold @ Hold::Missing(_)) => Some(Why::Held(hold.to_string())),
        Decision::Stamp => match reloading.obstacle? {
            Obstacle::Failure(failure) => Some(Why::Failing(failure.to_owned())),
            Obstacle::DryRun => Some(Why::DryRun),
        },
        Decision::RollingOut => match sight.workload.strategy {
            Strategy::ByHand(by_hand) => Some(Why::ByHand(by_hand)),
            Strategy::Rolling => rollout_stalled::stall(sight).map(|_| Why::Stalled),
        },
        Decision::Nothing
        | Decision::Close
        | Decision::Wait { .. }
        | Decision::Hold(
            Hold::BeingDeleted | Hold::NamespaceBeingDeleted | Hold::OtherInstance { .. } | Hold::NotSynced { .. },
        ) => None,
    }
}

/// Whoever wrote the pod template since our last stamp. One that only takes away leaves no trace in managedFields.
fn stripper(sight: &WorkloadSight<'_>, reloading: &Reloading<'_>) -> Option<LastWrite> {
    let stamped = reloading.record.stamp.as_ref()?.time.as_second();
    let written = sight.workload.template_written.clone()?;
    (written.time?.as_second() >= stamped).then_some(written)
}

/// The containers that read a changed key at their start. One that is gone is named by whoever takes all keys.
fn readers_of_change<'a>(sight: &WorkloadSight<'a>, id: &ConfigId, change: &Change) -> BTreeSet<&'a Name> {
    let references = sight.workload.consumption.references();
    let frozen = references.filter(|reference| reference.config == id && reference.via.refresh() == Refresh::AtStart);
    let of_change = frozen.filter(|reference| {
        change.keys.is_empty() || reference.all || reference.keys.iter().any(|key| change.keys.contains(*key))
    });
    of_change.map(|reference| reference.container).collect()
}

fn written(sight: &WorkloadSight<'_>, id: &ConfigId) -> Option<Outdated> {
    let config = sight.configs.get(id)?;
    let pods = staying(sight);
    // Which keys are read takes long to tell, and mostly everything started later.
    let last = config.last_write_of_values()?;
    count(pods.iter().copied(), |_, _, started| started < last)?;
    let writes = writes_of_what_is_read(sight, config);
    let before = |pod: &Pod, container: &RunningContainer, started| {
        let written = writes.get(&container.name).and_then(|write| write.time);
        // The API server dates both writes: what a status showed by then was so.
        let was_shown = |written| started < written && pod.status_written.is_some_and(|shown| shown < written);
        written.is_some_and(|written| was_shown(written) || later(started, CLOCK_SKEW) <= written)
    };
    let (pods, oldest_start) = count(pods, before)?;
    let evidence = Evidence::Written { write: writes.into_values().max()?, strategy: sight.workload.strategy };
    Some(Outdated { config: id.local(), pods, oldest_start, evidence })
}

/// By container, the last write by a manager of what it reads at its start.
fn writes_of_what_is_read<'a>(sight: &WorkloadSight<'a>, config: &Config) -> BTreeMap<Name, LastWrite> {
    let mut keys: BTreeMap<Name, BTreeSet<KeyName>> = BTreeMap::new();
    let reads = sight.workload.consumption.reads(sight.configs);
    for read in reads.into_iter().filter(|read| read.config == config.id && read.via.refresh() == Refresh::AtStart) {
        keys.entry(read.container).or_default().insert(read.key);
    }
    let write = |(container, keys): (Name, BTreeSet<KeyName>)| {
        Some((container, config.last_write_of(|key| keys.contains(key))?))
    };
    keys.into_iter().filter_map(write).collect()
}

/// The pods that no rollout is about to take away.
fn staying<'a>(sight: &WorkloadSight<'a>) -> Vec<&'a Pod> {
    let workload = sight.workload;
    let leaves_pods = matches!(workload.strategy, Strategy::ByHand(_)) || rollout_stalled::stall(sight).is_some();
    match (workload.progress, revision::of_the_template(&sight.own_pods)) {
        _ if leaves_pods => sight.active().collect(),
        (_, Some(is_of_it)) => sight.active().filter(|pod| is_of_it(pod)).collect(),
        (Progress::Unobserved | Progress::InProgress, None) => Vec::new(),
        (Progress::Complete { .. } | Progress::Unknown, None) => sight.active().collect(),
    }
}

/// In how many of these pods such a container runs, and the first start; `None` if in none.
fn count<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    is_early: impl Fn(&Pod, &RunningContainer, Timestamp) -> bool,
) -> Option<(u32, Timestamp)> {
    let early = |pod: &Pod| {
        let running = pod.containers.iter().filter(|container| container.activity == Activity::Running);
        let starts = running.filter_map(|container| match container.started {
            Started::At(started) if is_early(pod, container, started) => Some(started),
            Started::At(_) | Started::NotYet | Started::Unknown => None,
        });
        starts.min()
    };
    pods.into_iter().filter_map(early).fold(None, |counted, start| {
        let (pods, oldest) = counted.unwrap_or((0, start));
        Some((pods + 1, oldest.min(start)))
    })
}

#[cfg(test)]
mod tests;
