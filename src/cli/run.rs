//! `restamp run`: the operator.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::sync::Arc;

use jiff::SignedDuration;
use tracing::Subscriber;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, filter_fn};
use tracing_subscriber::layer::{Filter, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::api::auto_reload::AutoReload;
use crate::api::published::Mode;
use crate::cli::appliers::Appliers;
use crate::cli::scope::{self, ScopeArgs};
use crate::connect::Target;
use crate::model::drift_scope::{DriftScope, DriftSubjects};
use crate::model::names::{ConfigKind, Name, WorkloadKind};
use crate::model::participation::{Participation, Reloading, Stakater};
use crate::model::policy::{Adopt, Edge, Policy};
use crate::model::rerun::Reruns;
use crate::model::scope::Scope;
use crate::model::selector::LabelSelector;
use crate::model::watched::Watched;
use crate::operator::engine::Settings;
use crate::operator::run::{Options, RunError};
use crate::operator::write::ChangeCause;

/// What is logged by default. The client and its watches log each failure that we tell in a sentence of our own, and at
/// every retry.
const LOG: &str = "info,kube_client=off,kube_runtime=off";

/// A Lease has room for no more seconds.
const LONGEST_LEASE: u64 = i32::MAX as u64;

/// Run the operator.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The operator's own namespace, of its Lease and its hash key [default: the pod's, or the kubeconfig's]
    #[arg(long, env = "POD_NAMESPACE", hide_env_values = true, value_name = "NAME", value_parser = own_namespace)]
    own_namespace: Option<Name>,
    /// Where to serve /metrics, /healthz and /readyz
    #[arg(long, default_value = "0.0.0.0:8080", value_name = "ADDRESS:PORT")]
    bind: SocketAddr,
    /// How long configs must be quiet before a workload rolls
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = duration)]
    settle: SignedDuration,
    /// Whether an optional config that appears for the first time rolls its readers: roll or ignore
    #[arg(long, default_value = "roll", value_name = "WHAT")]
    on_create: Edge,
    /// Whether the deletion of an optional config rolls its readers: roll or ignore
    #[arg(long, default_value = "ignore", value_name = "WHAT")]
    on_delete: Edge,
    /// Whether a change rolls what reads it: on, or off, which needs no right to change any workload
    #[arg(long, default_value = "on", value_name = "WHAT")]
    reload: Reloading,
    /// What first sight of a workload takes for read: as-is, or catch-up, which rolls where a config was written after its
    /// readers started
    #[arg(long, default_value = "as-is", value_name = "WHAT")]
    adopt: Adopt,
    /// Of what drift is reported: consumed, which is workloads and the configs that they name; all, which is all configs too;
    /// or off, which needs no rights on Jobs, CronJobs and HorizontalPodAutoscalers
    #[arg(long, default_value = "consumed", value_name = "WHAT")]
    drift: DriftSubjects,
    /// Report drift in the namespaces with these labels only; what is rolled does not depend on it
    #[arg(long, value_name = "LABELS", conflicts_with = "namespace")]
    drift_namespace_selector: Option<LabelSelector>,
    /// How long a finding must be there before it is reported
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration)]
    report_after: SignedDuration,
    /// How long the report on a config stays after its last finding went
    #[arg(long, default_value = "1h", value_name = "DURATION", value_parser = duration)]
    keep_resolved: SignedDuration,
    /// Take every workload for annotated with restamp.dev/auto-reload: "true", unless it says something else; not in
    /// kube-system, and not what a controller owns
    #[arg(long)]
    auto_reload_all: bool,
    /// Let Reloader's annotations, reloader.stakater.com/*, count where those of restamp say nothing
    #[arg(long)]
    stakater_annotations: bool,
    /// Let them count in the namespaces with these labels only, so that teams move one by one
    #[arg(long, value_name = "LABELS", requires = "stakater_annotations", conflicts_with = "namespace")]
    stakater_namespace_selector: Option<LabelSelector>,
    /// Never roll this kind of workload, such as DaemonSet; may be given more than once
    #[arg(long, value_name = "KIND")]
    ignore_workload_kind: Vec<WorkloadKind>,
    /// Let annotated Jobs and CronJobs count: a Job that has not succeeded is made again, a CronJob runs once now; needs the
    /// rights in deploy/kustomize/components/rerun-jobs
    #[arg(long)]
    rerun_jobs: bool,
    /// Decide, log, count and record Events, but write no workload and no record
    #[arg(long)]
    dry_run: bool,
    /// Write the cause into kubernetes.io/change-cause, for kubectl rollout history, where nobody else owns it
    #[arg(long)]
    change_cause: bool,
    /// How long a leader that is gone keeps its Lease, in seconds
    #[arg(long, default_value_t = 15, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(3..=LONGEST_LEASE))]
    lease_seconds: u64,
    /// What to log, such as `debug` or `restamp=trace,kube=info`
    #[arg(long, default_value = LOG, value_name = "FILTER", value_parser = log_filter)]
    log: String,
    #[command(flatten)]
    appliers: Appliers,
    #[command(flatten)]
    target: Target,
    // The last one: its heading is that of all flags behind it.
    #[command(flatten)]
    scope: ScopeArgs,
}

/// Why the operator did not start, or gave up.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no runtime.
    #[error("cannot start the runtime")]
    Runtime(#[source] std::io::Error),
    /// The operator gave up.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Args {
    fn scope(&self) -> Scope {
        let jobs = [WorkloadKind::Job, WorkloadKind::CronJob].map(Watched::Workload);
        // Jobs are consumers in reports, and nothing else unless they are made again.
        let jobs = jobs.into_iter().filter(|_| !self.reruns());
        let unasked = jobs.chain([Watched::Autoscaler]).filter(|_| self.drift == DriftSubjects::Off).collect();
        let mut scope = Scope { unasked, ..self.scope.clone().into() };
        if self.reload == Reloading::Off {
            // Its versions say what to roll, and nothing else.
            scope.ignored.insert(ConfigKind::SecretProviderClass);
        }
        scope
    }

    fn reruns(&self) -> bool {
        self.rerun_jobs && self.reload == Reloading::On
    }

    fn participation(&self) -> Participation {
        Participation {
            reload: self.reload,
            stakater: match &self.stakater_namespace_selector {
                _ if !self.stakater_annotations => Stakater::Nowhere,
                Some(labels) => Stakater::Labelled(labels.clone()),
                None => Stakater::Everywhere,
            },
            unsaid: if self.auto_reload_all { AutoReload::Everything } else { AutoReload::Off },
            ignored: self.ignore_workload_kind.iter().copied().collect(),
            reruns: if self.reruns() { Reruns::Yes } else { Reruns::No },
        }
    }
}

/// Runs the operator until it is told to stop.
pub fn run(args: &Args) -> Result<(), Failure> {
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(log.with_filter(logged(&args.log))).init();
    let options = Options {
        target: args.target.clone(),
        own_namespace: args.own_namespace.as_ref().map(Name::to_string),
        bind: args.bind,
        lease_seconds: args.lease_seconds,
        settings: Settings {
            scope: Arc::new(args.scope()),
            policy: Policy {
                settle: args.settle,
                on_create: args.on_create,
                on_delete: args.on_delete,
                adopt: args.adopt,
            },
            drift: DriftScope { subjects: args.drift, namespaces: args.drift_namespace_selector.clone() },
            managers: args.appliers.managers(),
            participation: args.participation(),
            mode: if args.dry_run { Mode::DryRun } else { Mode::Live },
            change_cause: if args.change_cause { ChangeCause::Write } else { ChangeCause::Omit },
            report_after: args.report_after,
            keep_resolved: args.keep_resolved,
        },
    };
    // One thread: there is little to compute, and each further one has an arena of the allocator to itself.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Runtime)?;
    Ok(runtime.block_on(crate::operator::run::run(options))?)
}

fn own_namespace(text: &str) -> Result<Name, String> {
    scope::namespace(text)
        .map_err(|_| "it can't be a namespace's name; name the one that the operator runs in".to_owned())
}

/// A duration such as `5s` or `1h 30m`; never a negative one.
fn duration(text: &str) -> Result<SignedDuration, String> {
    let duration: SignedDuration = text.parse().map_err(|error: jiff::Error| error.to_string())?;
    if duration.is_negative() {
        return Err("a duration can't be negative".to_owned());
    }
    Ok(duration)
}

/// What is logged: what the user asks for, but never the answers that the client can't read. It logs them in full.
fn logged<S: Subscriber + for<'a> LookupSpan<'a>>(filter: &str) -> impl Filter<S> + 'static {
    EnvFilter::new(filter).and(filter_fn(|metadata| metadata.target() != "kube_client::client"))
}

fn log_filter(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_that_the_client_cannot_read_is_logged_at_no_level() {
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
        let log = tracing_subscriber::registry().with(log.with_filter(logged("trace,kube_client::client=trace")));
        tracing::subscriber::with_default(log, || {
            tracing::warn!(target: "kube_client::client", "the whole answer");
            tracing::debug!(target: "kube_client::client::builder", "requesting");
        });
        let written = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert!(written.contains("requesting") && !written.contains("the whole answer"), "{written}");
    }
}
