//! The index: the slim state of the cluster, kept by what the watches see, and the maps between its parts.
//!
//! It is synchronous: `apply` takes one event, opens the entries that this event opens, and tells what to look at.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use jiff::Timestamp;

use crate::model::autoscaler::{Autoscaler, AutoscalerId, Autoscalers, Autoscaling};
use crate::model::config::{Config, Configs};
use crate::model::digest::Keyring;
use crate::model::index::lists::{Ended, Lists};
use crate::model::names::{ConfigId, ConfigKind, Name, ResourceVersion, Uid, WorkloadId, WorkloadKind};
use crate::model::namespace::Namespace;
use crate::model::observe::News;
use crate::model::participation::Participation;
use crate::model::pod::Pod;
use crate::model::policy::Policy;
use crate::model::provider_class::{PodStatus, ProviderClasses, StatusId};
use crate::model::record::Record;
use crate::model::rerun::placeholder::Placeholder;
use crate::model::scope::{Extent, Scope};
use crate::model::watched::Watched;
use crate::model::workload::{OwnedReplicaSet, Workload};

pub use stamps::{Act, StampOrder};

/// An object as the index takes it.
#[derive(Debug, Clone)]
pub enum Object {
    /// A ConfigMap or Secret.
    Config(Config),
    /// An object with a pod template, that nothing owns.
    Workload(Box<Workload>),
    /// The placeholder of a Job that is being made again.
    Placeholder(Placeholder),
    /// A ReplicaSet that a Deployment owns.
    ReplicaSet(OwnedReplicaSet),
    /// A pod that a controller owns.
    Pod(Pod),
    /// The record in one of our reports.
    Report(StoredRecord),
    /// A namespace.
    Namespace(Namespace),
    /// What a pod holds of a SecretProviderClass.
    ProviderClassStatus(PodStatus),
    /// A HorizontalPodAutoscaler.
    Autoscaler(Autoscaler),
}

/// A record as it was stored.
#[derive(Debug, Clone)]
pub struct StoredRecord {
    /// The workload that it is about.
    pub workload: WorkloadId,
    /// That workload's uid.
    pub uid: Uid,
    /// The installation that keeps it, by its namespace.
    pub instance: String,
    /// The record; none if it can't be read.
    pub record: Option<Record>,
}

/// What tells one object of the index from all others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Identity {
    Config(ConfigId),
    Workload(WorkloadId),
    Uid(Uid),
    Namespace(Name),
    ProviderClassStatus(StatusId),
    Autoscaler(AutoscalerId),
}

/// What a watch saw.
#[derive(Debug, Clone)]
pub enum Event {
    /// A full list begins.
    ListBegins(Watched, Extent),
    /// An object in that list.
    Listed(Watched, Extent, Object),
    /// The list is complete: what it did not hold is gone.
    ListEnds(Watched, Extent),
    /// An object was made or changed, as it happened.
    Applied(Watched, Object),
    /// An object was deleted.
    Deleted(Watched, Object),
}

/// What to look at after an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Workloads whose decision may be another one now.
    pub workloads: BTreeSet<WorkloadId>,
    /// Configs whose report may be another one now.
    pub configs: BTreeSet<ConfigId>,
    /// Namespaces whose annotation may be another one now.
    pub namespaces: BTreeSet<Name>,
    /// Namespaces that came into scope: they have to be listed.
    pub gained: Vec<Name>,
    /// What came to light, by workload.
    pub news: Vec<(WorkloadId, News)>,
}

/// A workload and its record.
#[derive(Debug)]
pub struct Tracked {
    /// The workload.
    pub workload: Workload,
    /// Its record, once it is adopted.
    pub record: Option<Record>,
    /// The other installation that keeps its report.
    pub other_instance: Option<String>,
    /// Whether the record was compared with what there is since this process has it.
    is_followed: bool,
}

/// The slim state of the cluster.
#[derive(Debug)]
pub struct Index {
    keyring: Arc<Keyring>,
    policy: Policy,
    instance: String,
    participation: Participation,
    scope: Arc<Scope>,
    configs: Configs,
    classes: ProviderClasses,
    /// Boxed, as the pods are: a hash table has room to spare.
    workloads: HashMap<WorkloadId, Box<Tracked>>,
    /// The workloads that name a config.
    consumers: HashMap<ConfigId, BTreeSet<WorkloadId>>,
    /// The workloads for which configs count that no container names, by namespace.
    naming: HashMap<Name, BTreeSet<WorkloadId>>,
    workload_of_uid: HashMap<Uid, WorkloadId>,
    /// By the workload that has a pod template, the one that takes it from there.
    referrers: HashMap<WorkloadId, WorkloadId>,
    replica_sets: HashMap<Uid, OwnedReplicaSet>,
    replica_sets_of: HashMap<Uid, BTreeSet<Uid>>,
    /// The placeholders of Jobs that are being made again.
    placeholders: HashMap<Uid, Placeholder>,
    pods: HashMap<Uid, Box<Pod>>,
    pods_of: HashMap<Uid, BTreeSet<Uid>>,
    /// ReplicaSets that pods name and that were not seen yet, or no more, with their namespace.
    unplaced: HashMap<Uid, Name>,
    stored: HashMap<WorkloadId, StoredRecord>,
    namespaces: HashMap<Name, Namespace>,
    autoscalers: Autoscalers,
    lists: Lists,
}

const POD: Watched = Watched::Workload(WorkloadKind::Pod);

impl Index {
    /// An empty index of the installation in this namespace, for the whole cluster.
    pub fn new(keyring: Arc<Keyring>, policy: Policy, instance: &str) -> Self {
        let scope = Arc::new(Scope::default());
        Self {
            keyring,
            policy,
            instance: instance.to_owned(),
            participation: Participation::default(),
            lists: Lists::of(&scope),
            scope,
            configs: Configs::default(),
            classes: ProviderClasses::default(),
            workloads: HashMap::new(),
            consumers: HashMap::new(),
            naming: HashMap::new(),
            workload_of_uid: HashMap::new(),
            referrers: HashMap::new(),
            replica_sets: HashMap::new(),
            replica_sets_of: HashMap::new(),
            placeholders: HashMap::new(),
            pods: HashMap::new(),
            pods_of: HashMap::new(),
            unplaced: HashMap::new(),
            stored: HashMap::new(),
            namespaces: HashMap::new(),
            autoscalers: Autoscalers::default(),
        }
    }

    /// The same for another scope.
    pub fn within(mut self, scope: Arc<Scope>) -> Self {
        self.lists = Lists::of(&scope);
        self.configs = Configs::with_unknown(scope.partly_seen());
        self.scope = scope;
        self
    }

    /// The same, where the flags say this of who takes part.
    pub fn with_participation(mut self, participation: Participation) -> Self {
        self.participation = participation;
        self
    }

    /// The configs.
    pub fn configs(&self) -> &Configs {
        &self.configs
    }

    /// A workload.
    pub fn workload(&self, id: &WorkloadId) -> Option<&Tracked> {
        self.workloads.get(id).map(Box::as_ref)
    }

    /// All workloads, in no order.
    pub fn workloads(&self) -> impl Iterator<Item = &Tracked> {
        self.workloads.values().map(Box::as_ref)
    }

    /// The workloads that name this config.
    pub fn consumers(&self, config: &ConfigId) -> impl Iterator<Item = &Tracked> {
        self.consumers.get(config).into_iter().flatten().filter_map(|id| self.workload(id))
    }

    /// What is known of who scales this workload.
    pub fn autoscaling(&self, workload: &WorkloadId) -> Autoscaling<'_> {
        match self.autoscalers.of(workload) {
            Some(autoscaler) => Autoscaling::By(autoscaler),
            None if self.lists.is_synced_in(Watched::Autoscaler, &workload.namespace) => Autoscaling::Off,
            None => Autoscaling::Unknown,
        }
    }

    /// Whether this kind has had its first full list.
    pub fn is_synced(&self, kind: Watched) -> bool {
        self.lists.is_synced(kind)
    }

    /// Whether every needed kind has had its first full list in this namespace.
    pub fn is_synced_within(&self, namespace: &Name) -> bool {
        let mut needed = self.scope.watched().filter(|kind| kind.is_needed());
        needed.all(|kind| self.lists.is_synced_in(kind, namespace))
    }

    /// Takes what a watch saw at this time.
    pub fn apply(&mut self, event: Event, now: Timestamp) -> Work {
        let mut work = Work::default();
        match &event {
            Event::Listed(POD, extent, pod) => self.lists.saw_pod(pod.namespace(), pod.version(), Some(extent)),
            Event::Applied(POD, pod) | Event::Deleted(POD, pod) => {
                self.lists.saw_pod(pod.namespace(), pod.version(), None);
            }
            _ => {}
        }
        match event {
            Event::ListBegins(kind, extent) => self.lists.begin(kind, extent),
            Event::Listed(kind, _, object) | Event::Applied(kind, object) if !self.takes(kind, &object) => {}
            Event::Listed(kind, extent, object) => {
                self.lists.note(kind, extent, object.identity());
                self.insert(object, None, now, &mut work);
            }
            Event::Applied(_, object) => {
                let version = object.version();
                self.insert(object, version, now, &mut work);
            }
            Event::Deleted(kind, object) => self.remove(kind, &object.identity(), now, &mut work),
            Event::ListEnds(kind, extent) => self.end_list(kind, &extent, now, &mut work),
        }
        work
    }

    fn takes(&self, kind: Watched, object: &Object) -> bool {
        kind == Watched::Namespace || self.is_in_scope(object.namespace())
    }

    fn end_list(&mut self, kind: Watched, extent: &Extent, now: Timestamp, work: &mut Work) {
        let (listed, ended) = self.lists.end(kind, extent);
        let identities = self.identities(kind, extent);
        let gone: Vec<Identity> = identities.filter(|identity| !listed.contains(identity)).collect();
        for identity in gone {
            self.remove(kind, &identity, now, work);
        }
        if ended == Ended::First {
            let adoptable = self.workloads.keys().filter(|id| extent.covers(&id.namespace));
            for id in adoptable.cloned().collect::<Vec<WorkloadId>>() {
                self.hear_again(&id);
                self.forget_birth_of_the_opted_out(&id);
                self.look(&id, now, work);
            }
            let placeholders = self
                .placeholders
                .values()
                .map(|placeholder| &placeholder.original)
                .filter(|id| extent.covers(&id.namespace));
            work.workloads.extend(placeholders.cloned());
            let configs = self.configs.iter().map(|config| &config.id).filter(|id| extent.covers(&id.namespace));
            work.configs.extend(configs.cloned());
        }
    }

    fn identities<'a>(&'a self, kind: Watched, extent: &'a Extent) -> Box<dyn Iterator<Item = Identity> + 'a> {
        let configs = self.configs.iter().map(|config| &config.id).filter(|id| extent.covers(&id.namespace));
        let configs = configs.filter(move |id| Watched::Config(id.kind) == kind).cloned().map(Identity::Config);
        let workloads = self.workloads.keys().filter(|id| extent.covers(&id.namespace));
        let workloads = workloads.filter(move |id| Watched::Workload(id.kind) == kind).cloned().map(Identity::Workload);
        let replica_sets = self.replica_sets.values().filter(|set| extent.covers(&set.namespace)).map(|set| &set.uid);
        let pods = self.pods.values().filter(|pod| extent.covers(&pod.namespace)).map(|pod| &pod.uid);
        let placeholders = self
            .placeholders
            .values()
            .filter(|placeholder| extent.covers(&placeholder.original.namespace))
            .map(|placeholder| &placeholder.uid);
        let reports = self.stored.keys().filter(|id| extent.covers(&id.namespace));
        match kind {
            Watched::Config(ConfigKind::SecretProviderClass) => {
                let statuses = self.classes.ids().filter(|id| extent.covers(&id.namespace));
                Box::new(statuses.cloned().map(Identity::ProviderClassStatus))
            }
            Watched::Config(_) => Box::new(configs),
            Watched::Workload(WorkloadKind::ReplicaSet) => {
                Box::new(workloads.chain(replica_sets.cloned().map(Identity::Uid)))
            }
            Watched::Workload(WorkloadKind::Job) => Box::new(workloads.chain(placeholders.cloned().map(Identity::Uid))),
            Watched::Workload(WorkloadKind::Pod) => Box::new(workloads.chain(pods.cloned().map(Identity::Uid))),
            Watched::Workload(_) => Box::new(workloads),
            Watched::Report => Box::new(reports.cloned().map(Identity::Workload)),
            Watched::Namespace => Box::new(self.namespaces.keys().cloned().map(Identity::Namespace)),
            Watched::Autoscaler => {
                let autoscalers = self.autoscalers.ids().filter(|id| extent.covers(&id.namespace));
                Box::new(autoscalers.cloned().map(Identity::Autoscaler))
            }
        }
    }

    /// Puts an object in its place. `seen` is its version, where it was seen on the watch as it happened.
    fn insert(&mut self, object: Object, seen: Option<ResourceVersion>, now: Timestamp, work: &mut Work) {
        match object {
            Object::Config(config) => self.insert_config(config, seen, now, work),
            Object::Workload(workload) => self.insert_workload(*workload, seen, now, work),
            Object::Placeholder(placeholder) => {
                work.workloads.insert(placeholder.original.clone());
                self.placeholders.insert(placeholder.uid.clone(), placeholder);
            }
            Object::ReplicaSet(replica_set) => {
                let deployment = replica_set.deployment.clone();
                self.replica_sets_of.entry(deployment.clone()).or_default().insert(replica_set.uid.clone());
                let uid = replica_set.uid.clone();
                self.remove_workload_of_its_own(&uid, now, work);
                self.replica_sets.insert(uid.clone(), replica_set);
                self.place(&uid);
                work.workloads.extend(self.workload_of_uid.get(&deployment).cloned());
            }
            Object::Pod(pod) => self.insert_pod(pod, now, work),
            Object::Report(stored) => {
                let id = stored.workload.clone();
                self.stored.insert(id.clone(), stored);
                self.look(&id, now, work);
            }
            Object::Namespace(namespace) => self.insert_namespace(namespace, now, work),
            Object::ProviderClassStatus(status) => {
                let class = self.classes.insert(status);
                self.look_at_consumers(&class, now, work);
            }
            Object::Autoscaler(autoscaler) => self.insert_autoscaler(autoscaler, work),
        }
    }

    fn insert_config(&mut self, mut config: Config, seen: Option<ResourceVersion>, now: Timestamp, work: &mut Work) {
        let id = config.id.clone();
        let before = self.configs.get(&id).filter(|before| before.uid == config.uid);
        if before.is_some_and(|before| config.resource_version < before.resource_version) {
            return;
        }
        config.born = before.map_or(seen, |before| before.born);
        if let Some(before) = before {
            config.follow(before);
        }
        self.configs.insert(config);
        self.look_at_consumers(&id, now, work);
        work.configs.insert(id);
    }

    fn look_at_consumers(&mut self, id: &ConfigId, now: Timestamp, work: &mut Work) {
        for workload in self.concerned(id) {
            self.look(&workload, now, work);
        }
    }

    fn insert_workload(
        &mut self,
        mut workload: Workload,
        seen: Option<ResourceVersion>,
        now: Timestamp,
        work: &mut Work,
    ) {
        let id = workload.id.clone();
        let (before, replaced) = match self.workloads.remove(&id).map(|tracked| *tracked) {
            Some(before) if before.workload.uid == workload.uid => (Some(before), None),
            replaced => (None, replaced),
        };
        if let Some(replaced) = replaced {
            self.forget(&replaced.workload, work);
        }
        if let Some(before) = before.as_ref().filter(|before| workload.version < before.workload.version) {
            workload = before.workload.clone();
        }
        self.hear(&mut workload, before.as_ref());
        let opted_in = self.may_count(&workload);
        workload.born = before.as_ref().map_or(seen.filter(|_| opted_in), |before| before.workload.born);
        if let Some(uid) = workload.uid.clone() {
            self.remove_owned(&uid, work); // its controller let it go
            self.workload_of_uid.insert(uid.clone(), id.clone());
            self.place(&uid);
        }
        self.note_names(&workload);
        self.link_consumers(&id, before.as_ref().map(|before| &before.workload), &workload, work);
        if before.as_ref().is_some_and(|before| self.lost_its_opt_in(before, &workload)) {
            work.news.push((id.clone(), News::OptInGone));
        }
        let templates =
            [before.as_ref().and_then(|before| before.workload.template_in.clone()), workload.template_in.clone()];
        let unknown = || Tracked { workload: workload.clone(), record: None, other_instance: None, is_followed: false };
        let tracked = Tracked { workload: workload.clone(), ..before.unwrap_or_else(unknown) };
        self.workloads.insert(id.clone(), Box::new(tracked));
        self.look(&id, now, work);
        self.link_template(&id, templates, now, work);
    }

    /// Whether an edit of the template took the opt-in along.
    fn lost_its_opt_in(&self, before: &Tracked, now: &Workload) -> bool {
        before.record.is_some()
            && now.generation != before.workload.generation
            && now.opt_in.is_silent()
            && !self.may_count(now)
    }

    /// Keeps the reverse map: which workloads name a config.
    fn link_consumers(&mut self, id: &WorkloadId, before: Option<&Workload>, now: &Workload, work: &mut Work) {
        if before.is_some_and(|before| before.consumption == now.consumption) {
            return;
        }
        if let Some(before) = before {
            self.unlink_consumers(before, work);
        }
        for config in now.consumption.configs() {
            self.consumers.entry(config.clone()).or_default().insert(id.clone());
            work.configs.insert(config.clone());
        }
    }

    fn unlink_consumers(&mut self, workload: &Workload, work: &mut Work) {
        for config in workload.consumption.configs() {
            work.configs.insert(config.clone());
            if let Some(consumers) = self.consumers.get_mut(config) {
                consumers.remove(&workload.id);
                if consumers.is_empty() {
                    self.consumers.remove(config);
                }
            }
        }
    }

    /// A workload that is gone leaves nothing behind.
    fn forget(&mut self, workload: &Workload, work: &mut Work) {
        self.unlink_consumers(workload, work);
        self.forget_names(&workload.id);
        self.unlink_template(&workload.id, workload.template_in.as_ref(), work);
        if let Some(uid) = &workload.uid {
            self.workload_of_uid.remove(uid);
        }
    }

    fn remove(&mut self, kind: Watched, identity: &Identity, now: Timestamp, work: &mut Work) {
        match identity {
            Identity::Config(id) => {
                self.configs.remove(id);
                self.look_at_consumers(id, now, work);
                work.configs.insert(id.clone());
            }
            Identity::Workload(id) if kind == Watched::Report => {
                self.stored.remove(id);
                self.look(id, now, work);
                work.workloads.insert(id.clone());
            }
            Identity::Workload(id) => {
                if let Some(gone) = self.workloads.remove(id) {
                    self.forget(&gone.workload, work);
                }
                work.workloads.insert(id.clone());
            }
            Identity::Namespace(name) => self.remove_namespace(name, now, work),
            Identity::Uid(uid) => self.remove_owned(uid, work),
            Identity::ProviderClassStatus(id) => {
                if let Some(gone) = self.classes.remove(id) {
                    self.look_at_consumers(&gone.class, now, work);
                }
            }
            Identity::Autoscaler(id) => {
                let gone = self.autoscalers.remove(id);
                work.workloads.extend(gone.and_then(|gone| self.scaled_by(&gone)));
            }
        }
    }

    /// One writes its status every few seconds, which says nothing new.
    fn insert_autoscaler(&mut self, autoscaler: Autoscaler, work: &mut Work) {
        let before = self.autoscalers.insert(autoscaler.clone());
        if before.as_ref() != Some(&autoscaler) {
            let scaled = [before, Some(autoscaler)].into_iter().flatten();
            work.workloads.extend(scaled.filter_map(|autoscaler| self.scaled_by(&autoscaler)));
        }
    }

    /// The workload that this one scales, if it is there.
    fn scaled_by(&self, autoscaler: &Autoscaler) -> Option<WorkloadId> {
        autoscaler.target(&self.scope).filter(|id| self.workloads.contains_key(id))
    }

    /// A ReplicaSet or pod that was a workload of its own got a controller.
    fn remove_workload_of_its_own(&mut self, uid: &Uid, now: Timestamp, work: &mut Work) {
        if let Some(id) = self.workload_of_uid.get(uid).cloned() {
            self.remove(Watched::Workload(id.kind), &Identity::Workload(id), now, work);
        }
    }
}

impl From<Workload> for Object {
    fn from(workload: Workload) -> Self {
        Self::Workload(Box::new(workload))
    }
}

impl Object {
    fn identity(&self) -> Identity {
        match self {
            Self::Config(config) => Identity::Config(config.id.clone()),
            Self::Workload(workload) => Identity::Workload(workload.id.clone()),
            Self::Placeholder(placeholder) => Identity::Uid(placeholder.uid.clone()),
            Self::ReplicaSet(replica_set) => Identity::Uid(replica_set.uid.clone()),
            Self::Pod(pod) => Identity::Uid(pod.uid.clone()),
            Self::Report(stored) => Identity::Workload(stored.workload.clone()),
            Self::Namespace(namespace) => Identity::Namespace(namespace.name.clone()),
            Self::ProviderClassStatus(status) => Identity::ProviderClassStatus(status.id.clone()),
            Self::Autoscaler(autoscaler) => Identity::Autoscaler(autoscaler.id.clone()),
        }
    }

    fn namespace(&self) -> &Name {
        match self {
            Self::Config(config) => &config.id.namespace,
            Self::Workload(workload) => &workload.id.namespace,
            Self::Placeholder(placeholder) => &placeholder.original.namespace,
            Self::ReplicaSet(replica_set) => &replica_set.namespace,
            Self::Pod(pod) => &pod.namespace,
            Self::Report(stored) => &stored.workload.namespace,
            Self::Namespace(namespace) => &namespace.name,
            Self::ProviderClassStatus(status) => &status.id.namespace,
            Self::Autoscaler(autoscaler) => &autoscaler.id.namespace,
        }
    }

    fn version(&self) -> Option<ResourceVersion> {
        match self {
            Self::Config(config) => config.resource_version,
            Self::Workload(workload) => workload.version,
            Self::Pod(pod) => pod.version,
            Self::Placeholder(_)
            | Self::ReplicaSet(_)
            | Self::Report(_)
            | Self::Namespace(_)
            | Self::ProviderClassStatus(_)
            | Self::Autoscaler(_) => None,
        }
    }
}

fn remove_from<K: Eq + Hash, M: Ord>(map: &mut HashMap<K, BTreeSet<M>>, owner: &K, member: &M) {
    if let Some(members) = map.get_mut(owner) {
        members.remove(member);
        if members.is_empty() {
            map.remove(owner);
        }
    }
}

mod hearing;
mod lists;
mod looking;
mod namespaces;
mod pods;
mod references;
mod stamps;
#[cfg(test)]
mod tests;
