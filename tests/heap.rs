//! What the index keeps of each object: a change that makes it a tenth more fails here.
//! In a process of its own, since every allocation is counted.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use restamp::model::config::{ConfigMapObject, SecretObject};
use restamp::model::digest::{HashKey, Keyring};
use restamp::model::index::{Event, Index, Object};
use restamp::model::names::{ConfigKind, WorkloadKind};
use restamp::model::pod::PodObject;
use restamp::model::policy::Policy;
use restamp::model::scope::Extent;
use restamp::model::watched::Watched;
use restamp::model::workload::Workload;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const OBJECTS: usize = 1_000;

/// What one object took when this was last looked at, in bytes.
const TODAY: [(&str, usize); 5] =
    [("Secret", 1020), ("Secret with one key", 627), ("ConfigMap", 1019), ("Deployment", 3676), ("Pod", 860)];

#[test]
fn no_object_takes_a_tenth_more_than_it_did() {
    let [secrets, config_maps] = [ConfigKind::Secret, ConfigKind::ConfigMap].map(Watched::Config);
    let [deployments, pods] = [WorkloadKind::Deployment, WorkloadKind::Pod].map(Watched::Workload);
    let taken = [
        taken(secrets, |number| read_secret(secret(number))),
        taken(secrets, |number| read_secret(certificate(number))),
        taken(config_maps, |number| {
            Object::Config(serde_json::from_value::<ConfigMapObject>(config_map(number)).unwrap().config)
        }),
        taken(deployments, |number| {
            let object: Deployment = serde_json::from_value(deployment(number)).unwrap();
            Object::Workload(Box::new(Workload::of_deployment(&object).unwrap()))
        }),
        taken(pods, |number| Object::Pod(serde_json::from_value::<PodObject>(pod(number)).unwrap().read().unwrap())),
    ];
    let mut wrong = Vec::new();
    for ((what, today), taken) in TODAY.iter().zip(taken) {
        let most = today + today / 10;
        println!("{taken} bytes for each {what}, at most {most}");
        if taken > most || taken < today - today / 10 {
            wrong.push(format!("{taken} bytes for each {what}, which was {today}"));
        }
    }
    assert!(wrong.is_empty(), "{}; look why, and where it is for the better, say so above", wrong.join(", "));
}

fn read_secret(object: Value) -> Object {
    Object::Config(serde_json::from_value::<SecretObject>(object).unwrap().config)
}

/// What the index keeps of each of these objects, in bytes.
fn taken(kind: Watched, object: impl Fn(usize) -> Object) -> usize {
    let _profiler = dhat::Profiler::builder().testing().trim_backtraces(Some(1)).build();
    let keyring = Arc::new(Keyring::new(HashKey::new("k1", [7; 32].into()), Vec::new()));
    let mut index = Index::new(keyring, Policy::default(), "restamp-system");
    let before = dhat::HeapStats::get().curr_bytes;
    index.apply(Event::ListBegins(kind, Extent::Cluster), Timestamp::UNIX_EPOCH);
    for number in 0..OBJECTS {
        index.apply(Event::Listed(kind, Extent::Cluster, object(number)), Timestamp::UNIX_EPOCH);
    }
    index.apply(Event::ListEnds(kind, Extent::Cluster), Timestamp::UNIX_EPOCH);
    (dhat::HeapStats::get().curr_bytes - before) / OBJECTS
}

/// As `kubectl apply` leaves it.
fn secret(number: usize) -> Value {
    let declared = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("credentials-{number}"), "namespace": format!("team-{}", number % 20)},
        "data": {"username": "YWRtaW4=", "password": "aHVudGVyMg==", "url": "aHR0cHM6Ly9leGFtcGxlLmNvbQ=="}});
    applied(&declared, number, &["username", "password", "url"])
}

fn config_map(number: usize) -> Value {
    let declared = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("settings-{number}"), "namespace": format!("team-{}", number % 20)},
        "data": {"LOG_LEVEL": "info", "REGION": "eu-central-1", "application.yaml": "server: {}"}});
    applied(&declared, number, &["LOG_LEVEL", "REGION", "application.yaml"])
}

fn applied(declared: &Value, number: usize, keys: &[&str]) -> Value {
    let mut object = declared.clone();
    let owned: serde_json::Map<String, Value> = keys.iter().map(|key| (format!("f:{key}"), json!({}))).collect();
    let metadata = object.get_mut("metadata").unwrap();
    let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": declared.to_string()});
    merge(
        metadata,
        &json!({"annotations": annotations, "managedFields": [{"manager": "kubectl-client-side-apply",
        "operation": "Update", "apiVersion": "v1", "time": "2026-11-30T12:00:00Z", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": owned}}]}),
    );
    merge(metadata, &identity(number));
    object
}

/// As a controller writes it.
fn certificate(number: usize) -> Value {
    let mut metadata = json!({"name": format!("certificate-{number}"), "namespace": format!("team-{}", number % 20),
        "managedFields": [{"manager": "controller", "operation": "Update", "apiVersion": "v1",
            "time": "2026-11-30T12:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:tls.crt": {}}}}]});
    merge(&mut metadata, &identity(number));
    json!({"metadata": metadata, "data": {"tls.crt": "AAAA"}})
}

fn identity(number: usize) -> Value {
    json!({"uid": format!("5f0f3c2e-0000-4000-8000-{number:012}"), "resourceVersion": format!("{number}"),
        "creationTimestamp": "2026-11-30T12:00:00Z"})
}

fn merge(object: &mut Value, more: &Value) {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
}

/// With a config of its own, applied by kubectl.
fn deployment(number: usize) -> Value {
    let name = format!("service-{number}");
    let mut declared = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": format!("team-{}", number % 20),
            "annotations": {"restamp.dev/auto-reload": "true"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "app", "image": "registry.example.com/team/service:1.2.3",
                "envFrom": [{"secretRef": {"name": format!("credentials-{number}")}}],
                "env": [{"name": "LEVEL", "valueFrom": {"configMapKeyRef":
                    {"name": format!("settings-{number}"), "key": "LOG_LEVEL"}}}],
                "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m"}}}]}}}});
    let text = declared.to_string();
    let metadata = declared.get_mut("metadata").unwrap();
    merge(
        metadata,
        &json!({"generation": 1, "annotations": {"restamp.dev/auto-reload": "true",
        "kubectl.kubernetes.io/last-applied-configuration": text}, "managedFields": [
        {"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "apps/v1",
            "time": "2026-11-30T12:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {},
            "f:template": {"f:spec": {"f:containers": {r#"k:{"name":"app"}"#: {"f:image": {}, "f:env": {}}}}}}}}]}),
    );
    merge(metadata, &identity(number));
    declared
}

/// With two containers, as of a Deployment of 50.
fn pod(number: usize) -> Value {
    let set = number / 50;
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("build-service-{set}-6d4cf56db6"),
        "uid": format!("5f0f3c2e-0000-4000-8000-{set:012}"), "controller": true});
    let image = "registry.example.com:5000/team-of-tools/build-service";
    let digest = format!("{image}@sha256:{set:064}");
    let container = |name: &str| json!({"name": name, "image": format!("{image}:2026-11-30")});
    let status = |name: &str| {
        json!({"name": name, "image": format!("{image}:2026-11-30"), "imageID": digest, "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-11-30T12:00:02Z"}}})
    };
    json!({
        "metadata": {"name": format!("build-service-{set}-6d4cf56db6-{number:05}"), "namespace": format!("team-{}", set % 20),
            "uid": format!("7a1d3c2e-0000-4000-8000-{number:012}"), "resourceVersion": format!("{number}"),
            "creationTimestamp": "2026-11-30T12:00:00Z", "ownerReferences": [owner],
            "annotations": {"restamp.dev/config-hash": format!("v1.k1.{set:064}.17")},
            "labels": {"app": "build-service", "pod-template-hash": "6d4cf56db6"},
            "managedFields": [{"manager": "kubelet", "operation": "Update", "subresource": "status",
                "time": "2026-11-30T12:00:03Z", "fieldsV1": {"f:status": {"f:phase": {}}}}]},
        "spec": {"nodeName": format!("ip-10-0-{}-{}.eu-central-1.compute.internal", number % 40, number % 7),
            "containers": [container("build-service"), container("proxy")]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [status("build-service"), status("proxy")]},
    })
}
