//! Objects for tests: builders that default everything.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodSpec;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::api::auto_reload::AutoReload;
use crate::api::opt_in::OptIn;
use crate::model::adoption::Adoption;
use crate::model::autoscaler::Autoscaling;
use crate::model::config::{Config, Configs, Field, LiveValue};
use crate::model::consumed::Consumed;
use crate::model::consumption::Consumption;
use crate::model::custom::CustomKind;
use crate::model::custom::rollout::Lever;
use crate::model::decide::{self, Decision};
use crate::model::digest::{HashKey, Keyring};
use crate::model::drift::WorkloadSight;
use crate::model::fingerprint::Fingerprint;
use crate::model::image::{PullPolicy, RunningImage, TemplateImage};
use crate::model::keys::KeyMap;
use crate::model::last_applied::LastApplied;
use crate::model::managed_fields::{LastWrite, ManagerEntry, Operation};
use crate::model::managers::Managers;
use crate::model::names::{
    ConfigId, ConfigKind, ConfigName, ImageDigest, KeyName, ResourceVersion, Uid, WorkloadId, WorkloadKind,
};
use crate::model::observe::{News, Sight};
use crate::model::pod::{Activity, Blocked, Blocker, Phase, Pod, PodRevision, RunningContainer, Started};
use crate::model::policy::Policy;
use crate::model::provider_class::{DRIVER, PodStatus, ProviderClasses};
use crate::model::record::Record;
use crate::model::rerun::{JobPhase, Overlap, Run, Schedule};
use crate::model::workload::{ByHand, Deadline, Owned, Progress, Revision, Strategy, Workload};

/// A pod's spec from JSON.
pub(crate) fn pod(spec: serde_json::Value) -> PodSpec {
    serde_json::from_value(spec).unwrap()
}

/// A ConfigMap in namespace `ns`.
pub(crate) fn config_map(name: &str) -> ConfigBuilder {
    ConfigBuilder::new(ConfigKind::ConfigMap, name)
}

/// A Secret in namespace `ns`.
pub(crate) fn secret(name: &str) -> ConfigBuilder {
    ConfigBuilder::new(ConfigKind::Secret, name)
}

/// Makes a config.
pub(crate) struct ConfigBuilder(Config);

impl ConfigBuilder {
    fn new(kind: ConfigKind, name: &str) -> Self {
        Self(Config {
            id: ConfigId { kind, namespace: "ns".into(), name: name.into() },
            uid: Some(format!("uid-of-{name}").into()),
            resource_version: Some(ResourceVersion(1)),
            born: None,
            settled: None,
            created: None,
            values: KeyMap::new(),
            last_applied: LastApplied::Absent,
            managed_fields: None,
            controller: None,
            annotations: BTreeMap::new(),
            origin: None,
            released: None,
        })
    }

    /// Whose Helm release declares these keys.
    pub(crate) fn released(mut self, keys: &[(&str, &str)]) -> Self {
        let declared = keys.iter().map(|(key, value)| ((*key).into(), Fingerprint::of(value.as_bytes())));
        self.0.released = Some(declared.collect());
        self
    }

    /// With this key in `data`.
    pub(crate) fn value(mut self, key: &str, value: &str) -> Self {
        let fingerprint = Fingerprint::of(value.as_bytes());
        self.0.values.insert(key.into(), LiveValue { fingerprint, field: Field::Data });
        self
    }

    /// With this key in `binaryData`.
    pub(crate) fn binary(mut self, key: &str, value: &str) -> Self {
        let fingerprint = Fingerprint::of(value.as_bytes());
        self.0.values.insert(key.into(), LiveValue { fingerprint, field: Field::BinaryData });
        self
    }

    /// Whose last-applied annotation declares these keys.
    pub(crate) fn declares(mut self, keys: &[(&str, &str)]) -> Self {
        let declared = keys.iter().map(|(key, value)| ((*key).into(), Fingerprint::of(value.as_bytes())));
        self.0.last_applied = LastApplied::Declares(declared.collect());
        self
    }

    /// Whose managedFields have this entry.
    pub(crate) fn owned(mut self, manager: &str, operation: Operation, keys: &[&str]) -> Self {
        let keys = keys.iter().map(|key| KeyName::from(*key)).collect::<BTreeSet<_>>().into();
        let entry = ManagerEntry { manager: manager.into(), operation, time: None, keys };
        let entries = self.0.managed_fields.take().unwrap_or_default().into_iter().chain([entry]);
        self.0.managed_fields = Some(entries.collect());
        self
    }

    /// Whose managedFields have this entry, last written at this time.
    pub(crate) fn owned_at(self, manager: &str, operation: Operation, keys: &[&str], time: &str) -> Self {
        let mut config = self.owned(manager, operation, keys);
        if let Some(entry) = config.0.managed_fields.iter_mut().flatten().last() {
            entry.time = Some(time.parse().unwrap());
        }
        config
    }

    /// With this last-applied annotation.
    pub(crate) fn last_applied(mut self, last_applied: LastApplied) -> Self {
        self.0.last_applied = last_applied;
        self
    }

    /// With this annotation.
    pub(crate) fn annotated(mut self, name: &str, value: &str) -> Self {
        self.0.annotations.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Owned as a whole by this controller.
    pub(crate) fn controlled_by(mut self, controller: &str) -> Self {
        self.0.controller = Some(controller.to_owned());
        self
    }

    /// At this resourceVersion.
    pub(crate) fn at_version(mut self, version: u64) -> Self {
        self.0.resource_version = Some(ResourceVersion(version));
        self
    }

    /// Seen as it was made, at this version.
    pub(crate) fn born(mut self, version: u64) -> Self {
        self.0.born = Some(ResourceVersion(version));
        self
    }

    /// Made at this second.
    pub(crate) fn made(mut self, second: i64) -> Self {
        self.0.created = Some(at(second));
        self
    }

    /// Made again: another uid.
    pub(crate) fn uid(mut self, uid: &str) -> Self {
        self.0.uid = Some(uid.into());
        self
    }

    /// The config.
    pub(crate) fn build(self) -> Config {
        self.0
    }
}

/// A time: seconds since a moment at which nothing had happened yet.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

/// A config by its `Kind/name`.
pub(crate) fn named(config: &str) -> ConfigName {
    config.to_owned().try_into().unwrap()
}

/// A hash key of this id.
pub(crate) fn hash_key(id: &str) -> HashKey {
    let mut secret = Zeroizing::new([7; 32]);
    for (to, from) in secret.iter_mut().zip(id.bytes()) {
        *to = from;
    }
    HashKey::new(id, secret)
}

/// A keyring with one key.
pub(crate) fn keyring() -> Keyring {
    Keyring::new(hash_key("k1"), Vec::new())
}

/// Settle 5 s.
pub(crate) fn policy() -> Policy {
    Policy::default()
}

/// An opted-in Deployment in namespace `ns`, with a container `app`, whose rollout is complete with one pod.
pub(crate) fn deployment(name: &str) -> WorkloadBuilder {
    WorkloadBuilder::new(WorkloadKind::Deployment, name, Revision::OfReplicaSet(Some("1".to_owned())))
}

/// The same for a StatefulSet.
pub(crate) fn stateful_set(name: &str) -> WorkloadBuilder {
    WorkloadBuilder::new(WorkloadKind::StatefulSet, name, Revision::Hash(Some("hash-1".to_owned())))
}

/// The same for a DaemonSet.
pub(crate) fn daemon_set(name: &str) -> WorkloadBuilder {
    WorkloadBuilder::new(WorkloadKind::DaemonSet, name, Revision::TemplateGeneration(Some("1".to_owned())))
}

/// A Job that is not over, adopted long ago, with one container named `app`.
pub(crate) fn job(name: &str) -> WorkloadBuilder {
    let mut job = WorkloadBuilder::new(WorkloadKind::Job, name, Revision::Unknown);
    job.workload.progress = Progress::Unknown;
    job.run(Run::Job(JobPhase::Due))
}

/// A CronJob that runs by its schedule, adopted long ago, with one container named `app`.
pub(crate) fn cron_job(name: &str) -> WorkloadBuilder {
    let mut cron_job = WorkloadBuilder::new(WorkloadKind::CronJob, name, Revision::Unknown);
    cron_job.workload.progress = Progress::Unknown;
    cron_job.run(Run::CronJob(Schedule::Active { overlap: Overlap::Allowed, running: 0, last: None }))
}

/// The same for a custom kind, of whose pods' revisions nothing is known.
pub(crate) fn custom(kind: &'static CustomKind, name: &str) -> WorkloadBuilder {
    WorkloadBuilder::new(WorkloadKind::Custom(kind), name, Revision::Unknown)
}

/// Makes a workload.
#[derive(Clone)]
pub(crate) struct WorkloadBuilder {
    workload: Workload,
    init: Vec<Value>,
    containers: Vec<Value>,
    volumes: Vec<Value>,
    optional: bool,
}

impl WorkloadBuilder {
    fn new(kind: WorkloadKind, name: &str, revision: Revision) -> Self {
        let workload = Workload {
            id: WorkloadId { kind, namespace: "ns".into(), name: name.into() },
            uid: Some(uid_of(name)),
            version: Some(ResourceVersion(1)),
            born: None,
            generation: 1,
            deleting: false,
            owned: Owned::Not,
            opt_in: OptIn { auto_reload: Some(AutoReload::Everything), ..OptIn::default() },
            annotations: None,
            consumption: Consumption::default(),
            origin: None,
            fields: Box::default(),
            stamp: None,
            strategy: Strategy::Rolling,
            progress: Progress::Complete { pods: 1 },
            revision,
            lever: Lever::Template,
            template_in: None,
            made_by: None,
            made_for: None,
            images: Vec::new(),
            deadline: Deadline::Kept,
            template_written: None,
            run: Run::NotOne,
        };
        let containers = vec![json!({"name": "app", "env": [], "envFrom": [], "volumeMounts": []})];
        Self { workload, init: Vec::new(), containers, volumes: Vec::new(), optional: false }
    }

    /// With one more container, which consumes what is named from here on.
    pub(crate) fn container(mut self, name: &str) -> Self {
        self.containers.push(json!({"name": name, "env": [], "envFrom": [], "volumeMounts": []}));
        self
    }

    /// With an init container that takes all keys of a config into its environment.
    pub(crate) fn init_env_from(mut self, name: &str, config: &str) -> Self {
        let source = self.source(config);
        self.init.push(json!({"name": name, "envFrom": [source]}));
        self
    }

    /// What is named from here on is optional.
    pub(crate) fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// All keys of a config, in the environment.
    pub(crate) fn env_from(mut self, config: &str) -> Self {
        let source = self.source(config);
        self.push("envFrom", source);
        self
    }

    /// One key of a config, in the environment.
    pub(crate) fn env(mut self, config: &str, key: &str) -> Self {
        let ConfigName { kind, name } = named(config);
        let field = match kind {
            ConfigKind::ConfigMap => "configMapKeyRef",
            ConfigKind::Secret => "secretKeyRef",
            ConfigKind::SecretProviderClass => panic!("no variable comes from a class"),
        };
        let reference = json!({(field): {"name": name, "key": key, "optional": self.optional}});
        self.push("env", json!({"name": key, "valueFrom": reference}));
        self
    }

    /// A whole config, as files.
    pub(crate) fn volume(mut self, config: &str) -> Self {
        let ConfigName { kind, name } = named(config);
        let volume = format!("v{}", self.volumes.len());
        let source = match kind {
            ConfigKind::ConfigMap => json!({"configMap": {"name": name, "optional": self.optional}}),
            ConfigKind::Secret => json!({"secret": {"secretName": name, "optional": self.optional}}),
            ConfigKind::SecretProviderClass => json!({"csi": {"driver": DRIVER,
                "volumeAttributes": {"secretProviderClass": name}}}),
        };
        self.push("volumeMounts", json!({"name": volume, "mountPath": format!("/{volume}")}));
        let mut declared = json!({"name": volume});
        declared.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        self.volumes.push(declared);
        self
    }

    /// For which this does not count.
    pub(crate) fn excluding(mut self, exclusion: &str) -> Self {
        self.workload.opt_in.exclude.push(exclusion.parse().unwrap());
        self
    }

    /// For which this counts, whoever reads it.
    pub(crate) fn on(mut self, pattern: &str) -> Self {
        self.workload.opt_in.reload_on.push(pattern.parse().unwrap());
        self
    }

    /// Whose owner wants so many seconds between two rollouts.
    pub(crate) fn min_interval(mut self, seconds: i64) -> Self {
        self.workload.opt_in.min_interval = Some(jiff::SignedDuration::from_secs(seconds));
        self
    }

    /// Without an annotation: its namespace says what it wants.
    pub(crate) fn silent(mut self) -> Self {
        self.workload.opt_in.auto_reload = None;
        self
    }

    /// Owned by a controller.
    pub(crate) fn owned_by_a_controller(mut self) -> Self {
        self.workload.owned = Owned::ByController("Database".to_owned());
        self
    }

    /// In this namespace.
    pub(crate) fn within(mut self, namespace: &str) -> Self {
        self.workload.id.namespace = namespace.into();
        self
    }

    /// Whose annotation says this.
    pub(crate) fn auto_reload(mut self, auto_reload: AutoReload) -> Self {
        self.workload.opt_in.auto_reload = Some(auto_reload);
        self
    }

    /// Made again: another uid.
    pub(crate) fn uid(mut self, uid: &str) -> Self {
        self.workload.uid = Some(uid.into());
        self
    }

    /// At this resourceVersion.
    pub(crate) fn at_version(mut self, version: u64) -> Self {
        self.workload.version = Some(ResourceVersion(version));
        self
    }

    /// Made before our eyes at this version.
    pub(crate) fn born(mut self, version: u64) -> Self {
        self.workload.born = Some(ResourceVersion(version));
        self
    }

    /// At this generation.
    pub(crate) fn generation(mut self, generation: i64) -> Self {
        self.workload.generation = generation;
        self
    }

    /// With this stamp.
    pub(crate) fn stamp(mut self, text: &str) -> Self {
        self.workload.stamp = Some(text.to_owned());
        self
    }

    /// On its way out.
    pub(crate) fn deleting(mut self) -> Self {
        self.workload.deleting = true;
        self
    }

    /// Paused.
    pub(crate) fn by_hand(mut self) -> Self {
        self.workload.strategy = Strategy::ByHand(ByHand::Paused);
        self
    }

    /// Whose pods are replaced like this.
    pub(crate) fn lever(mut self, lever: Lever) -> Self {
        self.workload.lever = lever;
        self
    }

    /// With a rollout like this.
    pub(crate) fn progress(mut self, progress: Progress) -> Self {
        self.workload.progress = progress;
        self
    }

    /// Whose controller works towards this revision.
    pub(crate) fn revision(mut self, revision: Revision) -> Self {
        self.workload.revision = revision;
        self
    }

    /// With a container `app` of this image.
    pub(crate) fn image(mut self, text: &str, pull: PullPolicy) -> Self {
        self.workload.images.push(TemplateImage { container: "app".into(), text: text.into(), pull });
        self
    }

    /// Whose rollout stands so with its deadline.
    pub(crate) fn deadline(mut self, deadline: Deadline) -> Self {
        self.workload.deadline = deadline;
        self
    }

    /// Whose template this manager wrote last, at this second.
    pub(crate) fn template_written(mut self, manager: &str, second: i64) -> Self {
        self.workload.template_written = Some(LastWrite { manager: manager.into(), time: Some(at(second)) });
        self
    }

    /// A Job or CronJob that is this far.
    pub(crate) fn run(mut self, run: Run) -> Self {
        self.workload.run = run;
        self
    }

    /// The workload.
    pub(crate) fn build(mut self) -> Workload {
        let spec = json!({"initContainers": self.init, "containers": self.containers, "volumes": self.volumes});
        self.workload.consumption = Consumption::of(&self.workload.id.namespace, &pod(spec));
        self.workload
    }

    fn source(&self, config: &str) -> Value {
        let ConfigName { kind, name } = named(config);
        let field = match kind {
            ConfigKind::ConfigMap => "configMapRef",
            ConfigKind::Secret => "secretRef",
            ConfigKind::SecretProviderClass => panic!("no variable comes from a class"),
        };
        json!({(field): {"name": name, "optional": self.optional}})
    }

    fn push(&mut self, field: &str, value: Value) {
        self.containers.last_mut().unwrap()[field].as_array_mut().unwrap().push(value);
    }
}

/// The digest of nothing but this letter.
pub(crate) fn image_digest(letter: char) -> ImageDigest {
    format!("sha256:{}", letter.to_string().repeat(64)).into()
}

fn uid_of(name: &str) -> Uid {
    format!("uid-of-{name}").into()
}

/// A pod of the ReplicaSet `rs-1`, made long ago, of which nothing is shown yet.
pub(crate) fn pod_of(owner: &str, name: &str) -> PodBuilder {
    PodBuilder(Pod {
        uid: uid_of(name),
        namespace: "ns".into(),
        name: name.into(),
        owner: uid_of(owner),
        is_of_replica_set: owner.starts_with("rs-"),
        created: Some(at(-3600)),
        version: Some(ResourceVersion(1)),
        born: None,
        stamp: None,
        revision: PodRevision::default(),
        phase: Phase::Active,
        node: Some("node-1".into()),
        status_written: None,
        containers: Vec::new(),
        blocked: None,
    })
}

/// A pod of the ReplicaSet `rs-1` whose container `app` runs since this second.
pub(crate) fn running_since(second: i64) -> PodBuilder {
    pod_of("rs-1", "p").started("app", second)
}

/// Makes a pod.
#[derive(Clone)]
pub(crate) struct PodBuilder(Pod);

impl PodBuilder {
    /// Another one.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.0.uid = uid_of(name);
        self.0.name = name.into();
        self
    }

    /// Of this controller.
    pub(crate) fn owner(mut self, owner: &str) -> Self {
        self.0.owner = uid_of(owner);
        self.0.is_of_replica_set = owner.starts_with("rs-");
        self
    }

    /// Made at this second, seen at this version.
    pub(crate) fn made(mut self, second: i64, version: u64) -> Self {
        self.0.created = Some(at(second));
        self.0.born = Some(ResourceVersion(version));
        self
    }

    /// At this resourceVersion.
    pub(crate) fn at_version(mut self, version: u64) -> Self {
        self.0.version = Some(ResourceVersion(version));
        self
    }

    /// With a container that runs since this second.
    pub(crate) fn started(self, container: &str, second: i64) -> Self {
        self.shows(container, Started::At(at(second)))
    }

    /// With a container that waits.
    pub(crate) fn waits(self, container: &str) -> Self {
        self.shows(container, Started::NotYet)
    }

    /// With this container.
    pub(crate) fn shows(mut self, container: &str, started: Started) -> Self {
        self.0.containers.retain(|shown| shown.name.as_str() != container);
        self.0.containers.push(RunningContainer::new(container.into(), started));
        self
    }

    /// With this container, an init container that has done its work.
    pub(crate) fn done(mut self, container: &str, second: i64) -> Self {
        let started = Started::At(at(second));
        self.0
            .containers
            .push(RunningContainer { activity: Activity::Done, ..RunningContainer::new(container.into(), started) });
        self
    }

    /// With a container `app` that runs this digest, and was asked for this image.
    pub(crate) fn runs(mut self, text: &str, digest: char) -> Self {
        self = self.started("app", 0);
        let image = Some(RunningImage { text: text.into(), digest: image_digest(digest) });
        self.0.containers.iter_mut().for_each(|container| container.image = image.clone());
        self
    }

    /// On this node.
    pub(crate) fn node(mut self, node: &str) -> Self {
        self.0.node = Some(node.into());
        self
    }

    /// With a status that was written last at this second.
    pub(crate) fn status_written(mut self, second: i64) -> Self {
        self.0.status_written = Some(at(second));
        self
    }

    /// Not ready since this second.
    pub(crate) fn blocked(mut self, blocker: Blocker, second: i64) -> Self {
        self.0.blocked = Some(Blocked { since: Some(at(second)), blocker, container: Some("app".into()) });
        self
    }

    /// Made from a template with this stamp.
    pub(crate) fn stamp(mut self, text: &str) -> Self {
        self.0.stamp = Some(text.to_owned());
        self
    }

    /// Of the revision with this hash.
    pub(crate) fn hash(mut self, hash: &str) -> Self {
        self.0.revision.hash = Some(hash.to_owned());
        self
    }

    /// Made for this generation of a DaemonSet's template.
    pub(crate) fn template_generation(mut self, generation: &str) -> Self {
        self.0.revision.template_generation = Some(generation.to_owned());
        self
    }

    /// Terminating or finished.
    pub(crate) fn over(mut self) -> Self {
        self.0.phase = Phase::Over;
        self
    }

    /// The pod.
    pub(crate) fn build(self) -> Pod {
        self.0
    }
}

/// All that there is to see of this workload, at the second 0, with its configs and pods to be named.
pub(crate) fn scene(workload: WorkloadBuilder) -> Scene {
    Scene {
        workload: workload.build(),
        configs: Vec::new(),
        pods: Vec::new(),
        replica_set: Some(uid_of("rs-1")),
        has_unplaced_pods: false,
        pods_seen_to: None,
        classes: None,
        is_followed: true,
        policy: policy(),
        now: at(0),
        keyring: keyring(),
    }
}

/// What there is to see at one moment.
pub(crate) struct Scene {
    workload: Workload,
    configs: Vec<Config>,
    pods: Vec<Pod>,
    replica_set: Option<Uid>,
    has_unplaced_pods: bool,
    pods_seen_to: Option<ResourceVersion>,
    classes: Option<ProviderClasses>,
    is_followed: bool,
    policy: Policy,
    now: Timestamp,
    keyring: Keyring,
}

impl Scene {
    /// Where pods hold this of SecretProviderClasses.
    pub(crate) fn classes(mut self, statuses: impl IntoIterator<Item = PodStatus>) -> Self {
        let classes = self.classes.get_or_insert_default();
        statuses.into_iter().for_each(|status| drop(classes.insert(status)));
        self
    }

    /// With this config.
    pub(crate) fn config(mut self, config: ConfigBuilder) -> Self {
        self.configs.push(config.build());
        self
    }

    /// With this pod.
    pub(crate) fn pod(mut self, pod: PodBuilder) -> Self {
        self.pods.push(pod.build());
        self
    }

    /// Where the controller works towards this ReplicaSet.
    pub(crate) fn replica_set(mut self, name: &str) -> Self {
        self.replica_set = Some(uid_of(name));
        self
    }

    /// At this second.
    pub(crate) fn second(mut self, second: i64) -> Self {
        self.now = at(second);
        self
    }

    /// Where some pod's ReplicaSet was not seen yet.
    pub(crate) fn unplaced_pods(mut self) -> Self {
        self.has_unplaced_pods = true;
        self
    }

    /// Where the watch of pods has shown this version.
    pub(crate) fn pods_seen_to(mut self, version: u64) -> Self {
        self.pods_seen_to = Some(ResourceVersion(version));
        self
    }

    /// Seen for the first time since the operator started.
    pub(crate) fn after_a_restart(mut self) -> Self {
        self.is_followed = false;
        self
    }

    /// Where whoever runs restamp chose this.
    pub(crate) fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// With these keys of the installation.
    pub(crate) fn keyring(mut self, keyring: Keyring) -> Self {
        self.keyring = keyring;
        self
    }

    /// First sight.
    pub(crate) fn adopt(&self) -> Record {
        self.see(|sight| Record::adopt(sight, &self.keyring, Adoption::FirstSight)).0
    }

    /// Another look.
    pub(crate) fn observe(&self, record: &mut Record) -> Vec<News> {
        self.see(|sight| record.observe(sight, &self.keyring))
    }

    /// What is due.
    pub(crate) fn decide(&self, record: &Record) -> Decision {
        self.see(|sight| decide::decide(record, sight))
    }

    /// The text of the stamp for this state.
    pub(crate) fn stamp(&self) -> String {
        let digest = self.see(|sight| sight.consumed.digest(sight.uid, self.keyring.current()));
        crate::model::stamp::Stamp { digest, generation: self.workload.generation }.to_string()
    }

    /// Looks at it as a report does, which nobody reloads.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&WorkloadSight<'_>) -> R) -> R {
        self.see(|sight| {
            let Sight { workload, configs, now, .. } = *sight;
            let managers = &Managers::default();
            let own_pods = sight.own_pods();
            look(&WorkloadSight {
                workload,
                configs,
                managers,
                autoscaling: Autoscaling::Off,
                own_pods,
                reloading: None,
                now,
            })
        })
    }

    /// Looks.
    pub(crate) fn see<R>(&self, look: impl FnOnce(&Sight<'_>) -> R) -> R {
        let configs: Configs = self.configs.iter().cloned().collect();
        let counting = self.workload.opt_in.counting(AutoReload::Off, None);
        let workload = &self.workload;
        let consumed = Consumed::of(&workload.id.namespace, &workload.consumption, &counting, &configs);
        let pods: Vec<&Pod> = self.pods.iter().collect();
        look(&Sight {
            workload,
            uid: self.workload.uid.as_ref().unwrap(),
            counting: &counting,
            consumed: &consumed,
            configs: &configs,
            classes: self.classes.as_ref(),
            pods: &pods,
            replica_set: self.replica_set.as_ref(),
            namespace_deleting: false,
            has_unplaced_pods: self.has_unplaced_pods,
            pods_seen_to: self.pods_seen_to,
            is_followed: self.is_followed,
            policy: &self.policy,
            now: self.now,
        })
    }
}
