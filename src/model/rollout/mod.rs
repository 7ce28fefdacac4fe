//! How a change of a config gets to those who read it: not to all at once, in an order, and no further once it harms.
//!
//! [`decide`](crate::model::decide) says what is due for one workload by itself. What is due then passes these rules, in
//! this order; each follows from the objects, so that a restart of the operator loses nothing:
//!
//! 1. **Suspension** ([`suspension`]) and **approval** ([`approval`]): somebody said that nothing rolls, or wants to be asked.
//! 2. **Halt** ([`halt`]): the change has failed in too many workloads, so that nobody else gets it. A change is a config
//!    and a digest of all that it holds: whatever is written next is another change, and a fix always gets through.
//! 3. **Flapping** ([`flapping`]): it changes again and again, so that each further rollout comes later.
//! 4. **Window** ([`window`]): its owners want it to roll at other times.
//! 5. **Wave** ([`wave`]): the change has not ended yet for those who are to get it earlier.
//! 6. **Budget** ([`budget`]): so many rollouts that restamp began are not finished that there is no slot for one more.
//!
//! What became of a rollout ([`outcome`]) stands in the record beside the stamp that began it. A stamp holds a slot from the
//! moment at which it is sent, until its rollout completes or fails, or for 15 minutes: StatefulSets and DaemonSets have no
//! deadline of their own. Who waits for a slot is not written down: it is due, by its record.
//!
//! [`Rollouts`] keeps what the rules need of all workloads at once: who holds a slot, who waits for one, whose change has not
//! ended, and where one failed. A workload at rest has no place in it. Whoever is to be looked at again since another one
//! ended is *stirred*.
//!
//! Jobs and CronJobs take no slot, since they are no rollouts; they are held by a halt as all others are.

pub mod approval;
pub mod budget;
pub mod changes;
pub mod flapping;
pub mod halt;
pub mod outcome;
pub mod suspension;
pub mod wave;
pub mod window;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use crate::model::digest::ChangeId;
use crate::model::names::{ConfigId, WorkloadId};
use crate::model::record::Record;
use crate::model::workload::Workload;
use budget::{Budget, Queue};
use wave::{Place, Wave};

/// What one workload has to do with the rollouts of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// When it gets a change, beside others.
    pub wave: Wave,
    /// Since when it holds a slot.
    pub slot: Option<Timestamp>,
    /// Since when it waits for nothing but a slot.
    pub due: Option<Timestamp>,
    /// The configs with a change that has not ended for it.
    pub pending: BTreeSet<ConfigId>,
    /// The changes that its failed rollout is laid to.
    pub failed: BTreeMap<ConfigId, ChangeId>,
}

impl Standing {
    /// What follows from its record, beside whether it waits for a slot.
    pub fn of(workload: &Workload, record: &Record, now: Timestamp) -> Self {
        let namespace = &workload.id.namespace;
        let pending = outcome::pending(workload, record, now).map(|config| config.within(namespace));
        let failed = outcome::laid_to(record).map(|change| (change.config.within(namespace), change.id.clone()));
        Self {
            wave: workload.opt_in.wave,
            slot: outcome::slot(workload, record, now),
            due: None,
            pending: pending.collect(),
            failed: failed.collect(),
        }
    }

    fn is_at_rest(&self) -> bool {
        Self { wave: Wave::default(), ..self.clone() } == Self::default()
    }
}

/// Who is to be looked at again, since something changed for others.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stirred {
    /// Workloads whose decision may be another one now.
    pub workloads: BTreeSet<WorkloadId>,
    /// Configs whose report may be another one now.
    pub configs: BTreeSet<ConfigId>,
}

/// The rollouts of all workloads.
#[derive(Debug, Default)]
pub struct Rollouts {
    standings: HashMap<WorkloadId, Standing>,
    queue: Queue,
    pending: HashMap<ConfigId, BTreeSet<Place>>,
    failed: HashMap<ConfigId, BTreeMap<WorkloadId, (Wave, ChangeId)>>,
    stirred: Stirred,
}

impl Rollouts {
    /// How a workload stands; nobody who is at rest does.
    pub fn standing(&self, id: &WorkloadId) -> Option<&Standing> {
        self.standings.get(id)
    }

    /// A workload stands like this now.
    pub fn note(&mut self, id: &WorkloadId, now: Standing) {
        let before = self.standings.remove(id).unwrap_or_default();
        if before != now {
            self.queue.note(id, (before.slot, before.due), (now.slot, now.due));
            self.note_pending(id, &before, &now);
            self.note_failed(id, &before, &now);
        }
        if !now.is_at_rest() {
            self.standings.insert(id.clone(), now);
        }
    }

    fn note_pending(&mut self, id: &WorkloadId, before: &Standing, now: &Standing) {
        let gone = before.pending.iter().filter(|config| before.wave != now.wave || !now.pending.contains(*config));
        for config in gone {
            let Some(places) = self.pending.get_mut(config) else { continue };
            places.remove(&Place { wave: before.wave, workload: id.clone() });
            self.stirred.workloads.extend(wave::behind(places, before.wave).cloned());
            if places.is_empty() {
                self.pending.remove(config);
            }
        }
        for config in &now.pending {
            let place = Place { wave: now.wave, workload: id.clone() };
            self.pending.entry(config.clone()).or_default().insert(place);
        }
        let changed = before.pending.symmetric_difference(&now.pending);
        self.stirred.configs.extend(changed.filter(|config| self.failed.contains_key(*config)).cloned());
    }

    fn note_failed(&mut self, id: &WorkloadId, before: &Standing, now: &Standing) {
        if before.failed == now.failed && before.wave == now.wave {
            return;
        }
        for config in before.failed.keys() {
            if let Some(failed) = self.failed.get_mut(config) {
                failed.remove(id);
                if failed.is_empty() {
                    self.failed.remove(config);
                }
            }
        }
        for (config, change) in &now.failed {
            self.failed.entry(config.clone()).or_default().insert(id.clone(), (now.wave, change.clone()));
        }
        for config in before.failed.keys().chain(now.failed.keys()) {
            let waiting = self.pending.get(config).into_iter().flatten().map(|place| &place.workload);
            self.stirred.workloads.extend(waiting.filter(|waiting| *waiting != id).cloned());
            self.stirred.configs.insert(config.clone());
        }
    }

    /// The workload that has to get this change before this one does.
    pub fn ahead(&self, id: &WorkloadId, wave: Wave, config: &ConfigId) -> Option<&Place> {
        wave::ahead(self.pending.get(config)?, wave, id)
    }

    /// The workloads for which the change of this config has not ended.
    pub fn pending(&self, config: &ConfigId) -> impl Iterator<Item = &WorkloadId> {
        self.pending.get(config).into_iter().flatten().map(|place| &place.workload)
    }

    /// The workloads in which the change of this config failed, with their waves; nobody, of most configs.
    pub fn failed(&self, config: &ConfigId) -> Option<&BTreeMap<WorkloadId, (Wave, ChangeId)>> {
        self.failed.get(config)
    }

    /// The configs with a change that failed somewhere.
    pub fn failed_configs(&self) -> impl Iterator<Item = &ConfigId> {
        self.failed.keys()
    }

    /// Whether there is a slot for this workload, and its turn, by this budget.
    pub fn admits(&self, id: &WorkloadId, budget: Budget, now: Timestamp) -> Result<(), budget::Full> {
        self.queue.admits(id, budget, now)
    }

    /// How many hold a slot, and how many wait for one.
    pub fn counts(&self, now: Timestamp) -> (usize, usize) {
        self.queue.counts(now)
    }

    /// Who waits for a slot, and gets none now, does not wait for it until it is looked at again.
    pub fn step_back(&mut self, id: &WorkloadId) {
        if let Some(standing) = self.standings.get(id) {
            let now = Standing { due: None, ..standing.clone() };
            self.note(id, now);
        }
    }

    /// These are to be looked at again.
    pub fn stir(&mut self, workloads: impl IntoIterator<Item = WorkloadId>) {
        self.stirred.workloads.extend(workloads);
    }

    /// Whom to look at next: one that was stirred, or whose turn it is.
    pub fn next(&mut self, budget: Budget, now: Timestamp) -> Option<WorkloadId> {
        self.stirred.workloads.pop_first().or_else(|| self.queue.next(budget, now))
    }

    /// The configs that were stirred.
    pub fn take_stirred_configs(&mut self) -> BTreeSet<ConfigId> {
        std::mem::take(&mut self.stirred.configs)
    }
}
