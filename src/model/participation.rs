//! Who takes part in reloading, as far as the operator's flags say.

use std::collections::BTreeSet;

use crate::api::auto_reload::AutoReload;
use crate::api::opt_in::OptIn;
use crate::model::counting::Counting;
use crate::model::names::WorkloadKind;
use crate::model::rerun::Reruns;
use crate::model::selector::LabelSelector;
use crate::model::workload::Workload;

/// What the flags say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Participation {
    /// Where Reloader's annotations count.
    pub stakater: Stakater,
    /// What counts for a workload of which neither it nor its namespace says anything.
    pub unsaid: AutoReload,
    /// Kinds of workload that are never rolled.
    pub ignored: BTreeSet<WorkloadKind>,
    /// What becomes of Jobs and CronJobs.
    pub reruns: Reruns,
}

/// Where Reloader's annotations count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Stakater {
    /// Nowhere.
    #[default]
    Nowhere,
    /// In every namespace.
    Everywhere,
    /// In the namespaces with these labels.
    Labelled(LabelSelector),
}

impl Stakater {
    /// Whether they count anywhere.
    pub fn is_anywhere(&self) -> bool {
        *self != Self::Nowhere
    }
}

impl Participation {
    /// What counts for this workload, of which this is said, with this default.
    pub fn counting(
        &self,
        workload: &Workload,
        opt_in: &OptIn,
        default: AutoReload,
        before: Option<&Counting>,
    ) -> Counting {
        if self.ignored.contains(&workload.id.kind) || !self.reruns.may_run(workload) {
            return Counting::default();
        }
        opt_in.counting(default, before)
    }
}
