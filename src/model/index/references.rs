//! Pod templates that stand in another object: an Argo Rollout may take its template from a Deployment.
//!
//! That Deployment is what rolls, then: its template is stamped, the report is about it, and the Rollout's pods are its
//! own. Where it says nothing of reloading itself, what the Rollout says counts.

use jiff::Timestamp;

use crate::api::opt_in::OptIn;
use crate::model::index::{Index, Work};
use crate::model::names::{WorkloadId, WorkloadKind};
use crate::model::watched::Watched;
use crate::model::workload::Workload;

impl Index {
    /// Notes which workload has the template of another one, before and now, and looks at it again.
    pub(super) fn link_template(
        &mut self,
        id: &WorkloadId,
        [before, present]: [Option<WorkloadId>; 2],
        now: Timestamp,
        work: &mut Work,
    ) {
        if before != present {
            self.unlink_template(id, before.as_ref(), work);
        }
        if let Some(holder) = &present {
            self.referrers.insert(holder.clone(), id.clone());
        }
        for holder in [before, present].into_iter().flatten() {
            self.look(&holder, now, work);
        }
    }

    /// The workload does not take its template from there any more.
    pub(super) fn unlink_template(&mut self, id: &WorkloadId, holder: Option<&WorkloadId>, work: &mut Work) {
        if let Some(holder) = holder.filter(|holder| self.referrers.get(*holder) == Some(id)) {
            self.referrers.remove(holder);
            work.workloads.insert(holder.clone());
        }
    }

    /// The workload that takes its template from this one.
    pub(super) fn referrer(&self, id: &WorkloadId) -> Option<&Workload> {
        let referrer = self.referrers.get(id)?;
        self.workloads.get(referrer).map(|tracked| &tracked.workload)
    }

    /// The annotations that count for a workload.
    pub(super) fn opt_in_of<'a>(&'a self, workload: &'a Workload) -> &'a OptIn {
        workload.opt_in_with(self.referrer(&workload.id))
    }

    /// Whether some workload may take its template from this one, and was not seen yet.
    pub(super) fn may_be_referred_to(&self, workload: &Workload) -> bool {
        let mut custom = self.scope.kinds.iter().map(|kind| Watched::Workload(WorkloadKind::Custom(kind)));
        workload.id.kind == WorkloadKind::Deployment
            && custom.any(|kind| !self.lists.is_synced_in(kind, &workload.id.namespace))
    }
}

#[cfg(test)]
mod tests;
