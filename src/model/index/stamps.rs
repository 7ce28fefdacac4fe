//! Stamps: what is to be sent, and what became of it.

use jiff::Timestamp;

use crate::model::cause::Cause;
use crate::model::index::{Index, StampOrder};
use crate::model::names::{ResourceVersion, WorkloadId};
use crate::model::stamp::Stamp;
use crate::model::workload::Progress;

impl Index {
    /// The stamp that is due, to be sent; it is remembered until it is known what became of it.
    pub fn begin_stamp(&mut self, id: &WorkloadId, now: Timestamp) -> Option<StampOrder> {
        let tracked = self.workloads.get(id)?;
        let record = tracked.record.as_ref()?;
        let workload = &tracked.workload;
        let (digest, restart_at) = self.with_sight(tracked, &record.counting, now, |sight| {
            let digest = sight.consumed.digest(sight.uid, self.keyring.current());
            Some((digest, sight.workload.lever.restart_at(sight.pods, now)))
        })?;
        let stamp = Stamp { digest, generation: workload.generation };
        let order = StampOrder {
            workload: id.clone(),
            uid: workload.uid.clone()?,
            restart_at,
            version: workload.version?,
            text: stamp.to_string(),
            cause: Cause::of(record),
            due_since: record.open_entries().map(|(_, change)| change.first_seen).min()?,
        };
        self.workloads.get_mut(id)?.record.as_mut()?.ask(order.text.clone(), now);
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
}
