//! Where a workload is not as it should be.

use jiff::Timestamp;

use super::{Drift, digest_mismatch, missing_reference, mixed_digests, mutable_tag, outdated_pods, rollout_stalled};
use crate::api::drift_report::Baseline;
use crate::model::config::Configs;
use crate::model::decide::Decision;
use crate::model::pod::{Phase, Pod};
use crate::model::record::Record;
use crate::model::revision::OwnPods;
use crate::model::workload::Workload;

/// A workload under a look, with all that the rules ask.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadSight<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The configs.
    pub configs: &'a Configs,
    /// Its pods.
    pub own_pods: OwnPods<'a>,
    /// How reloading stands, where the operator follows it.
    pub reloading: Option<Reloading<'a>>,
    /// The time.
    pub now: Timestamp,
}

/// How reloading of a workload stands.
#[derive(Debug, Clone, Copy)]
pub struct Reloading<'a> {
    /// What is known of its configs.
    pub record: &'a Record,
    /// What is due.
    pub decision: &'a Decision,
    /// Why what is due is not done.
    pub obstacle: Option<Obstacle<'a>>,
}

/// Why a stamp that is due is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle<'a> {
    /// The last one failed; it is tried again.
    Failure(&'a str),
    /// It is a dry run.
    DryRun,
}

impl<'a> WorkloadSight<'a> {
    /// The pods that count: none that is terminating or has finished.
    pub(super) fn active(&self) -> impl Iterator<Item = &'a Pod> + use<'a> {
        self.own_pods.pods.iter().copied().filter(|pod| pod.phase == Phase::Active)
    }
}

/// Looks at a workload.
pub fn drift_of_workload(sight: &WorkloadSight<'_>) -> Drift {
    let rules = [
        missing_reference::find,
        mixed_digests::find,
        digest_mismatch::find,
        outdated_pods::find,
        rollout_stalled::find,
    ];
    let findings = rules.iter().flat_map(|find| find(sight)).collect();
    let note_rules = [mixed_digests::notes, digest_mismatch::notes, mutable_tag::notes];
    let notes = note_rules.iter().flat_map(|note| note(sight)).collect();
    Drift { baseline: Baseline::None, findings, notes }
}

/// When there may be more to say, though nothing happens until then.
pub fn next_look_at_workload(sight: &WorkloadSight<'_>) -> Option<Timestamp> {
    rollout_stalled::next_look(sight)
}
