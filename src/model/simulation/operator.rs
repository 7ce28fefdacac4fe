//! The operator around the index, as the engine is: it decides, sends stamps, and writes records down.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::cluster::{Cluster, INSTANCE, config_id, time};
use crate::model::builders::{keyring, policy};
use crate::model::decide::Decision;
use crate::model::delivered;
use crate::model::index::{Event, Index, StampOrder};
use crate::model::names::{Uid, WorkloadId, WorkloadKind};
use crate::model::scope::Extent;
use crate::model::watched::Watched;

/// What was in view while a record was kept: which of a config's contents.
pub type Seen = BTreeSet<(usize, usize)>;

#[derive(Debug)]
pub struct Operator {
    pub index: Index,
    id: WorkloadId,
    /// A stamp whose answer is waited for.
    pub waits_for: Option<StampOrder>,
    alarms: BTreeSet<Timestamp>,
    /// What it sees, of the workload with this uid.
    pub seen: (Option<Uid>, Seen),
}

impl Operator {
    /// `seen` is what the record that is written down knows of.
    pub fn new(kind: WorkloadKind, seen: (Option<Uid>, Seen)) -> Self {
        let mut index = Index::new(Arc::new(keyring()), policy(), INSTANCE);
        // Nothing in this world depends on the namespace.
        index.apply(Event::ListBegins(Watched::Namespace, Extent::Cluster), Timestamp::UNIX_EPOCH);
        index.apply(Event::ListEnds(Watched::Namespace, Extent::Cluster), Timestamp::UNIX_EPOCH);
        Self { index, id: Cluster::workload_id(kind), waits_for: None, alarms: BTreeSet::new(), seen }
    }

    pub fn take(&mut self, event: Event, cluster: &Cluster, now: Timestamp) -> Option<StampOrder> {
        let work = self.index.apply(event, now);
        self.note_seen(cluster, now);
        work.workloads.contains(&self.id).then(|| self.review(now)).flatten()
    }

    fn note_seen(&mut self, cluster: &Cluster, now: Timestamp) {
        let Some(tracked) = self.index.workload(&self.id).filter(|tracked| tracked.record.is_some()) else { return };
        if !matches!(self.index.decide_alone(&self.id, now), Some(decision) if !is_not_synced(&decision)) {
            return;
        }
        if self.seen.0 != tracked.workload.uid {
            self.seen = (tracked.workload.uid.clone(), Seen::new());
        }
        for config in 0..2 {
            match self.index.configs().get(&config_id(config)) {
                Some(it) => self.seen.1.extend(it.resource_version.and_then(|version| cluster.content_at(version))),
                None => {
                    let absent = cluster.history[config].iter().rposition(Option::is_none);
                    self.seen.1.extend(absent.map(|content| (config, content)));
                }
            }
        }
    }

    /// Decides, and acts on it. A stamp to be sent comes back.
    pub fn review(&mut self, now: Timestamp) -> Option<StampOrder> {
        if self.waits_for.is_some() {
            return None;
        }
        match self.index.decide(&self.id, now)? {
            Decision::Close => self.index.close(&self.id),
            Decision::Wait { until, .. } => {
                self.alarms.insert(until);
            }
            Decision::Stamp => {
                self.waits_for = self.index.begin_stamp(&self.id, now);
                return self.waits_for.clone();
            }
            Decision::Nothing | Decision::RollingOut | Decision::Hold(_) => {}
        }
        let record = self.index.workload(&self.id).and_then(|tracked| tracked.record.as_ref());
        self.alarms.extend(record.and_then(delivered::waiting_counts_from).filter(|at| *at > now));
        None
    }

    /// The next time at which it looks again.
    pub fn alarm(&self) -> Option<Timestamp> {
        self.alarms.first().copied()
    }

    /// Looks again, if it is time.
    pub fn wake(&mut self, now: Timestamp) -> Option<StampOrder> {
        let due: Vec<Timestamp> = self.alarms.range(..=now).copied().collect();
        for at in &due {
            self.alarms.remove(at);
        }
        if due.is_empty() { None } else { self.review(now) }
    }

    /// The clock was set: what it waited for is looked at now and then.
    pub fn clock_was_set(&mut self, now: Timestamp) {
        self.alarms.insert(now);
    }

    /// Tries again a while after a failure.
    pub fn retry(&mut self, now: Timestamp) {
        self.waits_for = None;
        self.alarms.insert(delivered::later(now, jiff::SignedDuration::from_secs(1)));
    }

    pub fn decision(&self, millis: i64) -> Option<Decision> {
        self.index.decide_alone(&self.id, time(millis))
    }

    /// The record as it is to be written down.
    pub fn record(&self) -> Option<(Uid, String)> {
        let tracked = self.index.workload(&self.id)?;
        let record = tracked.record.as_ref()?;
        Some((tracked.workload.uid.clone()?, serde_json::to_string(record).unwrap()))
    }
}

fn is_not_synced(decision: &Decision) -> bool {
    matches!(decision, Decision::Hold(hold) if hold.reason() == "NotSynced")
}
