//! The rollouts of several workloads: what is due for one passes the rules of [`crate::model::rollout`].

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::api::annotations::RESUME;
use crate::model::decide::{Decision, Hold, WaitReason};
use crate::model::delivered::later;
use crate::model::digest::ChangeId;
use crate::model::index::{Index, Tracked};
use crate::model::names::{ConfigId, Manager, WorkloadId};
use crate::model::record::{Answer, Change, Record};
use crate::model::rerun::Run;
use crate::model::rollout::budget::SLOT_AT_MOST;
use crate::model::rollout::halt::Halt;
use crate::model::rollout::outcome;
use crate::model::rollout::suspension::{SuspendedBy, Suspension};
use crate::model::rollout::window::Windows;
use crate::model::rollout::{Rollouts, Standing, approval, flapping};

impl Index {
    /// What is due for an adopted workload, beside all others; `None` if it is not one. It keeps what became of its
    /// rollout, and its place in the queue.
    pub fn decide(&mut self, id: &WorkloadId, now: Timestamp) -> Option<Decision> {
        self.follow_rollout(id, now);
        let decision = self.decide_alone(id, now);
        let obstacle = match &decision {
            Some(Decision::Stamp) => self.obstacle(id, now),
            _ => None,
        };
        let due = if decision == Some(Decision::Stamp) && obstacle.is_none() { self.due_since(id) } else { None };
        self.note_standing(id, due, now);
        match (decision, obstacle) {
            (Some(Decision::Stamp), Some(obstacle)) => Some(obstacle),
            (Some(Decision::Stamp), None) => Some(self.admit(id, now)),
            (decision, _) => decision,
        }
    }

    /// Notes what became of its rollout.
    fn follow_rollout(&mut self, id: &WorkloadId, now: Timestamp) {
        let Some(tracked) = self.workloads.get(id) else { return };
        let followed = |record: &&Record| outcome::is_followed(&tracked.workload, record, now);
        let Some(record) = tracked.record.as_ref().filter(followed) else { return };
        let ended = self.with_sight(tracked, &record.counting, now, |sight| outcome::outcome(record, sight));
        let record = self.workloads.get_mut(id).and_then(|tracked| tracked.record.as_mut());
        if let (Some(ended), Some(stamp)) = (ended, record.and_then(|record| record.stamp.as_mut())) {
            stamp.outcome = ended;
        }
    }

    /// When its rollout may have ended although nothing happened.
    pub fn next_look(&self, id: &WorkloadId, now: Timestamp) -> Option<Timestamp> {
        let tracked = self.workloads.get(id)?;
        let record = tracked.record.as_ref()?;
        let is_followed = outcome::is_followed(&tracked.workload, record, now);
        let ends = || self.with_sight(tracked, &record.counting, now, |sight| outcome::next_look(record, sight));
        let ends = is_followed.then(ends).flatten();
        ends.into_iter().chain(flapping::held_until(record, now)).min()
    }

    /// Keeps how it stands beside others. Of one that was not seen yet, its stored record tells whether it holds a slot.
    pub(super) fn note_standing(&mut self, id: &WorkloadId, due: Option<Timestamp>, now: Timestamp) {
        let standing = match self.workloads.get(id) {
            Some(tracked) => tracked.record.as_ref().map(|record| {
                let standing = Standing::of(&tracked.workload, record, now);
                let unsure = tracked.unsure.map(|(since, _)| since).filter(|since| later(*since, SLOT_AT_MOST) > now);
                Standing { slot: standing.slot.or(unsure), ..standing }
            }),
            None => self
                .stored
                .get(id)
                .and_then(|stored| stored.record.as_ref())
                .map(|record| Standing { slot: outcome::slot_by_record(record, now), ..Standing::default() }),
        };
        self.rollouts.note(id, Standing { due, ..standing.unwrap_or_default() });
    }

    /// Since when it has been due; not for a Job or CronJob, which needs no slot.
    fn due_since(&self, id: &WorkloadId) -> Option<Timestamp> {
        let tracked = self.workloads.get(id).filter(|tracked| tracked.workload.run == Run::NotOne)?;
        tracked.record.as_ref()?.unanswered().map(|change| change.first_seen).min()
    }

    /// What keeps it from being rolled, whether there is a slot or not.
    fn obstacle(&self, id: &WorkloadId, now: Timestamp) -> Option<Decision> {
        let tracked = self.workloads.get(id)?;
        let record = tracked.record.as_ref()?;
        if let Some(obstacle) = self.somebody_says_no(tracked, record, now) {
            return Some(Decision::Hold(obstacle));
        }
        let unanswered = || record.open_entries().filter(|(_, change)| change.answer != Answer::Stamped);
        let configs = || unanswered().map(|(entry, _)| entry.config.within(&id.namespace));
        if let Some((config, halt)) = configs().find_map(|config| Some((config.clone(), self.halted(&config)?))) {
            return Some(Decision::Hold(Hold::ChangeHalted { config: config.local(), change: halt }));
        }
        if flapping::held_until(record, now).is_some() {
            let managers = configs().flat_map(|config| self.writers_of(&config)).collect();
            return Some(Decision::Hold(Hold::Flapping { managers }));
        }
        if let Some(windows) = self.windows_of(tracked)
            && let until = windows.opens(now).unwrap_or(Timestamp::MAX)
            && until > now
        {
            return Some(Decision::Wait { until, reason: WaitReason::Window(windows.to_string()) });
        }
        let wave = tracked.workload.opt_in.wave;
        let place = configs().find_map(|config| self.rollouts.ahead(id, wave, &config).cloned())?;
        // It is looked at again when that one has ended.
        Some(Decision::Wait { until: later(now, SLOT_AT_MOST), reason: WaitReason::Wave(place) })
    }

    fn somebody_says_no(&self, tracked: &Tracked, record: &Record, now: Timestamp) -> Option<Hold> {
        let workload = &tracked.workload;
        let namespace = self.timing_in(&workload.id.namespace).map_or(Suspension::No, |timing| timing.suspension);
        if let Some(by) = SuspendedBy::widest(self.suspension, namespace, workload.opt_in.suspension) {
            return Some(Hold::Suspended(by));
        }
        let hash = self.hash_to_approve(tracked, record, now)?;
        (workload.opt_in.approved.as_deref() != Some(hash.as_str())).then_some(Hold::NotApproved { hash })
    }

    /// The hash that approves what is due for a workload, where it has to be approved.
    fn hash_to_approve(&self, tracked: &Tracked, record: &Record, now: Timestamp) -> Option<String> {
        if !approval::is_asked_for(record) {
            return None;
        }
        self.with_sight(tracked, &record.counting, now, |sight| {
            Some(approval::hash_of(&sight.consumed.digest(sight.uid, self.keyring.current())))
        })
    }

    fn windows_of<'a>(&'a self, tracked: &'a Tracked) -> Option<&'a Windows> {
        let namespace = || self.timing_in(&tracked.workload.id.namespace)?.windows.as_deref();
        tracked.workload.opt_in.windows.as_deref().or_else(namespace)
    }

    fn writers_of(&self, config: &ConfigId) -> BTreeSet<Manager> {
        let owners = self.configs.get(config).into_iter().flat_map(|config| config.managed_fields.iter().flatten());
        owners.filter(|owner| !owner.keys.is_empty()).map(|owner| owner.manager.clone()).collect()
    }

    /// Whether nothing rolls in the whole cluster. Whoever may be due or held is to be looked at again then: all are.
    pub fn suspend(&mut self, suspension: Suspension) -> bool {
        std::mem::replace(&mut self.suspension, suspension) != suspension
    }

    fn admit(&self, id: &WorkloadId, now: Timestamp) -> Decision {
        if self.due_since(id).is_none() {
            return Decision::Stamp;
        }
        match self.rollouts.admits(id, self.policy.budget, now) {
            Ok(()) => Decision::Stamp,
            // It is looked at again when its turn has come.
            Err(full) => Decision::Wait { until: later(now, SLOT_AT_MOST), reason: WaitReason::Budget(full) },
        }
    }

    /// The present change of this config, if it is halted.
    fn halted(&self, config: &ConfigId) -> Option<ChangeId> {
        let failed = self.rollouts.failed(config)?;
        let change = self.present_change(config)?;
        let resumed = self.configs.get(config).and_then(|config| config.annotations.get(RESUME));
        let is_resumed = resumed.is_some_and(|resumed| resumed == change.as_str());
        (!is_resumed && self.policy.halt_after.halts(&change, failed)).then_some(change)
    }

    fn present_change(&self, config: &ConfigId) -> Option<ChangeId> {
        let change = self.rollouts.pending(config).find_map(|id| self.change_of(id, config));
        // Nobody else waits for it.
        let is_there = self.configs.get(config).is_some();
        (change.is_some() || is_there).then(|| outcome::change_id(config, change, &self.configs, &self.keyring))
    }

    fn change_of(&self, id: &WorkloadId, config: &ConfigId) -> Option<&Change> {
        self.workloads.get(id)?.record.as_ref()?.entry(&config.local())?.change.as_ref()
    }

    /// What there is to say about the present change of this config, if it is halted.
    pub fn halt_of(&self, config: &ConfigId) -> Option<Halt> {
        let change = self.halted(config)?;
        let failed = self.rollouts.failed(config).into_iter().flatten();
        let failed = failed.filter(|(_, (_, failed))| *failed == change).map(|(id, _)| id.clone());
        let failed: BTreeSet<WorkloadId> = failed.collect();
        let is_held = |id: &&WorkloadId| self.rollouts.standing(id).is_some_and(|standing| standing.slot.is_none());
        let spared = || self.rollouts.pending(config).filter(is_held).filter(|id| !failed.contains(*id));
        let changes = || spared().filter_map(|id| self.change_of(id, config));
        Some(Halt {
            keys: changes().flat_map(|change| change.keys.iter().cloned()).collect(),
            seen: changes().map(|change| change.last_seen).max(),
            written: self.configs.get(config).and_then(|config| config.last_write_of(|_| true)),
            spared: spared().cloned().collect(),
            change,
            failed: failed.clone(),
        })
    }

    /// Who gets no stamp now, although it is due, makes room for others until it is looked at again.
    pub fn step_back(&mut self, id: &WorkloadId) {
        self.rollouts.step_back(id);
    }

    /// Whom to look at again, since something has changed for others, or since its turn has come.
    pub fn next_stirred(&mut self, now: Timestamp) -> Option<WorkloadId> {
        self.rollouts.next(self.policy.budget, now)
    }

    /// The rollouts of all workloads.
    pub fn rollouts(&self) -> &Rollouts {
        &self.rollouts
    }

    /// The rollouts of all workloads, to be told whom to look at again.
    pub fn rollouts_mut(&mut self) -> &mut Rollouts {
        &mut self.rollouts
    }
}
