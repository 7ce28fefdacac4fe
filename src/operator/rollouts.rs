//! The engine's half for what one workload has to do with the rollouts of others: looks at whoever is stirred, and says
//! which changes are halted.

use jiff::{SignedDuration, Timestamp};
use tracing::warn;

use crate::model::decide::{Decision, WaitReason};
use crate::model::names::{ConfigId, WorkloadId};
use crate::model::rollout::changes;
use crate::model::rollout::halt::Halt;
use crate::model::rollout::suspension::Suspension;
use crate::operator::engine::{Again, Engine};
use crate::operator::events::{Notice, Reason};

/// Between two counts of how far changes are there is this time, where anything happens at all.
const COUNTED_EVERY: SignedDuration = SignedDuration::from_secs(10);

impl Engine {
    /// Looks at those for whom something has changed since others ended, or whose turn has come.
    pub(super) fn go_on(&mut self) {
        let now = Timestamp::now();
        while let Some(id) = self.index.next_stirred(now) {
            self.review_workload(&id, now);
        }
        for config in self.index.rollouts_mut().take_stirred_configs() {
            self.review_config(&config, now);
        }
        let (held, waiting) = self.index.rollouts().counts(now);
        self.metrics.rollouts(held, waiting);
        self.alarm(Again::Changes, now + COUNTED_EVERY, now);
    }

    /// Counts how far the last changes of all configs are.
    pub(super) fn count_changes(&mut self, now: Timestamp) {
        let changes = changes::of_reports(self.reports.reload_statuses(), now);
        self.metrics.changes(&changes);
    }

    /// Nothing rolls in the whole cluster, or all goes on.
    pub(super) fn suspend(&mut self, suspension: Suspension) {
        if self.index.suspend(suspension) {
            warn!(?suspension, "suspension of all rollouts");
            self.review_all();
        }
    }

    /// A window that a workload waits for shows in the metrics.
    pub(super) fn note_window(&self, id: &WorkloadId, decision: Option<&Decision>) {
        let opens = match decision {
            Some(Decision::Wait { until, reason: WaitReason::Window(_) }) => Some(*until),
            _ => None,
        };
        self.metrics.window_opens(id, opens);
    }

    /// It may end although nothing happens.
    pub(super) fn look_when_its_rollout_may_end(&mut self, id: &WorkloadId, now: Timestamp) {
        if let Some(at) = self.index.next_look(id, now) {
            self.alarm(Again::Workload(id.clone()), at, now);
        }
    }

    /// Tells once of each change that is halted. The halt, if there is one.
    pub(super) fn tell_halt(&mut self, id: &ConfigId) -> Option<Halt> {
        let Some(halt) = self.index.halt_of(id) else {
            self.told_halts.remove(id);
            return None;
        };
        if self.told_halts.insert(id.clone(), halt.change.clone()).as_ref() != Some(&halt.change) {
            warn!(kind = %id.kind, ns = %id.namespace, name = %id.name, change = %halt.change, "change halted");
            if let Some(config) = self.index.configs().get(id) {
                self.writer.event(Notice::on_config(config, Reason::ChangeHalted, format!("Halted: {halt}")));
            }
        }
        Some(halt)
    }
}
