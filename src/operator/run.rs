//! The operator as a process: connects, takes its turn as the leader, and stops when it is told to.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, CustomResourceExt as _, ResourceExt as _};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::api::drift_report::DriftReport;
use crate::api::published::LEASE;
use crate::connect::{ConnectError, Connection, Target};
use crate::model::schema;
use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;
use crate::operator::dump::Desk;
use crate::operator::engine::Settings;
use crate::operator::hash_key::HashKeyError;
use crate::operator::http::{self, BindError, Stage};
use crate::operator::metrics::{BuildInfo, Metrics};
use crate::operator::secure::{SecureError, SecureMetrics};
use crate::operator::turns::Turns;
use crate::operator::vigil::Holding;

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which cluster.
    pub target: Target,
    /// Our own namespace: of the Lease and of the hash key. By default the one of the kubeconfig or of the pod.
    pub own_namespace: Option<String>,
    /// Where to serve metrics and probes.
    pub bind: SocketAddr,
    /// Where to serve metrics by TLS instead, to who may get them.
    pub secure_metrics: Option<SecureMetrics>,
    /// Where to serve what the leader knows.
    pub debug_bind: Option<SocketAddr>,
    /// How this process was built and started.
    pub build_info: BuildInfo,
    /// How long a leader that is gone keeps its Lease, in seconds.
    pub lease_seconds: u64,
    /// What the engine is told.
    pub settings: Settings,
}

/// Why the operator gave up.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The API server does not answer, or refuses.
    #[error("cannot ask the API server at {server} for restamp.dev/v1alpha1; check the address, and that it runs")]
    Unreachable {
        /// Its address.
        server: String,
        /// Why not.
        #[source]
        cause: ApiError,
    },
    /// The custom resource is not there.
    #[error(
        "the custom resource DriftReport is not installed; apply crds/driftreports.yaml, or the output of `restamp crd`"
    )]
    NoCustomResource,
    /// The custom resource is there, and older: records could not be written, so that each restart would begin anew.
    #[error(
        "the custom resource DriftReport is older than this program: it has no {field}; apply crds/driftreports.yaml of \
         this version, or the output of `restamp crd`"
    )]
    OldCustomResource {
        /// What it lacks.
        field: String,
    },
    /// The port is taken.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Metrics can't be served by TLS.
    #[error(transparent)]
    Secure(#[from] SecureError),
    /// Metrics can't be registered.
    #[error("cannot register the metrics")]
    Metrics(#[from] prometheus::Error),
    /// The operating system refuses.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    /// There is no randomness.
    #[error("cannot get random bytes for a name of this process")]
    Random(#[source] getrandom::Error),
    /// The Lease can't be had.
    #[error("cannot use Lease {namespace}/{LEASE}; grant get, create and patch on leases in this namespace: {cause}")]
    Lease {
        /// Our namespace.
        namespace: String,
        /// Why not.
        cause: String,
    },
    /// Our own namespace is not there.
    #[error("namespace {0} does not exist; create it, or name the operator's own with --own-namespace")]
    NoNamespace(String),
    /// There is no hash key.
    #[error(transparent)]
    HashKey(#[from] HashKeyError),
    /// A watch broke down.
    #[error("a watch ended by a defect of restamp; the log tells more")]
    WatchesEnded,
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(options: Options) -> Result<(), RunError> {
    let metrics = Metrics::new()?;
    metrics.started(&options.build_info);
    let BuildInfo { version, revision, mode, drift } = options.build_info;
    info!(version, revision, mode = mode.as_str(), drift = drift.as_str(), "starting");
    let listener = http::bind(options.bind).await?;
    let debug = match options.debug_bind {
        Some(address) => Some(http::bind(address).await?),
        None => None,
    };
    let Connection { client, server } = options.target.connect().await?;
    check_custom_resource(&client, server).await?;
    let (stage, stages) = watch::channel(Stage::Standby);
    let namespace = options.own_namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
    // A renewal that hangs must fail while there is time for another one.
    let patience = Duration::from_secs(options.lease_seconds.div_ceil(3));
    let lease_client = options.target.connect_for_short_calls(patience).await?.client;
    let holding = Holding::wanted(namespace, Duration::from_secs(options.lease_seconds))?;
    let desk = Desk::default();
    let pages = http::metrics(metrics.clone(), stages.clone());
    let (plain, secure) = match options.secure_metrics {
        Some(options) => (http::probes(stages), Some(options.serve(pages, lease_client.clone())?)),
        None => (http::probes(stages).merge(pages), None),
    };
    let index = debug.map(|listener| http::serve(listener, http::index(desk.clone())));
    let turns = Turns { client, lease_client, holding, settings: options.settings, metrics, desk };
    tokio::select! {
        ended = turns.take(&stage) => ended,
        served = http::serve(listener, plain) => server_ended(served),
        served = if_any(index) => server_ended(served),
        served = if_any(secure) => server_ended(served),
    }
}

/// What is not asked for never ends.
async fn if_any<T>(server: Option<impl Future<Output = T>>) -> T {
    match server {
        Some(server) => server.await,
        None => std::future::pending().await,
    }
}

fn server_ended(served: io::Result<()>) -> Result<(), RunError> {
    warn!(?served, "an HTTP server ended");
    Ok(())
}

async fn check_custom_resource(client: &Client, server: String) -> Result<(), RunError> {
    match in_time(client.list_api_group_resources("restamp.dev/v1alpha1")).await {
        Ok(_) => {}
        Err(ApiError::NotFound) => return Err(RunError::NoCustomResource),
        Err(cause) => return Err(RunError::Unreachable { server, cause }),
    }
    let ours = DriftReport::crd();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    match in_time(definitions.get(&ours.name_any())).await {
        Ok(installed) => match schema::lacking(&ours, &installed) {
            Some(field) => Err(RunError::OldCustomResource { field }),
            None => Ok(()),
        },
        Err(cause) => {
            warn!(%cause, "cannot see whether the custom resource is as new as this program; grant get on it");
            Ok(())
        }
    }
}
