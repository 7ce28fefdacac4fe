//! Objects from the cluster: one by one, and page by page.

use std::fmt::{self, Debug};
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core;
use kube::api::ListParams;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use crate::cli::inventory::Inventory;
use crate::connect::{ConnectError, Connection, Target, innermost};
use crate::model::autoscaler::AutoscalerObject;
use crate::model::config::{ConfigMapObject, SecretObject};
use crate::model::explain::{Sought, Unknown};
use crate::model::names::{ConfigKind, Name, WorkloadKind};
use crate::model::namespace::Namespace;
use crate::model::pod::PodObject;
use crate::model::workload::Workload;

/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The kind that scales workloads.
pub const AUTOSCALER: &str = "HorizontalPodAutoscaler";
const PAGE_SIZE: u32 = 500;

/// Why a cluster does not tell what it is asked for.
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
    #[error("the API server at {url} took more than {} s for the {asked}; try one namespace with --namespace",
        TIMEOUT.as_secs())]
    Slow {
        /// The server.
        url: String,
        /// What was asked for.
        asked: Asked,
    },
    /// The API server doesn't know who asks.
    #[error("the API server at {url} does not accept these credentials; log in again, or choose others with --context")]
    Unauthorized {
        /// The server.
        url: String,
    },
    /// It refuses for another reason.
    #[error("cannot read the {asked}: the API server says {reason}")]
    Refused {
        /// What was asked for.
        asked: Asked,
        /// Its reason.
        reason: String,
    },
    /// What it answers can't be read. The cause may quote values.
    #[error("cannot read the API server's {asked}; is {url} a Kubernetes API server?")]
    Unreadable {
        /// What was asked for.
        asked: Asked,
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

/// What the API server was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// All objects of a kind.
    List(&'static str),
    /// One object: its kind, namespace and name.
    Object(&'static str, Name, Name),
    /// One namespace.
    Namespace(Name),
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(kind) => write!(f, "list of {kind} objects"),
            Self::Namespace(name) => write!(f, "Namespace {name}"),
            Self::Object(kind, namespace, name) => write!(f, "{kind} {namespace}/{name}"),
        }
    }
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
    block_on(async {
        let mut lister = Lister::new(target.connect().await?, namespace.map(Name::from));
        lister.configs().await?;
        if lister.live.forbidden.len() == ConfigKind::WITH_KEYS.len() {
            return Err(LiveError::NothingAllowed);
        }
        lister.workloads().await?;
        lister.autoscalers().await?;
        let forbidden = ConfigKind::ALL.into_iter().filter(|kind| lister.is_forbidden(*kind)).collect::<Vec<_>>();
        lister.live.inventory.may_lack(forbidden);
        Ok(lister.live)
    })
}

/// Waits for what the API server has to say.
pub fn block_on<T, E: From<LiveError>>(asking: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LiveError::Runtime)?;
    runtime.block_on(asking)
}

/// Reads objects.
pub struct Lister {
    connection: Connection,
    namespace: Option<Name>,
    live: Live,
}

impl Lister {
    /// Reads in this namespace, or in all of them.
    pub fn new(connection: Connection, namespace: Option<Name>) -> Self {
        Self { connection, namespace, live: Live::default() }
    }

    /// All that was listed.
    pub fn into_live(self) -> Live {
        self.live
    }

    /// Whether objects of this kind were not to be listed.
    pub fn is_forbidden(&self, kind: ConfigKind) -> bool {
        self.live.forbidden.contains(&kind.as_str())
    }

    /// Reads one object.
    pub async fn get<K>(&self, kind: &'static str, namespace: &Name, name: &Name) -> Result<Sought<K>, LiveError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.connection.client.clone(), namespace.as_str());
        let asked = Asked::Object(kind, namespace.clone(), name.clone());
        self.sought(asked, api.get(name.as_str())).await
    }

    /// Reads what a namespace says about its workloads.
    pub async fn namespace(&self, name: &Name) -> Result<Sought<Namespace>, LiveError> {
        let api: Api<core::v1::Namespace> = Api::all(self.connection.client.clone());
        let sought = self.sought(Asked::Namespace(name.clone()), api.get_metadata(name.as_str())).await?;
        Ok(sought.and_then(|found| Namespace::of(&found.metadata)))
    }

    async fn sought<T>(
        &self,
        asked: Asked,
        asking: impl Future<Output = kube::Result<T>>,
    ) -> Result<Sought<T>, LiveError> {
        match tokio::time::timeout(TIMEOUT, asking).await {
            Ok(Ok(object)) => Ok(Sought::Found(object)),
            Ok(Err(kube::Error::Api(status))) if status.is_forbidden() => Ok(Sought::Unknown(Unknown::Forbidden)),
            Ok(Err(kube::Error::Api(status))) if status.reason == "NotFound" => Ok(Sought::Absent),
            // Of a kind that is not there, the API server says so in plain text.
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(Sought::NoSuchKind),
            Ok(Err(error)) => Err(self.failure(asked, error)),
            Err(_) => Err(self.slow(asked)),
        }
    }

    /// Lists the configs.
    pub async fn configs(&mut self) -> Result<(), LiveError> {
        let all = ListParams::default();
        // Helm's records of releases are many and large, and declare nothing about themselves.
        let secrets = ListParams::default().fields("type!=helm.sh/release.v1");
        self.list("ConfigMap", all, |all, object: ConfigMapObject| all.add_config(object.config)).await?;
        self.list("Secret", secrets, |all, object: SecretObject| all.add_config(object.config)).await
    }

    /// Lists what may read them.
    pub async fn workloads(&mut self) -> Result<(), LiveError> {
        self.list_workloads(WorkloadKind::Deployment, Workload::of_deployment).await?;
        self.list_workloads(WorkloadKind::StatefulSet, Workload::of_stateful_set).await?;
        self.list_workloads(WorkloadKind::DaemonSet, Workload::of_daemon_set).await?;
        self.list_workloads(WorkloadKind::ReplicaSet, Workload::of_replica_set).await?;
        self.list_workloads(WorkloadKind::Job, Workload::of_job).await?;
        self.list_workloads(WorkloadKind::CronJob, Workload::of_cron_job).await?;
        self.list_workloads(WorkloadKind::Pod, PodObject::as_workload).await
    }

    /// Lists what scales them.
    async fn autoscalers(&mut self) -> Result<(), LiveError> {
        let add = |all: &mut Inventory, object: AutoscalerObject| all.autoscalers.extend(object.read());
        self.list(AUTOSCALER, ListParams::default(), add).await
    }

    async fn list_workloads<K>(&mut self, kind: WorkloadKind, read: fn(&K) -> Option<Workload>) -> Result<(), LiveError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let add = |all: &mut Inventory, object: K| {
            if let Some(workload) = read(&object).filter(Workload::is_its_own) {
                all.add_workload(workload);
            }
        };
        self.list(kind.as_str(), ListParams::default(), add).await
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
        let api: Api<K> = match &self.namespace {
            Some(namespace) => Api::namespaced(self.connection.client.clone(), namespace.as_str()),
            None => Api::all(self.connection.client.clone()),
        };
        let mut page = params.clone().limit(PAGE_SIZE);
        loop {
            let listed = tokio::time::timeout(TIMEOUT, api.list(&page)).await;
            let list = match listed.map_err(|_| self.slow(Asked::List(kind)))? {
                Ok(list) => list,
                Err(kube::Error::Api(status)) if status.is_forbidden() => {
                    self.live.forbidden.push(kind);
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.code == 410 && page.limit.is_some() => {
                    page = params.clone();
                    continue;
                }
                Err(error) => return Err(self.failure(Asked::List(kind), error)),
            };
            list.items.into_iter().for_each(|object| add(&mut self.live.inventory, object));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(()),
            }
        }
    }

    fn slow(&self, asked: Asked) -> LiveError {
        LiveError::Slow { url: self.connection.server.clone(), asked }
    }

    fn failure(&self, asked: Asked, error: kube::Error) -> LiveError {
        let url = self.connection.server.clone();
        match error {
            kube::Error::Api(status) if status.code == 401 => LiveError::Unauthorized { url },
            kube::Error::Api(status) => LiveError::Refused { asked, reason: status.message },
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => LiveError::Unreadable { asked, url },
            error => LiveError::Unreachable { url, reason: innermost(&error) },
        }
    }
}
