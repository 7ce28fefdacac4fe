//! What namespaces say: the default for their workloads, and that they go away.

use serde_json::Value;

use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT, EVENT};
use crate::support::manifests::{Workload, config_map, deployment};
use crate::support::namespace::{Namespace, stamp, state};
use crate::support::{shared, shared_operator, turn};

const ANNOTATION: &str = "restamp.dev/auto-reload";

/// Without an annotation of its own.
fn silent(workload: Workload) -> Value {
    let mut manifest = workload.build();
    manifest["metadata"].as_object_mut().unwrap().remove("annotations");
    manifest
}

fn annotate(ns: &Namespace, annotation: &str) {
    ns.kubectl(&["annotate", "namespace", ns.name(), "--overwrite", annotation]);
}

#[tokio::test]
async fn a_namespaces_annotation_opts_its_workloads_in_and_out_at_once() {
    let ns = shared("default").await;
    ns.apply(&[config_map("c", &[("K", "1")]), silent(deployment("w").env_from_config_map("c"))]);
    ns.rolled_out(DEPLOYMENT, "w").await;
    ns.operator_has_caught_up().await;
    assert_eq!(ns.get(DRIFT_REPORT, "deployment-w").await, None);

    annotate(&ns, &format!("{ANNOTATION}=true"));
    let history = ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    assert_eq!(history.rollouts().await, 1);

    annotate(&ns, &format!("{ANNOTATION}-"));
    ns.until_all(DRIFT_REPORT, "to be the witness's", |reports| {
        reports.iter().all(|report| report["metadata"]["name"] != "deployment-w")
    })
    .await;
    ns.apply(&[config_map("c", &[("K", "3")])]);
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn a_namespaces_annotation_that_does_not_parse_is_an_event_and_takes_nobodys_opt_in() {
    let ns = shared("invalid").await;
    annotate(&ns, &format!("{ANNOTATION}=true"));
    ns.apply(&[config_map("c", &[("K", "1")]), silent(deployment("w").env_from_config_map("c"))]);
    ns.adopted(DEPLOYMENT, "w").await;
    annotate(&ns, &format!("{ANNOTATION}=yes"));
    let about = |event: &Value| event["regarding"]["kind"] == "Namespace" && event["reason"] == "InvalidAnnotation";
    let events = ns.until_all(EVENT, "to tell", |events| events.iter().any(about)).await;
    let notes: Vec<&Value> = events.iter().filter(|event| about(event)).map(|event| &event["note"]).collect();
    assert!(notes[0].as_str().unwrap().contains("\"yes\""), "{notes:?}");
    let (_, metrics) = shared_operator().await.get("/metrics").unwrap();
    assert!(metrics.contains(r#"restamp_invalid_annotations_total{annotation="restamp.dev/auto-reload"}"#));

    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
}

#[tokio::test]
async fn a_rollout_is_held_while_the_namespace_is_being_deleted() {
    let turn = turn().await;
    let ns = turn.namespace("deleted").await;
    let operator = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    ns.adopted(DEPLOYMENT, "w").await;

    // So that the namespace stays as it is, on its way out.
    turn.cluster().kill("kube-controller-manager");
    ns.kubectl(&["delete", "namespace", ns.name(), "--wait=false"]);
    ns.kubectl(&["patch", "configmap", "c", r#"--patch={"data":{"K":"2"}}"#]);
    let report = ns.until(DRIFT_REPORT, "deployment-w", "to be held", |report| state(report) == "Held").await;
    assert_eq!(report["status"]["reload"]["message"], "its namespace is being deleted");
    assert_eq!(stamp(&ns.get(DEPLOYMENT, "w").await.unwrap()), "");
    let (_, metrics) = operator.get("/metrics").unwrap();
    assert!(metrics.contains("restamp_held_workloads{reason=\"NamespaceBeingDeleted\"} 1\n"), "{metrics}");
    turn.cluster().restart("kube-controller-manager");
}
