//! Whatever stands in image references and imageIDs: nothing panics, and what is broken yields no finding.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use jiff::Timestamp;
use proptest::prelude::*;
use restamp::model::autoscaler::Autoscaling;
use restamp::model::config::Configs;
use restamp::model::drift::{Drift, WorkloadSight, drift_of_workload};
use restamp::model::managers::Managers;
use restamp::model::pod::{Pod, PodObject};
use restamp::model::revision::OwnPods;
use restamp::model::workload::Workload;
use serde_json::{Value, json};

const WHOLE: &str = "localhost/app@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const OTHER: &str = "localhost/app@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn pod(asked: &str, image_id: &str) -> Pod {
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "w", "uid": "u", "controller": true});
    let status = json!({"name": "app", "image": "", "imageID": image_id, "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": "2026-11-30T12:00:00Z"}}});
    let object = json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "p", "ownerReferences": [owner],
            "labels": {"controller-revision-hash": "h"}},
        "spec": {"nodeName": "n", "containers": [{"name": "app", "image": asked}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    });
    serde_json::from_value::<PodObject>(object).unwrap().read().unwrap()
}

/// What is said of two pods on one node that were asked for this, and run that.
fn drift(template: &str, asked: [&str; 2], image_ids: [&str; 2]) -> Drift {
    let object: Value = json!({
        "metadata": {"name": "w", "namespace": "ns", "uid": "u", "generation": 1},
        "spec": {"serviceName": "w", "replicas": 2, "selector": {},
            "template": {"spec": {"containers": [{"name": "app", "image": template}]}}},
        "status": {"replicas": 2, "updateRevision": "h", "currentRevision": "h", "observedGeneration": 1},
    });
    let workload = Workload::of_stateful_set(&serde_json::from_value(object).unwrap()).unwrap();
    let pods = [pod(asked[0], image_ids[0]), pod(asked[1], image_ids[1])];
    let pods = pods.each_ref();
    let own_pods = OwnPods { workload: &workload, pods: &pods, replica_set: None };
    let configs = Configs::default();
    drift_of_workload(&WorkloadSight {
        managers: &Managers::default(),
        autoscaling: Autoscaling::Off,
        workload: &workload,
        configs: &configs,
        own_pods,
        reloading: None,
        now: Timestamp::UNIX_EPOCH,
    })
}

/// Nearly an image with a digest, and any text at all; none has a whole one.
fn broken() -> impl Strategy<Value = String> {
    let nearly = "(docker-pullable://|docker://)?[a-zA-Z.:/_ -]{0,12}@?(sha256:)?[0-9a-fA-F]{0,63}";
    prop_oneof!["(?s).*", nearly]
}

#[test]
fn whole_ones_have_findings() {
    let tag = "localhost/app:1";
    assert_eq!(drift(tag, [tag, tag], [WHOLE, OTHER]).findings.len(), 1);
    assert_eq!(drift(WHOLE, [WHOLE, WHOLE], [WHOLE, OTHER]).findings.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_broken_image_id_yields_no_finding(image_id in broken(), other in broken()) {
        for template in ["localhost/app:1", WHOLE] {
            for image_ids in [[WHOLE, image_id.as_str()], [image_id.as_str(), other.as_str()]] {
                let drift = drift(template, [template, template], image_ids);
                prop_assert!(drift.findings.is_empty(), "{drift:?}");
            }
        }
    }

    #[test]
    fn nor_does_a_broken_reference(asked in "(?s).*[ A-Z@\u{0}].*") {
        let drift = drift(&asked, [&asked, &asked], [WHOLE, OTHER]);
        prop_assert!(drift.findings.is_empty(), "{drift:?}");
    }
}
