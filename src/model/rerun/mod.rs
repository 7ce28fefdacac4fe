//! Jobs and CronJobs, where `--rerun-jobs` asks for it: a Job that has not succeeded is made again, a CronJob runs once.
//!
//! Neither rolls: a Job's template can't be changed, and a CronJob's says only what its next run is. What is due is
//! decided as for any other workload; here is what is different.

pub mod manifest;
pub mod placeholder;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use sha2::{Digest as _, Sha256};

use crate::model::decide::{Decision, WaitReason};
use crate::model::delivered::{CLOCK_SKEW, active, later};
use crate::model::digest::Digest;
use crate::model::names::{Name, Uid, WorkloadId, WorkloadKind};
use crate::model::observe::Sight;
use crate::model::record::Record;
use crate::model::workload::{Owned, Workload};

/// What becomes of annotated Jobs and CronJobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reruns {
    /// They are left alone.
    #[default]
    No,
    /// A change makes a Job again, and runs a CronJob.
    Yes,
}

impl Reruns {
    /// Whether a change does something to this workload, as far as its kind and its owner go. A Job that a controller
    /// owns is that one's to make again.
    pub fn may_run(self, workload: &Workload) -> bool {
        match workload.id.kind {
            WorkloadKind::Job => self == Self::Yes && workload.owned == Owned::Not,
            WorkloadKind::CronJob => self == Self::Yes,
            kind => kind.rolls_by_template(),
        }
    }
}

/// How far a Job or CronJob is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    /// It is neither.
    NotOne,
    /// A Job.
    Job(JobPhase),
    /// A CronJob.
    CronJob(Schedule),
}

/// How far a Job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPhase {
    /// It runs, or will, or has failed.
    Due,
    /// It has no pods until somebody resumes it.
    Suspended,
    /// It is done: what it read does not matter any more.
    Succeeded,
}

/// How a CronJob runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// Not, until somebody resumes it.
    Suspended,
    /// By its schedule.
    Active {
        /// Whether a run has to wait for the one before.
        overlap: Overlap,
        /// How many runs its controller counts as not finished.
        running: usize,
        /// For when the last run was scheduled.
        last: Option<Timestamp>,
    },
}

/// Whether two runs of a CronJob may be under way at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// They may.
    Allowed,
    /// They may not: `concurrencyPolicy` is `Forbid` or `Replace`.
    Barred,
}

impl Run {
    /// How far this Job is.
    pub fn of_job(job: &Job) -> Self {
        let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let mut met = conditions.filter(|condition| condition.status == "True");
        let is_over = met.any(|condition| matches!(condition.type_.as_str(), "Complete" | "SuccessCriteriaMet"));
        let is_suspended = job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true);
        Self::Job(match (is_over, is_suspended) {
            (true, _) => JobPhase::Succeeded,
            (false, true) => JobPhase::Suspended,
            (false, false) => JobPhase::Due,
        })
    }

    /// How this CronJob runs.
    pub fn of_cron_job(cron_job: &CronJob) -> Self {
        if cron_job.spec.suspend == Some(true) {
            return Self::CronJob(Schedule::Suspended);
        }
        let status = cron_job.status.as_ref();
        let overlap = match cron_job.spec.concurrency_policy.as_deref() {
            None | Some("Allow") => Overlap::Allowed,
            Some(_) => Overlap::Barred,
        };
        let running = status.and_then(|status| status.active.as_ref()).map_or(0, Vec::len);
        let last = status.and_then(|status| status.last_schedule_time.as_ref()).map(|time| time.0);
        Self::CronJob(Schedule::Active { overlap, running, last })
    }

    /// Whether no change matters to it as it is: whatever starts later reads anew.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Job(JobPhase::Succeeded | JobPhase::Suspended) | Self::CronJob(Schedule::Suspended))
    }
}

/// What is decided of a Job or CronJob with an open change before the rules that hold for all; `None` to go on with those.
pub fn decide(record: &Record, sight: &Sight<'_>) -> Option<Decision> {
    match &sight.workload.run {
        Run::NotOne => None,
        Run::Job(JobPhase::Succeeded) => Some(Decision::Close),
        Run::Job(JobPhase::Suspended) if active(sight).next().is_none() => Some(Decision::Close),
        // It makes way for the one that is made in its place.
        Run::Job(_) => record.is_answered().then_some(Decision::RollingOut),
        Run::CronJob(Schedule::Suspended) => Some(Decision::Close),
        Run::CronJob(Schedule::Active { last, .. }) => {
            (record.is_answered() || ran_since(record, *last)).then_some(Decision::Close)
        }
    }
}

/// Whether a run that its schedule began has read every open change.
fn ran_since(record: &Record, last: Option<Timestamp>) -> bool {
    record.open_entries().all(|(_, change)| last >= Some(later(change.last_seen, CLOCK_SKEW)))
}

/// How soon a CronJob is looked at again whose runs must not overlap; the end of the run is seen on the watch.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_mins(10);

/// A run is under way that no other one may overlap.
pub fn running(sight: &Sight<'_>) -> Option<Decision> {
    match sight.workload.run {
        Run::CronJob(Schedule::Active { overlap: Overlap::Barred, running: 1.., .. }) => {
            Some(Decision::Wait { until: later(sight.now, LOOK_AGAIN), reason: WaitReason::RunInProgress })
        }
        _ => None,
    }
}

/// The name of the Job by which a CronJob runs for the open changes of its record: the same for the same changes, so
/// that a run which is not known to have begun is not begun twice; another one for the same content written again.
pub fn name_of_run(cron_job: &WorkloadId, uid: &Uid, state: &Digest, record: &Record) -> Name {
    let changes = record.open_entries().flat_map(|(entry, change)| {
        let version = change.version.map(|version| version.to_string()).unwrap_or_default();
        [entry.config.to_string(), version]
    });
    let parts = [uid.to_string(), state.to_string()].into_iter().chain(changes);
    name_with_hash(cron_job.name.as_str(), parts)
}

/// As long as the name of a Job may be: its pods carry it in a label.
const LONGEST_NAME: usize = 63;
/// How many hexadecimal digits of a hash make a name unique.
const HASH: usize = 10;

/// A name that begins like this one, and is different for different parts.
fn name_with_hash(begin: &str, parts: impl Iterator<Item = String>) -> Name {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).take(HASH / 2).collect();
    let begin: String = begin.chars().take(LONGEST_NAME - HASH - 1).collect();
    format!("{}-{hash}", begin.trim_end_matches(['.', '-'])).into()
}

#[cfg(test)]
mod tests;
