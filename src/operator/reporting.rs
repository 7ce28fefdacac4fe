//! The engine's half for configs: keeps their reports as the model finds them.

use jiff::{SignedDuration, Timestamp};

use crate::api::drift_report::{DriftReportStatus, FindingType, InSync};
use crate::model::config::Config;
use crate::model::consumers::{Consumers, WorkloadReads};
use crate::model::delivered::later;
use crate::model::drift::{self, ConfigDrift};
use crate::model::names::ConfigId;
use crate::model::report;
use crate::operator::engine::{Again, Engine};
use crate::operator::reports::ReportKey;

/// Its configs are the cluster's own.
const NOT_LOOKED_AT: &str = "kube-system";

impl Engine {
    /// Looks at every config that some workload consumes.
    pub(super) fn review_all_configs(&mut self) {
        let now = Timestamp::now();
        let all: Vec<ConfigId> = self.index.configs().iter().map(|config| config.id.clone()).collect();
        for id in all {
            self.review_config(&id, now);
        }
    }

    /// Has a config's report say what the model finds.
    pub(super) fn review_config(&mut self, id: &ConfigId, now: Timestamp) {
        if !self.is_synced() || !self.index.is_synced_within(&id.namespace) {
            return;
        }
        let key = config_key(id);
        let Some(config) = self.index.configs().get(id) else {
            self.metrics.stale_keys(id, 0);
            self.reports.forget(&key);
            return;
        };
        let Some(drift) = self.drift(config) else {
            self.metrics.stale_keys(id, 0);
            return self.withdraw_config_report(key);
        };
        let said = self.reports.status(&key).map(|status| status.findings.as_slice()).unwrap_or_default();
        let due = self.delay.due(id, drift.findings, said, now);
        let mut report = report::of_config(config, ConfigDrift { findings: due.findings, ..drift }, now);
        let status = report.status.take().unwrap_or_default();
        self.metrics.stale_keys(id, count(&status, FindingType::StaleKey));
        if let Some(next) = due.next {
            self.alarm(Again::Config(id.clone()), next, now);
        }
        if status.findings.is_empty() && !self.stays(id, &key, now) {
            return self.withdraw_config_report(key);
        }
        report.status = Some(status);
        self.reports.want(report);
        self.write_report(&key);
    }

    /// What the model finds; `None` for a config that is not reported on.
    fn drift(&self, config: &Config) -> Option<ConfigDrift> {
        let mut workloads = self.index.consumers(&config.id).map(|tracked| &tracked.workload).peekable();
        if workloads.peek().is_none() || config.id.namespace.as_str() == NOT_LOOKED_AT {
            return None;
        }
        let reads = workloads.map(|workload| WorkloadReads { id: &workload.id, consumption: &workload.consumption });
        drift::drift_of(config, &self.managers, &Consumers::of(reads, self.index.configs()))
    }

    /// Whether a report without findings is there, and stays for a while: so that whoever waits for `InSync` sees it.
    fn stays(&mut self, id: &ConfigId, key: &ReportKey, now: Timestamp) -> bool {
        let Some(status) = self.reports.status(key) else { return false };
        // What stands there may still say what was found: then it is resolved now.
        let resolved = resolved_at(status).unwrap_or(now);
        let until = later(resolved, self.settings.keep_resolved);
        if until <= now {
            return false;
        }
        self.alarm(Again::Config(id.clone()), later(until, SignedDuration::from_millis(1)), now);
        true
    }

    fn withdraw_config_report(&mut self, key: ReportKey) {
        if self.reports.status(&key).is_some_and(|status| status.reload.is_none()) {
            self.reports.want_none(key.clone());
            self.write_report(&key);
        }
    }
}

fn config_key(id: &ConfigId) -> ReportKey {
    (id.namespace.clone(), report::name_of(id.kind.as_str(), &id.name))
}

fn count(status: &DriftReportStatus, r#type: FindingType) -> usize {
    status.findings.iter().filter(|finding| finding.r#type == r#type).count()
}

/// When a report's last finding went; `None` while it has some.
fn resolved_at(status: &DriftReportStatus) -> Option<Timestamp> {
    let condition = status.conditions.iter().find(|condition| condition.type_ == InSync::TYPE)?;
    status.findings.is_empty().then_some(condition.last_transition_time.0)
}
