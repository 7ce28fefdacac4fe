//! The operator as a process: connects, takes its turn as the leader, and stops when it is told to.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, CustomResourceExt as _, ResourceExt as _};
use tokio::sync::watch;
use tracing::warn;

use crate::api::drift_report::DriftReport;
use crate::api::published::LEASE;
use crate::connect::{ConnectError, Connection, Target};
use crate::model::schema;
use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;
use crate::operator::engine::Settings;
use crate::operator::hash_key::HashKeyError;
use crate::operator::http::{self, BindError, Stage};
use crate::operator::metrics::Metrics;
use crate::operator::renewal::Renewal;
use crate::operator::stop::Stop;
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
    // Before all else: the first process of a container gets no signal that it doesn't listen for.
    let mut stop = Stop::listen().map_err(RunError::Signals)?;
    let metrics = Metrics::new()?;
    let listener = http::bind(options.bind).await?;
    let (stage, stages) = watch::channel(Stage::Starting);
    let work = async {
        let turns = tokio::select! {
            turns = prepare(options, metrics.clone()) => turns?,
            () = stop.told() => return Ok(()),
        };
        turns.take(&stage, &mut stop).await
    };
    tokio::select! {
        ended = work => ended,
        served = http::serve(listener, metrics.clone(), stages) => {
            warn!(?served, "the HTTP server ended");
            Ok(())
        }
    }
}

/// Connects, and sees that the custom resource is there.
async fn prepare(options: Options, metrics: Metrics) -> Result<Turns, RunError> {
    let Connection { client, server } = options.target.connect().await?;
    check_custom_resource(&client, server).await?;
    let namespace = options.own_namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
    // A renewal that hangs must fail while there is time for another one.
    let patience = Duration::from_secs(options.lease_seconds.div_ceil(3));
    let renewal = Renewal::default();
    let heard = move |why_not| renewal.heard(why_not);
    let lease_client = options.target.connect_for_short_calls(patience, heard).await?;
    let holding = Holding::wanted(namespace, Duration::from_secs(options.lease_seconds))?;
    Ok(Turns { client, lease_client, holding, settings: options.settings, metrics })
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
