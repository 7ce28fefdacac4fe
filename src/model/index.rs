//! The index: the slim state of the cluster, kept by what the watches see, and the maps between its parts.
//!
//! It is synchronous: `apply` takes one event, opens the entries that this event opens, and tells what to look at.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;

use crate::model::cause::Cause;
use crate::model::config::{Config, Configs, Others};
use crate::model::consumed::Consumed;
use crate::model::counting::Counting;
use crate::model::decide::{self, Decision, Hold};
use crate::model::digest::Keyring;
use crate::model::index::lists::{Ended, Lists};
use crate::model::names::{ConfigId, Name, ResourceVersion, Uid, WorkloadId, WorkloadKind};
use crate::model::namespace::Namespace;
use crate::model::observe::{News, Sight};
use crate::model::pod::Pod;
use crate::model::policy::Policy;
use crate::model::record::Record;
use crate::model::scope::{Extent, Scope};
use crate::model::stamp::Stamp;
use crate::model::watched::Watched;
use crate::model::workload::{OwnedReplicaSet, Progress, Revision, Workload};

/// An object as the index takes it.
#[derive(Debug, Clone)]
pub enum Object {
    /// A ConfigMap or Secret.
    Config(Config),
    /// An object with a pod template, that nothing owns.
    Workload(Workload),
    /// A ReplicaSet that a Deployment owns.
    ReplicaSet(OwnedReplicaSet),
    /// A pod that a controller owns.
    Pod(Pod),
    /// The record in one of our reports.
    Report(StoredRecord),
    /// A namespace.
    Namespace(Namespace),
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
    /// The record.
    pub record: Record,
}

/// What tells one object of the index from all others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Identity {
    Config(ConfigId),
    Workload(WorkloadId),
    Uid(Uid),
    Namespace(Name),
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
    scope: Arc<Scope>,
    configs: Configs,
    workloads: HashMap<WorkloadId, Tracked>,
    /// The workloads that name a config.
    consumers: HashMap<ConfigId, BTreeSet<WorkloadId>>,
    workload_of_uid: HashMap<Uid, WorkloadId>,
    /// By the workload that has a pod template, the one that takes it from there.
    referrers: HashMap<WorkloadId, WorkloadId>,
    replica_sets: HashMap<Uid, OwnedReplicaSet>,
    replica_sets_of: HashMap<Uid, BTreeSet<Uid>>,
    pods: HashMap<Uid, Pod>,
    pods_of: HashMap<Uid, BTreeSet<Uid>>,
    /// ReplicaSets that pods name and that were not seen yet, or no more, with their namespace.
    unplaced: HashMap<Uid, Name>,
    stored: HashMap<WorkloadId, StoredRecord>,
    namespaces: HashMap<Name, Namespace>,
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
            lists: Lists::of(&scope),
            scope,
            configs: Configs::default(),
            workloads: HashMap::new(),
            consumers: HashMap::new(),
            workload_of_uid: HashMap::new(),
            referrers: HashMap::new(),
            replica_sets: HashMap::new(),
            replica_sets_of: HashMap::new(),
            pods: HashMap::new(),
            pods_of: HashMap::new(),
            unplaced: HashMap::new(),
            stored: HashMap::new(),
            namespaces: HashMap::new(),
        }
    }

    /// The same for another scope.
    pub fn within(mut self, scope: Arc<Scope>) -> Self {
        self.lists = Lists::of(&scope);
        self.configs = Configs::with_others(if scope.configs.is_some() { Others::Unknown } else { Others::Absent });
        self.scope = scope;
        self
    }

    /// The configs.
    pub fn configs(&self) -> &Configs {
        &self.configs
    }

    /// A workload.
    pub fn workload(&self, id: &WorkloadId) -> Option<&Tracked> {
        self.workloads.get(id)
    }

    /// All workloads, in no order.
    pub fn workloads(&self) -> impl Iterator<Item = &Tracked> {
        self.workloads.values()
    }

    /// The workloads that name this config.
    pub fn consumers(&self, config: &ConfigId) -> impl Iterator<Item = &Tracked> {
        self.consumers.get(config).into_iter().flatten().filter_map(|id| self.workloads.get(id))
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
                self.forget_birth_of_the_opted_out(&id);
                self.look(&id, now, work);
            }
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
        let reports = self.stored.keys().filter(|id| extent.covers(&id.namespace));
        match kind {
            Watched::Config(_) => Box::new(configs),
            Watched::Workload(WorkloadKind::ReplicaSet) => {
                Box::new(workloads.chain(replica_sets.cloned().map(Identity::Uid)))
            }
            Watched::Workload(WorkloadKind::Pod) => Box::new(workloads.chain(pods.cloned().map(Identity::Uid))),
            Watched::Workload(_) => Box::new(workloads),
            Watched::Report => Box::new(reports.cloned().map(Identity::Workload)),
            Watched::Namespace => Box::new(self.namespaces.keys().cloned().map(Identity::Namespace)),
        }
    }

    /// Puts an object in its place. `seen` is its version, where it was seen on the watch as it happened.
    fn insert(&mut self, object: Object, seen: Option<ResourceVersion>, now: Timestamp, work: &mut Work) {
        match object {
            Object::Config(config) => self.insert_config(config, seen, now, work),
            Object::Workload(workload) => self.insert_workload(workload, seen, now, work),
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
        }
    }

    fn insert_config(&mut self, mut config: Config, seen: Option<ResourceVersion>, now: Timestamp, work: &mut Work) {
        let id = config.id.clone();
        let before = self.configs.get(&id).filter(|before| before.uid == config.uid);
        if before.is_some_and(|before| config.resource_version < before.resource_version) {
            return;
        }
        config.born = before.map_or(seen, |before| before.born);
        self.configs.insert(config);
        self.look_at_consumers(&id, now, work);
        work.configs.insert(id);
    }

    fn look_at_consumers(&mut self, id: &ConfigId, now: Timestamp, work: &mut Work) {
        let consumers = self.consumers.get(id).cloned().unwrap_or_default();
        for workload in consumers {
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
        let (before, replaced) = match self.workloads.remove(&id) {
            Some(before) if before.workload.uid == workload.uid => (Some(before), None),
            replaced => (None, replaced),
        };
        if let Some(replaced) = replaced {
            self.forget(&replaced.workload, work);
        }
        if let Some(before) = before.as_ref().filter(|before| workload.version < before.workload.version) {
            workload = before.workload.clone();
        }
        let opted_in = self.may_count(&workload);
        workload.born = before.as_ref().map_or(seen.filter(|_| opted_in), |before| before.workload.born);
        if let Some(uid) = workload.uid.clone() {
            self.remove_owned(&uid, work); // its controller let it go
            self.workload_of_uid.insert(uid.clone(), id.clone());
            self.place(&uid);
        }
        self.link_consumers(&id, before.as_ref().map(|before| &before.workload), &workload, work);
        if before.as_ref().is_some_and(|before| self.lost_its_opt_in(before, &workload)) {
            work.news.push((id.clone(), News::OptInGone));
        }
        let templates =
            [before.as_ref().and_then(|before| before.workload.template_in.clone()), workload.template_in.clone()];
        let unknown = || Tracked { workload: workload.clone(), record: None, other_instance: None, is_followed: false };
        let tracked = Tracked { workload: workload.clone(), ..before.unwrap_or_else(unknown) };
        self.workloads.insert(id.clone(), tracked);
        self.look(&id, now, work);
        self.link_template(&id, templates, now, work);
    }

    /// Whether an edit of the template took the opt-in along.
    fn lost_its_opt_in(&self, before: &Tracked, now: &Workload) -> bool {
        let says_nothing = now.opt_in.auto_reload.is_none() && now.opt_in.problems.is_empty();
        before.record.is_some() && now.generation != before.workload.generation && says_nothing && !self.may_count(now)
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
        self.unlink_template(&workload.id, workload.template_in.as_ref(), work);
        if let Some(uid) = &workload.uid {
            self.workload_of_uid.remove(uid);
        }
    }

    fn insert_pod(&mut self, mut pod: Pod, now: Timestamp, work: &mut Work) {
        self.remove_workload_of_its_own(&pod.uid, now, work);
        pod.born = pod.born.max(self.pods.get(&pod.uid).and_then(|before| before.born));
        if self.pods.get(&pod.uid).is_some_and(|before| before.owner != pod.owner) {
            self.remove_owned(&pod.uid, work);
        }
        self.pods_of.entry(pod.owner.clone()).or_default().insert(pod.uid.clone());
        work.workloads.extend(self.workload_of_pod(&pod).cloned());
        let owner = pod.owner.clone();
        self.pods.insert(pod.uid.clone(), pod);
        self.place(&owner);
    }

    /// Notes whether it is known whose the pods of this owner are.
    fn place(&mut self, owner: &Uid) {
        let mut pods = self.pods_of.get(owner).into_iter().flatten().filter_map(|uid| self.pods.get(uid));
        match pods.next().filter(|pod| pod.is_of_replica_set) {
            Some(pod) if !self.replica_sets.contains_key(owner) && !self.workload_of_uid.contains_key(owner) => {
                self.unplaced.insert(owner.clone(), pod.namespace.clone());
            }
            _ => {
                self.unplaced.remove(owner);
            }
        }
    }

    fn workload_of_pod(&self, pod: &Pod) -> Option<&WorkloadId> {
        let owner = self.replica_sets.get(&pod.owner).map_or(&pod.owner, |replica_set| &replica_set.deployment);
        let id = self.workload_of_uid.get(owner)?;
        self.workloads.get(id).and_then(|tracked| tracked.workload.template_in.as_ref()).or(Some(id))
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
        }
    }

    /// A ReplicaSet or pod that a controller owns is gone, or another one owns it now.
    fn remove_owned(&mut self, uid: &Uid, work: &mut Work) {
        if let Some(replica_set) = self.replica_sets.remove(uid) {
            remove_from(&mut self.replica_sets_of, &replica_set.deployment, uid);
            self.place(uid);
        }
        if let Some(pod) = self.pods.remove(uid) {
            remove_from(&mut self.pods_of, &pod.owner, uid);
            self.place(&pod.owner);
            work.workloads.extend(self.workload_of_pod(&pod).cloned());
        }
    }

    /// A ReplicaSet or pod that was a workload of its own got a controller.
    fn remove_workload_of_its_own(&mut self, uid: &Uid, now: Timestamp, work: &mut Work) {
        if let Some(id) = self.workload_of_uid.get(uid).cloned() {
            self.remove(Watched::Workload(id.kind), &Identity::Workload(id), now, work);
        }
    }

    /// Looks at one workload: adopts it, or compares its record with what there is.
    fn look(&mut self, id: &WorkloadId, now: Timestamp, work: &mut Work) {
        let Some(mut tracked) = self.workloads.remove(id) else { return };
        work.workloads.insert(id.clone());
        self.load_record(id, &mut tracked);
        let before = tracked.record.take();
        let counting = self.counting(&tracked.workload, before.as_ref().map(|record| &record.counting));
        let has_template = id.kind.rolls_by_template() && tracked.workload.template_in.is_none();
        let rolls = has_template && !counting.is_off();
        if rolls && tracked.other_instance.is_none() {
            tracked.record = match self.unsynced(&tracked.workload) {
                Some(_) => before,
                None => self.with_sight(&tracked, &counting, now, |sight| match before {
                    None => Some(Record::adopt(sight, &self.keyring)),
                    Some(mut record) => {
                        let news = record.observe(sight, &self.keyring);
                        work.news.extend(news.into_iter().map(|news| (id.clone(), news)));
                        Some(record)
                    }
                }),
            };
            tracked.is_followed = self.unsynced(&tracked.workload).is_none();
        }
        self.workloads.insert(id.clone(), tracked);
    }

    /// Whether nothing counts for a workload; not while it is unknown what its annotations or its namespace want.
    pub fn is_opted_out(&self, tracked: &Tracked) -> bool {
        let workload = &tracked.workload;
        workload.opt_in.problems.is_empty()
            && self.unsynced(workload).is_none()
            && !self.may_be_referred_to(workload)
            && !self.may_count(workload)
    }

    /// Takes the record from the workload's report, if there is none yet; unless the report is another installation's.
    fn load_record(&self, id: &WorkloadId, tracked: &mut Tracked) {
        let stored = self.stored.get(id).filter(|stored| Some(&stored.uid) == tracked.workload.uid.as_ref());
        let others = stored.filter(|stored| stored.instance != self.instance);
        tracked.other_instance = others.map(|stored| stored.instance.clone());
        if others.is_some() {
            tracked.record = None;
        } else if let (None, Some(stored)) = (&tracked.record, stored) {
            tracked.record = Some(stored.record.clone());
            tracked.is_followed = false;
        }
    }

    /// A watch that this workload needs and that is not synced.
    fn unsynced(&self, workload: &Workload) -> Option<Watched> {
        let own = Watched::Workload(workload.id.kind);
        let links = match workload.id.kind {
            WorkloadKind::Deployment | WorkloadKind::Custom(_) => Some(Watched::Workload(WorkloadKind::ReplicaSet)),
            _ => None,
        };
        let configs = workload.consumption.configs().into_iter().map(|id| Watched::Config(id.kind));
        let needed = [own, Watched::Report, Watched::Workload(WorkloadKind::Pod)].into_iter().chain(links);
        let namespace = &workload.id.namespace;
        let unsynced = needed.chain(configs).find(|kind| !self.lists.is_synced_in(*kind, namespace));
        unsynced.or_else(|| self.lacks_namespace(workload).then_some(Watched::Namespace))
    }

    fn with_sight<R>(
        &self,
        tracked: &Tracked,
        counting: &Counting,
        now: Timestamp,
        look: impl FnOnce(&Sight<'_>) -> Option<R>,
    ) -> Option<R> {
        let workload = &tracked.workload;
        let consumed = Consumed::of(&workload.id.namespace, &workload.consumption, counting, &self.configs);
        let uid = workload.uid.as_ref()?;
        look(&Sight {
            workload,
            uid,
            counting,
            consumed: &consumed,
            configs: &self.configs,
            pods: &self.pods_of_workload(&workload.id, uid),
            replica_set: self.current_replica_set(workload),
            namespace_deleting: self.is_namespace_deleting(&workload.id.namespace),
            has_unplaced_pods: self.has_unplaced_pods(workload),
            pods_seen_to: self.lists.pods_seen_to(&workload.id.namespace),
            is_followed: tracked.is_followed,
            policy: &self.policy,
            now,
        })
    }

    fn pods_of_workload(&self, id: &WorkloadId, uid: &Uid) -> Vec<&Pod> {
        let referrer = self.referrer(id).and_then(|referrer| referrer.uid.as_ref());
        let owners = [Some(uid), referrer].into_iter().flatten();
        let owners = owners.flat_map(|uid| self.replica_sets_of.get(uid).into_iter().flatten().chain([uid]));
        let pods = owners.filter_map(|owner| self.pods_of.get(owner)).flatten();
        pods.filter_map(|uid| self.pods.get(uid)).collect()
    }

    fn has_unplaced_pods(&self, workload: &Workload) -> bool {
        let namespace = &workload.id.namespace;
        let has_replica_sets = matches!(workload.id.kind, WorkloadKind::Deployment | WorkloadKind::Custom(_));
        has_replica_sets && self.unplaced.values().any(|other| other == namespace)
    }

    fn current_replica_set(&self, workload: &Workload) -> Option<&Uid> {
        let Revision::OfReplicaSet(Some(revision)) = &workload.revision else { return None };
        let mut replica_sets = self.replica_sets_of.get(workload.uid.as_ref()?)?.iter();
        replica_sets.find(|uid| self.replica_sets.get(*uid).is_some_and(|set| set.revision.as_ref() == Some(revision)))
    }

    /// What is due for an adopted workload; `None` if it is not one.
    pub fn decide(&self, id: &WorkloadId, now: Timestamp) -> Option<Decision> {
        let tracked = self.workloads.get(id)?;
        if let Some(instance) = &tracked.other_instance {
            return Some(Decision::Hold(Hold::OtherInstance { instance: instance.clone() }));
        }
        let record = tracked.record.as_ref()?;
        if let Some(kind) = self.unsynced(&tracked.workload) {
            return Some(Decision::Hold(Hold::NotSynced { kind: kind.as_str() }));
        }
        self.with_sight(tracked, &record.counting, now, |sight| Some(decide::decide(record, sight)))
    }

    /// Every open change of this workload is delivered.
    pub fn close(&mut self, id: &WorkloadId) {
        if let Some(record) = self.workloads.get_mut(id).and_then(|tracked| tracked.record.as_mut()) {
            record.close();
        }
    }

    /// The stamp that is due, to be sent; it is remembered until it is known what became of it.
    pub fn begin_stamp(&mut self, id: &WorkloadId, now: Timestamp) -> Option<StampOrder> {
        let tracked = self.workloads.get(id)?;
        let record = tracked.record.as_ref()?;
        let workload = &tracked.workload;
        let (digest, restart_at) = self.with_sight(tracked, &record.counting, now, |sight| {
            let digest = sight.consumed.digest(sight.uid, self.keyring.current());
            Some((digest, sight.workload.lever.restart_at(sight.pods, now)))
        })?;
        let stamp = Stamp { digest, generation: workload.generation };
        let order = StampOrder {
            workload: id.clone(),
            uid: workload.uid.clone()?,
            restart_at,
            version: workload.version?,
            text: stamp.to_string(),
            cause: Cause::of(record),
            due_since: record.open_entries().map(|(_, change)| change.first_seen).min()?,
        };
        self.workloads.get_mut(id)?.record.as_mut()?.ask(order.text.clone(), now);
        Some(order)
    }

    /// The stamp was refused: it is not on the workload. Where that is not known, nothing is said.
    pub fn refused(&mut self, order: &StampOrder) {
        if let Some(record) = self.workloads.get_mut(&order.workload).and_then(|tracked| tracked.record.as_mut()) {
            record.refuse(&order.text);
        }
    }

    /// The stamp was put on; the workload is now at this version and generation.
    pub fn stamped(&mut self, order: &StampOrder, version: ResourceVersion, generation: i64) {
        let tracked = self.workloads.get_mut(&order.workload);
        let Some(tracked) = tracked.filter(|tracked| tracked.workload.uid.as_ref() == Some(&order.uid)) else { return };
        if tracked.workload.version < Some(version) {
            tracked.workload.version = Some(version);
            tracked.workload.generation = generation;
            tracked.workload.stamp = Some(order.text.clone());
            tracked.workload.progress = Progress::Unobserved;
        }
        if let Some(record) = &mut tracked.record {
            record.confirm(&order.text);
        }
    }
}

/// One stamp to be sent: where, on which state, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StampOrder {
    /// The workload.
    pub workload: WorkloadId,
    /// Its uid: a workload that was made again is another one.
    pub uid: Uid,
    /// From when on its pods are to be restarted, where a rollout is not what its owner wants.
    pub restart_at: Option<Timestamp>,
    /// The version that was decided on: on another one, the API server refuses.
    pub version: ResourceVersion,
    /// The stamp.
    pub text: String,
    /// What it answers.
    pub cause: Cause,
    /// When the first of the changes that it answers was seen.
    pub due_since: Timestamp,
}

impl Object {
    fn identity(&self) -> Identity {
        match self {
            Self::Config(config) => Identity::Config(config.id.clone()),
            Self::Workload(workload) => Identity::Workload(workload.id.clone()),
            Self::ReplicaSet(replica_set) => Identity::Uid(replica_set.uid.clone()),
            Self::Pod(pod) => Identity::Uid(pod.uid.clone()),
            Self::Report(stored) => Identity::Workload(stored.workload.clone()),
            Self::Namespace(namespace) => Identity::Namespace(namespace.name.clone()),
        }
    }

    fn namespace(&self) -> &Name {
        match self {
            Self::Config(config) => &config.id.namespace,
            Self::Workload(workload) => &workload.id.namespace,
            Self::ReplicaSet(replica_set) => &replica_set.namespace,
            Self::Pod(pod) => &pod.namespace,
            Self::Report(stored) => &stored.workload.namespace,
            Self::Namespace(namespace) => &namespace.name,
        }
    }

    fn version(&self) -> Option<ResourceVersion> {
        match self {
            Self::Config(config) => config.resource_version,
            Self::Workload(workload) => workload.version,
            Self::Pod(pod) => pod.version,
            Self::ReplicaSet(_) | Self::Report(_) | Self::Namespace(_) => None,
        }
    }
}

fn remove_from(map: &mut HashMap<Uid, BTreeSet<Uid>>, owner: &Uid, member: &Uid) {
    if let Some(members) = map.get_mut(owner) {
        members.remove(member);
        if members.is_empty() {
            map.remove(owner);
        }
    }
}

mod lists;
mod namespaces;
mod references;
#[cfg(test)]
mod tests;
