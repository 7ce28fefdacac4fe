//! Taking turns: the replica that holds the Lease leads, and the others stand by.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use tokio::select;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::api::published::LEASE;
use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;
use crate::operator::dump::Desk;
use crate::operator::engine::Settings;
use crate::operator::http::Stage;
use crate::operator::lead::lead;
use crate::operator::metrics::Metrics;
use crate::operator::retry::Retries;
use crate::operator::run::RunError;
use crate::operator::vigil::{Holding, Vigil};

/// How long a shutdown waits for the Lease to be given back.
const GOODBYE: Duration = Duration::from_secs(5);
/// How often a standby looks whether the leader gave the Lease back. By itself it waits until it has run out.
const LOOK: Duration = Duration::from_secs(1);

/// What every turn as the leader needs.
pub struct Turns {
    /// For the work.
    pub client: Client,
    /// For the Lease: its calls fail early.
    pub lease_client: Client,
    /// The Lease, when it is ours.
    pub holding: Holding,
    /// What the engine is told.
    pub settings: Settings,
    /// Where it counts.
    pub metrics: Metrics,
    /// Where it is asked for the index.
    pub desk: Desk,
}

/// What to do next.
enum Next {
    /// The Lease has another holder now: we are, or we are no more.
    Look,
    /// Nobody holds it.
    Ask,
    Stop,
}

impl Holding {
    /// What this process holds when the Lease of this namespace is its own.
    pub fn wanted(namespace: String, duration: Duration) -> Result<Self, RunError> {
        Ok(Self { namespace, lease: LEASE, identity: identity()?, duration })
    }
}

/// Who holds the Lease: the pod, and which of its processes.
fn identity() -> Result<String, RunError> {
    let mut process = [0; 4];
    getrandom::fill(&mut process).map_err(RunError::Random)?;
    let process: String = process.iter().map(|byte| format!("{byte:02x}")).collect();
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "restamp".to_owned());
    Ok(format!("{host}_{process}"))
}

impl Turns {
    /// Leads whenever the Lease is ours, until this process is told to stop.
    pub async fn take(&self, stage: &watch::Sender<Stage>) -> Result<(), RunError> {
        let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Signals)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Signals)?;
        info!("waiting for the lease");
        let mut manager = self.manager().await?;
        loop {
            let (ours, keeper) = manager.watch().await;
            let next = self.hold(ours, &mut terminate, &mut interrupt, stage).await;
            if matches!(next, Ok(Next::Stop)) {
                info!("stopping");
            }
            give_back(keeper).await;
            if matches!(next?, Next::Stop) {
                return Ok(());
            }
            manager = select! {
                manager = self.manager_at_last() => manager,
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
            };
        }
    }

    /// Leads while the Lease is ours, until there is something else to do.
    async fn hold(
        &self,
        mut ours: watch::Receiver<bool>,
        terminate: &mut Signal,
        interrupt: &mut Signal,
        stage: &watch::Sender<Stage>,
    ) -> Result<Next, RunError> {
        loop {
            let leading = *ours.borrow_and_update();
            let next = select! {
                // The end of our turn counts before anything that there is to do in it.
                biased;
                changed = ours.changed() => match changed {
                    Ok(()) => Ok(Next::Look),
                    Err(_) => Err(self.refused("it can't be renewed".to_owned())),
                },
                _ = terminate.recv() => Ok(Next::Stop),
                _ = interrupt.recv() => Ok(Next::Stop),
                ended = self.turn(stage), if leading => ended.and(Err(RunError::WatchesEnded)),
                () = self.is_given_back(), if !leading => Ok(Next::Ask),
            };
            if leading {
                info!("no longer leading");
            }
            self.metrics.end();
            stage.send_replace(Stage::Standby);
            if !matches!(next, Ok(Next::Look)) {
                return next;
            }
        }
    }

    async fn turn(&self, stage: &watch::Sender<Stage>) -> Result<(), RunError> {
        info!("leading");
        let vigil = Arc::new(Vigil::begin(&self.lease_client, self.holding.clone()));
        let (client, namespace) = (self.client.clone(), self.holding.namespace.as_str());
        let (settings, metrics) = (self.settings.clone(), self.metrics.clone());
        Ok(lead(client, vigil, namespace, settings, metrics, stage, &self.desk).await?)
    }

    /// Returns when nobody holds the Lease. An answer that fails says nothing.
    async fn is_given_back(&self) {
        let leases: Api<Lease> = Api::namespaced(self.lease_client.clone(), &self.holding.namespace);
        loop {
            tokio::time::sleep(LOOK).await;
            if let Ok(lease) = in_time(leases.get(LEASE)).await
                && lease.spec.and_then(|spec| spec.holder_identity).is_none_or(|holder| holder.is_empty())
            {
                return;
            }
        }
    }

    async fn manager(&self) -> Result<LeaseManager, RunError> {
        let Holding { namespace, lease, identity, duration } = &self.holding;
        let seconds = duration.as_secs();
        let builder = LeaseManagerBuilder::new(self.lease_client.clone(), *lease).with_namespace(namespace);
        let builder = builder.with_identity(identity).with_duration(seconds).with_grace(seconds.div_ceil(3));
        match builder.build().await {
            Ok(manager) => Ok(manager),
            Err(LeaseManagerError::KubeError(error)) => Err(self.why_none(error.into()).await),
            Err(error) => Err(self.refused(error.to_string())),
        }
    }

    /// Who has rights in one namespace only is told of any other, existing or not, that these are lacking.
    async fn why_none(&self, cause: ApiError) -> RunError {
        let namespace = &self.holding.namespace;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let is_absent = match cause {
            ApiError::NotFound => true,
            ApiError::Forbidden(_) => {
                matches!(in_time(namespaces.get_metadata(namespace)).await, Err(ApiError::NotFound))
            }
            _ => false,
        };
        if is_absent { RunError::NoNamespace(namespace.clone()) } else { self.refused(cause.to_string()) }
    }

    /// The same; an API server that is not well ends nothing.
    async fn manager_at_last(&self) -> LeaseManager {
        let mut retries = Retries::default();
        loop {
            match self.manager().await {
                Ok(manager) => return manager,
                Err(error) => warn!(%error, "cannot ask for the lease; it is tried again"),
            }
            retries.pause(()).await;
        }
    }

    fn refused(&self, cause: String) -> RunError {
        RunError::Lease { namespace: self.holding.namespace.clone(), cause }
    }
}

/// The lease is given back when nobody asks for it any more.
async fn give_back(keeper: JoinHandle<Result<LeaseManager, LeaseManagerError>>) {
    if tokio::time::timeout(GOODBYE, keeper).await.is_err() {
        warn!("the lease could not be given back in time; it runs out by itself");
    }
}
