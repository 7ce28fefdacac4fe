//! A pod, reduced to what proves that a change was delivered: when it was made, and when its containers started.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::api::annotations::CONFIG_HASH;
use crate::model::names::{Name, ResourceVersion, Uid, WorkloadKind, controller_of};
use crate::model::workload::Workload;

/// A pod as the API writes it.
#[derive(Debug, Clone, kube::Resource, Deserialize)]
#[resource(inherit = k8s_openapi::api::core::v1::Pod)]
pub struct PodObject {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Option<PodSpec>,
    #[serde(default)]
    status: Option<PodStatus>,
}

/// What restamp keeps of a pod that a controller owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its uid.
    pub uid: Uid,
    /// Its namespace.
    pub namespace: Name,
    /// The controller that owns it: a ReplicaSet, StatefulSet or DaemonSet.
    pub owner: Uid,
    /// Whether that is a ReplicaSet, which stands between the pod and its workload.
    pub is_of_replica_set: bool,
    /// When it was created, to the second.
    pub created: Option<Timestamp>,
    /// The version that this was read from.
    pub version: Option<ResourceVersion>,
    /// The latest version at which it was seen without a node: until then nothing in it had started.
    pub born: Option<ResourceVersion>,
    /// The stamp of the template that it was made from.
    pub stamp: Option<String>,
    /// The revision that its controller made it for.
    pub revision: PodRevision,
    /// What it is doing.
    pub phase: Phase,
    /// Its containers that the kubelet has reported on.
    pub containers: Vec<RunningContainer>,
}

/// The labels by which the controllers of StatefulSets and DaemonSets tell revisions apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodRevision {
    /// `controller-revision-hash`
    pub hash: Option<String>,
    /// `pod-template-generation`, of a DaemonSet's pods
    pub template_generation: Option<String>,
}

/// Whether a pod still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It runs, or will.
    Active,
    /// It is terminating, or it has finished: nothing in it reads any more.
    Over,
}

/// A container and when it last started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningContainer {
    /// Its name.
    pub name: Name,
    /// When it read what it froze.
    pub started: Started,
}

/// When a container read what it froze.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// It waits: it reads when it starts.
    NotYet,
    /// At this time, to the second, by the node's clock. A finished init container read when it ran.
    At(Timestamp),
    /// It runs, and nobody says since when.
    Unknown,
}

impl PodObject {
    /// The workload that it is, its own template; it counts if no controller owns it.
    pub fn as_workload(&self) -> Option<Workload> {
        Workload::of_pod(&self.metadata, self.spec.as_ref())
    }

    /// What is kept of a pod that a controller owns.
    pub fn read(self) -> Option<Pod> {
        let owner = controller_of(self.metadata.owner_references.as_deref())?;
        let status = self.status.unwrap_or_default();
        let finished = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        let over = finished || self.metadata.deletion_timestamp.is_some();
        let label = |name: &str| self.metadata.labels.as_ref()?.get(name).cloned();
        let init = status.init_container_statuses.iter().flatten().map(read_init);
        let lasting = status.container_statuses.iter().flatten().map(read_lasting);
        let version = self.metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
        let has_node = self.spec.is_some_and(|spec| spec.node_name.is_some());
        Some(Pod {
            uid: self.metadata.uid.clone()?.into(),
            namespace: self.metadata.namespace.clone()?.into(),
            owner: owner.uid.as_str().into(),
            is_of_replica_set: owner.kind == WorkloadKind::ReplicaSet.as_str(),
            created: self.metadata.creation_timestamp.as_ref().map(|time| time.0),
            version,
            born: version.filter(|_| !has_node),
            stamp: self.metadata.annotations.as_ref().and_then(|all| all.get(CONFIG_HASH).cloned()),
            revision: PodRevision {
                hash: label("controller-revision-hash"),
                template_generation: label("pod-template-generation"),
            },
            phase: if over { Phase::Over } else { Phase::Active },
            containers: init.chain(lasting).collect(),
        })
    }
}

fn read_init(status: &ContainerStatus) -> RunningContainer {
    let terminated = |state: &ContainerState| state.terminated.as_ref().map(|state| state.started_at.clone());
    let finished = status.state.as_ref().and_then(terminated);
    match finished {
        Some(started) => container(status, started.map_or(Started::Unknown, |time| Started::At(time.0))),
        None => read_lasting(status),
    }
}

/// A container that has ended is started again, or its pod is over.
fn read_lasting(status: &ContainerStatus) -> RunningContainer {
    let running = status.state.as_ref().and_then(|state| state.running.as_ref());
    let started = match running {
        Some(running) => running.started_at.as_ref().map_or(Started::Unknown, |time| Started::At(time.0)),
        None => Started::NotYet,
    };
    container(status, started)
}

fn container(status: &ContainerStatus, started: Started) -> RunningContainer {
    RunningContainer { name: status.name.as_str().into(), started }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn read(pod: Value) -> Option<Pod> {
        serde_json::from_value::<PodObject>(pod).unwrap().read()
    }

    fn at(time: &str) -> Started {
        Started::At(time.parse().unwrap())
    }

    #[test]
    fn it_knows_when_its_containers_started() {
        let pod = read(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "5",
                "creationTimestamp": "2026-11-30T12:00:00Z", "annotations": {(CONFIG_HASH): "s"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o", "controller": true}]},
            "spec": {"containers": []},
            "status": {"phase": "Running",
                "initContainerStatuses": [{"name": "init", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                    "state": {"terminated": {"exitCode": 0, "startedAt": "2026-11-30T12:00:01Z"}}}],
                "containerStatuses": [
                    {"name": "app", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                        "state": {"running": {"startedAt": "2026-11-30T12:00:02Z"}}},
                    {"name": "crashing", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
        }))
        .unwrap();
        let containers =
            [("init", at("2026-11-30T12:00:01Z")), ("app", at("2026-11-30T12:00:02Z")), ("crashing", Started::NotYet)];
        let containers = containers.map(|(name, started)| RunningContainer { name: name.into(), started });
        assert_eq!(pod.containers, containers);
        assert_eq!((pod.phase, pod.stamp.as_deref(), pod.owner.as_str()), (Phase::Active, Some("s"), "o"));
    }

    #[rstest]
    #[case::before_it_has_a_node(json!({"containers": []}), Some(ResourceVersion(5)))]
    #[case::with_a_node(json!({"containers": [], "nodeName": "n"}), None)]
    fn nothing_in_it_has_started_before_it_has_a_node(#[case] spec: Value, #[case] born: Option<ResourceVersion>) {
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o", "controller": true});
        let metadata =
            json!({"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "5", "ownerReferences": [owner]});
        assert_eq!(read(json!({"metadata": metadata, "spec": spec})).unwrap().born, born);
    }

    #[test]
    fn one_that_nobody_owns_is_not_kept() {
        assert_eq!(read(json!({"metadata": {"name": "p", "namespace": "ns", "uid": "u"}})), None);
    }

    #[test]
    fn one_that_terminates_is_over() {
        let pod = read(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "deletionTimestamp": "2026-11-30T12:00:00Z",
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o", "controller": true}]},
            "status": {"phase": "Running"},
        }));
        assert_eq!(pod.unwrap().phase, Phase::Over);
    }
}
