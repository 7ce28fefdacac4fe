//! The operator as a process: connects, takes its turn as the leader, and stops when it is told to.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::api::published::LEASE;
use crate::connect::{ConnectError, Connection, Target};
use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;
use crate::operator::engine::Settings;
use crate::operator::hash_key::HashKeyError;
use crate::operator::http::{self, BindError, Stage};
use crate::operator::lead::lead;
use crate::operator::metrics::Metrics;

/// How long a shutdown waits for the Lease to be given back.
const GOODBYE: Duration = Duration::from_secs(5);

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which cluster.
    pub target: Target,
    /// Our own namespace: of the Lease and of the hash key. By default the one of the kubeconfig or of the pod.
    pub own_namespace: Option<String>,
    /// Where to serve metrics and probes.
    pub bind: SocketAddr,
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
    /// The port is taken.
    #[error(transparent)]
    Bind(#[from] BindError),
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
    let listener = http::bind(options.bind).await?;
    let Connection { client, server } = options.target.connect().await?;
    check_custom_resource(&client, server).await?;
    let (stage, stages) = watch::channel(Stage::Standby);
    let namespace = options.own_namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
    // A renewal that hangs must fail while there is time for another one.
    let patience = Duration::from_secs(options.lease_seconds.div_ceil(3));
    let lease_client = options.target.connect_for_short_calls(patience).await?.client;
    let lease = lease(&lease_client, &namespace, options.lease_seconds).await?;
    tokio::select! {
        ended = take_turns(client, &namespace, options.settings, &metrics, lease, &stage) => ended,
        served = http::serve(listener, metrics.clone(), stages) => {
            warn!(?served, "the HTTP server ended");
            Ok(())
        }
    }
}

async fn check_custom_resource(client: &Client, server: String) -> Result<(), RunError> {
    match in_time(client.list_api_group_resources("restamp.dev/v1alpha1")).await {
        Ok(_) => Ok(()),
        Err(ApiError::NotFound) => Err(RunError::NoCustomResource),
        Err(cause) => Err(RunError::Unreachable { server, cause }),
    }
}

async fn lease(client: &Client, namespace: &str, seconds: u64) -> Result<LeaseManager, RunError> {
    let builder = LeaseManagerBuilder::new(client.clone(), LEASE).with_namespace(namespace);
    let builder = builder.with_identity(identity()?).with_duration(seconds).with_grace(seconds.div_ceil(3));
    match builder.build().await {
        Ok(lease) => Ok(lease),
        Err(LeaseManagerError::KubeError(error)) => Err(why_no_lease(client, namespace, error.into()).await),
        Err(error) => Err(RunError::Lease { namespace: namespace.to_owned(), cause: error.to_string() }),
    }
}

/// Who has rights in one namespace only is told of any other, existing or not, that these are lacking.
async fn why_no_lease(client: &Client, namespace: &str, cause: ApiError) -> RunError {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let is_absent = match cause {
        ApiError::NotFound => true,
        ApiError::Forbidden(_) => {
            matches!(in_time(namespaces.get_metadata(namespace)).await, Err(ApiError::NotFound))
        }
        _ => false,
    };
    let namespace = namespace.to_owned();
    if is_absent {
        return RunError::NoNamespace(namespace);
    }
    RunError::Lease { namespace, cause: cause.to_string() }
}

/// Who holds the Lease: the pod, and which of its processes.
fn identity() -> Result<String, RunError> {
    let mut process = [0; 4];
    getrandom::fill(&mut process).map_err(RunError::Random)?;
    let process: String = process.iter().map(|byte| format!("{byte:02x}")).collect();
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "restamp".to_owned());
    Ok(format!("{host}_{process}"))
}

/// Leads whenever the Lease is ours.
async fn take_turns(
    client: Client,
    namespace: &str,
    settings: Settings,
    metrics: &Metrics,
    lease: LeaseManager,
    stage: &watch::Sender<Stage>,
) -> Result<(), RunError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Signals)?;
    let (mut ours, keeper) = lease.watch().await;
    info!("waiting for the lease");
    let ended = loop {
        let leading = *ours.borrow_and_update();
        let turn = async {
            if !leading {
                return std::future::pending().await;
            }
            info!("leading");
            lead(client.clone(), namespace, settings.clone(), metrics.clone(), stage).await
        };
        tokio::select! {
            // The end of our turn counts before anything that there is to do in it.
            biased;
            changed = ours.changed() => if changed.is_err() {
                break Err(RunError::Lease { namespace: namespace.to_owned(), cause: "it can't be renewed".to_owned() });
            },
            _ = terminate.recv() => break Ok(()),
            _ = interrupt.recv() => break Ok(()),
            ended = turn => break ended.map_err(RunError::from).and(Err(RunError::WatchesEnded)),
        }
        metrics.end();
        stage.send_replace(Stage::Standby);
    };
    info!("stopping");
    // The lease is given back when nobody asks for it any more.
    drop(ours);
    if tokio::time::timeout(GOODBYE, keeper).await.is_err() {
        warn!("the lease could not be given back in time; it runs out by itself");
    }
    ended
}
