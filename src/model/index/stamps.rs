//! Stamps: what is to be sent, and what became of it.

use jiff::Timestamp;

use crate::model::cause::Cause;
use crate::model::digest::Digest;
use crate::model::index::Index;
use crate::model::names::{Name, ResourceVersion, Uid, WorkloadId};
use crate::model::observe::Sight;
use crate::model::pod::Phase;
use crate::model::record::{Before, Record};
use crate::model::rerun::{Run, name_of_run};
use crate::model::stamp::Stamp;
use crate::model::workload::{Deadline, Progress};

/// One stamp to be sent: where, on which state, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StampOrder {
    /// The workload.
    pub workload: WorkloadId,
    /// Its uid: a workload that was made again is another one.
    pub uid: Uid,
    /// What is to be done.
    pub act: Act,
    /// The version that was decided on: on another one, the API server refuses.
    pub version: ResourceVersion,
    /// The stamp.
    pub text: String,
    /// What it answers.
    pub cause: Cause,
    /// When the first of the changes that it answers was seen.
    pub due_since: Timestamp,
}

/// What restamp does to a workload, so that it reads a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// The stamp goes into its pod template.
    Stamp,
    /// Its pods are restarted from this time on, where a rollout is not what its owner wants.
    RestartAt(Timestamp),
    /// It is a Job, and is made again.
    MakeAgain,
    /// It is a CronJob, and runs as a Job of this name.
    Run(Name),
}

impl Index {
    /// The stamp that is due, to be sent; it is remembered until it is known what became of it.
    pub fn begin_stamp(&mut self, id: &WorkloadId, now: Timestamp) -> Option<StampOrder> {
        let tracked = self.workloads.get(id)?;
        let record = tracked.record.as_ref()?;
        let workload = &tracked.workload;
        let (digest, act, before) = self.with_sight(tracked, &record.counting, now, |sight| {
            let digest = sight.consumed.digest(sight.uid, self.keyring.current());
            let act = act(record, sight, &digest);
            Some((digest, act, before(sight)))
        })?;
        let stamp = Stamp { digest, generation: workload.generation };
        let order = StampOrder {
            workload: id.clone(),
            uid: workload.uid.clone()?,
            act,
            version: workload.version?,
            text: stamp.to_string(),
            cause: Cause::of(record),
            due_since: record.open_entries().map(|(_, change)| change.first_seen).min()?,
        };
        self.workloads.get_mut(id)?.record.as_mut()?.ask(order.text.clone(), now).before = before;
        Some(order)
    }

    /// The stamp was refused: it is not on the workload. Where that is not known, nothing is said.
    pub fn refused(&mut self, order: &StampOrder) {
        if let Some(record) = self.workloads.get_mut(&order.workload).and_then(|tracked| tracked.record.as_mut()) {
            record.refuse(&order.text);
        }
    }

    /// The stamp was put on; the workload is now at this version and generation.
    pub fn stamped(&mut self, order: &StampOrder, version: ResourceVersion, generation: i64) {
        let tracked = self.workloads.get_mut(&order.workload);
        let Some(tracked) = tracked.filter(|tracked| tracked.workload.uid.as_ref() == Some(&order.uid)) else { return };
        if tracked.workload.version < Some(version) {
            tracked.workload.version = Some(version);
            tracked.workload.generation = generation;
            tracked.workload.stamp = Some(order.text.clone());
            tracked.workload.progress = Progress::Unobserved;
        }
        if let Some(record) = &mut tracked.record {
            record.confirm(&order.text);
        }
    }

    /// The Job makes way for the new one, or the CronJob runs.
    pub fn reran(&mut self, order: &StampOrder) {
        let tracked = self.workloads.get_mut(&order.workload);
        let same = tracked.filter(|tracked| tracked.workload.uid.as_ref() == Some(&order.uid));
        if let Some(record) = same.and_then(|tracked| tracked.record.as_mut()) {
            record.confirm(&order.text);
        }
    }
}

/// How the rollout stands that a stamp would replace.
fn before(sight: &Sight<'_>) -> Before {
    let workload = sight.workload;
    let is_complete = matches!(workload.progress, Progress::Complete { .. }) && workload.deadline != Deadline::Exceeded;
    let mut active = sight.pods.iter().filter(|pod| pod.phase == Phase::Active);
    if is_complete && active.all(|pod| pod.blocked.is_none()) { Before::Settled } else { Before::Unsettled }
}

/// What makes this workload read the open changes of its record.
fn act(record: &Record, sight: &Sight<'_>, state: &Digest) -> Act {
    let workload = sight.workload;
    match workload.run {
        Run::NotOne => workload.lever.restart_at(sight.pods, sight.now).map_or(Act::Stamp, Act::RestartAt),
        Run::Job(_) => Act::MakeAgain,
        Run::CronJob(_) => Act::Run(name_of_run(&workload.id, sight.uid, state, record)),
    }
}
