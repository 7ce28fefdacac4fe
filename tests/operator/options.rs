//! What the flags of `restamp run` change.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT, EVENT, STATEFUL_SET};
use crate::support::manifests::{config_map, deployment, secret, stateful_set};
use crate::support::namespace::stamp;
use crate::support::turn;
use crate::support::waiting::{PATIENCE, poll};

#[tokio::test]
async fn a_dry_run_says_what_it_would_do_and_leaves_it_to_be_done() {
    let turn = turn().await;
    let ns = turn.namespace("dry-run").await;
    let operator = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    operator.stop().await;

    let dry = turn.operator(&[("--dry-run", "")]).await;
    let record = async || ns.get(DRIFT_REPORT, "deployment-w").await.unwrap()["status"]["reload"].clone();
    let before = record().await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.until_all(EVENT, "to tell of a dry run", |events| events.iter().any(|event| event["reason"] == "WouldReload"))
        .await;
    let said = ns.events(DEPLOYMENT, "w", "WouldReload").await;
    assert_eq!(said, ["Would reload, were this not a dry run: key K of ConfigMap c changed"]);
    assert_eq!(history.rollouts().await, 0);
    let is_outdated = |report: &Value| report["status"]["findings"][0]["type"] == "OutdatedPods";
    ns.until(DRIFT_REPORT, "deployment-w", "to say that its pods are outdated", is_outdated).await;
    assert_eq!(record().await, before);
    dry.stop().await;

    let _operator = turn.operator(&[]).await;
    ns.reloaded(DEPLOYMENT, "w", "").await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn the_change_cause_is_written_on_request_where_nobody_else_owns_it() {
    let turn = turn().await;
    let ns = turn.namespace("change-cause").await;
    let _operator = turn.operator(&[("--change-cause", "")]).await;
    let policy = |values: &[&str]| {
        let policy = turn.cluster().rendered("policy-operator", values);
        turn.cluster().kubectl_reading(&policy, &["apply", "--filename=-"]);
    };
    ns.apply(&[
        config_map("c", &[("K", "1")]),
        deployment("free").env_from_config_map("c").into(),
        deployment("owned").env_from_config_map("c").into(),
    ]);
    ns.kubectl(&["annotate", "deployment/owned", "kubernetes.io/change-cause=version 1"]);
    let history = ns.adopted(DEPLOYMENT, "free").await;
    ns.adopted(DEPLOYMENT, "owned").await;

    ns.apply(&[config_map("c", &[("K", "2")])]);
    let free = ns.reloaded(DEPLOYMENT, "free", "").await;
    let owned = ns.reloaded(DEPLOYMENT, "owned", "").await;
    let cause =
        |workload: &serde_json::Value| workload["metadata"]["annotations"]["kubernetes.io/change-cause"].clone();
    // The policy for its account does not let it, and the stamp is what matters.
    assert_eq!((cause(&free), cause(&owned)), (Value::Null, json!("version 1")));
    assert_eq!(history.rollouts().await, 1);

    policy(&["run.changeCause=true"]);
    let is_allowed = async || {
        let (cluster, patch) =
            (turn.cluster(), r#"{"metadata": {"annotations": {"kubernetes.io/change-cause": "x"}}}"#);
        let patch = ["patch", "deployment", "free", "-n", ns.name(), "--patch", patch, "--dry-run=server"];
        cluster.kubectl_with(&cluster.kubeconfig_of("restamp"), &patch, "").status.success()
    };
    assert!(poll(PATIENCE, is_allowed).await.is_ok());
    ns.apply(&[config_map("c", &[("K", "3")])]);
    let free = ns.reloaded(DEPLOYMENT, "free", stamp(&free)).await;
    let owned = ns.reloaded(DEPLOYMENT, "owned", stamp(&owned)).await;
    assert_eq!(cause(&free), "restamp: key K of ConfigMap c changed");
    assert_eq!(cause(&owned), "version 1");
    assert_eq!(history.rollouts().await, 2);
    policy(&[]);
}

#[tokio::test]
async fn catching_up_rolls_what_started_before_its_config_was_written() {
    let turn = turn().await;
    let ns = turn.namespace("catch-up").await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    ns.rolled_out(DEPLOYMENT, "w").await;
    let started = Timestamp::now();
    // Both times are to the second.
    let later = async || Timestamp::now().as_second() > started.as_second();
    poll(PATIENCE, later).await.unwrap();
    ns.apply(&[config_map("c", &[("K", "2")])]);

    let _operator = turn.operator(&[("--adopt", "catch-up")]).await;
    ns.reloaded(DEPLOYMENT, "w", "").await;
}

#[tokio::test]
async fn an_optional_config_that_comes_and_goes_rolls_as_the_flags_say() {
    let turn = turn().await;
    let ns = turn.namespace("optional").await;
    let ignoring = turn.operator(&[("--on-create", "ignore")]).await;
    let mut workload = deployment("w").env_from_config_map("c").build();
    workload["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["optional"] = json!(true);
    ns.apply(&[workload]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&[config_map("c", &[("K", "1")])]);
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 0, "it came, which is ignored");
    ns.apply(&[config_map("c", &[("K", "2")])]);
    let workload = ns.reloaded(DEPLOYMENT, "w", "").await;
    ignoring.stop().await;

    let _rolling = turn.operator(&[("--on-delete", "roll")]).await;
    ns.kubectl(&["delete", "configmap", "c"]);
    ns.reloaded(DEPLOYMENT, "w", stamp(&workload)).await;
    assert_eq!(history.rollouts().await, 2);
}

#[tokio::test]
async fn every_workload_takes_part_but_for_kinds_that_are_ignored_of_workload_and_of_config() {
    let turn = turn().await;
    let ns = turn.namespace("all").await;
    let ignored = [("--ignore-workload-kind", "StatefulSet"), ("--ignore-config-kind", "Secret")];
    let operator = turn.operator(&[&[("--auto-reload-all", "")], ignored.as_slice()].concat()).await;
    let silent = |manifest: serde_json::Value| {
        let mut manifest = manifest;
        manifest["metadata"].as_object_mut().unwrap().remove("annotations");
        manifest
    };
    let [of_secret, of_both, set] = [
        deployment("of-secret"),
        deployment("of-both").env_from_config_map("c"),
        stateful_set("set").env_from_config_map("c"),
    ];
    ns.apply(&[
        config_map("c", &[("K", "1")]),
        secret("s", &[("K", "1")]),
        silent(of_secret.env_from_secret("s").build()),
        silent(of_both.env_from_secret("s").build()),
        silent(set.build()),
    ]);
    let [of_secret, of_both] = [ns.adopted(DEPLOYMENT, "of-secret").await, ns.adopted(DEPLOYMENT, "of-both").await];
    ns.rolled_out(STATEFUL_SET, "set").await;
    ns.apply(&[config_map("c", &[("K", "2")]), secret("s", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "of-both", "").await;
    ns.operator_has_caught_up().await;
    assert_eq!((of_secret.rollouts().await, of_both.rollouts().await), (0, 1));
    assert_eq!(ns.events(DEPLOYMENT, "of-both", "Reloaded").await, ["Reloading: key K of ConfigMap c changed"]);
    assert_eq!(stamp(&ns.get(STATEFUL_SET, "set").await.unwrap()), "");
    // What its pods read is reported all the same.
    let report = ns.get(DRIFT_REPORT, "statefulset-set").await.unwrap_or_default();
    assert!(report["status"]["reload"].is_null(), "{report:#}");
    assert!(!operator.get("/metrics").unwrap().1.contains("kind=\"Secret\""));
}
