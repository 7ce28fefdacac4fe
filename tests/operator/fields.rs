//! Drift of a workload's fields: what a hand changed is reported, and an apply mends it.

use std::collections::{BTreeMap, BTreeSet};

use restamp::model::fields::merge_keys::LISTS;
use restamp::model::fields::quantity::holds_quantities;
use serde_json::{Value, json};

use crate::support::cluster::{is_oldest, shared as shared_cluster};
use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT, EVENT};
use crate::support::manifests::{config_map, deployment};
use crate::support::turn;

const IMAGE: &str = "spec.template.spec.containers[app].image";

/// Like `deployment`, and not opted in.
fn unannotated(name: &str, image: &str) -> Value {
    let mut manifest = deployment(name).image(image).build();
    manifest["metadata"]["annotations"] = json!({});
    manifest
}

/// The findings of a report, as `type path manager`.
fn findings(report: &Value) -> Vec<String> {
    let findings = report["status"]["findings"].as_array().into_iter().flatten();
    let words =
        |finding: &Value| ["type", "path", "manager"].map(|field| finding[field].as_str().unwrap_or("-").to_owned());
    findings.map(|finding| words(finding).join(" ")).collect()
}

fn is_in_sync(report: &Value) -> bool {
    report["status"]["conditions"][0]["status"] == "True"
}

#[tokio::test]
async fn what_a_hand_changes_is_reported_and_an_apply_resolves_it() {
    let turn = turn().await;
    let ns = turn.namespace("fields").await;
    let operator = turn.operator(&[("--report-after", "0s")]).await;
    let manifests = |image: &str| {
        [deployment("annotated").image(image).build(), unannotated("plain", image), unannotated("applied", image)]
    };
    ns.apply(&manifests("localhost/app:1"));
    ns.adopted(DEPLOYMENT, "annotated").await;

    for name in ["deployment/annotated", "deployment/plain"] {
        ns.kubectl(&["set", "image", name, "app=localhost/app:2"]);
    }
    let marker = format!("marker-{}", ns.name());
    ns.kubectl(&["set", "env", "deployment/plain", &format!("EXTRA={marker}")]);
    let changed = format!("RevertsOnApply {IMAGE} kubectl-set");
    let added = "UndeclaredField spec.template.spec.containers[app].env[EXTRA] kubectl-set".to_owned();
    let report = ns
        .until(DRIFT_REPORT, "deployment-annotated", "to name the image", |report| {
            findings(report) == [changed.clone()]
        })
        .await;
    let finding = &report["status"]["findings"][0];
    assert_eq!((&finding["declared"], &finding["live"]), (&json!("localhost/app:1"), &json!("localhost/app:2")));
    assert_eq!(
        (&report["status"]["baseline"], &report["status"]["reload"]["state"]),
        (&json!("LastApplied"), &json!("Current"))
    );
    let both = [changed.clone(), added.clone()];
    ns.until(DRIFT_REPORT, "deployment-plain", "to name the image and the variable", |report| findings(report) == both)
        .await;

    // The next apply reverts the image, and leaves the variable, which it doesn't know.
    ns.apply(&manifests("localhost/app:1"));
    ns.until(DRIFT_REPORT, "deployment-annotated", "to be in sync", is_in_sync).await;
    ns.until(DRIFT_REPORT, "deployment-plain", "to name the variable alone", |report| {
        findings(report) == [added.clone()]
    })
    .await;
    ns.kubectl(&["set", "env", "deployment/plain", "EXTRA-"]);
    ns.until(DRIFT_REPORT, "deployment-plain", "to be in sync", is_in_sync).await;

    // An applier's own edit is what is declared from then on; and a restart is nobody's drift.
    ns.apply(&manifests("localhost/app:3"));
    ns.kubectl(&["rollout", "restart", "deployment/applied"]);
    ns.operator_has_caught_up().await;
    assert_eq!(ns.get(DRIFT_REPORT, "deployment-applied").await, None);
    let reports = ns.list(DRIFT_REPORT).await;
    assert_eq!(reports.iter().flat_map(findings).collect::<Vec<_>>(), [""; 0]);
    let said = [operator.log(), ns.kubectl(&["get", "events,drift", "--output=json"])].concat();
    assert!(!said.contains(&marker), "a value is in what was said");
}

#[tokio::test]
async fn an_ignored_finding_is_not_reported_and_a_typo_ignores_nothing() {
    let turn = turn().await;
    let ns = turn.namespace("ignored").await;
    let _operator = turn.operator(&[("--report-after", "0s")]).await;
    let ignoring = |what: &str| {
        let mut manifest = unannotated("w", "localhost/app:1");
        manifest["metadata"]["annotations"] = json!({"restamp.dev/ignore-findings": what});
        manifest
    };
    ns.apply(&[ignoring("RevertOnApply:spec.replicas")]);
    ns.kubectl(&["scale", "deployment/w", "--replicas=1"]);
    let report =
        ns.until(DRIFT_REPORT, "deployment-w", "to name replicas", |report| !findings(report).is_empty()).await;
    assert_eq!(findings(&report), ["RevertsOnApply spec.replicas kubectl"]);
    let note = report["status"]["notes"][0].as_str().unwrap();
    assert!(note.contains("restamp.dev/ignore-findings"), "{note}");
    let events = ns.events(DEPLOYMENT, "w", "InvalidAnnotation").await;
    assert_eq!(events, [note]);
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("reader").env_from_config_map("c").into()]);
    ns.kubectl(&["annotate", "configmap/c", "restamp.dev/ignore-findings=Stale"]);
    let is_told = |events: &[Value]| {
        events.iter().any(|event| event["reason"] == "InvalidAnnotation" && event["regarding"]["name"] == "c")
    };
    ns.until_all(EVENT, "to tell of the ConfigMap's annotation", is_told).await;

    ns.kubectl(&[
        "annotate",
        "deployment/w",
        "--overwrite",
        "restamp.dev/ignore-findings=RevertsOnApply:spec.replicas",
    ]);
    ns.until(DRIFT_REPORT, "deployment-w", "to be in sync", is_in_sync).await;
}

#[tokio::test]
async fn a_number_of_pods_that_an_autoscaler_sets_is_noted_and_no_drift() {
    let turn = turn().await;
    let ns = turn.namespace("autoscaled").await;
    let _operator = turn.operator(&[("--report-after", "0s")]).await;
    let autoscaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}, "minReplicas": 1, "maxReplicas": 3}});
    ns.apply(&[deployment("w").build(), autoscaler]);
    ns.adopted(DEPLOYMENT, "w").await;
    ns.kubectl(&["scale", "deployment/w", "--replicas=3"]);
    let says = |report: &Value, text: &str| {
        report["status"]["notes"].as_array().into_iter().flatten().any(|note| note.as_str().unwrap().contains(text))
    };
    let noted = |report: &Value| says(report, "HorizontalPodAutoscaler h scales it") && findings(report).is_empty();
    ns.until(DRIFT_REPORT, "deployment-w", "to note the autoscaler alone", noted).await;
    ns.operator_has_caught_up().await;
    assert_eq!(findings(&ns.get(DRIFT_REPORT, "deployment-w").await.unwrap()), [""; 0]);

    ns.kubectl(&["delete", "horizontalpodautoscaler/h"]);
    let found = |report: &Value| findings(report) == ["RevertsOnApply spec.replicas kubectl"];
    ns.until(DRIFT_REPORT, "deployment-w", "to name the number of pods", found).await;
}

/// What the API server publishes of the kinds of workloads.
#[derive(Default)]
struct Published {
    schemas: BTreeMap<String, Value>,
    lists: BTreeMap<String, BTreeSet<Vec<String>>>,
    quantities: BTreeSet<String>,
    others: BTreeSet<String>,
}

impl Published {
    fn read(&mut self, name: &str) {
        let Some(schema) = self.schemas.remove(name) else { return };
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let inner = [&property["additionalProperties"], &property["items"], property];
            let referred: Vec<String> = inner.into_iter().filter_map(referred).collect();
            let is_quantity = referred.iter().any(|name| name.ends_with(".Quantity"));
            if is_quantity { &mut self.quantities } else { &mut self.others }.insert(field.clone());
            if property["type"] == "array" {
                let mut keys: Vec<String> =
                    serde_json::from_value(property["x-kubernetes-list-map-keys"].clone()).unwrap_or_default();
                keys.sort();
                self.lists.entry(field.clone()).or_default().insert(keys);
            }
            referred.iter().for_each(|name| self.read(name));
        }
    }
}

/// The schema that a property refers to.
fn referred(property: &Value) -> Option<String> {
    let reference = property["$ref"].as_str().or_else(|| property["allOf"][0]["$ref"].as_str())?;
    reference.rsplit('/').next().map(str::to_owned)
}

#[tokio::test]
async fn lists_are_compared_by_the_keys_that_the_api_server_publishes() {
    let mut published = Published::default();
    for (group, kinds) in
        [("apps", &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"][..]), ("batch", &["CronJob", "Job"])]
    {
        let text = shared_cluster().kubectl(&["get", "--raw", &format!("/openapi/v3/apis/{group}/v1")]);
        let openapi: Value = serde_json::from_str(&text).unwrap();
        published.schemas = serde_json::from_value(openapi["components"]["schemas"].clone()).unwrap();
        kinds.iter().for_each(|kind| published.read(&format!("io.k8s.api.{group}.v1.{kind}Spec")));
    }
    let keyed = |keys: &BTreeSet<Vec<String>>| keys.iter().any(|keys| !keys.is_empty());
    let lists = published.lists.iter().filter(|(_, keys)| keyed(keys));
    // One list of each name, so that the name alone says which keys it has.
    let lists: Vec<(&str, Vec<Vec<String>>)> =
        lists.map(|(name, keys)| (name.as_str(), keys.iter().cloned().collect())).collect();
    let ours: Vec<(&str, Vec<Vec<String>>)> =
        LISTS.iter().map(|(name, keys)| (*name, vec![keys.iter().map(|key| (*key).to_owned()).collect()])).collect();
    if is_oldest() {
        // It lacks some, and has none that we don't know.
        assert!(lists.len() > 10 && lists.iter().all(|list| ours.contains(list)), "{lists:?}\n{ours:?}");
    } else {
        assert_eq!(lists, ours);
    }

    assert!(published.quantities.iter().all(|field| holds_quantities(field)), "{:?}", published.quantities);
    let other: Vec<&String> = published.others.iter().filter(|field| holds_quantities(field)).collect();
    assert!(other.is_empty(), "{other:?}");
}

#[tokio::test]
async fn a_report_says_who_must_mend_its_subject() {
    let turn = turn().await;
    let ns = turn.namespace("source").await;
    let _operator = turn.operator(&[("--report-after", "0s")]).await;
    let mut manifest = unannotated("w", "localhost/app:1");
    manifest["metadata"]["labels"] =
        json!({"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
    ns.apply(&[manifest]);
    ns.kubectl(&["set", "image", "deployment/w", "app=localhost/app:2"]);
    let source = json!({"kind": "Kustomization", "namespace": "flux-system", "name": "apps"});
    ns.until(DRIFT_REPORT, "deployment-w", "to name its source", |report| report["status"]["source"] == source).await;
    let shown = ns.kubectl(&["get", "drift", "deployment-w", "-o", "wide", "--no-headers"]);
    assert!(shown.contains(" apps "), "{shown}");
}
