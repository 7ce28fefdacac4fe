//! The watches: one task, and one back-off, per kind. A kind that is forbidden or failing slows no other.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::{ApiResource, NamespaceResourceScope, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

use crate::api::drift_report::{DriftReport, StoredReport, Unreadable};
use crate::model::autoscaler::AutoscalerObject;
use crate::model::config::{ConfigMapObject, SecretObject};
use crate::model::custom::CustomKind;
use crate::model::custom::object::CustomObject;
use crate::model::index::Object;
use crate::model::names::{ConfigKind, Name, WorkloadKind, controller_of};
use crate::model::namespace::Namespace;
use crate::model::pod::PodObject;
use crate::model::provider_class::object::{StatusObject, kind_of_statuses};
use crate::model::readable::Readable;
use crate::model::rerun::placeholder::Placeholder;
use crate::model::scope::{Extent, Scope};
use crate::model::watched::Watched;
use crate::model::workload::{OwnedReplicaSet, Workload};
use crate::operator::api_error::ApiError;
use crate::operator::health::Health;
use crate::operator::metrics::Metrics;
use crate::operator::trouble::{Trouble, explain, why_unread};
use crate::operator::unread::UnreadNow;
use crate::operator::write::discover;

/// What a watch saw, reduced to what is kept.
#[derive(Debug)]
pub struct Seen {
    /// The watched kind.
    pub kind: Watched,
    /// What the list is about that it may belong to.
    pub extent: Extent,
    /// What happened.
    pub event: watcher::Event<Item>,
}

/// A watched object.
#[derive(Debug, Clone)]
pub enum Item {
    /// For the index.
    Object(Box<Object>),
    /// One of our reports, and whether its status can be read.
    Report(Box<DriftReport>, Result<(), Unreadable>),
}

/// Some clouds' load balancers drop connections that are idle for 240 s.
const TIMEOUT_SECONDS: u32 = 230;
/// The longest that a kind which was installed meanwhile goes unnoticed.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Values are hashed while a page is read, so its size bounds what is in memory at once.
const PAGE: u32 = 50;

/// The watches, until they are dropped.
pub struct Watches {
    tasks: JoinSet<()>,
    /// To each watch of a whole kind: a namespace that came into scope, to be listed.
    gained: Vec<UnboundedSender<Name>>,
    /// Where namespaces are chosen by their labels, the other watches begin when those are known.
    begin: watch::Sender<bool>,
}

impl Watches {
    /// Watches every kind in scope.
    pub fn start(
        client: &Client,
        scope: &Arc<Scope>,
        metrics: &Metrics,
        unread: &UnreadNow,
        out: &Sender<Seen>,
    ) -> Self {
        let (begin, begun) = watch::channel(scope.namespace_labels().is_none());
        let mut watches = Self { tasks: JoinSet::new(), gained: Vec::new(), begin };
        for (kind, extent) in
            scope.watched().flat_map(|kind| scope.extents(kind).into_iter().map(move |extent| (kind, extent)))
        {
            let (gain, gained) = unbounded_channel();
            let watch = Watch {
                kind,
                extent,
                scope: scope.clone(),
                client: client.clone(),
                metrics: metrics.clone(),
                unread: unread.clone(),
                out: out.clone(),
                begun: begun.clone(),
                gained,
                first_list: FirstList::Streamed,
            };
            watches.spawn(watch);
            if kind != Watched::Namespace {
                watches.gained.push(gain);
            }
        }
        watches
    }

    fn spawn(&mut self, watch: Watch) {
        let tasks = &mut self.tasks;
        match watch.kind {
            Watched::Config(ConfigKind::ConfigMap) => tasks
                .spawn(watch.run_with(api_of, |object: ConfigMapObject| Some(Object::Config(object.config).into()))),
            Watched::Config(ConfigKind::Secret) => {
                tasks.spawn(watch.run_with(api_of, |object: SecretObject| Some(Object::Config(object.config).into())))
            }
            Watched::Config(ConfigKind::SecretProviderClass) => tasks.spawn(watch.run_statuses()),
            Watched::Workload(WorkloadKind::Deployment) => {
                tasks.spawn(watch.run_reading(api_of, |object: Deployment| workload(Workload::of_deployment(&object))))
            }
            Watched::Workload(WorkloadKind::StatefulSet) => tasks
                .spawn(watch.run_reading(api_of, |object: StatefulSet| workload(Workload::of_stateful_set(&object)))),
            Watched::Workload(WorkloadKind::DaemonSet) => {
                tasks.spawn(watch.run_reading(api_of, |object: DaemonSet| workload(Workload::of_daemon_set(&object))))
            }
            Watched::Workload(WorkloadKind::ReplicaSet) => {
                let kinds = watch.scope.kinds;
                tasks.spawn(watch.run_reading(api_of, move |object| replica_set(&object, kinds)))
            }
            Watched::Workload(WorkloadKind::Job) => tasks.spawn(watch.run_reading(api_of, |object: Job| job(&object))),
            Watched::Workload(WorkloadKind::CronJob) => {
                tasks.spawn(watch.run_reading(api_of, |object: CronJob| workload(Workload::of_cron_job(&object))))
            }
            Watched::Workload(WorkloadKind::Pod) => tasks.spawn(watch.run_with(api_of, pod)),
            Watched::Workload(WorkloadKind::Custom(kind)) => tasks.spawn(watch.run_custom(kind)),
            Watched::Report => tasks.spawn(watch.run_reading(api_of, report)),
            Watched::Autoscaler => tasks.spawn(watch.run_with(api_of, autoscaler)),
            Watched::Namespace => tasks.spawn(watch.run_reading(|client, _| Api::all(client), namespace)),
        };
    }

    /// The namespaces have had their first list.
    pub fn namespaces_are_known(&self) {
        self.begin.send_replace(true);
    }

    /// A namespace came into scope: what is in it was passed over so far.
    pub fn list(&self, namespace: &Name) {
        for gained in &self.gained {
            // A watch that ended is told of elsewhere.
            let _ = gained.send(namespace.clone());
        }
    }

    /// A watch that ended, which none should.
    pub async fn ended(&mut self) -> Option<Result<(), JoinError>> {
        self.tasks.join_next().await
    }
}

impl From<Object> for Item {
    fn from(object: Object) -> Self {
        Self::Object(Box::new(object))
    }
}

fn workload(workload: Option<Workload>) -> Option<Item> {
    workload.filter(Workload::is_its_own).map(|workload| Object::from(workload).into())
}

fn job(object: &Job) -> Option<Item> {
    let placeholder = Placeholder::of(&object.metadata).map(|placeholder| Object::Placeholder(placeholder).into());
    placeholder.or_else(|| workload(Workload::of_job(object)))
}

fn replica_set(object: &ReplicaSet, kinds: &[CustomKind]) -> Option<Item> {
    let owner = controller_of(object.metadata.owner_references.as_deref());
    let is_of = |owner: &OwnerReference| kinds.iter().any(|kind| kind.is(&owner.api_version, &owner.kind));
    let own = if owner.is_some_and(is_of) { None } else { workload(Workload::of_replica_set(object)) };
    own.or_else(|| Some(Object::ReplicaSet(OwnedReplicaSet::of(object)?).into()))
}

fn pod(object: PodObject) -> Option<Item> {
    workload(object.as_workload()).or_else(|| Some(Object::Pod(object.read()?).into()))
}

fn report(stored: StoredReport) -> Option<Item> {
    let (report, readable) = stored.read();
    if readable.is_err() {
        let (ns, name) = (report.metadata.namespace.as_deref(), report.metadata.name.as_deref());
        warn!(ns, report = name, "cannot read the status of a report; it counts for nothing, and is written anew");
    }
    Some(Item::Report(Box::new(report), readable))
}

fn autoscaler(object: AutoscalerObject) -> Option<Item> {
    Some(Object::Autoscaler(object.read()?).into())
}

fn namespace(object: PartialObjectMeta<v1::Namespace>) -> Option<Item> {
    Namespace::of(&object.metadata).map(|namespace| Object::Namespace(namespace).into())
}

/// One watch: of a kind, in the cluster or in one namespace.
struct Watch {
    kind: Watched,
    extent: Extent,
    scope: Arc<Scope>,
    client: Client,
    metrics: Metrics,
    unread: UnreadNow,
    out: Sender<Seen>,
    begun: watch::Receiver<bool>,
    gained: UnboundedReceiver<Name>,
    first_list: FirstList,
}

fn api_of<K>(client: Client, extent: &Extent) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match extent {
        Extent::Cluster => Api::all(client),
        Extent::Namespace(name) => Api::namespaced(client, name.as_str()),
    }
}

/// How far the list is with which a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    InProgress,
    Complete,
}

/// Nobody listens any more.
struct Unheard;

/// How a watch gets its first list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstList {
    /// Object by object, as part of the watch: never more than one is in memory at once (KEP-3157).
    Streamed,
    /// In pages, as from servers that don't stream: by default those before 1.34.
    Paged,
}

type Events<K> = BoxStream<'static, Result<watcher::Event<K>, watcher::Error>>;

/// What a watch keeps of an object.
trait Keep<K>: Fn(K) -> Option<Item> + Copy + Send + Sync + 'static {}

impl<K, F: Fn(K) -> Option<Item> + Copy + Send + Sync + 'static> Keep<K> for F {}

impl Watch {
    /// The watch of a type that may not be able to hold what somebody wrote: such an object is named and passed over.
    async fn run_reading<K>(self, api: impl Fn(Client, &Extent) -> Api<Readable<K>>, keep: impl Keep<K>)
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let kind = self.kind.as_str();
        let read = move |object: Readable<K>| match object.read() {
            Ok(object) => keep(object),
            Err(metadata) => {
                let (ns, name) = (metadata.namespace, metadata.name);
                warn!(kind, ns, name, "cannot read this object, so it is passed over: see its YAML for odd values");
                None
            }
        };
        self.run_with(api, read).await;
    }

    /// The watch of a kind that may be installed later, and that has its own path.
    async fn run_custom(self, kind: &'static CustomKind) {
        let resource = self.installed(kind).await;
        self.unread.works(self.kind, &self.extent);
        let api = move |client, extent: &Extent| match extent {
            Extent::Cluster => Api::all_with(client, &resource),
            Extent::Namespace(name) => Api::namespaced_with(client, name.as_str(), &resource),
        };
        self.run_reading(api, move |object: CustomObject| workload(object.read(kind))).await;
    }

    /// The watch of what pods hold of SecretProviderClasses. Most clusters don't have the driver, so nobody is warned.
    async fn run_statuses(self) {
        let tell = |why: &ApiError, _: bool| {
            if !matches!(why, ApiError::NotFound) {
                self.unread.fails(self.kind, &self.extent, why_unread(why));
            }
        };
        let resource = self.wait_for(&kind_of_statuses(), tell).await;
        self.unread.works(self.kind, &self.extent);
        info!(kind = resource.kind, "kind is installed, and watched");
        self.metrics.watch_begins(self.kind);
        self.run_reading(api_of, |object: StatusObject| Some(Object::ProviderClassStatus(object.read()?).into())).await;
    }

    /// Waits until a kind is installed; others go on meanwhile.
    async fn installed(&self, kind: &CustomKind) -> ApiResource {
        let tell = |why: &ApiError, told: bool| {
            self.unread.fails(self.kind, &self.extent, why_unread(why));
            if told {
                debug!(kind = kind.label, %why, "kind still can't be watched");
            } else {
                warn!(kind = kind.label, %why, "kind can't be watched yet; it is asked for again and again");
            }
        };
        self.wait_for(kind, tell).await
    }

    /// The same; whoever asks is told each time why it is not there, and whether that was told before.
    async fn wait_for(&self, kind: &CustomKind, tell: impl Fn(&ApiError, bool)) -> ApiResource {
        let mut pauses = ExponentialBuilder::default().with_max_delay(LONGEST_PAUSE).without_max_times().build();
        let mut told = false;
        loop {
            match discover(&self.client, kind).await {
                Ok(resource) => return resource,
                Err(why) => {
                    tell(&why, told);
                    told = true;
                }
            }
            tokio::time::sleep(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
        }
    }

    /// The watch of a type that reads what it wants of an object and nothing else.
    async fn run_with<K>(mut self, api: impl Fn(Client, &Extent) -> Api<K>, keep: impl Keep<K>)
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        if self.kind != Watched::Namespace && self.begun.wait_for(|begun| *begun).await.is_err() {
            return;
        }
        let events = |watch: &Self, extent: &Extent| watch.events(api(watch.client.clone(), extent));
        self.follow(events, keep).await;
    }

    /// Hands over what is seen, and hears whether the watch works.
    async fn follow<K>(mut self, begin: impl Fn(&Self, &Extent) -> Events<K>, keep: impl Keep<K>)
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let mut events = begin(&self, &self.extent);
        let (mut health, mut listing) = (Health::default(), Listing::InProgress);
        loop {
            let calm_at = health.calm_at().filter(|_| listing == Listing::Complete);
            let done = tokio::select! {
                event = events.next() => match event {
                    Some(Err(error)) if self.first_list == FirstList::Streamed && refuses_to_stream(&error) => {
                        debug!(kind = self.kind.as_str(), "the API server streams no lists: it is asked for pages");
                        self.first_list = FirstList::Paged;
                        events = begin(&self, &self.extent);
                        Ok(())
                    }
                    Some(event) => self.tell(&self.extent, event, &mut listing, &mut health, keep).await,
                    None => return,
                },
                Some(name) = self.gained.recv(), if listing == Listing::Complete => {
                    let extent = Extent::Namespace(name);
                    let events = begin(&self, &extent);
                    self.list(&extent, events, &mut health, keep).await
                }
                () = sleep_until(calm_at.unwrap_or_else(Instant::now)), if calm_at.is_some() => {
                    self.works(&mut health);
                    Ok(())
                }
            };
            if done.is_err() {
                return;
            }
        }
    }

    /// Lists one namespace. What the watch of all shows of it meanwhile comes after that, and in order.
    async fn list<K>(
        &self,
        extent: &Extent,
        mut events: Events<K>,
        health: &mut Health,
        keep: impl Keep<K>,
    ) -> Result<(), Unheard> {
        let mut listing = Listing::InProgress;
        while listing == Listing::InProgress
            && let Some(event) = events.next().await
        {
            self.tell(extent, event, &mut listing, health, keep).await?;
        }
        Ok(())
    }

    fn events<K>(&self, api: Api<K>) -> Events<K>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        watcher(api, config(self.kind, &self.scope, self.first_list)).default_backoff().boxed()
    }

    /// Hands over what a watch saw.
    async fn tell<K>(
        &self,
        extent: &Extent,
        event: Result<watcher::Event<K>, watcher::Error>,
        listing: &mut Listing,
        health: &mut Health,
        keep: impl Keep<K>,
    ) -> Result<(), Unheard> {
        let kind = self.kind;
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                self.failed(health, *listing, error);
                return Ok(());
            }
        };
        match event {
            watcher::Event::Init => *listing = Listing::InProgress,
            watcher::Event::InitDone => *listing = Listing::Complete,
            _ => {}
        }
        // Before a list nothing has worked yet.
        if !matches!(event, watcher::Event::Init) {
            self.works(health);
        }
        let Some(event) = reduce(event, keep) else { return Ok(()) };
        self.out.send(Seen { kind, extent: extent.clone(), event }).await.map_err(|_| Unheard)
    }

    fn works(&self, health: &mut Health) {
        if health.works() {
            info!(kind = self.kind.as_str(), "watch works again");
            self.unread.works(self.kind, &self.extent);
        }
    }

    fn failed(&self, health: &mut Health, listing: Listing, error: watcher::Error) {
        self.metrics.watch_error(self.kind);
        let kind = self.kind.as_str();
        let why = match explain(error) {
            Trouble::Expected(why) => return debug!(kind, why, "watch starts anew"),
            Trouble::Real(why) => why,
        };
        if health.is_failing() {
            debug!(kind, %why, "watch still fails");
        } else {
            warn!(kind, %why, "watch fails; what depends on this kind waits until it works again");
        }
        health.failed(Instant::now());
        if health.is_lasting() || listing == Listing::InProgress {
            self.unread.fails(self.kind, &self.extent, why_unread(&why));
        }
    }
}

/// Whether the API server doesn't know the parameter `sendInitialEvents`.
fn refuses_to_stream(error: &watcher::Error) -> bool {
    let cause = match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status,
        watcher::Error::WatchError(status) => status,
        _ => return false,
    };
    cause.code == 422 && cause.message.contains("sendInitialEvents")
}

fn config(kind: Watched, scope: &Scope, first_list: FirstList) -> watcher::Config {
    let config = watcher::Config::default().timeout(TIMEOUT_SECONDS);
    let mut config = match first_list {
        FirstList::Streamed => config.streaming_lists(),
        FirstList::Paged => config.page_size(PAGE),
    };
    let (name, labels) = match kind {
        Watched::Namespace => ("metadata.name", scope.namespace_labels()),
        Watched::Config(ConfigKind::SecretProviderClass)
        | Watched::Workload(_)
        | Watched::Report
        | Watched::Autoscaler => ("metadata.namespace", None),
        Watched::Config(_) => ("metadata.namespace", scope.configs.as_ref()),
    };
    let mut fields: Vec<String> = scope.excluded().map(|excluded| format!("{name}!={excluded}")).collect();
    if kind == Watched::Config(ConfigKind::Secret) {
        // Large, many, and never consumed.
        fields.push("type!=helm.sh/release.v1".to_owned());
    }
    if !fields.is_empty() {
        config = config.fields(&fields.join(","));
    }
    match labels {
        Some(labels) => config.labels(labels.as_str()),
        None => config,
    }
}

/// Keeps of an event what matters; `None` if nothing does.
fn reduce<K>(event: watcher::Event<K>, keep: impl Keep<K>) -> Option<watcher::Event<Item>> {
    Some(match event {
        watcher::Event::Init => watcher::Event::Init,
        watcher::Event::InitDone => watcher::Event::InitDone,
        watcher::Event::InitApply(object) => watcher::Event::InitApply(keep(object)?),
        watcher::Event::Apply(object) => watcher::Event::Apply(keep(object)?),
        watcher::Event::Delete(object) => watcher::Event::Delete(keep(object)?),
    })
}

#[cfg(test)]
mod tests;
