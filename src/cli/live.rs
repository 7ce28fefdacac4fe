//! Objects from the cluster: one by one, and page by page.

mod releases;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::core::discovery::v2::APIGroupDiscovery;
use kube::core::{ApiResource, DynamicResourceScope, GroupVersionKind};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use releases::Seen;

use crate::cli::inventory::Inventory;
use crate::connect::{ConnectError, Connection, Target, innermost};
use crate::model::autoscaler::AutoscalerObject;
use crate::model::config::{Config, ConfigMapObject, SecretObject};
use crate::model::explain::{Sought, Unknown};
use crate::model::helm::{ReleaseId, SECRET_TYPE};
use crate::model::names::{ConfigId, ConfigKind, Name, WorkloadKind};
use crate::model::namespace::Namespace;
use crate::model::pod::PodObject;
use crate::model::readable::Readable;
use crate::model::selector::LabelSelector;
use crate::model::workload::{OwnedReplicaSet, Workload};

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
    Connect(ConnectError),
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
        "listing ConfigMaps and Secrets {place} is forbidden; grant list on one of them there, or try {other} with --namespace",
        place = .0.as_ref().map_or_else(|| "in all namespaces".to_owned(), |name| format!("in namespace {name}")),
        other = if .0.is_some() { "another namespace" } else { "one namespace" }
    )]
    NothingAllowed(Option<Name>),
    /// The runtime did not start.
    #[error("cannot start the asynchronous runtime")]
    Runtime(#[source] std::io::Error),
}

// It tells its cause itself, which must not be told once more.
impl From<ConnectError> for LiveError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
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
    /// One custom resource definition.
    Crd(Name),
    /// Which kinds there are.
    Kinds,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(kind) => write!(f, "list of {kind} objects"),
            Self::Crd(name) => write!(f, "CustomResourceDefinition {name}"),
            Self::Kinds => f.write_str("list of kinds"),
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
    /// The configs that lack the labels which are looked for.
    pub unselected: BTreeSet<ConfigId>,
    /// The Helm releases that may not be read.
    pub unread_releases: BTreeSet<ReleaseId>,
    /// The objects that hold what can't be read, as `Kind namespace/name`.
    pub unreadable: Vec<String>,
}

impl Live {
    /// The object; one that can't be read is noted.
    fn read<K>(&mut self, kind: WorkloadKind, object: Readable<K>) -> Option<K> {
        let note = |metadata: Box<ObjectMeta>| {
            let (namespace, name) = (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());
            self.unreadable.push(format!("{kind} {namespace}/{name}"));
        };
        object.read().map_err(note).ok()
    }

    /// Takes a config in, and notes if this does not select it.
    pub fn add_config(&mut self, config: Config, metadata: &ObjectMeta, selector: Option<&LabelSelector>) {
        let none = BTreeMap::new();
        let labels = metadata.labels.as_ref().unwrap_or(&none);
        if selector.is_some_and(|selector| !selector.match_all(labels)) {
            self.unselected.insert(config.id.clone());
        }
        self.inventory.add_config(config);
    }
}

/// A kind of object in a namespace that the API server has.
#[derive(Debug, Clone)]
pub struct Served {
    /// Where.
    pub resource: ApiResource,
    /// What it is called beside its kind and its plural.
    pub names: Vec<String>,
}

/// Lists all that a scan looks at: in one namespace, or in all of them.
pub fn read(target: &Target, namespace: Option<&str>) -> Result<Live, LiveError> {
    block_on(async {
        let mut lister = Lister::new(target.connect().await?, namespace.map(Name::from));
        lister.configs(None).await?;
        if lister.live.forbidden.len() == ConfigKind::WITH_KEYS.len() {
            return Err(LiveError::NothingAllowed(lister.namespace));
        }
        lister.workloads().await?;
        lister.autoscalers().await?;
        lister.drop_changed_releases().await?;
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
    seen_releases: BTreeMap<ReleaseId, Seen>,
}

impl Lister {
    /// Reads in this namespace, or in all of them.
    pub fn new(connection: Connection, namespace: Option<Name>) -> Self {
        Self { connection, namespace, live: Live::default(), seen_releases: BTreeMap::new() }
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

    /// Reads one object of a custom kind.
    pub async fn get_of<K>(
        &self,
        kind: &'static str,
        namespace: &Name,
        name: &Name,
        resource: &ApiResource,
    ) -> Result<Sought<K>, LiveError>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced_with(self.connection.client.clone(), namespace.as_str(), resource);
        self.sought(Asked::Object(kind, namespace.clone(), name.clone()), api.get(name.as_str())).await
    }

    /// Lists the objects of a custom kind in one namespace.
    pub async fn list_of<K>(
        &self,
        kind: &'static str,
        namespace: &Name,
        resource: &ApiResource,
    ) -> Result<Sought<Vec<K>>, LiveError>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced_with(self.connection.client.clone(), namespace.as_str(), resource);
        let list = self.sought(Asked::List(kind), api.list(&ListParams::default())).await?;
        Ok(list.map(|list| list.items))
    }

    /// Reads the metadata of a custom resource definition.
    pub async fn metadata_of_crd(&self, name: &Name) -> Result<Sought<ObjectMeta>, LiveError> {
        let api: Api<CustomResourceDefinition> = Api::all(self.connection.client.clone());
        let sought = self.sought(Asked::Crd(name.clone()), api.get_metadata(name.as_str())).await?;
        Ok(sought.map(|found| found.metadata))
    }

    /// The kinds of objects in namespaces that the API server has, those of the core left out; of each the version that
    /// it prefers.
    pub async fn served_kinds(&self) -> Result<Sought<Vec<Served>>, LiveError> {
        let groups = self.sought(Asked::Kinds, self.connection.client.list_api_groups_aggregated()).await?;
        Ok(groups.map(|groups| groups.items.into_iter().flat_map(served).collect()))
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

    /// Lists the configs, and notes those that this does not select.
    pub async fn configs(&mut self, selector: Option<&LabelSelector>) -> Result<(), LiveError> {
        let all = ListParams::default();
        // Helm's records of releases are many and large, and declare nothing about themselves.
        let secrets = ListParams::default().fields(&format!("type!={SECRET_TYPE}"));
        let config_map = |all: &mut Live, object: ConfigMapObject| {
            let metadata = object.meta().clone();
            all.add_config(object.config, &metadata, selector);
        };
        self.list("ConfigMap", all, |object| object.config.release().cloned(), config_map).await?;
        let secret = |all: &mut Live, object: SecretObject| {
            let metadata = object.meta().clone();
            all.add_config(object.config, &metadata, selector);
        };
        self.list("Secret", secrets, |object| object.config.release().cloned(), secret).await
    }

    /// Lists what may read them.
    pub async fn workloads(&mut self) -> Result<(), LiveError> {
        self.list_workloads(WorkloadKind::Deployment, Workload::of_deployment).await?;
        self.list_workloads(WorkloadKind::StatefulSet, Workload::of_stateful_set).await?;
        self.list_workloads(WorkloadKind::DaemonSet, Workload::of_daemon_set).await?;
        let add = |found: &mut Live, object: Readable<ReplicaSet>| {
            let Some(object) = found.read(WorkloadKind::ReplicaSet, object) else { return };
            let found = &mut found.inventory;
            OwnedReplicaSet::of(&object).into_iter().for_each(|owned| found.add_replica_set(owned));
            add_its_own(found, Workload::of_replica_set(&object), &object);
        };
        self.list(WorkloadKind::ReplicaSet.as_str(), ListParams::default(), |_| None, add).await?;
        self.list_workloads(WorkloadKind::Job, Workload::of_job).await?;
        self.list_workloads(WorkloadKind::CronJob, Workload::of_cron_job).await?;
        let add = |found: &mut Live, object: PodObject| {
            let found = &mut found.inventory;
            object.as_workload().filter(Workload::is_its_own).into_iter().for_each(|pod| found.add_workload(pod));
            object.read().into_iter().for_each(|pod| found.add_pod(pod));
        };
        self.list(WorkloadKind::Pod.as_str(), ListParams::default(), |_| None, add).await
    }

    /// Lists what scales them.
    async fn autoscalers(&mut self) -> Result<(), LiveError> {
        let add = |found: &mut Live, object: AutoscalerObject| {
            object.read().into_iter().for_each(|autoscaler| {
                found.inventory.autoscalers.insert(autoscaler);
            });
        };
        self.list(AUTOSCALER, ListParams::default(), |_| None, add).await?;
        self.live.inventory.lacks_autoscalers = self.live.forbidden.contains(&AUTOSCALER);
        Ok(())
    }

    async fn list_workloads<K>(&mut self, kind: WorkloadKind, read: fn(&K) -> Option<Workload>) -> Result<(), LiveError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let add = |found: &mut Live, object: Readable<K>| {
            let Some(object) = found.read(kind, object) else { return };
            add_its_own(&mut found.inventory, read(&object), &object);
        };
        let release = |object: &Readable<K>| object.get().and_then(releases::named_by);
        self.list(kind.as_str(), ListParams::default(), release, add).await
    }

    /// Lists one kind, and reads the Helm releases that its objects name. A page after a pause may come too late; then all is
    /// listed at once.
    async fn list<K>(
        &mut self,
        kind: &'static str,
        params: ListParams,
        release: impl Fn(&K) -> Option<ReleaseId>,
        mut add: impl FnMut(&mut Live, K),
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
            self.read_releases(list.items.iter().filter_map(&release).collect()).await?;
            list.items.into_iter().for_each(|object| add(&mut self.live, object));
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

/// The kinds of a group in the first version that has them, which the API server prefers.
fn served(group: APIGroupDiscovery) -> Vec<Served> {
    let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
    let mut found: BTreeMap<String, Served> = BTreeMap::new();
    for version in group.versions {
        let Some(of_version) = version.version else { continue };
        for resource in version.resources {
            let (Some(plural), Some(kind)) = (resource.resource, resource.response_kind.and_then(|kind| kind.kind))
            else {
                continue;
            };
            if resource.scope.as_deref() != Some("Namespaced") {
                continue;
            }
            let names = resource.short_names.into_iter().chain(resource.singular_resource).collect();
            let gvk = GroupVersionKind::gvk(&name, &of_version, &kind);
            let resource = ApiResource::from_gvk_with_plural(&gvk, &plural);
            found.entry(plural).or_insert(Served { resource, names });
        }
    }
    found.into_values().collect()
}

fn add_its_own<K>(found: &mut Inventory, workload: Option<Workload>, object: &K)
where
    K: Resource + Serialize,
{
    workload.into_iter().filter(Workload::is_its_own).for_each(|workload| found.add_object(workload, object));
}
