//! Where a workload is not as it should be.

use super::{Drift, missing_reference};
use crate::api::drift_report::Baseline;
use crate::model::config::Configs;
use crate::model::workload::Workload;

/// A workload under a look, with all that the rules ask.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadSight<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The configs.
    pub configs: &'a Configs,
}

/// Looks at a workload.
pub fn drift_of_workload(sight: &WorkloadSight<'_>) -> Drift {
    let rules = [missing_reference::find];
    let findings = rules.iter().flat_map(|find| find(sight)).collect();
    Drift { baseline: Baseline::None, findings, notes: Vec::new() }
}
