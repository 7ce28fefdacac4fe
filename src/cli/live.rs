//! Objects from the cluster, page by page.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use kube::api::ListParams;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use crate::cli::inventory::Inventory;
use crate::connect::{ConnectError, Connection, Target, innermost};
use crate::model::config::{ConfigMapObject, SecretObject};
use crate::model::names::{ConfigKind, WorkloadKind};
use crate::model::pod::PodObject;
use crate::model::workload::Workload;

/// How long one page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
const PAGE_SIZE: u32 = 500;

/// Why a cluster can't be scanned.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// There is no connection.
    #[error("{0}, or look at a file with --filename")]
    Connect(#[from] ConnectError),
    /// The API server does not answer.
    #[error("cannot reach the API server at {url}: {reason}; check that it runs, or choose another with --context")]
    Unreachable {
        /// The server.
        url: String,
        /// Why.
        reason: String,
    },
    /// It takes too long.
    #[error("the API server at {url} took more than {} s to list {kind} objects; try one namespace with --namespace",
        PAGE_TIMEOUT.as_secs())]
    Slow {
        /// The server.
        url: String,
        /// What was listed.
        kind: &'static str,
    },
    /// The API server doesn't know who asks.
    #[error("the API server at {url} does not accept these credentials; log in again, or choose others with --context")]
    Unauthorized {
        /// The server.
        url: String,
    },
    /// It refuses for another reason.
    #[error("cannot list {kind} objects: the API server says {reason}")]
    Refused {
        /// What was listed.
        kind: &'static str,
        /// Its reason.
        reason: String,
    },
    /// What it answers can't be read. The cause may quote values.
    #[error("cannot read the API server's list of {kind} objects; is {url} a Kubernetes API server?")]
    Unreadable {
        /// What was listed.
        kind: &'static str,
        /// The server.
        url: String,
    },
    /// There is nothing that a scan could look at.
    #[error(
        "listing ConfigMaps and Secrets is forbidden; grant list on one of them, or try one namespace with --namespace"
    )]
    NothingAllowed,
    /// The runtime did not start.
    #[error("cannot start the asynchronous runtime")]
    Runtime(#[source] std::io::Error),
}

/// What was found, and the kinds that may not be listed.
#[derive(Debug, Default)]
pub struct Live {
    /// The objects.
    pub inventory: Inventory,
    /// The kinds that are left out.
    pub forbidden: Vec<&'static str>,
}

/// Lists all that a scan looks at: in one namespace, or in all of them.
pub fn read(target: &Target, namespace: Option<&str>) -> Result<Live, LiveError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LiveError::Runtime)?;
    runtime.block_on(async {
        let mut lister = Lister { connection: target.connect().await?, namespace, live: Live::default() };
        lister.configs().await?;
        if lister.live.forbidden.len() == ConfigKind::ALL.len() {
            return Err(LiveError::NothingAllowed);
        }
        lister.workloads().await?;
        Ok(lister.live)
    })
}

struct Lister<'a> {
    connection: Connection,
    namespace: Option<&'a str>,
    live: Live,
}

impl Lister<'_> {
    async fn configs(&mut self) -> Result<(), LiveError> {
        let all = ListParams::default();
        // Helm's records of releases are many and large, and declare nothing about themselves.
        let secrets = ListParams::default().fields("type!=helm.sh/release.v1");
        self.list("ConfigMap", all, |all, object: ConfigMapObject| all.add_config(object.config)).await?;
        self.list("Secret", secrets, |all, object: SecretObject| all.add_config(object.config)).await
    }

    async fn workloads(&mut self) -> Result<(), LiveError> {
        self.list_workloads(WorkloadKind::Deployment, Workload::of_deployment).await?;
        self.list_workloads(WorkloadKind::StatefulSet, Workload::of_stateful_set).await?;
        self.list_workloads(WorkloadKind::DaemonSet, Workload::of_daemon_set).await?;
        self.list_workloads(WorkloadKind::ReplicaSet, Workload::of_replica_set).await?;
        self.list_workloads(WorkloadKind::Job, Workload::of_job).await?;
        self.list_workloads(WorkloadKind::CronJob, Workload::of_cron_job).await?;
        self.list_workloads(WorkloadKind::Pod, PodObject::as_workload).await
    }

    async fn list_workloads<K>(&mut self, kind: WorkloadKind, read: fn(&K) -> Option<Workload>) -> Result<(), LiveError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        self.list(kind.as_str(), ListParams::default(), |all, object: K| all.add_workload(read(&object))).await
    }

    /// Lists one kind. A page after a pause may come too late; then all is listed at once.
    async fn list<K>(
        &mut self,
        kind: &'static str,
        params: ListParams,
        mut add: impl FnMut(&mut Inventory, K),
    ) -> Result<(), LiveError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = match self.namespace {
            Some(namespace) => Api::namespaced(self.connection.client.clone(), namespace),
            None => Api::all(self.connection.client.clone()),
        };
        let mut page = params.clone().limit(PAGE_SIZE);
        loop {
            let listed = tokio::time::timeout(PAGE_TIMEOUT, api.list(&page)).await;
            let listed = listed.map_err(|_| LiveError::Slow { url: self.connection.server.clone(), kind })?;
            let list = match listed {
                Ok(list) => list,
                Err(kube::Error::Api(status)) if status.is_forbidden() => {
                    self.live.forbidden.push(kind);
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.code == 410 && page.limit.is_some() => {
                    page = params.clone();
                    continue;
                }
                Err(error) => return Err(self.failure(kind, error)),
            };
            list.items.into_iter().for_each(|object| add(&mut self.live.inventory, object));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(()),
            }
        }
    }

    fn failure(&self, kind: &'static str, error: kube::Error) -> LiveError {
        let url = self.connection.server.clone();
        match error {
            kube::Error::Api(status) if status.code == 401 => LiveError::Unauthorized { url },
            kube::Error::Api(status) => LiveError::Refused { kind, reason: status.message },
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => LiveError::Unreadable { kind, url },
            error => LiveError::Unreachable { url, reason: innermost(&error) },
        }
    }
}
