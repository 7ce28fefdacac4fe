//! `restamp run`: the operator.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::SignedDuration;

use crate::api::auto_reload::AutoReload;
use crate::api::published::Mode;
use crate::cli::appliers::Appliers;
use crate::cli::log;
use crate::cli::scope::{self, ScopeArgs};
use crate::connect::Target;
use crate::model::drift_scope::{DriftScope, DriftSubjects};
use crate::model::names::{Name, WorkloadKind};
use crate::model::participation::{Participation, Stakater};
use crate::model::policy::{Adopt, Edge, Policy};
use crate::model::rerun::Reruns;
use crate::model::scope::Scope;
use crate::model::selector::LabelSelector;
use crate::model::watched::Watched;
use crate::operator::engine::Settings;
use crate::operator::metrics::BuildInfo;
use crate::operator::run::{Options, RunError};
use crate::operator::secure::{Certificate, SecureMetrics};
use crate::operator::write::ChangeCause;

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
    /// Serve /metrics here instead, by TLS, to who may get it: a bearer token is reviewed by the API server, and so is the right
    /// to get the nonResourceURL /metrics; needs the rights in deploy/monitoring/metrics-auth.yaml
    #[arg(long, value_name = "ADDRESS:PORT")]
    secure_metrics: Option<SocketAddr>,
    /// The certificate for --secure-metrics, in PEM, read again when it changes [default: a self-signed one]
    #[arg(long, value_name = "FILE", requires = "secure_metrics", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// The private key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
    /// Serve /debug/index here: what the leader knows of each object, without values; 127.0.0.1:6060 is for kubectl port-forward
    #[arg(long, value_name = "ADDRESS:PORT")]
    debug_bind: Option<SocketAddr>,
    /// How long configs must be quiet before a workload rolls
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = duration)]
    settle: SignedDuration,
    /// Whether an optional config that appears for the first time rolls its readers: roll or ignore
    #[arg(long, default_value = "roll", value_name = "WHAT")]
    on_create: Edge,
    /// Whether the deletion of an optional config rolls its readers: roll or ignore
    #[arg(long, default_value = "ignore", value_name = "WHAT")]
    on_delete: Edge,
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
    /// rights in deploy/rerun-jobs/role.yaml
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
    #[arg(long, default_value = log::DEFAULT, value_name = "FILTER", value_parser = log::filter)]
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
        let jobs = jobs.into_iter().filter(|_| !self.rerun_jobs);
        let unasked = jobs.chain([Watched::Autoscaler]).filter(|_| self.drift == DriftSubjects::Off).collect();
        Scope { unasked, ..self.scope.clone().into() }
    }

    fn secure_metrics(&self) -> Option<SecureMetrics> {
        let certificate = match (&self.tls_cert_file, &self.tls_private_key_file) {
            (Some(certificate), Some(key)) => Certificate::Files { certificate: certificate.clone(), key: key.clone() },
            _ => Certificate::SelfSigned,
        };
        self.secure_metrics.map(|bind| SecureMetrics { bind, certificate })
    }

    fn mode(&self) -> Mode {
        if self.dry_run { Mode::DryRun } else { Mode::Live }
    }

    fn build_info(&self) -> BuildInfo {
        BuildInfo {
            version: env!("CARGO_PKG_VERSION"),
            revision: option_env!("RESTAMP_REVISION").unwrap_or_default(),
            mode: self.mode(),
            drift: self.drift,
        }
    }

    fn participation(&self) -> Participation {
        Participation {
            stakater: match &self.stakater_namespace_selector {
                _ if !self.stakater_annotations => Stakater::Nowhere,
                Some(labels) => Stakater::Labelled(labels.clone()),
                None => Stakater::Everywhere,
            },
            unsaid: if self.auto_reload_all { AutoReload::Everything } else { AutoReload::Off },
            ignored: self.ignore_workload_kind.iter().copied().collect(),
            reruns: if self.rerun_jobs { Reruns::Yes } else { Reruns::No },
        }
    }
}

/// Runs the operator until it is told to stop.
pub fn run(args: &Args) -> Result<(), Failure> {
    log::begin(&args.log);
    let options = Options {
        target: args.target.clone(),
        own_namespace: args.own_namespace.as_ref().map(Name::to_string),
        bind: args.bind,
        secure_metrics: args.secure_metrics(),
        debug_bind: args.debug_bind,
        build_info: args.build_info(),
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
            mode: args.mode(),
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
