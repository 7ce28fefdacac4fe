//! What the reports say about running pods. The statuses of pods are written as a kubelet does.

use serde_json::{Value, json};

use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT};
use crate::support::manifests::{config_map, deployment};
use crate::support::namespace::Namespace;
use crate::support::operator::Operator;
use crate::support::{Turn, turn};

const REPORT: &str = "deployment-w";

async fn at_once(turn: &Turn) -> Operator {
    turn.operator(&[("--report-after", "0s")]).await
}

/// The finding of this type.
pub fn finding<'a>(report: &'a Value, of_type: &str) -> Option<&'a Value> {
    report["status"]["findings"].as_array()?.iter().find(|finding| finding["type"] == of_type)
}

async fn until_said(ns: &Namespace, of_type: &str) -> Value {
    let report = ns.until(DRIFT_REPORT, REPORT, of_type, |report| finding(report, of_type).is_some()).await;
    finding(&report, of_type).unwrap().clone()
}

async fn until_nothing_is_said(ns: &Namespace) -> Value {
    ns.until(DRIFT_REPORT, REPORT, "to have no findings", |report| report["status"]["findings"].is_null()).await
}

#[tokio::test]
async fn pods_of_a_paused_deployment_are_outdated_until_it_is_resumed() {
    let turn = turn().await;
    let ns = turn.namespace("paused").await;
    let _operator = at_once(&turn).await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    ns.adopted(DEPLOYMENT, "w").await;

    // A rollout of our own is no drift: the condition never changed.
    let before = ns.get(DRIFT_REPORT, REPORT).await.unwrap();
    ns.apply(&[config_map("c", &[("K", "2")])]);
    let workload = ns.reloaded(DEPLOYMENT, "w", "").await;
    let after = ns.get(DRIFT_REPORT, REPORT).await.unwrap();
    assert_eq!(after["status"]["conditions"], before["status"]["conditions"]);

    ns.kubectl(&["rollout", "pause", "deployment/w"]);
    ns.apply(&[config_map("c", &[("K", "3")])]);
    let outdated = until_said(&ns, "OutdatedPods").await;
    assert_eq!(
        (&outdated["object"], &outdated["certainty"], &outdated["pods"]),
        (&json!("ConfigMap/c"), &json!("Certain"), &json!(2))
    );
    let message = outdated["message"].as_str().unwrap();
    assert!(message.starts_with("key K of ConfigMap c changed; it is paused"), "{message}");

    ns.kubectl(&["rollout", "resume", "deployment/w"]);
    ns.reloaded(DEPLOYMENT, "w", crate::support::namespace::stamp(&workload)).await;
    until_nothing_is_said(&ns).await;
}

#[tokio::test]
async fn a_rollout_of_ours_that_stalls_is_said_with_its_cause_until_it_goes_on() {
    let turn = turn().await;
    let ns = turn.namespace("stalled").await;
    let _operator = at_once(&turn).await;
    let mut workload = deployment("w").env_from_config_map("c").build();
    workload["spec"]["progressDeadlineSeconds"] = json!(2);
    ns.apply(&[config_map("c", &[("K", "1")]), workload]);
    ns.adopted(DEPLOYMENT, "w").await;

    // No pod more than these two.
    ns.kubectl(&["create", "quota", "two", "--hard=pods=2"]);
    let quota =
        crate::support::kind::Kind { group: "", version: "v1", name: "ResourceQuota", plural: "resourcequotas" };
    ns.until(quota, "two", "to count", |quota| quota["status"]["used"]["pods"] == "2").await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    let stalled = until_said(&ns, "RolloutStalled").await;
    let message = stalled["message"].as_str().unwrap();
    assert!(message.contains("restamp began this rollout: key K of ConfigMap c changed"), "{message}");
    let outdated = until_said(&ns, "OutdatedPods").await;
    assert_eq!((&outdated["certainty"], &outdated["pods"]), (&json!("Certain"), &json!(2)));

    ns.kubectl(&["delete", "quota", "two"]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    until_nothing_is_said(&ns).await;
}

#[tokio::test]
async fn a_rollout_that_a_pod_blocks_names_the_pod_and_why() {
    let turn = turn().await;
    let ns = turn.namespace("blocked").await;
    let _operator = at_once(&turn).await;
    let mut workload = deployment("w").build();
    workload["spec"]["progressDeadlineSeconds"] = json!(2);
    let mut apply = |image: &str| {
        workload["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        ns.apply(std::slice::from_ref(&workload))
    };
    apply("localhost/app:1");
    ns.rolled_out(DEPLOYMENT, "w").await;
    apply("localhost/bad:2");
    let stalled = until_said(&ns, "RolloutStalled").await;
    let new = ns.pods("w").await.into_iter().find(|pod| pod["spec"]["containers"][0]["image"] == "localhost/bad:2");
    let name = new.unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
    let message = stalled["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("container app of pod {name} can't start, since its image")), "{message}");

    apply("localhost/app:3");
    until_nothing_is_said(&ns).await;
}

#[tokio::test]
async fn two_digests_under_one_tag_are_said_until_the_pods_agree() {
    let turn = turn().await;
    let ns = turn.namespace("mixed").await;
    let _operator = at_once(&turn).await;
    ns.apply(&[deployment("w").into()]);
    ns.rolled_out(DEPLOYMENT, "w").await;
    let pod = ns.pods("w").await.remove(0);
    let other = format!("sha256:{}", "b".repeat(64));
    run(&ns, &pod, &format!("localhost/app@{other}"));
    let mixed = until_said(&ns, "MixedDigests").await;
    assert_eq!(mixed["container"], "app");
    let digests = mixed["digests"].as_array().unwrap();
    assert!(digests.len() == 2 && digests.contains(&json!({"digest": other, "pods": 1})), "{digests:?}");

    let before = pod["status"]["containerStatuses"][0]["imageID"].as_str().unwrap();
    run(&ns, &pod, before);
    until_nothing_is_said(&ns).await;
}

/// Has this pod's container run another image.
fn run(ns: &Namespace, pod: &Value, image_id: &str) {
    let mut status = pod["status"]["containerStatuses"][0].clone();
    status["imageID"] = json!(image_id);
    let patch = json!({"status": {"containerStatuses": [status]}}).to_string();
    let name = pod["metadata"]["name"].as_str().unwrap();
    ns.kubectl(&["patch", "pod", name, "--subresource=status", "--type=strategic", "--patch", &patch]);
}
