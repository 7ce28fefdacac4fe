//! A small cluster: one workload, two configs, the controllers and the kubelet that move its pods, and the watches.
//!
//! A rollout is the real one: a new revision only if the template differs from all that there are, an equal one used
//! again with the pods that it still has; pods replaced one by one, old ones kept while new ones are not ready.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use serde_json::{Value, json};

use crate::api::annotations::{AUTO_RELOAD, CONFIG_HASH};
use crate::model::builders::{config_map, secret};
use crate::model::index::{Event, Object, StampOrder, StoredRecord};
use crate::model::names::{ConfigId, ConfigKind, ResourceVersion, Uid, WorkloadId, WorkloadKind};
use crate::model::pod::{Phase, Pod, PodRevision, RunningContainer, Started};
use crate::model::scope::Extent;
use crate::model::watched::Watched;
use crate::model::workload::{DEPLOYMENT_REVISION, OwnedReplicaSet, Workload};

/// What a config holds: by key.
pub type Content = BTreeMap<&'static str, u8>;

pub const CONFIGS: [&str; 2] = ["c", "s"];
/// Of each config its own: a key of a later `envFrom` would shadow an earlier one.
pub const KEYS: [[&str; 2]; 2] = [["A", "B"], ["X", "Y"]];
/// The first two work; one can't be pulled; one starts and never gets ready.
pub const IMAGES: u8 = 4;
pub const INSTANCE: &str = "restamp";

/// One container's reading of a config.
#[derive(Debug)]
pub struct Reads {
    pub container: &'static str,
    pub config: usize,
    /// One key, or all.
    pub key: Option<&'static str>,
    optional: bool,
}

const fn reads(container: &'static str, config: usize, key: Option<&'static str>, optional: bool) -> Reads {
    Reads { container, config, key, optional }
}

/// What templates read.
const READINGS: [&[Reads]; 4] = [
    &[reads("app", 0, None, false)],
    &[reads("app", 0, Some("A"), false)],
    &[reads("app", 0, None, false), reads("app", 1, None, true)],
    &[reads("init", 0, None, false), reads("app", 1, None, true)],
];

pub const READING_COUNT: usize = READINGS.len();

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub image: u8,
    pub reading: usize,
    pub stamp: Option<String>,
}

impl Template {
    pub fn reads(&self) -> &'static [Reads] {
        READINGS[self.reading]
    }

    pub fn containers(&self) -> Vec<&'static str> {
        if self.reading == 3 { vec!["init", "app"] } else { vec!["app"] }
    }

    fn to_json(&self) -> Value {
        let of = |name: &str| {
            let reading = READINGS[self.reading].iter().filter(|reads| reads.container == name);
            let (mut env, mut from) = (Vec::new(), Vec::new());
            for reads in reading {
                let (name, optional) = (CONFIGS[reads.config], reads.optional);
                match reads.key {
                    Some(key) => env.push(json!({"name": key,
                        "valueFrom": {"configMapKeyRef": {"name": name, "key": key, "optional": optional}}})),
                    None if reads.config == 0 => {
                        from.push(json!({"configMapRef": {"name": name, "optional": optional}}))
                    }
                    None => from.push(json!({"secretRef": {"name": name, "optional": optional}})),
                }
            }
            json!({"name": name, "env": env, "envFrom": from})
        };
        let init: Vec<Value> = self.containers().into_iter().filter(|name| *name == "init").map(of).collect();
        let annotations: BTreeMap<&str, &str> = self.stamp.iter().map(|stamp| (CONFIG_HASH, stamp.as_str())).collect();
        json!({"metadata": {"annotations": annotations}, "spec": {"initContainers": init, "containers": [of("app")]}})
    }
}

#[derive(Debug, Clone)]
pub struct ConfigObject {
    uid: String,
    version: u64,
    created: i64,
    pub content: Content,
}

/// A ReplicaSet, or a ControllerRevision.
#[derive(Debug, Clone)]
struct Version {
    uid: String,
    template: Template,
    number: u64,
}

#[derive(Debug, Clone)]
pub struct WorkloadObject {
    pub kind: WorkloadKind,
    pub uid: String,
    version: u64,
    generation: i64,
    template_generation: i64,
    pub template: Template,
    pub replicas: usize,
    pub paused: bool,
    versions: Vec<Version>,
    /// The one that the controller works towards.
    current: Option<usize>,
    observed: i64,
    counts: (usize, usize),
}

/// What a container read of one config when it started: its content, as far as it reads it.
#[derive(Debug, Clone)]
pub struct Held {
    pub config: usize,
    /// Which of the config's contents, in the order of writes.
    pub content: usize,
}

#[derive(Debug, Clone)]
pub struct PodObject {
    uid: String,
    version: u64,
    of: usize,
    created: i64,
    pub template: Template,
    template_generation: i64,
    has_node: bool,
    skew: i64,
    pub terminating: bool,
    /// The containers that run or ran: when each started by the node's clock, and what it read.
    pub started: BTreeMap<&'static str, (i64, Vec<Held>)>,
    /// As its status has it.
    shown: Vec<(&'static str, Option<i64>)>,
    /// When its status will be written.
    status_due: Option<i64>,
}

impl PodObject {
    fn is_ready(&self) -> bool {
        self.template.image < 2 && self.started.contains_key("app")
    }
}

#[derive(Debug)]
pub struct Cluster {
    /// In milliseconds, by the API server's clock.
    pub now: i64,
    last_version: u64,
    pub configs: [Option<ConfigObject>; 2],
    /// All contents that a config ever had; `None` while it did not exist.
    pub history: [Vec<Option<Content>>; 2],
    content_of_version: BTreeMap<u64, (usize, usize)>,
    pub workload: Option<WorkloadObject>,
    pub pods: Vec<PodObject>,
    pub report: Option<(String, String)>,
    /// What the watches will show, for each kind that is watched, and when it happened.
    pub streams: BTreeMap<Watched, VecDeque<(i64, Event)>>,
    /// The longest that a status of a pod takes to be written.
    pub status_delay: i64,
    pub stamps: usize,
}

pub fn time(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap()
}

fn seconds(millis: i64) -> Timestamp {
    Timestamp::from_second(millis.div_euclid(1000)).unwrap()
}

pub fn config_id(config: usize) -> ConfigId {
    let kind = [ConfigKind::ConfigMap, ConfigKind::Secret][config];
    ConfigId { kind, namespace: "ns".into(), name: CONFIGS[config].into() }
}

pub const POD: Watched = Watched::Workload(WorkloadKind::Pod);
const REPLICA_SET: Watched = Watched::Workload(WorkloadKind::ReplicaSet);

impl Cluster {
    pub fn new() -> Self {
        Self {
            now: 1_000_000_000,
            last_version: 0,
            configs: [None, None],
            history: [vec![None], vec![None]],
            content_of_version: BTreeMap::new(),
            workload: None,
            pods: Vec::new(),
            report: None,
            streams: BTreeMap::new(),
            status_delay: 0,
            stamps: 0,
        }
    }

    fn next(&mut self) -> u64 {
        self.last_version += 1;
        self.last_version
    }

    fn push(&mut self, kind: Watched, event: Event) {
        let now = self.now;
        if let Some(stream) = self.streams.get_mut(&kind) {
            stream.push_back((now, event));
        }
    }

    // Configs

    /// Which of a config's contents it has at a version.
    pub fn content_at(&self, version: ResourceVersion) -> Option<(usize, usize)> {
        self.content_of_version.get(&version.0).copied()
    }

    pub fn write_config(&mut self, config: usize, content: Content) {
        let version = self.next();
        let now = self.now;
        let before = self.configs[config].take();
        let (uid, created) = before.map_or((format!("config-{version}"), now), |before| (before.uid, before.created));
        if self.history[config].last() != Some(&Some(content.clone())) {
            self.history[config].push(Some(content.clone()));
        }
        self.content_of_version.insert(version, (config, self.history[config].len() - 1));
        self.configs[config] = Some(ConfigObject { uid, version, created, content });
        let object = self.config_object(config).unwrap();
        self.push(
            Watched::Config(config_id(config).kind),
            Event::Applied(Watched::Config(config_id(config).kind), object),
        );
    }

    pub fn delete_config(&mut self, config: usize) -> bool {
        let kind = Watched::Config(config_id(config).kind);
        let Some(object) = self.config_object(config) else { return false };
        self.configs[config] = None;
        self.history[config].push(None);
        self.push(kind, Event::Deleted(kind, object));
        true
    }

    fn config_object(&self, config: usize) -> Option<Object> {
        let object = self.configs[config].as_ref()?;
        let builder = if config == 0 { config_map(CONFIGS[0]) } else { secret(CONFIGS[1]) };
        let builder = object.content.iter().fold(builder, |it, (key, value)| it.value(key, &value.to_string()));
        let mut built = builder.at_version(object.version).uid(&object.uid).build();
        built.created = Some(seconds(object.created));
        Some(Object::Config(built))
    }

    // The workload

    pub fn workload_id(kind: WorkloadKind) -> WorkloadId {
        WorkloadId { kind, namespace: "ns".into(), name: "w".into() }
    }

    pub fn create_workload(&mut self, kind: WorkloadKind, template: Template, replicas: usize) {
        let version = self.next();
        self.workload = Some(WorkloadObject {
            kind,
            uid: format!("workload-{version}"),
            version,
            generation: 1,
            template_generation: 1,
            template,
            replicas,
            paused: false,
            versions: Vec::new(),
            current: None,
            observed: 0,
            counts: (0, 0),
        });
        self.push_workload();
    }

    /// With all that it owns.
    pub fn delete_workload(&mut self) {
        let Some(object) = self.workload_object() else { return };
        let workload = self.workload.take().unwrap();
        let kind = Watched::Workload(workload.kind);
        self.push(kind, Event::Deleted(kind, Object::from(object)));
        for version in 0..workload.versions.len() {
            if workload.kind == WorkloadKind::Deployment {
                let replica_set = replica_set(&workload, version);
                self.push(REPLICA_SET, Event::Deleted(REPLICA_SET, Object::ReplicaSet(replica_set)));
            }
        }
        for pod in std::mem::take(&mut self.pods) {
            let pod = pod_object(&pod, &workload);
            self.push(POD, Event::Deleted(POD, Object::Pod(pod)));
        }
        if let Some(report) = self.report_object() {
            self.report = None;
            self.push(Watched::Report, Event::Deleted(Watched::Report, report));
        }
    }

    /// An edit of the spec, by anybody.
    pub fn edit(&mut self, edit: impl FnOnce(&mut WorkloadObject)) {
        let Some(mut workload) = self.workload.take() else { return };
        let before = (workload.template.clone(), workload.replicas, workload.paused);
        edit(&mut workload);
        if before != (workload.template.clone(), workload.replicas, workload.paused) {
            workload.generation += 1;
            workload.template_generation += i64::from(before.0 != workload.template);
            workload.version = self.next();
            self.workload = Some(workload);
            self.push_workload();
        } else {
            self.workload = Some(workload);
        }
    }

    /// The template of the revision before the present one: `kubectl rollout undo`.
    pub fn former_template(&self) -> Option<Template> {
        let workload = self.workload.as_ref()?;
        let mut versions: Vec<&Version> = workload.versions.iter().collect();
        versions.sort_by_key(|version| std::cmp::Reverse(version.number));
        versions.get(1).map(|version| version.template.clone())
    }

    /// A stamp that arrives: refused on another state than it was decided on.
    pub fn stamp(&mut self, order: &StampOrder) -> Option<(ResourceVersion, i64)> {
        let workload = self.workload.as_ref()?;
        if workload.uid != order.uid.as_str() || workload.version != order.version.0 {
            return None;
        }
        self.edit(|workload| workload.template.stamp = Some(order.text.clone()));
        self.stamps += 1;
        self.workload.as_ref().map(|workload| (ResourceVersion(workload.version), workload.generation))
    }

    fn push_workload(&mut self) {
        let Some(object) = self.workload_object() else { return };
        let kind = Watched::Workload(object.id.kind);
        self.push(kind, Event::Applied(kind, Object::from(object)));
    }

    fn workload_object(&self) -> Option<Workload> {
        let workload = self.workload.as_ref()?;
        let revision = workload.current.map(|current| &workload.versions[current]);
        let mut annotations = BTreeMap::from([(AUTO_RELOAD, "true".to_owned())]);
        if let Some(revision) = revision {
            annotations.insert(DEPLOYMENT_REVISION, revision.number.to_string());
        }
        annotations.insert("deprecated.daemonset.template.generation", workload.template_generation.to_string());
        let (pods, updated) = workload.counts;
        let hash = revision.map(|revision| revision.uid.clone());
        let current_hash = hash.clone().filter(|_| pods == updated && updated == workload.replicas);
        let object = json!({
            "metadata": {"name": "w", "namespace": "ns", "uid": workload.uid, "generation": workload.generation,
                "resourceVersion": workload.version.to_string(), "annotations": annotations},
            "spec": {"selector": {}, "serviceName": "", "replicas": workload.replicas, "paused": workload.paused,
                "template": workload.template.to_json()},
            "status": {"observedGeneration": workload.observed, "replicas": pods, "updatedReplicas": updated,
                "updateRevision": hash, "currentRevision": current_hash, "desiredNumberScheduled": workload.replicas,
                "currentNumberScheduled": pods, "updatedNumberScheduled": updated, "numberMisscheduled": 0,
                "numberReady": 0},
        });
        match workload.kind {
            WorkloadKind::StatefulSet => {
                Workload::of_stateful_set(&serde_json::from_value::<StatefulSet>(object).unwrap())
            }
            WorkloadKind::DaemonSet => Workload::of_daemon_set(&serde_json::from_value::<DaemonSet>(object).unwrap()),
            _ => Workload::of_deployment(&serde_json::from_value::<Deployment>(object).unwrap()),
        }
    }

    /// One step of the workload's controller. Whether there was one to take.
    pub fn control(&mut self) -> bool {
        let Some(workload) = self.workload.clone() else { return false };
        if workload.observed < workload.generation {
            self.observe_template();
            return true;
        }
        let Some(current) = workload.current else { return self.count() };
        let is_new = |pod: &&PodObject| pod.of == current;
        let active: Vec<&PodObject> = self.pods.iter().filter(|pod| !pod.terminating).collect();
        let new = active.iter().copied().filter(is_new).count();
        let old: Vec<&PodObject> = active.iter().copied().filter(|pod| pod.of != current).collect();
        let ready = active.iter().filter(|pod| pod.is_ready()).count();
        let unready_old = old.iter().find(|pod| !pod.is_ready()).map(|pod| pod.uid.clone());
        let any_old = old.first().map(|pod| pod.uid.clone());
        let (total, wanted) = (active.len(), workload.replicas);
        let surge = usize::from(workload.kind == WorkloadKind::Deployment);
        let is_paused = workload.paused && workload.kind == WorkloadKind::Deployment;
        if total > wanted && (surge == 0 || new > wanted || wanted == 0) {
            let last = active.last().map(|pod| pod.uid.clone());
            return self.terminate(last) || self.count();
        }
        if is_paused {
            if total < wanted {
                self.create_pod(old.first().map_or(current, |pod| pod.of));
                return true;
            }
            return self.count();
        }
        if new < wanted && total < wanted + surge {
            self.create_pod(current);
            return true;
        }
        let victim = match workload.kind {
            WorkloadKind::Deployment if ready > wanted || (total > wanted && unready_old.is_some()) => {
                unready_old.or(any_old)
            }
            WorkloadKind::Deployment => None,
            _ if unready_old.is_some() => unready_old,
            _ if ready == total && total == wanted => any_old,
            _ => None,
        };
        self.terminate(victim) || self.count()
    }

    /// Finds or makes the revision of the present template.
    fn observe_template(&mut self) {
        let mut workload = self.workload.take().unwrap();
        let is_paused = workload.paused && workload.kind == WorkloadKind::Deployment;
        let known = workload.versions.iter().position(|version| version.template == workload.template);
        let newest = workload.versions.iter().map(|version| version.number).max().unwrap_or_default();
        if !is_paused || workload.versions.is_empty() {
            let index = known.unwrap_or_else(|| {
                let uid = format!("version-{}", self.last_version + 1);
                workload.versions.push(Version { uid, template: workload.template.clone(), number: 0 });
                workload.versions.len() - 1
            });
            if workload.versions[index].number < newest || newest == 0 || workload.versions[index].number == 0 {
                workload.versions[index].number = newest + 1;
                self.next();
                if workload.kind == WorkloadKind::Deployment {
                    let object = replica_set(&workload, index);
                    self.push(REPLICA_SET, Event::Applied(REPLICA_SET, Object::ReplicaSet(object)));
                }
            }
            if workload.current != Some(index) {
                workload.current = Some(index);
                workload.version = self.next();
                self.workload = Some(workload.clone());
                self.push_workload();
            }
        }
        workload.observed = workload.generation;
        self.workload = Some(workload);
        self.write_counts();
    }

    fn counted(&self) -> (usize, usize) {
        let current = self.workload.as_ref().and_then(|workload| workload.current);
        let active = self.pods.iter().filter(|pod| !pod.terminating);
        (active.clone().count(), active.filter(|pod| Some(pod.of) == current).count())
    }

    fn write_counts(&mut self) {
        let counts = self.counted();
        let version = self.next();
        if let Some(workload) = &mut self.workload {
            workload.counts = counts;
            workload.version = version;
        }
        self.push_workload();
    }

    fn count(&mut self) -> bool {
        let differs = self.workload.as_ref().is_some_and(|workload| workload.counts != self.counted());
        if differs {
            self.write_counts();
        }
        differs
    }

    // Pods

    fn create_pod(&mut self, of: usize) {
        let version = self.next();
        let workload = self.workload.as_ref().unwrap();
        self.pods.push(PodObject {
            uid: format!("pod-{version}"),
            version,
            of,
            created: self.now,
            template: workload.versions[of].template.clone(),
            template_generation: workload.template_generation,
            has_node: false,
            skew: (i64::try_from(version).unwrap() * 7919) % 20_000 - 10_000,
            terminating: false,
            started: BTreeMap::new(),
            shown: Vec::new(),
            status_due: None,
        });
        self.push_pod(self.pods.len() - 1);
    }

    fn terminate(&mut self, uid: Option<String>) -> bool {
        let Some(index) = uid.and_then(|uid| self.pods.iter().position(|pod| pod.uid == uid)) else { return false };
        self.pods[index].terminating = true;
        self.touch_pod(index);
        true
    }

    fn touch_pod(&mut self, index: usize) {
        self.pods[index].version = self.next();
        self.push_pod(index);
    }

    fn push_pod(&mut self, index: usize) {
        let Some(workload) = &self.workload else { return };
        let object = pod_object(&self.pods[index], workload);
        self.push(POD, Event::Applied(POD, Object::Pod(object)));
    }

    /// One step of the scheduler or the kubelet for one pod. Whether there was one to take.
    pub fn run_pod(&mut self, index: usize) -> bool {
        let Some(pod) = self.pods.get(index).cloned() else { return false };
        if pod.terminating {
            self.next();
            let gone = self.pods.remove(index);
            if let Some(workload) = &self.workload {
                let mut object = pod_object(&gone, workload);
                object.version = Some(ResourceVersion(self.last_version));
                self.push(POD, Event::Deleted(POD, Object::Pod(object)));
            }
            return true;
        }
        if !pod.has_node {
            self.pods[index].has_node = true;
            self.touch_pod(index);
            return true;
        }
        let next = pod.template.containers().into_iter().find(|name| !pod.started.contains_key(name));
        match next {
            Some(container) if pod.template.image != 2 && self.can_start(&pod.template, container) => {
                self.start(index, container);
                true
            }
            Some(_) if pod.shown.is_empty() => {
                self.pods[index].shown = shown(&pod);
                self.touch_pod(index);
                true
            }
            _ => false,
        }
    }

    /// A container ends and starts again in its pod.
    pub fn restart_container(&mut self, index: usize) -> bool {
        let Some(pod) = self.pods.get(index).filter(|pod| pod.started.contains_key("app")) else { return false };
        if pod.terminating || !self.can_start(&pod.template.clone(), "app") {
            return false;
        }
        self.start(index, "app");
        true
    }

    pub fn can_start(&self, template: &Template, container: &str) -> bool {
        let mut reading = READINGS[template.reading].iter().filter(|reads| reads.container == container);
        reading.all(|reads| {
            let config = self.configs[reads.config].as_ref();
            reads.optional || config.is_some_and(|it| reads.key.is_none_or(|key| it.content.contains_key(key)))
        })
    }

    fn start(&mut self, index: usize, container: &'static str) {
        let reading = READINGS[self.pods[index].template.reading].iter().filter(|reads| reads.container == container);
        let held = reading.map(|reads| {
            let content = self.history[reads.config].len() - 1;
            Held { config: reads.config, content }
        });
        let held: Vec<Held> = held.collect();
        let started = self.now + self.pods[index].skew;
        let delay = (self.now * 31) % (self.status_delay + 1);
        let pod = &mut self.pods[index];
        pod.started.insert(container, (started, held));
        pod.status_due = Some(self.now + delay);
        self.write_statuses();
    }

    /// Writes the statuses that are due by now.
    pub fn write_statuses(&mut self) {
        for index in 0..self.pods.len() {
            if self.pods[index].status_due.is_some_and(|due| due <= self.now) {
                self.pods[index].status_due = None;
                self.pods[index].shown = shown(&self.pods[index]);
                self.touch_pod(index);
            }
        }
    }

    pub fn next_status(&self) -> Option<i64> {
        self.pods.iter().filter_map(|pod| pod.status_due).min()
    }

    // Reports

    pub fn write_report(&mut self, uid: &Uid, record: String) {
        let is_there = self.workload.as_ref().is_some_and(|workload| workload.uid == uid.as_str());
        let report = Some((uid.as_str().to_owned(), record));
        if !is_there || self.report == report {
            return;
        }
        self.next();
        self.report = report;
        let object = self.report_object().unwrap();
        self.push(Watched::Report, Event::Applied(Watched::Report, object));
    }

    fn report_object(&self) -> Option<Object> {
        let (uid, record) = self.report.as_ref()?;
        let kind = self.workload.as_ref().map_or(WorkloadKind::Deployment, |workload| workload.kind);
        Some(Object::Report(StoredRecord {
            workload: Self::workload_id(kind),
            uid: uid.as_str().into(),
            instance: INSTANCE.to_owned(),
            record: serde_json::from_str(record).unwrap(),
        }))
    }

    // Watches

    /// The kinds that the workload needs.
    pub fn watched(kind: WorkloadKind) -> Vec<Watched> {
        let configs = ConfigKind::WITH_KEYS.map(Watched::Config);
        configs.into_iter().chain([Watched::Workload(kind), REPLICA_SET, POD, Watched::Report]).collect()
    }

    /// A list, then a watch from there. What the stream had not shown yet is not shown any more.
    pub fn list(&mut self, kind: Watched) {
        let objects: Vec<Object> = match kind {
            Watched::Config(config) => (0..2)
                .filter(|index| config_id(*index).kind == config)
                .filter_map(|it| self.config_object(it))
                .collect(),
            Watched::Report => self.report_object().into_iter().collect(),
            _ => self.workload.as_ref().map_or_else(Vec::new, |workload| match kind {
                POD => self.pods.iter().map(|pod| Object::Pod(pod_object(pod, workload))).collect(),
                REPLICA_SET if workload.kind == WorkloadKind::Deployment => {
                    (0..workload.versions.len()).map(|it| Object::ReplicaSet(replica_set(workload, it))).collect()
                }
                REPLICA_SET => Vec::new(),
                _ => self.workload_object().map(Object::from).into_iter().collect(),
            }),
        };
        let listed = objects.into_iter().map(|object| Event::Listed(kind, Extent::Cluster, object));
        let events = std::iter::once(Event::ListBegins(kind, Extent::Cluster))
            .chain(listed)
            .chain([Event::ListEnds(kind, Extent::Cluster)]);
        self.streams.insert(kind, events.map(|event| (self.now, event)).collect());
    }
}

fn shown(pod: &PodObject) -> Vec<(&'static str, Option<i64>)> {
    let containers = pod.template.containers().into_iter();
    containers.map(|name| (name, pod.started.get(name).map(|(started, _)| *started))).collect()
}

fn replica_set(workload: &WorkloadObject, version: usize) -> OwnedReplicaSet {
    let Version { uid, number, .. } = &workload.versions[version];
    OwnedReplicaSet {
        uid: uid.as_str().into(),
        namespace: "ns".into(),
        deployment: workload.uid.as_str().into(),
        revision: Some(number.to_string()),
    }
}

fn pod_object(pod: &PodObject, workload: &WorkloadObject) -> Pod {
    let version = &workload.versions[pod.of];
    let is_of_replica_set = workload.kind == WorkloadKind::Deployment;
    let started = |at: &Option<i64>| at.map_or(Started::NotYet, |at| Started::At(seconds(at)));
    Pod {
        uid: pod.uid.as_str().into(),
        namespace: "ns".into(),
        name: pod.uid.as_str().into(),
        owner: if is_of_replica_set { version.uid.as_str().into() } else { workload.uid.as_str().into() },
        is_of_replica_set,
        created: Some(seconds(pod.created)),
        version: Some(ResourceVersion(pod.version)),
        born: (!pod.has_node).then_some(ResourceVersion(pod.version)),
        stamp: pod.template.stamp.clone(),
        revision: PodRevision {
            hash: Some(version.uid.clone()),
            template_generation: Some(pod.template_generation.to_string()),
        },
        phase: if pod.terminating { Phase::Over } else { Phase::Active },
        node: None,
        status_written: None,
        blocked: None,
        containers: pod.shown.iter().map(|(name, at)| RunningContainer::new((*name).into(), started(at))).collect(),
    }
}
