//! The objects that a scan or an explanation looks at, wherever they come from.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::Resource;
use serde::Serialize;

use crate::api::drift_report::DriftReport;
use crate::model::autoscaler::{Autoscalers, Autoscaling};
use crate::model::config::{Config, Configs};
use crate::model::consumers::{Consumers, WorkloadReads};
use crate::model::custom::object::NoTemplate;
use crate::model::helm::{ReleaseId, Releases};
use crate::model::names::{ConfigId, ConfigKind, Name, Uid, WorkloadId};
use crate::model::namespace::Namespace;
use crate::model::pod::Pod;
use crate::model::report::{self, ReportKey};
use crate::model::revision::OwnPods;
use crate::model::workload::{OwnedReplicaSet, Workload};

/// What there is to go by.
#[derive(Debug, Default)]
pub struct Inventory {
    configs: Configs,
    manifests: BTreeSet<ConfigId>,
    workloads: BTreeMap<WorkloadId, Workload>,
    /// The pods that a controller owns, by that one.
    pods: BTreeMap<Uid, Vec<Pod>>,
    /// The ReplicaSets, by the Deployment that owns them.
    replica_sets: BTreeMap<Uid, Vec<OwnedReplicaSet>>,
    /// Where in a file the objects stand, by their reports.
    places: BTreeMap<ReportKey, Place>,
    /// What is being read.
    reading: Option<Place>,
    /// The latest moment that an object tells of.
    latest: Option<Timestamp>,
    /// The Helm releases, which come before the objects that name them.
    pub releases: Releases,
    /// What scales workloads.
    pub autoscalers: Autoscalers,
    /// Whether that is not all that there is.
    pub lacks_autoscalers: bool,
    /// The namespaces, where files hold them.
    pub namespaces: BTreeMap<Name, Namespace>,
    /// Our own reports, where files hold them.
    pub reports: Vec<DriftReport>,
    /// The objects of wanted custom kinds of which no pod template is known, and why not.
    pub without_template: BTreeMap<WorkloadId, NoTemplate>,
    /// How many objects are of a kind that says nothing here.
    pub passed_over: usize,
}

/// Where an object stands: the document that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named.
    pub file: String,
    /// The document's first line.
    pub line: usize,
}

impl Inventory {
    /// What is taken in from now on stands here.
    pub fn read_from(&mut self, place: Place) {
        self.reading = Some(place);
    }

    /// Where the subject of this report stands, if that is a file.
    pub fn place_of(&self, key: &ReportKey) -> Option<&Place> {
        self.places.get(key)
    }

    /// Takes a config in.
    pub fn add_config(&mut self, mut config: Config) {
        config.compare_with(&self.releases);
        self.latest = self.latest.max(config.created).max(config.last_write_of_values());
        self.places.extend(self.reading.clone().map(|place| (report::key_of_config(&config.id), place)));
        self.configs.insert(config);
    }

    /// Takes in that there is a manifest of this config.
    pub fn add_manifest(&mut self, id: ConfigId) {
        self.manifests.insert(id);
    }

    /// The configs of which there is a manifest alone, that does not tell what is live.
    pub fn only_manifests(&self) -> impl Iterator<Item = &ConfigId> {
        self.manifests.iter().filter(|id| self.configs.get(id).is_none())
    }

    /// Objects of these kinds may have been left out.
    pub fn may_lack(&mut self, kinds: impl IntoIterator<Item = ConfigKind>) {
        self.configs.may_have_more(kinds);
    }

    /// Takes in a workload.
    pub fn add_workload(&mut self, workload: Workload) {
        self.places.extend(self.reading.clone().map(|place| (report::key_of_workload(&workload.id), place)));
        self.workloads.insert(workload.id.clone(), workload);
    }

    /// Takes in a workload with the object that it was read from, which is compared with its Helm release.
    pub fn add_object<K: Resource + Serialize>(&mut self, mut workload: Workload, object: &K) {
        let release = workload.release().and_then(|release| self.releases.declared_spec(release, &workload.id));
        if release.is_some()
            && let Ok(mut content) = serde_json::to_value(object)
            && let Some(spec) = content.get_mut("spec").map(serde_json::Value::take)
        {
            workload.compare_with(&self.releases, object.meta(), &spec);
        }
        self.add_workload(workload);
    }

    /// Takes back what a Helm release said about the objects that name it.
    pub fn forget_release(&mut self, id: &ReleaseId) {
        let named: Vec<Config> = self.configs.iter().filter(|config| config.release() == Some(id)).cloned().collect();
        for config in named {
            self.configs.insert(Config { released: None, ..config });
        }
        let workloads = self.workloads.values_mut().filter(|workload| workload.release() == Some(id));
        workloads.for_each(Workload::forget_release);
    }

    /// Takes in what stands between a Deployment and its pods.
    pub fn add_replica_set(&mut self, owned: OwnedReplicaSet) {
        self.replica_sets.entry(owned.deployment.clone()).or_default().push(owned);
    }

    /// Takes in what runs.
    pub fn add_pod(&mut self, pod: Pod) {
        self.latest = self.latest.max(pod.created).max(pod.status_written);
        self.pods.entry(pod.owner.clone()).or_default().push(pod);
    }

    /// When the objects were taken from the cluster, at the earliest.
    pub fn latest(&self) -> Option<Timestamp> {
        self.latest
    }

    /// Looks at the pods of a workload.
    pub fn with_pods<R>(&self, workload: &Workload, look: impl FnOnce(OwnPods<'_>) -> R) -> R {
        let uid = workload.uid.as_ref();
        let replica_sets = || uid.and_then(|uid| self.replica_sets.get(uid)).into_iter().flatten();
        let owners = uid.into_iter().chain(replica_sets().map(|replica_set| &replica_set.uid));
        let pods: Vec<&Pod> = owners.filter_map(|owner| self.pods.get(owner)).flatten().collect();
        let mut current = replica_sets().filter(|replica_set| replica_set.is_of(&workload.revision));
        look(OwnPods { workload, pods: &pods, replica_set: current.next().map(|replica_set| &replica_set.uid) })
    }

    /// The workloads by their id, also those in whose place another one counts.
    pub fn workloads(&self) -> &BTreeMap<WorkloadId, Workload> {
        &self.workloads
    }

    /// What scales this workload.
    pub fn autoscaling(&self, workload: &WorkloadId) -> Autoscaling<'_> {
        match self.autoscalers.of(workload) {
            Some(autoscaler) => Autoscaling::By(autoscaler),
            None if self.lacks_autoscalers => Autoscaling::Unknown,
            None => Autoscaling::Off,
        }
    }

    /// The configs.
    pub fn configs(&self) -> &Configs {
        &self.configs
    }

    /// The configs alone.
    pub fn into_configs(self) -> Configs {
        self.configs
    }

    /// Who reads them: every workload that counts by itself.
    pub fn consumers(&self) -> Consumers {
        let workloads = self.workloads.iter().filter(|(_, workload)| workload.is_its_own());
        let reads = workloads.map(|(id, workload)| WorkloadReads { id, consumption: &workload.consumption });
        Consumers::of(reads, &self.configs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::secret;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn reader(owner: Value) -> Workload {
        let object = json!({"metadata": {"name": "w", "ownerReferences": owner}, "spec": {"selector": {},
            "template": {"spec": {"containers": [{"name": "app", "envFrom": [{"secretRef": {"name": "s"}}]}]}}}});
        Workload::of_replica_set(&serde_json::from_value(object).unwrap()).unwrap()
    }

    #[rstest]
    #[case::by_itself(json!([]), 1)]
    #[case::not_beside_its_owner(
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u", "controller": true}]), 0)]
    fn a_workload_counts_once(#[case] owner: Value, #[case] expected: usize) {
        let mut inventory = Inventory::default();
        let mut config = secret("s").value("A", "1").build();
        config.id.namespace = "default".into();
        let id = config.id.clone();
        inventory.add_config(config);
        inventory.add_workload(reader(owner));
        assert_eq!(inventory.consumers().of_key(&id, &"A".into()).len(), expected);
    }
}
