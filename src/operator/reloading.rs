//! The engine's half for workloads: acts on decisions, keeps the records written, and says aloud what happened.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use tracing::{info, warn};

use crate::api::annotations::AUTO_RELOAD;
use crate::api::drift_report::{DriftReport, Unreadable};
use crate::api::published::Mode;
use crate::model::adoption::Adopted;
use crate::model::cause::Cause;
use crate::model::decide::{Decision, Hold};
use crate::model::delivered;
use crate::model::index::{Act, Event, Object, StampOrder, StoredRecord};
use crate::model::names::{ConfigId, KeyName, Name, WorkloadId};
use crate::model::observe::News;
use crate::model::report;
use crate::model::scope::Extent;
use crate::model::watched::Watched;
use crate::operator::api_error::ApiError;
use crate::operator::engine::{Again, Engine};
use crate::operator::events::{Notice, Reason};
use crate::operator::metrics::ReloadResult;
use crate::operator::rerunning::failure;
use crate::operator::tasks::Acted;

/// A version that the API server refused as outdated is tried again only if the watch shows no newer one for this long.
const WATCH_DELAY: SignedDuration = SignedDuration::from_secs(5);

/// Whether a report's status can be read.
type Readable = Result<(), Unreadable>;

impl Engine {
    /// Decides what is due for a workload, and does it.
    pub(super) fn review_workload(&mut self, id: &WorkloadId, now: Timestamp) {
        self.tell_invalid_annotations(id);
        // A stamp under way brings us back when it ends.
        if self.stamping.contains(id) {
            return;
        }
        let step = self.index.rerun_step(id).map(|(placeholder, step)| (placeholder.clone(), step));
        if let Some((placeholder, step)) = step {
            self.note_hold(id, None);
            return self.take_step(id, placeholder, step, now);
        }
        let decision = self.index.decide(id, now);
        self.note_hold(id, decision.as_ref());
        self.note_window(id, decision.as_ref());
        match &decision {
            Some(Decision::Close) => self.index.close(id),
            Some(Decision::Wait { until, .. }) => self.alarm(Again::Workload(id.clone()), *until, now),
            Some(Decision::Stamp) => self.send_stamp(id, now),
            None | Some(Decision::Nothing | Decision::RollingOut | Decision::Hold(_)) => {}
        }
        self.look_when_waiting_counts(id, now);
        self.look_when_its_rollout_may_end(id, now);
        match self.index.workload(id) {
            None => self.forget_workload(id),
            // What became of the stamp is reported when it is known.
            Some(_) if self.stamping.contains(id) => {}
            Some(_) => self.report_workload(id, decision.as_ref(), now),
        }
    }

    /// A container that waits proves something only after a moment.
    fn look_when_waiting_counts(&mut self, id: &WorkloadId, now: Timestamp) {
        let record = self.index.workload(id).and_then(|tracked| tracked.record.as_ref());
        let at = record.and_then(delivered::waiting_counts_from).filter(|at| *at > now);
        if let Some(at) = at {
            self.alarm(Again::Workload(id.clone()), at, now);
        }
    }

    fn send_stamp(&mut self, id: &WorkloadId, now: Timestamp) {
        self.try_stamp(id, now);
        if !self.stamping.contains(id) {
            self.index.step_back(id);
        }
    }

    fn try_stamp(&mut self, id: &WorkloadId, now: Timestamp) {
        if self.settings.mode == Mode::DryRun {
            return self.say_what_would_be(id);
        }
        let again = Again::Workload(id.clone());
        if let Some(until) = self.retries.waits_until(&again, now) {
            return self.alarm(again, until, now);
        }
        let version = self.index.workload(id).and_then(|tracked| tracked.workload.version);
        if version.is_some() && self.outdated.get(id).copied() == version {
            return;
        }
        if let Some(order) = self.index.begin_stamp(id, now) {
            self.stamping.insert(id.clone());
            self.writer.stamp(order);
        }
    }

    /// In a dry run: says once for each state what would be done. The record stays as it is.
    fn say_what_would_be(&mut self, id: &WorkloadId) {
        let record = self.index.workload(id).and_then(|tracked| tracked.record.as_ref());
        let Some(cause) = record.map(Cause::of) else { return };
        if self.would_reload.insert(id.clone(), cause.clone()).as_ref() == Some(&cause) {
            return;
        }
        self.metrics.reload(id, ReloadResult::DryRun);
        info!(kind = %id.kind, ns = %id.namespace, name = %id.name, cause = cause.as_field(), "would reload");
        self.tell_workload(id, Reason::WouldReload, format!("Would reload, were this not a dry run: {cause}"));
    }

    pub(super) fn stamp_succeeded(&mut self, order: &StampOrder, acted: &Acted) {
        let id = &order.workload;
        self.retries.succeeded(&Again::Workload(id.clone()));
        self.failures.remove(id);
        self.metrics.reload(id, ReloadResult::Stamped);
        self.metrics.latency(Timestamp::now().duration_since(order.due_since).as_secs_f64());
        info!(kind = %id.kind, ns = %id.namespace, name = %id.name, cause = order.cause.as_field(), "reload");
        match acted {
            Acted::Stamped(stamped) => {
                self.index.stamped(order, stamped.version, stamped.generation);
                self.tell_workload(id, Reason::Reloaded, format!("Reloading: {}", order.cause));
            }
            Acted::Reran => self.rerun_began(order),
        }
    }

    pub(super) fn stamp_failed(&mut self, order: &StampOrder, error: &ApiError) {
        let id = &order.workload;
        if error.is_refusal() {
            self.index.refused(order);
        }
        if let ApiError::Conflict = error {
            // The watch shows the newer state, soon; it is decided anew on that.
            self.metrics.reload(id, ReloadResult::Conflict);
            self.outdated.insert(id.clone(), order.version);
            let now = Timestamp::now();
            self.alarm(Again::Workload(id.clone()), now + WATCH_DELAY, now);
        } else {
            self.metrics.reload(id, ReloadResult::Failed);
            let message = match error {
                _ if matches!(order.act, Act::MakeAgain | Act::Run(_)) => failure(order, error),
                ApiError::Forbidden(_) => {
                    let plural = id.kind.as_str().to_lowercase();
                    format!("cannot stamp {id}: {error}; grant patch on {plural}s")
                }
                _ => format!("cannot stamp {id}: {error}"),
            };
            if self.failures.insert(id.clone(), message.clone()).is_none() {
                warn!(kind = %id.kind, ns = %id.namespace, name = %id.name, %error, "reload failed; it is tried again");
                self.tell_workload(id, Reason::ReloadFailed, message);
            }
            self.retry(Again::Workload(id.clone()));
        }
    }

    /// Keeps count of the held workloads, and tells each hold once.
    fn note_hold(&mut self, id: &WorkloadId, decision: Option<&Decision>) {
        let hold = match decision {
            Some(Decision::Hold(hold)) => Some(hold),
            _ => None,
        };
        let reason = hold.map(Hold::reason);
        let before = self.held.get(id).copied();
        if before == reason {
            return;
        }
        if let Some(before) = before {
            self.held.remove(id);
            self.metrics.held(before, -1);
        }
        if let Some(hold) = hold {
            self.held.insert(id.clone(), hold.reason());
            self.metrics.held(hold.reason(), 1);
            // At a start, everything waits for its first list.
            if !matches!(hold, Hold::NotSynced { .. }) {
                info!(kind = %id.kind, ns = %id.namespace, name = %id.name, reason = hold.reason(), "reload held");
                self.tell_workload(id, Reason::ReloadHeld, format!("Reload held: {hold}"));
            }
        }
    }

    fn tell_invalid_annotations(&mut self, id: &WorkloadId) {
        let problems = self.index.workload(id).map(|tracked| tracked.workload.opt_in.problems.clone());
        let problems = problems.unwrap_or_default();
        let told = self.told.remove(id).unwrap_or_default();
        for problem in problems.iter().filter(|problem| !told.contains(problem)) {
            self.metrics.invalid_annotation(problem.name);
            warn!(kind = %id.kind, ns = %id.namespace, name = %id.name, "{problem}");
            self.tell_workload(id, Reason::InvalidAnnotation, problem.to_string());
        }
        if !problems.is_empty() {
            self.told.insert(id.clone(), problems);
        }
    }

    pub(super) fn tell_invalid_namespace(&mut self, name: &Name) {
        let told = self.told_namespaces.remove(name).unwrap_or_default();
        let Some((namespace, problems)) = self.index.problems_of_namespace(name) else { return };
        for problem in problems.iter().filter(|problem| !told.contains(problem)) {
            self.metrics.invalid_annotation(problem.name);
            warn!(ns = %name, "{problem}");
            self.writer.event(Notice::on_namespace(namespace, Reason::InvalidAnnotation, problem.to_string()));
        }
        if !problems.is_empty() {
            self.told_namespaces.insert(name.clone(), problems);
        }
    }

    /// Says what came to light: an Event on each changed config, with how many workloads read it.
    pub(super) fn tell_news(&mut self, news: &[(WorkloadId, News)]) {
        let mut changed: BTreeMap<ConfigId, (usize, BTreeSet<KeyName>)> = BTreeMap::new();
        for (id, news) in news {
            match news {
                News::Changed { .. } if self.is_over(id) => {}
                News::Changed { config, keys } => {
                    let (workloads, all) = changed.entry(config.within(&id.namespace)).or_default();
                    *workloads += 1;
                    all.extend(keys.iter().cloned());
                }
                News::Adopted(adopted) => self.tell_adopted(id, adopted),
                News::OptInGone => {
                    let note = format!(
                        "{AUTO_RELOAD} went with an edit of the pod template, so changes roll it no more; a rollout \
                         undo puts back the annotations of the earlier revision: annotate it again if that was not meant"
                    );
                    info!(kind = %id.kind, ns = %id.namespace, name = %id.name, "opt-in gone");
                    self.tell_workload(id, Reason::OptInGone, note);
                }
                News::StampGone => {
                    let note = "The stamp was removed from the pod template while a change is not delivered";
                    info!(kind = %id.kind, ns = %id.namespace, name = %id.name, "stamp removed");
                    self.tell_workload(id, Reason::StampRemoved, note.to_owned());
                }
            }
        }
        for (id, (workloads, keys)) in changed {
            let Some(config) = self.index.configs().get(&id) else { continue };
            let cause = Cause::of_config(id.local(), keys);
            let plural = if workloads == 1 { "workload reads" } else { "workloads read" };
            let note = format!("Changed: {cause}; {workloads} {plural} it and will roll");
            self.writer.event(Notice::on_config(config, Reason::ConfigChanged, note));
        }
    }

    /// Counts an adoption; where there had been a record, whoever is on call has to know.
    fn tell_adopted(&mut self, id: &WorkloadId, adopted: &Adopted) {
        self.metrics.adoption(adopted.why);
        if adopted.why.is_a_loss() {
            let reason = adopted.why.reason();
            warn!(kind = %id.kind, ns = %id.namespace, name = %id.name, reason, "adopted anew: {adopted}");
            self.tell_workload(id, Reason::AdoptedAnew, format!("Adopted anew: {adopted}"));
        }
    }

    pub(super) fn tell_workload(&mut self, id: &WorkloadId, reason: Reason, note: String) {
        if let Some(tracked) = self.index.workload(id) {
            self.writer.event(Notice::on_workload(&tracked.workload, reason, note));
        }
    }

    /// Whether it is a Job or CronJob that no change matters to.
    fn is_over(&self, id: &WorkloadId) -> bool {
        self.index.workload(id).is_some_and(|tracked| tracked.workload.run.is_over())
    }

    /// A workload that is gone leaves nothing behind.
    fn forget_workload(&mut self, id: &WorkloadId) {
        self.reports.forget(&report::key_of_workload(id));
        self.metrics.findings_of_workload(id, &[]);
        self.metrics.window_opens(id, None);
        self.releases.forget_workload(id);
        self.failures.remove(id);
        self.told.remove(id);
        self.outdated.remove(id);
        self.would_reload.remove(id);
    }

    pub(super) fn report_listed(&mut self, report: &DriftReport, readable: Readable, extent: &Extent) -> Option<Event> {
        if !self.is_in_scope(report) {
            return None;
        }
        self.reports.listed(report, extent)?;
        self.stored_record(report, readable)
            .map(|stored| Event::Listed(Watched::Report, extent.clone(), Object::Report(stored)))
    }

    pub(super) fn report_seen(&mut self, report: &DriftReport, readable: Readable) -> Option<Event> {
        if !self.is_in_scope(report) {
            return None;
        }
        let key = self.reports.seen(report)?;
        // Somebody may have written into it.
        self.write_report(&key);
        self.stored_record(report, readable).map(|stored| Event::Applied(Watched::Report, Object::Report(stored)))
    }

    /// The record in a report on a workload.
    fn stored_record(&self, report: &DriftReport, readable: Readable) -> Option<StoredRecord> {
        let subject = &report.spec.subject;
        let (instance, record) = match readable {
            Ok(()) => {
                let reload = report.status.as_ref()?.reload.as_ref()?;
                (reload.instance.clone(), Some(reload.record.clone()))
            }
            Err(Unreadable { instance }) => (instance.unwrap_or_else(|| self.instance.clone()), None),
        };
        let workload = WorkloadId {
            kind: self.settings.scope.workload_kind(&subject.api_version, &subject.kind)?,
            namespace: report.metadata.namespace.as_deref()?.into(),
            name: subject.name.clone(),
        };
        // Another one about the same workload is none of ours: its record would stand for the one that we keep.
        if report.metadata.name.as_deref()? != report::key_of_workload(&workload).1 {
            return None;
        }
        let uid = report.metadata.owner_references.as_ref()?.first()?.uid.as_str().into();
        Some(StoredRecord { workload, uid, instance, record })
    }

    fn is_in_scope(&self, report: &DriftReport) -> bool {
        report.metadata.namespace.as_deref().is_some_and(|namespace| self.index.is_in_scope(&namespace.into()))
    }

    pub(super) fn report_gone(&mut self, report: &DriftReport, readable: Readable) -> Option<Event> {
        let key = self.reports.gone(report)?;
        self.write_report(&key);
        self.stored_record(report, readable).map(|stored| Event::Deleted(Watched::Report, Object::Report(stored)))
    }
}
