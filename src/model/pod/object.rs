//! A pod as the API writes it, and how it is read.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerState, ContainerStatus, PodCondition, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::Deserialize;

use super::{Activity, Blocked, Blocker, Phase, Pod, PodRevision, RunningContainer, Started};
use crate::api::annotations::CONFIG_HASH;
use crate::model::image::RunningImage;
use crate::model::names::{WorkloadKind, controller_of};
use crate::model::workload::Workload;

/// A pod as the API writes it. Of its managedFields, which are as large as all the rest, only the times are kept.
#[derive(Debug, Clone, kube::Resource, Deserialize)]
#[resource(inherit = k8s_openapi::api::core::v1::Pod)]
#[serde(from = "RawPod")]
pub struct PodObject {
    metadata: ObjectMeta,
    spec: Option<PodSpec>,
    status: Option<PodStatus>,
    status_written: Option<Timestamp>,
}

#[derive(Deserialize)]
struct RawPod {
    #[serde(default)]
    metadata: RawMetadata,
    #[serde(default)]
    spec: Option<PodSpec>,
    #[serde(default)]
    status: Option<PodStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMetadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    managed_fields: Option<Vec<RawWrite>>,
}

/// A write, without the fields.
#[derive(Deserialize)]
struct RawWrite {
    #[serde(default)]
    subresource: Option<String>,
    #[serde(default)]
    time: Option<String>,
}

impl From<RawPod> for PodObject {
    fn from(raw: RawPod) -> Self {
        let RawPod { metadata, spec, status } = raw;
        let of_status = |write: &&RawWrite| write.subresource.as_deref() == Some("status");
        let writes = metadata.managed_fields.iter().flatten().filter(of_status);
        let status_written = writes.filter_map(|write| write.time.as_deref()?.parse().ok()).max();
        let metadata = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            creation_timestamp: metadata.creation_timestamp,
            deletion_timestamp: metadata.deletion_timestamp,
            labels: metadata.labels,
            annotations: metadata.annotations,
            owner_references: metadata.owner_references,
            ..ObjectMeta::default()
        };
        Self { metadata, spec, status, status_written }
    }
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
        let version = self.metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
        let spec = self.spec.unwrap_or_default();
        let created = self.metadata.creation_timestamp.as_ref().map(|time| time.0);
        Some(Pod {
            uid: self.metadata.uid.clone()?.into(),
            namespace: self.metadata.namespace.clone()?.into(),
            name: self.metadata.name.clone()?.into(),
            owner: owner.uid.as_str().into(),
            is_of_replica_set: owner.kind == WorkloadKind::ReplicaSet.as_str(),
            created,
            version,
            born: version.filter(|_| spec.node_name.is_none()),
            stamp: self.metadata.annotations.as_ref().and_then(|all| all.get(CONFIG_HASH).cloned()),
            revision: PodRevision {
                hash: label("controller-revision-hash"),
                template_generation: label("pod-template-generation"),
            },
            phase: if over { Phase::Over } else { Phase::Active },
            node: spec.node_name.as_deref().map(Into::into),
            status_written: self.status_written,
            containers: containers(&spec, &status),
            blocked: if over { None } else { blocked(&status, created) },
        })
    }
}

fn containers(spec: &PodSpec, status: &PodStatus) -> Vec<RunningContainer> {
    let all = || spec.init_containers.iter().flatten().chain(&spec.containers);
    let init = status.init_container_statuses.iter().flatten().map(|status| read_init(status, all()));
    let lasting = status.container_statuses.iter().flatten().map(|status| read_lasting(status, all()));
    let mut containers: Vec<_> = init.chain(lasting).collect();
    containers.shrink_to_fit();
    containers
}

fn read_init<'a>(status: &ContainerStatus, asked: impl Iterator<Item = &'a Container>) -> RunningContainer {
    let terminated = |state: &ContainerState| state.terminated.as_ref().map(|state| state.started_at.clone());
    match status.state.as_ref().and_then(terminated) {
        Some(started) => RunningContainer {
            name: status.name.as_str().into(),
            started: started.map_or(Started::Unknown, |time| Started::At(time.0)),
            activity: Activity::Done,
            image: None,
        },
        None => read_lasting(status, asked),
    }
}

/// A container that has ended is started again, or its pod is over.
fn read_lasting<'a>(status: &ContainerStatus, mut asked: impl Iterator<Item = &'a Container>) -> RunningContainer {
    let name = status.name.as_str().into();
    let Some(running) = status.state.as_ref().and_then(|state| state.running.as_ref()) else {
        return RunningContainer::new(name, Started::NotYet);
    };
    let started = running.started_at.as_ref().map_or(Started::Unknown, |time| Started::At(time.0));
    let asked = asked.find(|container| container.name == status.name).and_then(|container| container.image.as_deref());
    let image = asked.and_then(|asked| RunningImage::read(asked, &status.image_id));
    RunningContainer { image, ..RunningContainer::new(name, started) }
}

/// What keeps a pod from being ready, if anything does.
fn blocked(status: &PodStatus, created: Option<Timestamp>) -> Option<Blocked> {
    let condition = |of_type: &str| status.conditions.iter().flatten().find(|condition| condition.type_ == of_type);
    let since = |condition: &PodCondition| condition.last_transition_time.as_ref().map(|time| time.0);
    let ready = condition("Ready");
    if ready.is_some_and(|ready| ready.status == "True") {
        return None;
    }
    let is_unschedulable =
        |condition: &&PodCondition| condition.status == "False" && condition.reason.as_deref() == Some("Unschedulable");
    if let Some(unscheduled) = condition("PodScheduled").filter(is_unschedulable) {
        let since = since(unscheduled).or(created);
        return Some(Blocked { since, blocker: Blocker::Unschedulable, container: None });
    }
    let since = ready.and_then(since).or(created);
    let init = status.init_container_statuses.iter().flatten();
    let all = init.chain(status.container_statuses.iter().flatten()).filter(|container| !container.ready);
    let worst = all.map(|container| (blocker(container), container)).min_by_key(|(blocker, _)| *blocker);
    Some(match worst {
        Some((blocker, container)) => Blocked { since, blocker, container: Some(container.name.as_str().into()) },
        None => Blocked { since, blocker: Blocker::Starting, container: None },
    })
}

/// What keeps a container from being ready. One that has ended before goes on doing so, whatever it does in between:
/// its state changes back and forth.
fn blocker(container: &ContainerStatus) -> Blocker {
    let state = container.state.as_ref();
    let waiting = state.and_then(|state| state.waiting.as_ref()).and_then(|waiting| waiting.reason.as_deref());
    let failed = |state: &Option<ContainerState>| {
        let terminated = state.as_ref().and_then(|state| state.terminated.as_ref());
        terminated.is_some_and(|terminated| terminated.exit_code != 0)
    };
    match waiting {
        Some("CreateContainerConfigError") => Blocker::Config,
        Some(
            "ErrImagePull"
            | "ImagePullBackOff"
            | "ErrImageNeverPull"
            | "InvalidImageName"
            | "ImageInspectError"
            | "RegistryUnavailable"
            | "SignatureValidationFailed",
        ) => Blocker::Image,
        Some("CreateContainerError" | "RunContainerError") => Blocker::Start,
        Some("CrashLoopBackOff") => Blocker::Crash,
        _ if failed(&container.state) || failed(&container.last_state) => Blocker::Crash,
        _ if state.is_some_and(|state| state.running.is_some()) => Blocker::NotReady,
        _ => Blocker::Starting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::ResourceVersion;
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
        let containers = [
            ("init", at("2026-11-30T12:00:01Z"), Activity::Done),
            ("app", at("2026-11-30T12:00:02Z"), Activity::Running),
            ("crashing", Started::NotYet, Activity::Waiting),
        ];
        let shown: Vec<_> = pod
            .containers
            .iter()
            .map(|container| (container.name.as_str(), container.started, container.activity))
            .collect();
        assert_eq!(shown, containers);
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

    fn with_status(status: Value) -> Pod {
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o", "controller": true});
        let managed = |time: &str, subresource: &str| {
            json!({"manager": "kubelet", "operation": "Update", "time": time, "subresource": subresource,
                "fieldsV1": {"f:status": {}}})
        };
        let metadata = json!({"name": "p", "namespace": "ns", "uid": "u", "ownerReferences": [owner],
            "creationTimestamp": "2026-11-30T12:00:00Z",
            "managedFields": [managed("2026-11-30T12:00:02Z", "status"), managed("2026-11-30T12:00:09Z", "")]});
        let containers = json!([{"name": "app", "image": "localhost/app:1"}, {"name": "side", "image": "side"}]);
        read(json!({"metadata": metadata, "spec": {"nodeName": "n", "containers": containers}, "status": status}))
            .unwrap()
    }

    fn shown(name: &str, rest: Value) -> Value {
        let mut container = json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0});
        container.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        container
    }

    #[test]
    fn it_knows_what_its_running_containers_run() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let id = format!("localhost/app@{digest}");
        let running = json!({"running": {"startedAt": "2026-11-30T12:00:01Z"}});
        let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let pod = with_status(json!({"containerStatuses": [
            shown("app", json!({"imageID": id, "state": running})),
            shown("side", json!({"imageID": format!("docker.io/library/side@{digest}"), "state": waiting})),
        ]}));
        let images: Vec<_> = pod.containers.iter().map(|container| container.image.clone()).collect();
        let image = RunningImage { text: "localhost/app:1".into(), digest: digest.as_str().into() };
        assert_eq!(images, [Some(image), None]);
        assert_eq!(pod.node, Some("n".into()));
    }

    #[test]
    fn it_knows_when_its_status_was_written() {
        assert_eq!(with_status(json!({})).status_written, Some("2026-11-30T12:00:02Z".parse().unwrap()));
    }

    fn waiting(reason: &str) -> Value {
        json!({"state": {"waiting": {"reason": reason, "message": "hunter2"}}})
    }

    #[rstest]
    #[case::an_image("ErrImagePull", Blocker::Image)]
    #[case::the_same_a_moment_later("ImagePullBackOff", Blocker::Image)]
    #[case::a_config("CreateContainerConfigError", Blocker::Config)]
    #[case::a_crash("CrashLoopBackOff", Blocker::Crash)]
    #[case::nothing_bad("ContainerCreating", Blocker::Starting)]
    #[case::something_new("Unheard", Blocker::Starting)]
    fn a_container_that_waits_blocks_its_pod(#[case] reason: &str, #[case] blocker: Blocker) {
        let ready = json!({"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-30T12:00:03Z"});
        let pod = with_status(json!({"conditions": [ready],
            "containerStatuses": [shown("app", waiting(reason)), shown("side", json!({"ready": true}))]}));
        let since = Some("2026-11-30T12:00:03Z".parse().unwrap());
        assert_eq!(pod.blocked, Some(Blocked { since, blocker, container: Some("app".into()) }));
    }

    #[test]
    fn one_that_ends_again_and_again_is_crashing_also_while_it_runs() {
        let running = json!({"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}});
        let pod = with_status(json!({"containerStatuses": [shown("app", running)]}));
        assert_eq!(pod.blocked.unwrap().blocker, Blocker::Crash);
    }

    #[test]
    fn one_that_no_node_takes_is_unschedulable() {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        assert_eq!(with_status(json!({"conditions": [condition]})).blocked.unwrap().blocker, Blocker::Unschedulable);
    }

    #[test]
    fn one_that_is_ready_is_not_blocked() {
        let pod = with_status(json!({"conditions": [{"type": "Ready", "status": "True"}]}));
        assert_eq!(pod.blocked, None);
    }

    #[test]
    fn texts_that_two_pods_have_are_in_memory_once() {
        let (mut one, other) = (with_status(json!({})), with_status(json!({})));
        assert!(!std::ptr::eq(one.owner.as_str(), other.owner.as_str()));
        one.share(&other);
        assert!(std::ptr::eq(one.owner.as_str(), other.owner.as_str()));
        assert_eq!(one, other);
    }
}
