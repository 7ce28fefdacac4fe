//! The engine: feeds the index with what the watches see, decides, and starts the writes. One task, that never waits
//! for the API server.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::runtime::watcher;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio_util::time::{DelayQueue, delay_queue};
use tracing::{info, warn};

use crate::api::auto_reload::InvalidAnnotation;
use crate::api::published::Mode;
use crate::model::cause::Cause;
use crate::model::delivered::later;
use crate::model::digest::Keyring;
use crate::model::drift_scope::DriftScope;
use crate::model::helm::ReleaseId;
use crate::model::helm::held::Held;
use crate::model::index::{Event, Index, StampOrder, Work};
use crate::model::managers::Managers;
use crate::model::names::{ConfigId, Name, ResourceVersion, Uid, WorkloadId};
use crate::model::participation::Participation;
use crate::model::policy::Policy;
use crate::model::report::ReportKey;
use crate::model::report_delay::ReportDelay;
use crate::model::rerun::placeholder::Step;
use crate::model::scope::{Extent, Scope};
use crate::model::watched::Watched;
use crate::operator::api_error::ApiError;
use crate::operator::metrics::Metrics;
use crate::operator::reports::{Reports, Written};
use crate::operator::retry::Retries;
use crate::operator::tally::Tally;
use crate::operator::tasks::{Acted, Done, Writer};
use crate::operator::watch::{Item, Seen, Watches};
use crate::operator::write::ChangeCause;

/// What the engine is told at its start.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which part of the cluster is watched.
    pub scope: Arc<Scope>,
    /// How patient reloading is.
    pub policy: Policy,
    /// Whether stamps are written.
    pub mode: Mode,
    /// Of what drift is reported.
    pub drift: DriftScope,
    /// Who is who among field managers.
    pub managers: Managers,
    /// Who takes part in reloading.
    pub participation: Participation,
    /// Whether `kubectl rollout history` gets to know why.
    pub change_cause: ChangeCause,
    /// How long a finding must be there before it is said.
    pub report_after: SignedDuration,
    /// How long a report on a config stays after its last finding went.
    pub keep_resolved: SignedDuration,
}

/// What is looked at, or tried, again at some time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Again {
    Workload(WorkloadId),
    Config(ConfigId),
    Report(ReportKey),
    Release(ReleaseId),
}

/// The longest that an alarm sleeps, and then looks whether it is time; the queue takes about two years at most, and what
/// a flag, an annotation or a report says may be any time.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// As long a leader waits for the list of HorizontalPodAutoscalers before it says anything of a number of pods without it.
const PATIENCE_WITH_AUTOSCALERS: SignedDuration = SignedDuration::from_secs(10);

/// The state of a leader.
pub struct Engine {
    pub(super) index: Index,
    pub(super) reports: Reports,
    pub(super) delay: ReportDelay,
    /// The configs by what is known of their drift.
    pub(super) tally: Tally,
    /// The namespaces in which drift is reported, as far as their labels decide about that.
    pub(super) drift_namespaces: BTreeSet<Name>,
    /// Until when HorizontalPodAutoscalers are waited for.
    pub(super) autoscalers_by: Timestamp,
    pub(super) releases: Held,
    pub(super) settings: Settings,
    pub(super) instance: String,
    pub(super) metrics: Metrics,
    pub(super) writer: Writer,
    /// The workloads with a stamp under way.
    pub(super) stamping: HashSet<WorkloadId>,
    /// The last step that was taken of making a Job again, until the watch shows what came of it, or a while has passed.
    pub(super) steps_taken: HashMap<WorkloadId, (Uid, Step)>,
    /// The versions that the API server refused as outdated.
    pub(super) outdated: HashMap<WorkloadId, ResourceVersion>,
    /// Why a workload's last stamp failed, for its report.
    pub(super) failures: HashMap<WorkloadId, String>,
    /// The workloads that are held, and why, in one word.
    pub(super) held: BTreeMap<WorkloadId, &'static str>,
    /// The annotations that each workload was told about.
    pub(super) told: HashMap<WorkloadId, Vec<InvalidAnnotation>>,
    /// The annotation that each namespace was told about.
    pub(super) told_namespaces: HashMap<Name, InvalidAnnotation>,
    /// The same of configs.
    pub(super) told_configs: HashMap<ConfigId, Vec<InvalidAnnotation>>,
    /// The releases of which it was told that they may not be read.
    pub(super) told_releases: HashSet<ReleaseId>,
    /// In a dry run, what each workload was last told.
    pub(super) would_reload: HashMap<WorkloadId, Cause>,
    pub(super) retries: Retries<Again>,
    alarms: DelayQueue<Again>,
    alarm_of: HashMap<Again, (Timestamp, delay_queue::Key)>,
    unsynced: watch::Sender<BTreeSet<Watched>>,
    watches: Watches,
}

impl Engine {
    /// An engine that knows nothing yet. It tells which kinds are not synced yet through `unsynced`.
    pub fn new(
        writer: Writer,
        keyring: Arc<Keyring>,
        settings: Settings,
        instance: &str,
        metrics: Metrics,
        unsynced: watch::Sender<BTreeSet<Watched>>,
        watches: Watches,
    ) -> Self {
        Self {
            index: Index::new(keyring, settings.policy, instance)
                .within(settings.scope.clone())
                .with_participation(settings.participation.clone()),
            reports: Reports::default(),
            delay: ReportDelay::new(settings.report_after),
            tally: Tally::default(),
            drift_namespaces: BTreeSet::new(),
            autoscalers_by: later(Timestamp::now(), PATIENCE_WITH_AUTOSCALERS),
            releases: Held::default(),
            writer,
            settings,
            instance: instance.to_owned(),
            metrics,
            stamping: HashSet::new(),
            steps_taken: HashMap::new(),
            outdated: HashMap::new(),
            failures: HashMap::new(),
            held: BTreeMap::new(),
            told: HashMap::new(),
            told_namespaces: HashMap::new(),
            told_configs: HashMap::new(),
            told_releases: HashSet::new(),
            would_reload: HashMap::new(),
            retries: Retries::default(),
            alarms: DelayQueue::new(),
            alarm_of: HashMap::new(),
            unsynced,
            watches,
        }
    }

    /// Works until the watches end.
    pub async fn run(mut self, mut seen: Receiver<Seen>, mut releases: Receiver<ReleaseId>) {
        loop {
            tokio::select! {
                event = seen.recv() => match event {
                    Some(event) => self.see(event),
                    None => break,
                },
                Some(release) = releases.recv() => self.release_changed(&release),
                Some(done) = self.writer.done() => self.written(done),
                Some(alarm) = self.alarms.next(), if !self.alarms.is_empty() => {
                    let again = alarm.into_inner();
                    self.alarm_of.remove(&again);
                    self.again(again);
                }
                Some(ended) = self.watches.ended() => {
                    if let Err(error) = ended && error.is_panic() {
                        warn!("a watch ended by a defect of restamp; it starts anew with the next leader");
                        break;
                    }
                }
            }
            // A backlog must not keep whoever runs us from seeing that the Lease is lost.
            tokio::task::yield_now().await;
        }
    }

    /// Takes what a watch saw.
    fn see(&mut self, Seen { kind, extent, event }: Seen) {
        let now = Timestamp::now();
        let event = match event {
            watcher::Event::Init => {
                if kind == Watched::Report {
                    self.reports.list_begins(extent.clone());
                }
                Some(Event::ListBegins(kind, extent.clone()))
            }
            watcher::Event::InitDone => Some(Event::ListEnds(kind, extent.clone())),
            watcher::Event::InitApply(Item::Object(object)) => Some(Event::Listed(kind, extent.clone(), *object)),
            watcher::Event::Apply(Item::Object(object)) => Some(Event::Applied(kind, *object)),
            watcher::Event::Delete(Item::Object(object)) => Some(Event::Deleted(kind, *object)),
            watcher::Event::InitApply(Item::Report(report, readable)) => self.report_listed(&report, readable, &extent),
            watcher::Event::Apply(Item::Report(report, readable)) => self.report_seen(&report, readable),
            watcher::Event::Delete(Item::Report(report, readable)) => self.report_gone(&report, readable),
        };
        let Some(event) = event else { return };
        let ended = matches!(event, Event::ListEnds(..));
        let work = self.index.apply(event, now);
        self.attend(work, now);
        if ended {
            self.list_ended(kind, &extent);
        }
    }

    fn list_ended(&mut self, kind: Watched, extent: &Extent) {
        if kind == Watched::Report {
            for key in self.reports.list_ends(extent) {
                self.write_report(&key);
            }
        }
        if kind == Watched::Namespace {
            self.watches.namespaces_are_known();
        }
        let is_synced = self.index.is_synced(kind);
        let newly = self.unsynced.send_if_modified(|unsynced| is_synced && unsynced.remove(&kind));
        if newly {
            self.metrics.watch_synced(kind);
            info!(kind = kind.as_str(), "synced");
            if self.is_synced() {
                self.review_all();
            }
        }
    }

    /// Whether every needed kind has had its first full list.
    pub(super) fn is_synced(&self) -> bool {
        self.settings.scope.watched().filter(|kind| kind.is_needed()).all(|kind| self.index.is_synced(kind))
    }

    fn attend(&mut self, work: Work, now: Timestamp) {
        for name in &work.gained {
            self.watches.list(name);
        }
        self.tell_news(&work.news);
        for name in &work.namespaces {
            self.tell_invalid_namespace(name);
            self.note_drift_scope(name, now);
            if !self.index.is_in_scope(name) {
                self.reports.forget_within(name);
            }
        }
        for id in &work.workloads {
            self.review_workload(id, now);
        }
        for id in &work.configs {
            self.review_config(id, now);
        }
    }

    fn again(&mut self, again: Again) {
        let now = Timestamp::now();
        match again {
            Again::Workload(id) => {
                self.outdated.remove(&id);
                self.steps_taken.remove(&id);
                self.review_workload(&id, now);
            }
            Again::Config(id) => self.review_config(&id, now),
            Again::Report(key) => self.write_report(&key),
            Again::Release(release) => self.look_at_release(&release),
        }
    }

    /// Looks again at this time, at the latest.
    pub(super) fn alarm(&mut self, again: Again, at: Timestamp, now: Timestamp) {
        if let Some((earlier, key)) = self.alarm_of.get(&again) {
            if *earlier <= at {
                return;
            }
            self.alarms.remove(key);
        }
        let key = self.alarms.insert(again.clone(), sleep(at, now));
        self.alarm_of.insert(again, (at, key));
    }

    /// Tries again after the object's back-off.
    pub(super) fn retry(&mut self, again: Again) {
        let now = Timestamp::now();
        let at = self.retries.failed(again.clone(), now);
        self.alarm(again, at, now);
    }

    fn written(&mut self, done: Done) {
        match done {
            Done::Stamp(order, answer) => self.stamp_ended(order, answer),
            Done::Step(placeholder, step, answer) => {
                self.step_ended(&placeholder, step, answer);
                self.review_workload(&placeholder.original, Timestamp::now());
            }
            Done::Report(key, answer) => self.report_written(key, answer),
            Done::Release(look, answer) => self.release_looked_at(look, answer),
            Done::Event(Ok(())) => {}
            Done::Event(Err(error)) => info!(%error, "an event could not be written"),
        }
    }

    fn stamp_ended(&mut self, order: StampOrder, answer: Result<Acted, ApiError>) {
        self.stamping.remove(&order.workload);
        let id = order.workload.clone();
        match answer {
            Ok(acted) => self.stamp_succeeded(&order, &acted),
            Err(error) => self.stamp_failed(&order, &error),
        }
        self.review_workload(&id, Timestamp::now());
    }

    fn report_written(&mut self, key: ReportKey, answer: Result<Written, ApiError>) {
        let again = Again::Report(key.clone());
        match answer {
            Ok(written) => {
                self.retries.succeeded(&again);
                self.reports.ended(&key, Some(written));
                self.write_report(&key);
            }
            Err(error) => {
                let gone = matches!(error, ApiError::NotFound).then_some(Written::Gone);
                self.reports.ended(&key, gone);
                // Another state than ours is seen by the watch, soon; anything else may last.
                if !matches!(error, ApiError::Conflict | ApiError::Exists | ApiError::NotFound) {
                    warn!(ns = %key.0, report = key.1, %error, "cannot write the report; it is tried again");
                }
                self.retry(again);
            }
        }
    }

    /// Starts the write that is due for a report, if any.
    pub(super) fn write_report(&mut self, key: &ReportKey) {
        if let Some(order) = self.reports.next(key) {
            self.writer.report(key.clone(), order);
        }
    }
}

/// How long an alarm sleeps.
fn sleep(until: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(now)).unwrap_or_default().min(LONGEST_SLEEP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::soon("2026-11-30T12:00:05Z", Duration::from_secs(5))]
    #[case::past("2026-11-30T11:00:00Z", Duration::ZERO)]
    #[case::far("9999-12-30T22:00:00Z", LONGEST_SLEEP)]
    #[tokio::test]
    async fn the_queue_takes_an_alarm_at_any_time(#[case] at: Timestamp, #[case] expected: Duration) {
        let sleep = sleep(at, "2026-11-30T12:00:00Z".parse().unwrap());
        DelayQueue::new().insert((), sleep);
        assert_eq!(sleep, expected);
    }
}
