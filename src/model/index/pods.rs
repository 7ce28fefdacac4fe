//! Pods, and the ReplicaSets between them and their Deployments.

use jiff::Timestamp;

use crate::model::index::{Index, Work, remove_from};
use crate::model::names::{ConfigKind, Name, Uid, WorkloadId, WorkloadKind};
use crate::model::pod::Pod;
use crate::model::revision::OwnPods;
use crate::model::workload::Workload;

impl Index {
    pub(super) fn insert_pod(&mut self, mut pod: Pod, now: Timestamp, work: &mut Work) {
        self.remove_workload_of_its_own(&pod.uid, now, work);
        pod.born = pod.born.max(self.pods.get(&pod.uid).and_then(|before| before.born));
        if self.pods.get(&pod.uid).is_some_and(|before| before.owner != pod.owner) {
            self.remove_owned(&pod.uid, work);
        }
        let siblings = self.pods_of.entry(pod.owner.clone()).or_default();
        if let Some(sibling) = siblings.iter().find(|uid| **uid != pod.uid).and_then(|uid| self.pods.get(uid)) {
            pod.share(sibling);
        }
        siblings.insert(pod.uid.clone());
        work.workloads.extend(self.workload_of_pod(&pod).cloned());
        let (owner, uid) = (pod.owner.clone(), pod.uid.clone());
        self.pods.insert(uid.clone(), Box::new(pod));
        self.place(&owner);
        self.look_if_it_may_be_behind(&uid, now, work);
    }

    /// When its containers started tells whether it is behind a SecretProviderClass.
    fn look_if_it_may_be_behind(&mut self, pod: &Uid, now: Timestamp, work: &mut Work) {
        let id = self.pods.get(pod).and_then(|pod| self.workload_of_pod(pod));
        let Some(tracked) = id.and_then(|id| self.workloads.get(id)) else { return };
        let entries = tracked.record.iter().flat_map(|record| &record.entries);
        let mut kinds = entries.map(|entry| entry.config.kind);
        if kinds.any(|kind| kind == ConfigKind::SecretProviderClass) {
            let id = tracked.workload.id.clone();
            self.look(&id, now, work);
        }
    }

    /// Notes whether it is known whose the pods of this owner are.
    pub(super) fn place(&mut self, owner: &Uid) {
        let mut pods = self.pods_of.get(owner).into_iter().flatten().filter_map(|uid| self.pods.get(uid));
        match pods.next().filter(|pod| pod.is_of_replica_set) {
            Some(pod) if !self.replica_sets.contains_key(owner) && !self.workload_of_uid.contains_key(owner) => {
                self.unplaced.insert(owner.clone(), pod.namespace.clone());
            }
            _ => {
                let namespace = self.unplaced.remove(owner);
                let placed = namespace.filter(|namespace| !self.unplaced.values().any(|other| other == namespace));
                placed.into_iter().for_each(|namespace| self.stir_what_is_open(&namespace));
            }
        }
    }

    /// Pods of which it was not known whose they are kept every workload here from being known to have read a change.
    fn stir_what_is_open(&mut self, namespace: &Name) {
        let here = self.workloads.values().filter(|tracked| tracked.workload.id.namespace == *namespace);
        let open =
            here.filter(|tracked| tracked.record.as_ref().is_some_and(|record| record.open_entries().next().is_some()));
        let open: Vec<WorkloadId> = open.map(|tracked| tracked.workload.id.clone()).collect();
        self.rollouts.stir(open);
    }

    pub(super) fn workload_of_pod(&self, pod: &Pod) -> Option<&WorkloadId> {
        let owner = self.replica_sets.get(&pod.owner).map_or(&pod.owner, |replica_set| &replica_set.deployment);
        let id = self.workload_of_uid.get(owner)?;
        self.workloads.get(id).and_then(|tracked| tracked.workload.template_in.as_ref()).or(Some(id))
    }

    /// A ReplicaSet or pod that a controller owns is gone, or another one owns it now; or the placeholder of a Job is gone.
    pub(super) fn remove_owned(&mut self, uid: &Uid, work: &mut Work) {
        if let Some(replica_set) = self.replica_sets.remove(uid) {
            remove_from(&mut self.replica_sets_of, &replica_set.deployment, uid);
            self.place(uid);
        }
        if let Some(placeholder) = self.placeholders.remove(uid) {
            work.workloads.insert(placeholder.original);
        }
        if let Some(pod) = self.pods.remove(uid) {
            remove_from(&mut self.pods_of, &pod.owner, uid);
            self.place(&pod.owner);
            work.workloads.extend(self.workload_of_pod(&pod).cloned());
        }
    }

    /// Looks at the pods of a workload.
    pub fn with_pods<R>(&self, workload: &Workload, look: impl FnOnce(OwnPods<'_>) -> R) -> R {
        let pods = workload.uid.as_ref().map(|uid| self.pods_of_workload(&workload.id, uid)).unwrap_or_default();
        look(OwnPods { workload, pods: &pods, replica_set: self.current_replica_set(workload) })
    }

    pub(super) fn pods_of_workload(&self, id: &WorkloadId, uid: &Uid) -> Vec<&Pod> {
        let referrer = self.referrer(id).and_then(|referrer| referrer.uid.as_ref());
        let owners = [Some(uid), referrer].into_iter().flatten();
        let owners = owners.flat_map(|uid| self.replica_sets_of.get(uid).into_iter().flatten().chain([uid]));
        let pods = owners.filter_map(|owner| self.pods_of.get(owner)).flatten();
        pods.filter_map(|uid| self.pods.get(uid)).map(Box::as_ref).collect()
    }

    pub(super) fn has_unplaced_pods(&self, workload: &Workload) -> bool {
        let namespace = &workload.id.namespace;
        let has_replica_sets = matches!(workload.id.kind, WorkloadKind::Deployment | WorkloadKind::Custom(_));
        has_replica_sets && self.unplaced.values().any(|other| other == namespace)
    }

    pub(super) fn current_replica_set(&self, workload: &Workload) -> Option<&Uid> {
        let mut replica_sets = self.replica_sets_of.get(workload.uid.as_ref()?)?.iter();
        replica_sets.find(|uid| self.replica_sets.get(*uid).is_some_and(|set| set.is_of(&workload.revision)))
    }
}
