//! The metrics. Gauges about objects come from the leader alone: a standby has none.

use std::collections::BTreeSet;

use jiff::Timestamp;
use prometheus::core::Collector;
use prometheus::{Encoder as _, Histogram, HistogramOpts, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder};

use crate::api::drift_report::{Certainty, FindingStatus, FindingType};
use crate::model::adoption::Adoption;
use crate::model::decide::Hold;
use crate::model::names::{ConfigId, ConfigKind, Name, WorkloadId};
use crate::model::reloader::Sign;
use crate::model::rollout::changes::{ConfigChange, Stage};
use crate::model::scope::Scope;
use crate::model::watched::Watched;
use crate::operator::tally::ConfigState;

/// The registered metrics.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Registry,
    stale_keys: IntGaugeVec,
    findings: IntGaugeVec,
    configs: IntGaugeVec,
    reloads: IntCounterVec,
    latency: Histogram,
    watch_synced: IntGaugeVec,
    watch_failing: IntGaugeVec,
    watch_errors: IntCounterVec,
    held: IntGaugeVec,
    rollouts: IntGaugeVec,
    changes: IntGaugeVec,
    window_opens: IntGaugeVec,
    invalid_annotations: IntCounterVec,
    adoptions: IntCounterVec,
    reloader_detected: IntGaugeVec,
}

/// How a reload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadResult {
    /// The stamp was put on.
    Stamped,
    /// The workload had changed meanwhile; it is decided anew.
    Conflict,
    /// The API server refused, or did not answer.
    Failed,
    /// It would have been put on, were this not a dry run.
    DryRun,
}

impl ReloadResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Stamped => "stamped",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
            Self::DryRun => "dry-run",
        }
    }
}

impl Metrics {
    /// Makes and registers them.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let latency = HistogramOpts::new(
            "restamp_reload_latency_seconds",
            "Time from the first sight of a change to the stamped pod template, the settle time included.",
        );
        let latency = latency.buckets(vec![0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0]);
        let metrics = Self {
            stale_keys: registered(
                &registry,
                IntGaugeVec::new(
                    Opts::new("restamp_stale_keys", "Keys of a config that are live, yet declared nowhere any more."),
                    &["namespace", "kind", "name"],
                )?,
            )?,
            findings: registered(
                &registry,
                IntGaugeVec::new(
                    Opts::new(
                        "restamp_findings",
                        "What a report says that is not as it should be, by type; alert on what is certain.",
                    ),
                    &["namespace", "kind", "name", "type", "certainty"],
                )?,
            )?,
            configs: registered(
                &registry,
                IntGaugeVec::new(
                    Opts::new(
                        "restamp_configs",
                        "ConfigMaps and Secrets by what is known of them: in-sync, drifted, no-baseline or out-of-scope.",
                    ),
                    &["namespace", "state"],
                )?,
            )?,
            reloads: registered(
                &registry,
                IntCounterVec::new(
                    Opts::new(
                        "restamp_reloads_total",
                        "Stamps, Jobs made again and runs of CronJobs, by what became of them.",
                    ),
                    &["namespace", "kind", "result"],
                )?,
            )?,
            latency: registered(&registry, Histogram::with_opts(latency)?)?,
            watch_synced: registered(
                &registry,
                IntGaugeVec::new(
                    Opts::new("restamp_watch_synced", "Whether a kind's watch has had its first full list."),
                    &["kind"],
                )?,
            )?,
            watch_failing: registered(
                &registry,
                IntGaugeVec::new(
                    Opts::new(
                        "restamp_watch_failing",
                        "Whether a kind can't be watched at present, synced before or not.",
                    ),
                    &["kind"],
                )?,
            )?,
            watch_errors: registered(
                &registry,
                IntCounterVec::new(Opts::new("restamp_watch_errors_total", "Failures of a kind's watch."), &["kind"])?,
            )?,
            held: registered(
                &registry,
                IntGaugeVec::new(
                    Opts::new("restamp_held_workloads", "Workloads whose rollout is due and held, by reason."),
                    &["reason"],
                )?,
            )?,
            rollouts: registered(
                &registry,
                IntGaugeVec::new(
                    Opts::new(
                        "restamp_rollouts",
                        "Rollouts by restamp that are not finished (in-progress), and workloads that wait for their turn (waiting).",
                    ),
                    &["state"],
                )?,
            )?,
            changes: registered(
                &registry,
                IntGaugeVec::new(
                    Opts::new(
                        "restamp_change_consumers",
                        "Workloads by how far the last change of a config is for them: rolled, rolling, waiting, held or failed; while \
                         it goes on, and for a day.",
                    ),
                    &["namespace", "kind", "name", "state"],
                )?,
            )?,
            window_opens: registered(
                &registry,
                IntGaugeVec::new(
                    Opts::new(
                        "restamp_window_opens_timestamp_seconds",
                        "When the window of a workload opens whose rollout is due and waits for it.",
                    ),
                    &["namespace", "kind", "name"],
                )?,
            )?,
            invalid_annotations: registered(
                &registry,
                IntCounterVec::new(
                    Opts::new("restamp_invalid_annotations_total", "Annotations that were found not to parse."),
                    &["annotation"],
                )?,
            )?,
            adoptions: registered(
                &registry,
                IntCounterVec::new(
                    Opts::new(
                        "restamp_adoptions_total",
                        "Workloads whose configs were taken as they are, since there was no record to compare with, by reason.",
                    ),
                    &["reason"],
                )?,
            )?,
            reloader_detected: registered(
                &registry,
                IntGaugeVec::new(
                    Opts::new(
                        "restamp_reloader_detected",
                        "Whether a Reloader runs beside restamp; looked for while its annotations count here.",
                    ),
                    &[],
                )?,
            )?,
            registry,
        };
        Ok(metrics)
    }

    /// Every metric: its name, its labels and what it tells.
    pub fn descriptions(&self) -> Vec<(String, Vec<String>, String)> {
        let collectors: [&dyn Collector; 15] = [
            &self.stale_keys,
            &self.findings,
            &self.configs,
            &self.reloads,
            &self.latency,
            &self.watch_synced,
            &self.watch_failing,
            &self.watch_errors,
            &self.held,
            &self.rollouts,
            &self.changes,
            &self.window_opens,
            &self.invalid_annotations,
            &self.adoptions,
            &self.reloader_detected,
        ];
        let all = collectors.into_iter().flat_map(|collector| collector.desc());
        all.map(|desc| (desc.fq_name.clone(), desc.variable_labels.clone(), desc.help.clone())).collect()
    }

    /// The text that Prometheus scrapes.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Leadership began: every series that can be is there, at zero.
    pub fn begin(&self, scope: &Scope) {
        // Where the CSI driver is not installed, nothing of it is behind.
        let classes = Watched::Config(ConfigKind::SecretProviderClass);
        for kind in scope.watched().filter(|kind| *kind != classes) {
            self.watch_begins(kind);
        }
        for reason in Hold::REASONS {
            self.held.with_label_values(&[reason]).set(0);
        }
        for why in Adoption::ALL {
            self.adoptions.with_label_values(&[why.reason()]);
        }
    }

    /// Leadership ended: what was said of objects is said by another one now.
    pub fn end(&self) {
        self.stale_keys.reset();
        self.findings.reset();
        self.configs.reset();
        self.held.reset();
        self.rollouts.reset();
        self.changes.reset();
        self.window_opens.reset();
        self.watch_synced.reset();
        self.watch_failing.reset();
        self.reloader_detected.reset();
    }

    /// This is what a config's report says.
    pub fn findings_of_config(&self, config: &ConfigId, findings: &[FindingStatus]) {
        let subject = [config.namespace.as_str(), config.kind.as_str(), config.name.as_str()];
        let stale = findings.iter().filter(|finding| finding.r#type == FindingType::StaleKey).count();
        set(&self.stale_keys, &subject, stale);
        self.findings_of(subject, findings);
    }

    /// This is what a workload's report says.
    pub fn findings_of_workload(&self, workload: &WorkloadId, findings: &[FindingStatus]) {
        self.findings_of([workload.namespace.as_str(), workload.kind.label(), workload.name.as_str()], findings);
    }

    fn findings_of(&self, [namespace, kind, name]: [&str; 3], findings: &[FindingStatus]) {
        for r#type in FindingType::ALL {
            for certainty in [Certainty::Certain, Certainty::Likely] {
                // What says nothing of its certainty is seen in the objects.
                let is = |finding: &&FindingStatus| {
                    finding.r#type == r#type && finding.certainty.unwrap_or(Certainty::Certain) == certainty
                };
                let labels = [namespace, kind, name, &r#type.to_string(), &certainty.to_string()];
                set(&self.findings, &labels, findings.iter().filter(is).count());
            }
        }
    }

    /// There are this many configs in this state.
    pub fn configs(&self, namespace: &Name, state: ConfigState, many: i64) {
        set(&self.configs, &[namespace.as_str(), state.as_str()], usize::try_from(many).unwrap_or_default());
    }

    /// A stamp was sent.
    pub fn reload(&self, workload: &WorkloadId, result: ReloadResult) {
        let labels = [workload.namespace.as_str(), workload.kind.label(), result.as_str()];
        self.reloads.with_label_values(&labels).inc();
    }

    /// A change took this long to get into the pod template.
    pub fn latency(&self, seconds: f64) {
        self.latency.observe(seconds);
    }

    /// A watch begins.
    pub fn watch_begins(&self, kind: Watched) {
        self.watch_synced.with_label_values(&[kind.as_str()]).set(0);
        self.watch_failing.with_label_values(&[kind.as_str()]).set(0);
        self.watch_errors.with_label_values(&[kind.as_str()]);
    }

    /// A watch has had its first full list.
    pub fn watch_synced(&self, kind: Watched) {
        self.watch_synced.with_label_values(&[kind.as_str()]).set(1);
    }

    /// A kind can't be watched at present, or can.
    pub fn watch_failing(&self, kind: Watched, fails: bool) {
        self.watch_failing.with_label_values(&[kind.as_str()]).set(i64::from(fails));
    }

    /// A watch failed.
    pub fn watch_error(&self, kind: Watched) {
        self.watch_errors.with_label_values(&[kind.as_str()]).inc();
    }

    /// A workload is held, or no longer.
    pub fn held(&self, reason: &str, change: i64) {
        self.held.with_label_values(&[reason]).add(change);
    }

    /// So many rollouts by restamp are not finished, and so many workloads wait for their turn.
    pub fn rollouts(&self, in_progress: usize, waiting: usize) {
        for (state, many) in [("in-progress", in_progress), ("waiting", waiting)] {
            self.rollouts.with_label_values(&[state]).set(i64::try_from(many).unwrap_or(i64::MAX));
        }
    }

    /// So far are the last changes of configs.
    pub fn changes(&self, changes: &[ConfigChange]) {
        self.changes.reset();
        for change in changes {
            for stage in Stage::ALL {
                let (kind, name) = (change.config.kind.as_str(), change.config.name.as_str());
                let labels = [change.namespace.as_str(), kind, name, stage.as_str()];
                set(&self.changes, &labels, change.count(stage));
            }
        }
    }

    /// A workload's window opens then; none if it does not wait for it.
    pub fn window_opens(&self, workload: &WorkloadId, at: Option<Timestamp>) {
        let labels = [workload.namespace.as_str(), workload.kind.label(), workload.name.as_str()];
        let seconds = at.and_then(|at| usize::try_from(at.as_second()).ok());
        set(&self.window_opens, &labels, seconds.unwrap_or_default());
    }

    /// There are these signs of a running Reloader.
    pub fn reloader_detected(&self, signs: &BTreeSet<Sign>) {
        self.reloader_detected.with_label_values::<&str>(&[]).set(i64::from(!signs.is_empty()));
    }

    /// A workload was adopted.
    pub fn adoption(&self, why: Adoption) {
        self.adoptions.with_label_values(&[why.reason()]).inc();
    }

    /// An annotation does not parse.
    pub fn invalid_annotation(&self, annotation: &str) {
        self.invalid_annotations.with_label_values(&[annotation]).inc();
    }
}

/// Nothing is no series: names come and go.
fn set(gauge: &IntGaugeVec, labels: &[&str], many: usize) {
    if many == 0 {
        // An error says that there was no such series.
        let _ = gauge.remove_label_values(labels);
    } else {
        gauge.with_label_values(labels).set(i64::try_from(many).unwrap_or(i64::MAX));
    }
}

fn registered<C: Collector + Clone + 'static>(registry: &Registry, metric: C) -> Result<C, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}
