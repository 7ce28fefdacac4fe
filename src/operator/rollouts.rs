//! The engine's half for what one workload has to do with the rollouts of others: looks at whoever is stirred, and says
//! which changes are halted.

use jiff::Timestamp;
use tracing::warn;

use crate::model::names::{ConfigId, WorkloadId};
use crate::model::rollout::halt::Halt;
use crate::operator::engine::{Again, Engine};
use crate::operator::events::{Notice, Reason};

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
