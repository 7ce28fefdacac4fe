//! The watches: one task, and one back-off, per kind. A kind that is forbidden or failing slows no other.

use std::fmt::Debug;

use futures::TryStreamExt as _;
use futures::stream::StreamExt as _;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::api::drift_report::DriftReport;
use crate::model::config::{ConfigMapObject, SecretObject};
use crate::model::index::Object;
use crate::model::names::{ConfigKind, WorkloadKind};
use crate::model::namespace::Namespace;
use crate::model::pod::PodObject;
use crate::model::watched::Watched;
use crate::model::workload::{OwnedReplicaSet, Workload};
use crate::operator::api_error::ApiError;
use crate::operator::metrics::Metrics;

/// What a watch saw, reduced to what is kept.
#[derive(Debug)]
pub struct Seen {
    /// The watched kind.
    pub kind: Watched,
    /// What happened.
    pub event: watcher::Event<Item>,
}

/// A watched object.
#[derive(Debug, Clone)]
pub enum Item {
    /// For the index.
    Object(Box<Object>),
    /// One of our reports.
    Report(Box<DriftReport>),
}

/// Some clouds' load balancers drop connections that are idle for 240 s.
const TIMEOUT_SECONDS: u32 = 230;
/// Values are hashed while a page is read, so its size bounds what is in memory at once.
const PAGE: u32 = 50;

/// Watches every kind, until the tasks are dropped.
pub fn watch_all(client: &Client, metrics: &Metrics, out: &Sender<Seen>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for kind in Watched::all() {
        let watch = Watch { kind, client: client.clone(), metrics: metrics.clone(), out: out.clone() };
        match kind {
            Watched::Config(ConfigKind::ConfigMap) => {
                tasks.spawn(watch.run(|object: ConfigMapObject| Some(Object::Config(object.config).into())))
            }
            Watched::Config(ConfigKind::Secret) => {
                tasks.spawn(watch.run(|object: SecretObject| Some(Object::Config(object.config).into())))
            }
            Watched::Workload(WorkloadKind::Deployment) => {
                tasks.spawn(watch.run(|object: Deployment| workload(Workload::of_deployment(&object))))
            }
            Watched::Workload(WorkloadKind::StatefulSet) => {
                tasks.spawn(watch.run(|object: StatefulSet| workload(Workload::of_stateful_set(&object))))
            }
            Watched::Workload(WorkloadKind::DaemonSet) => {
                tasks.spawn(watch.run(|object: DaemonSet| workload(Workload::of_daemon_set(&object))))
            }
            Watched::Workload(WorkloadKind::ReplicaSet) => tasks.spawn(watch.run(replica_set)),
            Watched::Workload(WorkloadKind::Job) => {
                tasks.spawn(watch.run(|object: Job| workload(Workload::of_job(&object))))
            }
            Watched::Workload(WorkloadKind::CronJob) => {
                tasks.spawn(watch.run(|object: CronJob| workload(Workload::of_cron_job(&object))))
            }
            Watched::Workload(WorkloadKind::Pod) => tasks.spawn(watch.run(pod)),
            Watched::Report => tasks.spawn(watch.run(|report: DriftReport| Some(Item::Report(Box::new(report))))),
            Watched::Namespace => tasks.spawn(watch.run(namespace)),
        };
    }
    tasks
}

impl From<Object> for Item {
    fn from(object: Object) -> Self {
        Self::Object(Box::new(object))
    }
}

fn workload(workload: Option<Workload>) -> Option<Item> {
    workload.filter(Workload::is_its_own).map(|workload| Object::Workload(workload).into())
}

fn replica_set(object: ReplicaSet) -> Option<Item> {
    match OwnedReplicaSet::of(&object) {
        Some(owned) => Some(Object::ReplicaSet(owned).into()),
        None => workload(Workload::of_replica_set(&object)),
    }
}

fn pod(object: PodObject) -> Option<Item> {
    match object.as_workload() {
        Some(workload) => Some(Object::Workload(workload).into()),
        None => object.read().map(|pod| Object::Pod(pod).into()),
    }
}

fn namespace(object: PartialObjectMeta<v1::Namespace>) -> Option<Item> {
    Namespace::of(&object.metadata).map(|namespace| Object::Namespace(namespace).into())
}

/// One kind's watch.
struct Watch {
    kind: Watched,
    client: Client,
    metrics: Metrics,
    out: Sender<Seen>,
}

/// Whether the last thing that the watch said was good. Trouble is told once, and its end once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Well,
    Failing,
}

impl Watch {
    async fn run<K>(self, keep: fn(K) -> Option<Item>)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let kind = self.kind;
        let mut events = watcher(Api::<K>::all(self.client.clone()), config(kind)).default_backoff().boxed();
        let mut health = Health::Well;
        loop {
            let event = match events.try_next().await {
                Ok(Some(event)) => event,
                Ok(None) => return,
                Err(error) => {
                    self.failed(&mut health, error);
                    continue;
                }
            };
            if health == Health::Failing {
                info!(kind = kind.as_str(), "watch works again");
                health = Health::Well;
            }
            if matches!(event, watcher::Event::InitDone) {
                self.metrics.watch_synced(kind);
            }
            let Some(event) = reduce(event, keep) else { continue };
            if self.out.send(Seen { kind, event }).await.is_err() {
                return;
            }
        }
    }

    fn failed(&self, health: &mut Health, error: watcher::Error) {
        self.metrics.watch_error(self.kind);
        let kind = self.kind.as_str();
        match (explain(error), *health) {
            (Trouble::Expected(why), _) => debug!(kind, why, "watch starts anew"),
            (Trouble::Real(why), Health::Failing) => debug!(kind, why, "watch still fails"),
            (Trouble::Real(why), Health::Well) => {
                *health = Health::Failing;
                warn!(kind, why, "watch fails; what depends on this kind waits until it works again");
            }
        }
    }
}

/// What a watch's error means.
enum Trouble {
    /// It happens in good health: a version that is too old, a connection at its end.
    Expected(String),
    /// Somebody may have to act.
    Real(String),
}

fn explain(error: watcher::Error) -> Trouble {
    let cause = match error {
        watcher::Error::WatchError(status) if status.code == 410 => return Trouble::Expected(status.message),
        watcher::Error::WatchError(status) => ApiError::from(&*status),
        watcher::Error::InitialListFailed(cause)
        | watcher::Error::WatchStartFailed(cause)
        | watcher::Error::WatchFailed(cause) => ApiError::from(cause),
        watcher::Error::NoResourceVersion => ApiError::Refused("the kind can't be watched".to_owned()),
    };
    Trouble::Real(cause.to_string())
}

fn config(kind: Watched) -> watcher::Config {
    let config = watcher::Config::default().timeout(TIMEOUT_SECONDS).page_size(PAGE);
    match kind {
        // Large, many, and never consumed.
        Watched::Config(ConfigKind::Secret) => config.fields("type!=helm.sh/release.v1"),
        _ => config,
    }
}

/// Keeps of an event what matters; `None` if nothing does.
fn reduce<K>(event: watcher::Event<K>, keep: fn(K) -> Option<Item>) -> Option<watcher::Event<Item>> {
    Some(match event {
        watcher::Event::Init => watcher::Event::Init,
        watcher::Event::InitDone => watcher::Event::InitDone,
        watcher::Event::InitApply(object) => watcher::Event::InitApply(keep(object)?),
        watcher::Event::Apply(object) => watcher::Event::Apply(keep(object)?),
        watcher::Event::Delete(object) => watcher::Event::Delete(keep(object)?),
    })
}
