//! The main job, step by step, as `make demo` plays it.

use serde_json::{Value, json};

use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT, SECRET};
use crate::support::manifests::{config_map, deployment, secret};
use crate::support::namespace::stamp;
use crate::support::{shared, shared_operator, turn};

/// What the Secret of the scenario holds from the first to the last.
pub const KEPT: [(&str, &str); 6] = [
    ("REGISTRY_URL", "https://registry.example"),
    ("REGISTRY_TOKEN", "t-1"),
    ("LOG_LEVEL", "info"),
    ("BUILD_WORKERS", "4"),
    ("CACHE_BUCKET", "build-cache"),
    ("NOTIFY_CHANNEL", "builds"),
];
/// What is deleted from its manifest.
pub const REMOVED: [(&str, &str); 6] = [
    ("BUILD_MATRIX_DEFAULT", "a"),
    ("BUILD_MATRIX_MAIN", "b"),
    ("BUILD_MATRIX_RELEASE", "c"),
    ("BUILD_SERVICE_KEY", "k-1"),
    ("DEBUG_MODE", "true"),
    ("LEGACY_ACCESS_TOKEN", "l-1"),
];

#[tokio::test]
async fn stale_keys_are_reported_a_changed_value_rolls_once_and_removing_them_resolves_it() {
    let ns = shared("tools").await;
    let workload = build_service();
    let twelve = [KEPT, REMOVED].concat();
    ns.apply(&[secret("build-service-secrets", &twelve), workload]);
    let history = ns.adopted(DEPLOYMENT, "build-service").await;

    // Six keys are deleted from the manifest: kubectl says so, and they stay.
    let said = ns.apply(&[secret("build-service-secrets", &KEPT)]);
    assert_eq!(said, "secret/build-service-secrets configured\n");
    ns.kubectl(&["rollout", "restart", "deployment/build-service"]);
    ns.rolled_out(DEPLOYMENT, "build-service").await;
    let live = ns.get(SECRET, "build-service-secrets").await.unwrap();
    assert_eq!(live["data"].as_object().unwrap().len(), 12);

    let report = ns.until(DRIFT_REPORT, "secret-build-service-secrets", "to name stale keys", is_drifted).await;
    assert_eq!(report["status"]["staleKeys"], json!(REMOVED.map(|(key, _)| key)));
    for (finding, (key, _)) in report["status"]["findings"].as_array().unwrap().iter().zip(REMOVED) {
        assert_eq!(finding["type"], "StaleKey");
        assert_eq!(finding["key"], key);
        assert_eq!(finding["cause"], "LeftByApply");
        assert_eq!(finding["manager"], "kubectl-client-side-apply");
        let consumer = json!({
            "workload": "Deployment/build-service", "container": "build-service-node", "via": "envFrom", "as": key,
            "refresh": "AtStart",
        });
        assert_eq!(finding["consumers"], json!([consumer]));
    }
    let gauge =
        format!("restamp_stale_keys{{kind=\"Secret\",name=\"build-service-secrets\",namespace=\"{}\"}} 6\n", ns.name());
    assert!(shared_operator().await.get("/metrics").unwrap().1.contains(&gauge));
    // The restart is not ours, and nothing else rolled.
    assert_eq!(history.rollouts().await, 1);

    let mut changed = KEPT;
    changed[2].1 = "debug";
    ns.apply(&[secret("build-service-secrets", &changed)]);
    let workload = ns.reloaded(DEPLOYMENT, "build-service", "").await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 2);
    let events = ns.events(DEPLOYMENT, "build-service", "Reloaded").await;
    assert_eq!(events, ["Reloading: key LOG_LEVEL of Secret build-service-secrets changed"]);

    let patch = without_the_removed();
    ns.kubectl(&["patch", "secret", "build-service-secrets", "--type=json", "--patch", &patch]);
    ns.reloaded(DEPLOYMENT, "build-service", stamp(&workload)).await;
    ns.kubectl(&["wait", "--for=condition=InSync", "drift/secret-build-service-secrets", "--timeout=60s"]);
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 3);
    let report = ns.get(DRIFT_REPORT, "secret-build-service-secrets").await.unwrap();
    assert_eq!(report["status"]["findings"], Value::Null);
    assert!(!shared_operator().await.get("/metrics").unwrap().1.contains(&gauge));
}

#[tokio::test]
async fn a_resolved_report_goes_after_a_while() {
    let turn = turn().await;
    let ns = turn.namespace("resolved").await;
    let _operator = turn.operator(&[("--keep-resolved", "2s")]).await;
    ns.apply(&[
        secret("s", &[("KEPT", "1"), ("REMOVED", "1")]),
        config_map("c", &[("K", "1")]),
        deployment("w").env_from_secret("s").env_from_config_map("c").into(),
    ]);
    ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&[secret("s", &[("KEPT", "1")])]);
    ns.until(DRIFT_REPORT, "secret-s", "to name a stale key", is_drifted).await;
    ns.kubectl(&["patch", "secret", "s", "--type=json", "--patch", r#"[{"op":"remove","path":"/data/REMOVED"}]"#]);

    let only_the_workload = |reports: &[Value]| {
        let names = reports.iter().map(|report| report["metadata"]["name"].as_str().unwrap());
        names.eq(["deployment-w"])
    };
    ns.until_all(DRIFT_REPORT, "to be only the workload's", only_the_workload).await;
}

/// The workload that reads it.
pub fn build_service() -> Value {
    let mut workload: Value = deployment("build-service").env_from_secret("build-service-secrets").build();
    workload["spec"]["template"]["spec"]["containers"][0]["name"] = json!("build-service-node");
    workload
}

/// The JSON patch that removes them from the live Secret.
pub fn without_the_removed() -> String {
    json!(REMOVED.map(|(key, _)| json!({"op": "remove", "path": format!("/data/{key}")}))).to_string()
}

pub fn is_drifted(report: &Value) -> bool {
    report["status"]["conditions"][0]["status"] == "False"
}
