//! The engine's half for reports: has them say what the model finds, and how reloading stands.

use jiff::{SignedDuration, Timestamp};
use tracing::warn;

use crate::api::drift_report::{DriftReportStatus, InSync};
use crate::api::published::Mode;
use crate::api::reload_status::{LastReload, ReloadState, ReloadStatus};
use crate::model::config::Config;
use crate::model::consumers::{Consumers, WorkloadReads};
use crate::model::decide::Decision;
use crate::model::delivered::later;
use crate::model::drift::{self, Drift, Note, Obstacle, Reloading, WorkloadSight};
use crate::model::index::Tracked;
use crate::model::names::{ConfigId, Name, WorkloadId};
use crate::model::report::{self, ReportKey};
use crate::operator::engine::{Again, Engine};
use crate::operator::events::{Notice, Reason};
use crate::operator::tally::ConfigState;

impl Engine {
    /// Looks at everything that may have a report.
    pub(super) fn review_all(&mut self) {
        self.review_all_within(|_| true, Timestamp::now());
    }

    fn review_all_within(&mut self, is_within: impl Fn(&Name) -> bool, now: Timestamp) {
        let configs = self.index.configs().iter().map(|config| &config.id).filter(|id| is_within(&id.namespace));
        let workloads = self.index.workloads().map(|tracked| &tracked.workload.id);
        let workloads = workloads.filter(|id| is_within(&id.namespace));
        let (configs, workloads): (Vec<ConfigId>, Vec<WorkloadId>) =
            (configs.cloned().collect(), workloads.cloned().collect());
        for id in configs {
            self.review_config(&id, now);
        }
        for id in workloads {
            self.review_workload(&id, now);
        }
    }

    /// Has a config's report say what the model finds.
    pub(super) fn review_config(&mut self, id: &ConfigId, now: Timestamp) {
        let config = self.index.configs().get(id);
        if config.is_none() {
            self.metrics.findings_of_config(id, &[]);
            self.tally.note(id, None, &self.metrics);
        }
        if !self.sees_all_of(&id.namespace) {
            return;
        }
        let key = report::key_of_config(id);
        let Some(config) = config else {
            self.told_configs.remove(id);
            self.reports.forget(&key);
            return;
        };
        let Some(drift) = self.drift(config) else {
            self.metrics.findings_of_config(id, &[]);
            self.tally.note(id, Some(ConfigState::OutOfScope), &self.metrics);
            return self.withdraw_config_report(key);
        };
        self.tell_invalid_config(id, &drift);
        let again = Again::Config(id.clone());
        let drift = self.due(&key, &again, drift, now);
        self.tally.note(id, Some(report::in_sync(&drift).into()), &self.metrics);
        let status = report::status_of(drift, now);
        self.metrics.findings_of_config(id, &status.findings);
        if status.findings.is_empty() && !self.stays(&again, &key, now) {
            return self.withdraw_config_report(key);
        }
        if let Some(config) = self.index.configs().get(id) {
            self.reports.want(report::of_config(config, status));
            self.write_report(&key);
        }
    }

    /// Tells of each annotation of a config that does not parse, once.
    fn tell_invalid_config(&mut self, id: &ConfigId, drift: &Drift) {
        let problems = drift.notes.iter().filter_map(|note| match note {
            Note::InvalidAnnotation(problem) => Some(problem.clone()),
            _ => None,
        });
        let problems: Vec<_> = problems.collect();
        let told = self.told_configs.remove(id).unwrap_or_default();
        for problem in problems.iter().filter(|problem| !told.contains(problem)) {
            self.metrics.invalid_annotation(problem.name);
            warn!(kind = %id.kind, ns = %id.namespace, name = %id.name, "{problem}");
            if let Some(config) = self.index.configs().get(id) {
                self.writer.event(Notice::on_config(config, Reason::InvalidAnnotation, problem.to_string()));
            }
        }
        if !problems.is_empty() {
            self.told_configs.insert(id.clone(), problems);
        }
    }

    /// Whether drift is reported in this namespace.
    fn reports_drift_in(&self, name: &Name) -> bool {
        self.settings.drift.covers(name, self.index.labels_of(name))
    }

    /// A namespace's labels may have changed, by which drift is reported in it or not: then all in it is looked at.
    pub(super) fn note_drift_scope(&mut self, name: &Name, now: Timestamp) {
        let is_covered = self.settings.drift.namespaces.is_some() && self.reports_drift_in(name);
        let was_covered =
            if is_covered { !self.drift_namespaces.insert(name.clone()) } else { self.drift_namespaces.remove(name) };
        if is_covered != was_covered && self.is_synced() {
            self.review_all_within(|namespace| namespace == name, now);
        }
    }

    /// Whether what is not seen in this namespace is not there.
    fn sees_all_of(&self, namespace: &Name) -> bool {
        self.is_synced() && self.index.is_synced_within(namespace)
    }

    /// What the model finds; `None` for a config that is not reported on.
    fn drift(&self, config: &Config) -> Option<Drift> {
        let mut workloads = self.index.consumers(&config.id).map(|tracked| &tracked.workload).peekable();
        let is_covered = self.reports_drift_in(&config.id.namespace);
        if !is_covered || !self.settings.drift.covers_config(workloads.peek().is_some()) {
            return None;
        }
        let reads = workloads.map(|workload| WorkloadReads { id: &workload.id, consumption: &workload.consumption });
        drift::drift_of(config, &self.settings.managers, &Consumers::of(reads, self.index.configs()))
    }

    /// What was found, without what is not due yet: that is looked at again when it is.
    fn due(&mut self, key: &ReportKey, again: &Again, drift: Drift, now: Timestamp) -> Drift {
        let said = self.reports.status(key).map(|status| status.findings.as_slice()).unwrap_or_default();
        let due = self.delay.due(key, drift.findings, said, now);
        if let Some(next) = due.next {
            self.alarm(again.clone(), next, now);
        }
        Drift { findings: due.findings, ..drift }
    }

    /// Whether a report without findings is there, and stays for a while: so that whoever waits for `InSync` sees it.
    fn stays(&mut self, again: &Again, key: &ReportKey, now: Timestamp) -> bool {
        let Some(status) = self.reports.status(key) else { return false };
        // What stands there may still say what was found: then it is resolved now.
        let Some(resolved) = resolved_at(status, now) else { return false };
        let until = later(resolved, self.settings.keep_resolved);
        if until <= now {
            return false;
        }
        self.alarm(again.clone(), later(until, SignedDuration::from_millis(1)), now);
        true
    }

    fn withdraw_config_report(&mut self, key: ReportKey) {
        if self.reports.status(&key).is_some_and(|status| status.reload.is_none()) {
            self.reports.want_none(key.clone());
            self.write_report(&key);
        }
    }

    /// Has a workload's report say what the model finds and how reloading stands, and hold its record.
    pub(super) fn report_workload(&mut self, id: &WorkloadId, decision: Option<&Decision>, now: Timestamp) {
        let key = report::key_of_workload(id);
        let stored = self.reports.status(&key);
        // Also one that can't be read may be another installation's: the index knows.
        let is_kept_by_another = self.index.workload(id).is_some_and(|tracked| tracked.other_instance.is_some());
        if is_kept_by_another || stored.is_some_and(|status| self.is_of_another(status)) {
            return;
        }
        let stored = stored.cloned();
        let Some(tracked) = self.index.workload(id) else { return };
        let reload = self.reload_status(tracked, decision, stored.as_ref());
        let (drift, next_look) = self.workload_drift(tracked, decision, now);
        let was_about_reloading =
            stored.as_ref().is_some_and(|status| status.reload.is_some() && status.findings.is_empty());
        let again = Again::Workload(id.clone());
        if let Some(next_look) = next_look {
            self.alarm(again.clone(), next_look, now);
        }
        let status = match drift {
            Sighting::NotYet => stored.unwrap_or_default(),
            Sighting::OutOfScope => DriftReportStatus::default(),
            Sighting::Drift(drift) => report::status_of(self.due(&key, &again, drift, now), now),
        };
        self.metrics.findings_of_workload(id, &status.findings);
        let says_something = !status.findings.is_empty() || reload.is_some();
        if !says_something && (was_about_reloading || !self.stays(&again, &key, now)) {
            self.reports.want_none(key.clone());
        } else if let Some(tracked) = self.index.workload(id) {
            self.reports.want(report::of_workload(&tracked.workload, DriftReportStatus { reload, ..status }));
        }
        self.write_report(&key);
    }

    fn is_of_another(&self, status: &DriftReportStatus) -> bool {
        status.reload.as_ref().is_some_and(|reload| reload.instance != self.instance)
    }

    /// What the model finds, and when to look again.
    fn workload_drift(
        &self,
        tracked: &Tracked,
        decision: Option<&Decision>,
        now: Timestamp,
    ) -> (Sighting, Option<Timestamp>) {
        let workload = &tracked.workload;
        let namespace = &workload.id.namespace;
        if !self.sees_all_of(namespace) {
            return (Sighting::NotYet, None);
        }
        if !self.reports_drift_in(namespace) || !workload.is_its_own() {
            return (Sighting::OutOfScope, None);
        }
        let record = tracked.record.as_ref();
        let reloading = record.zip(decision).map(|(record, decision)| Reloading {
            record,
            decision,
            obstacle: self.obstacle(&workload.id),
        });
        let (configs, managers) = (self.index.configs(), &self.settings.managers);
        self.index.with_pods(workload, |own_pods| {
            // Who scales a workload shows in its managedFields once it does; a note needs no watch of autoscalers.
            let sight = WorkloadSight { workload, configs, managers, autoscaler: None, own_pods, reloading, now };
            (Sighting::Drift(drift::drift_of_workload(&sight)), drift::next_look_at_workload(&sight))
        })
    }

    /// Why a stamp that is due is not written.
    fn obstacle(&self, id: &WorkloadId) -> Option<Obstacle<'_>> {
        match self.settings.mode {
            Mode::DryRun => Some(Obstacle::DryRun),
            Mode::Live => self.failures.get(id).map(|failure| Obstacle::Failure(failure)),
        }
    }

    /// How reloading stands. Where it was not decided, what stands there stays; a workload that is opted out has none.
    fn reload_status(
        &self,
        tracked: &Tracked,
        decision: Option<&Decision>,
        stored: Option<&DriftReportStatus>,
    ) -> Option<ReloadStatus> {
        let stored = || stored.and_then(|status| status.reload.clone());
        let (record, decision) = match (&tracked.record, decision) {
            _ if self.settings.mode == Mode::DryRun => return stored(),
            (_, None) if self.index.is_opted_out(tracked) => return None,
            (Some(record), Some(decision)) => (record.clone(), decision),
            _ => return stored(),
        };
        let (state, message) = match decision {
            Decision::Nothing | Decision::Close => (ReloadState::Current, String::new()),
            Decision::RollingOut => (ReloadState::RollingOut, String::new()),
            Decision::Wait { reason, .. } => (ReloadState::Waiting, reason.to_string()),
            Decision::Hold(hold) => (ReloadState::Held, hold.to_string()),
            Decision::Stamp => {
                let failure = self.failures.get(&tracked.workload.id).cloned();
                (ReloadState::Waiting, failure.unwrap_or_default())
            }
        };
        let last = record.stamp.as_ref().filter(|stamp| !stamp.cause.is_empty());
        let last_reload = last.map(|stamp| LastReload { time: stamp.time, cause: stamp.cause.clone() });
        Some(ReloadStatus { state, message, instance: self.instance.clone(), last_reload, record })
    }
}

/// What is to be said of a workload's drift.
enum Sighting {
    /// What was said before: not all is seen yet that the rules need to know.
    NotYet,
    /// Nothing: it is not looked at.
    OutOfScope,
    /// This.
    Drift(Drift),
}

/// When a report's last finding went: now, if it still says some; never, if it never had any.
fn resolved_at(status: &DriftReportStatus, now: Timestamp) -> Option<Timestamp> {
    let condition = status.conditions.iter().find(|condition| condition.type_ == InSync::TYPE)?;
    Some(if status.findings.is_empty() { condition.last_transition_time.0 } else { now })
}
