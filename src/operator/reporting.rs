//! The engine's half for reports: has them say what the model finds, and how reloading stands.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use tracing::warn;

use crate::api::drift_report::{DriftReportStatus, InSync};
use crate::api::published::Mode;
use crate::api::reload_status::{LastReload, ReloadState, ReloadStatus};
use crate::model::autoscaler::Autoscaling;
use crate::model::config::Config;
use crate::model::consumers::{Consumers, WorkloadReads};
use crate::model::decide::Decision;
use crate::model::delivered::later;
use crate::model::drift::{self, Drift, NotLookedAt, Note, Obstacle, Reloading, WorkloadSight};
use crate::model::fields::FieldKind;
use crate::model::helm::ReleaseId;
use crate::model::helm::held::{Found, Look, Named, Sight};
use crate::model::index::Tracked;
use crate::model::names::{ConfigId, Name, WorkloadId};
use crate::model::report::{self, ReportKey};
use crate::model::scope::Extent;
use crate::model::workload::Workload;
use crate::operator::api_error::ApiError;
use crate::operator::engine::{Again, Engine};
use crate::operator::events::{Notice, Reason};
use crate::operator::releases;
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
            self.releases.forget_config(id);
            self.reports.forget(&key);
            return;
        };
        if !self.is_reported_on(config) {
            return self.leave_out_of_scope(id, key);
        }
        let released = match self.follows(config.release()).then(|| self.releases.of_config(config)) {
            // What stands in the report stays until then.
            Some(Sight::Pending) => return self.look_at_release_of(config.release().cloned()),
            Some(Sight::Declared(keys)) => Some(Config { released: Some(keys), ..config.clone() }),
            Some(Sight::Nothing) | None => None,
        };
        let Some(drift) = self.drift(released.as_ref().unwrap_or(config)) else {
            return self.leave_out_of_scope(id, key);
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

    /// A config that is not looked at has no report, which the metrics tell from one that is in sync.
    fn leave_out_of_scope(&mut self, id: &ConfigId, key: ReportKey) {
        self.metrics.findings_of_config(id, &[]);
        self.tally.note(id, Some(ConfigState::OutOfScope), &self.metrics);
        self.withdraw_config_report(key);
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

    /// Whether a config is one that reports are about.
    fn is_reported_on(&self, config: &Config) -> bool {
        let is_consumed = self.index.consumers(&config.id).next().is_some();
        self.reports_drift_in(&config.id.namespace)
            && self.settings.drift.covers_config(is_consumed)
            && NotLookedAt::of(config).is_none()
    }

    /// What the model finds; `None` for a config that is not looked at.
    fn drift(&self, config: &Config) -> Option<Drift> {
        let workloads = self.index.consumers(&config.id).map(|tracked| &tracked.workload);
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
        let is_followed = self.reports_drift_in(&id.namespace) && self.follows(tracked.workload.release());
        let released = match is_followed.then(|| self.releases.of_workload(&tracked.workload)) {
            Some(Sight::Pending) => None,
            Some(Sight::Declared(fields)) => Some(Some(Workload { fields: fields.into(), ..tracked.workload.clone() })),
            Some(Sight::Nothing) | None => Some(None),
        };
        let (drift, next_look) = match &released {
            Some(released) => self.workload_drift(tracked, released.as_ref(), decision, now),
            // What stands in the report stays until its release was looked at.
            None => (Sighting::NotYet, None),
        };
        if released.is_none() {
            self.look_at_release_of(tracked.workload.release().cloned());
        }
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

    /// Whether changes of this release are told.
    fn follows(&self, release: Option<&ReleaseId>) -> bool {
        release.is_some_and(|release| {
            let of = |extent| match extent {
                Extent::Cluster => true,
                Extent::Namespace(name) => name == release.namespace,
            };
            releases::extents(&self.settings.scope).into_iter().any(of)
        })
    }

    fn look_at_release_of(&mut self, release: Option<ReleaseId>) {
        release.into_iter().for_each(|release| self.look_at_release(&release));
    }

    /// Starts the look at a release that is due, if any.
    pub(super) fn look_at_release(&mut self, release: &ReleaseId) {
        if self.retries.waits_until(&Again::Release(release.clone()), Timestamp::now()).is_some() {
            return;
        }
        if let Some(look) = self.releases.begin(release) {
            self.writer.look(look);
        }
    }

    /// A release changed: nothing that it declared counts any more.
    pub(super) fn release_changed(&mut self, release: &ReleaseId) {
        let named = self.releases.changed(release);
        self.review(named);
    }

    /// A look at a release ended.
    pub(super) fn release_looked_at(&mut self, look: Look, answer: Result<Found, ApiError>) {
        let release = look.release.clone();
        let again = Again::Release(release.clone());
        let found = match answer {
            Ok(found) => found,
            Err(error) if !matches!(error, ApiError::Forbidden(_)) => {
                if !self.retries.has_failed(&again) {
                    warn!(%release, %error, "cannot read the Helm release; it is tried again");
                }
                self.releases.failed(look);
                return self.retry(again);
            }
            Err(error) => {
                if self.told_releases.insert(release.clone()) {
                    warn!(%release, %error, "cannot read the Helm release, so it declares nothing; grant list and get on secrets");
                }
                Found::Declares { secret: None, keys: BTreeMap::new(), fields: BTreeMap::new() }
            }
        };
        self.retries.succeeded(&again);
        let named = self.releases.ended(look, found);
        self.review(named);
        self.look_at_release(&release);
    }

    fn review(&mut self, named: Named) {
        let now = Timestamp::now();
        named.configs.iter().for_each(|id| self.review_config(id, now));
        named.workloads.iter().for_each(|id| self.review_workload(id, now));
    }

    fn is_of_another(&self, status: &DriftReportStatus) -> bool {
        status.reload.as_ref().is_some_and(|reload| reload.instance != self.instance)
    }

    /// What the model finds, and when to look again.
    fn workload_drift(
        &self,
        tracked: &Tracked,
        released: Option<&Workload>,
        decision: Option<&Decision>,
        now: Timestamp,
    ) -> (Sighting, Option<Timestamp>) {
        let workload = released.unwrap_or(&tracked.workload);
        let namespace = &workload.id.namespace;
        if !self.sees_all_of(namespace) {
            return (Sighting::NotYet, None);
        }
        if !self.reports_drift_in(namespace) || !workload.is_its_own() {
            return (Sighting::OutOfScope, None);
        }
        let autoscaling = self.index.autoscaling(&workload.id);
        let waits = autoscaling == Autoscaling::Unknown && now < self.autoscalers_by;
        if waits && workload.fields.differs_in(FieldKind::Replicas) {
            return (Sighting::NotYet, Some(self.autoscalers_by));
        }
        let record = tracked.record.as_ref();
        let reloading = record.zip(decision).map(|(record, decision)| Reloading {
            record,
            decision,
            obstacle: self.obstacle(&workload.id),
        });
        let (configs, managers) = (self.index.configs(), &self.settings.managers);
        self.index.with_pods(workload, |own_pods| {
            let sight = WorkloadSight { workload, configs, managers, autoscaling, own_pods, reloading, now };
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
