//! What the index keeps of a pod fits into the memory that it may take. In a process of its own, since that is measured.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::fs;
use std::sync::Arc;

use jiff::Timestamp;
use restamp::model::digest::{HashKey, Keyring};
use restamp::model::index::{Event, Index, Object};
use restamp::model::names::WorkloadKind;
use restamp::model::pod::{Pod, PodObject};
use restamp::model::policy::Policy;
use restamp::model::scope::Extent;
use restamp::model::watched::Watched;
use serde_json::json;

const PODS: usize = 10_000;
const MOST_BYTES: usize = 1536;

/// A pod with two containers, as of a Deployment of 50.
fn pod(number: usize) -> Pod {
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
    let object = json!({
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
    });
    serde_json::from_value::<PodObject>(object).unwrap().read().unwrap()
}

/// The bytes that this process has in memory.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[test]
fn ten_thousand_pods_take_no_more_than_15_mib() {
    let keyring = Arc::new(Keyring::new(HashKey::new("k1", [7; 32].into()), Vec::new()));
    let mut index = Index::new(keyring, Policy::default(), "restamp-system");
    let kind = Watched::Workload(WorkloadKind::Pod);
    // What parsing needs is there from the first pod on.
    drop(pod(0));
    let before = resident();
    for number in 0..PODS {
        let listed = Event::Listed(kind, Extent::Cluster, Object::Pod(pod(number)));
        index.apply(listed, Timestamp::UNIX_EPOCH);
    }
    let each = resident().saturating_sub(before) / PODS;
    println!("{each} bytes for a pod");
    assert!(each > 0 && each <= MOST_BYTES, "{each} bytes for a pod");
    drop(index);
}
