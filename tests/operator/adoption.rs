//! Taking a workload into care.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::support::cluster::Cluster;
use crate::support::kind::{CONFIG_MAP, DEPLOYMENT, DRIFT_REPORT, POD};
use crate::support::manifests::{config_map, deployment};
use crate::support::namespace::{Namespace, stamp, state};
use crate::support::operator::Operator;
use crate::support::waiting::{PATIENCE, poll};
use crate::support::{Flag, Turn, shared, turn};

/// A workload that was never rolled, and one that was.
async fn two_adopted(ns: &Namespace) {
    ns.apply(&[
        config_map("c", &[("K", "1")]),
        config_map("d", &[("K", "1")]),
        deployment("untouched").env_from_config_map("c").into(),
        deployment("rolled").env_from_config_map("d").into(),
    ]);
    ns.adopted(DEPLOYMENT, "untouched").await;
    ns.adopted(DEPLOYMENT, "rolled").await;
    ns.apply(&[config_map("d", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "rolled", "").await;
}

/// How often this operator adopted a workload for this reason; other tests leave workloads on the same cluster.
fn adoptions(operator: &Operator, reason: &str) -> u64 {
    let metrics = operator.get("/metrics").unwrap().1;
    let name = format!("restamp_adoptions_total{{reason=\"{reason}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
}

/// The Events that tell of a record which was there before.
async fn adopted_anew(ns: &Namespace, name: &str) -> Vec<String> {
    ns.events(DEPLOYMENT, name, "AdoptedAnew").await
}

/// Shows that a change still rolls the workload, once.
async fn a_change_rolls(ns: &Namespace, name: &str, config: &str, value: &str) {
    let before = stamp(&ns.get(DEPLOYMENT, name).await.unwrap()).to_owned();
    let history = ns.adopted(DEPLOYMENT, name).await;
    ns.apply(&[config_map(config, &[("K", value)])]);
    ns.reloaded(DEPLOYMENT, name, &before).await;
    assert_eq!(history.rollouts().await, 1);
}

/// Writes into the status of a report, as somebody might.
fn patch_report(ns: &Namespace, report: &str, operations: &Value) {
    let patch = operations.to_string();
    ns.kubectl(&["patch", "driftreport", report, "--subresource=status", "--type=json", "--patch", &patch]);
}

#[tokio::test]
async fn adoption_rolls_nothing_and_leaves_the_workload_untouched() {
    let ns = shared("adoption").await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    ns.operator_has_caught_up().await;

    assert_eq!(history.rollouts().await, 0);
    let workload = ns.get(DEPLOYMENT, "w").await.unwrap();
    assert_eq!(workload["metadata"]["generation"], 1);
    let writers = workload["metadata"]["managedFields"].as_array().unwrap();
    assert!(writers.iter().all(|writer| writer["manager"] != "restamp"), "{writers:#?}");
}

#[tokio::test]
async fn a_report_says_that_a_workload_is_watched() {
    let ns = shared("watched").await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    ns.adopted(DEPLOYMENT, "w").await;

    let report = ns.get(DRIFT_REPORT, "deployment-w").await.unwrap();
    assert_eq!(report["spec"]["subject"]["kind"], "Deployment");
    let reload = &report["status"]["reload"];
    assert_eq!(reload["instance"], "restamp-system");
    let configs: Vec<&Value> =
        reload["record"]["entries"].as_array().unwrap().iter().map(|entry| &entry["config"]).collect();
    assert_eq!(configs, ["ConfigMap/c"]);
}

#[tokio::test]
async fn a_workload_made_before_its_config_is_not_rolled_when_it_comes() {
    let ns = shared("before").await;
    ns.apply(&[deployment("together").env_from_config_map("c").into(), config_map("c", &[("K", "1")])]);
    ns.apply(&[deployment("later").env_from_config_map("d").into()]);
    let together = ns.adopted(DEPLOYMENT, "together").await;
    let later = ns.adopted(DEPLOYMENT, "later").await;
    ns.apply(&[config_map("d", &[("K", "1")])]);
    ns.operator_has_caught_up().await;

    assert_eq!((together.rollouts().await, later.rollouts().await), (0, 0));
    assert_eq!(ns.get(DEPLOYMENT, "together").await.unwrap()["metadata"]["generation"], 1);
}

#[tokio::test]
async fn a_config_that_changes_as_soon_as_pods_have_started_is_a_change() {
    let ns = shared("at-once").await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    let have_nodes = |pods: &[Value]| pods.len() == 2 && pods.iter().all(|pod| pod["spec"]["nodeName"].is_string());
    ns.until_all(POD, "to have nodes", have_nodes).await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    ns.operator_has_caught_up().await;
    assert_eq!(ns.events(DEPLOYMENT, "w", "Reloaded").await.len(), 1);
}

#[tokio::test]
async fn a_config_that_is_deleted_and_made_again_rolls_only_if_its_content_is_another_one() {
    let ns = shared("made-again").await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    ns.kubectl(&["delete", "configmap", "c"]);
    ns.apply(&[config_map("c", &[("K", "1")])]);
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 0);
    ns.kubectl(&["delete", "configmap", "c"]);
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 0);
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn a_report_that_is_deleted_while_the_operator_runs_is_written_again_with_its_record() {
    let ns = shared("deleted").await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    let record = |report: &Value| report["status"]["reload"]["record"].clone();
    let before = record(&ns.get(DRIFT_REPORT, "deployment-w").await.unwrap());
    ns.kubectl(&["delete", "driftreport", "deployment-w"]);
    ns.until(DRIFT_REPORT, "deployment-w", "to have its record", |report| record(report) == before).await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    assert_eq!(history.rollouts().await, 1);
    assert_eq!(adopted_anew(&ns, "w").await, [""; 0]);
}

#[tokio::test]
async fn reports_that_are_deleted_while_the_operator_is_away_roll_nothing_and_are_told_of() {
    let turn = turn().await;
    let ns = turn.namespace("no-reports").await;
    let operator = turn.operator(&[]).await;
    two_adopted(&ns).await;
    operator.stop().await;
    ns.kubectl(&["delete", "driftreports", "--all"]);
    ns.apply(&[config_map("d", &[("K", "3")])]);

    let operator = turn.operator(&[]).await;
    let [untouched, rolled] = [ns.adopted(DEPLOYMENT, "untouched").await, ns.adopted(DEPLOYMENT, "rolled").await];
    ns.operator_has_caught_up().await;
    assert_eq!((untouched.rollouts().await, rolled.rollouts().await), (0, 0));
    assert!(adoptions(&operator, "RecordGone") >= 1);
    assert!(adoptions(&operator, "FirstSight") >= 2, "the other one, and the witness");
    assert_eq!(adopted_anew(&ns, "untouched").await, [""; 0]);
    // The pods are the witnesses: what was written since they started is named, where it may be told by the second.
    let said = adopted_anew(&ns, "rolled").await;
    assert!(said.len() == 1 && said[0].contains("has no DriftReport"), "{said:?}");
    a_change_rolls(&ns, "rolled", "d", "4").await;
}

#[tokio::test]
async fn a_rotated_hash_key_rolls_nothing_and_misses_nothing() {
    let turn = turn().await;
    let ns = turn.namespace("rotated").await;
    let operator = turn.operator(&[]).await;
    two_adopted(&ns).await;
    let [untouched, rolled] = [ns.adopted(DEPLOYMENT, "untouched").await, ns.adopted(DEPLOYMENT, "rolled").await];
    operator.stop().await;
    let [id, key] = [b"rotated".as_slice(), &[7; 32]].map(|bytes| BASE64_STANDARD.encode(bytes));
    patch_hash_key(turn.cluster(), &json!({"data": {"current": id, "rotated": key}}));
    ns.apply(&[config_map("c", &[("K", "2")])]);

    let _operator = turn.operator(&[]).await;
    ns.reloaded(DEPLOYMENT, "untouched", "").await;
    ns.operator_has_caught_up().await;
    assert_eq!((untouched.rollouts().await, rolled.rollouts().await), (1, 0));
    for name in ["untouched", "rolled"] {
        assert_eq!(adopted_anew(&ns, name).await, [""; 0]);
    }
    let digest = |report: &Value| report["status"]["reload"]["record"]["entries"][0]["digest"].to_string();
    let renewed = |report: &Value| digest(report).contains(":rotated:");
    ns.until(DRIFT_REPORT, "deployment-rolled", "to have a digest by the new key", renewed).await;
}

#[tokio::test]
async fn a_lost_hash_key_rolls_nothing_and_is_told_of_once_for_each_workload() {
    let turn = turn().await;
    let ns = turn.namespace("lost-key").await;
    let operator = turn.operator(&[]).await;
    two_adopted(&ns).await;
    let [untouched, rolled] = [ns.adopted(DEPLOYMENT, "untouched").await, ns.adopted(DEPLOYMENT, "rolled").await];
    operator.stop().await;
    turn.cluster().kubectl(&["delete", "secret", "restamp-hash-key", "--namespace=restamp-system"]);

    let operator = turn.operator(&[]).await;
    ns.operator_has_caught_up().await;
    assert_eq!((untouched.rollouts().await, rolled.rollouts().await), (0, 0));
    for name in ["untouched", "rolled"] {
        let said = adopted_anew(&ns, name).await;
        assert!(said.len() == 1 && said[0].contains("Secret restamp-hash-key"), "{said:?}");
    }
    assert!(adoptions(&operator, "HashKeyLost") >= 2);
    a_change_rolls(&ns, "untouched", "c", "3").await;
}

#[tokio::test]
async fn a_record_of_another_algorithm_or_one_that_cannot_be_read_rolls_nothing_and_is_told_of() {
    let turn = turn().await;
    let ns = turn.namespace("foreign").await;
    let operator = turn.operator(&[]).await;
    two_adopted(&ns).await;
    let [untouched, rolled] = [ns.adopted(DEPLOYMENT, "untouched").await, ns.adopted(DEPLOYMENT, "rolled").await];
    operator.stop().await;
    let replace = |path: &str, value: &str| json!([{"op": "replace", "path": path, "value": value}]);
    let entry = "/status/reload/record/entries/0";
    patch_report(&ns, "deployment-untouched", &replace(&format!("{entry}/digest"), "blake3:k:abc"));
    patch_report(&ns, "deployment-rolled", &replace(&format!("{entry}/config"), "Gadget/of-a-later-version"));

    let operator = turn.operator(&[]).await;
    ns.operator_has_caught_up().await;
    assert_eq!((untouched.rollouts().await, rolled.rollouts().await), (0, 0));
    assert!(adoptions(&operator, "OtherAlgorithm") >= 1 && adoptions(&operator, "RecordUnreadable") >= 1);
    assert_eq!((adopted_anew(&ns, "untouched").await.len(), adopted_anew(&ns, "rolled").await.len()), (1, 1));
    a_change_rolls(&ns, "untouched", "c", "3").await;
    a_change_rolls(&ns, "rolled", "d", "3").await;
}

#[tokio::test]
async fn a_second_installation_leaves_the_workloads_of_the_first_one_alone() {
    let turn = turn().await;
    let [ns, own] = [turn.namespace("shared").await, turn.namespace("second").await];
    let first = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    let second = second_installation(&turn, &own, &[]).await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    let workload = ns.reloaded(DEPLOYMENT, "w", "").await;
    let held = "restamp_held_workloads{reason=\"OtherInstance\"} ";
    let leaves_it = async || {
        let metrics = second.get("/metrics").unwrap().1;
        metrics.lines().any(|line| line.strip_prefix(held).is_some_and(|count| count != "0"))
    };
    assert!(poll(PATIENCE, leaves_it).await.is_ok(), "{}", second.log());
    assert_eq!(history.rollouts().await, 1);

    // Also while the first one is away; not even what the second one can't read is taken for its own.
    first.stop().await;
    let state_path = json!([{"op": "replace", "path": "/status/reload/record/entries/0/config", "value": "Gadget/x"}]);
    patch_report(&ns, "deployment-w", &state_path);
    ns.apply(&[config_map("c", &[("K", "3")])]);
    own.operator_has_caught_up().await;
    assert_eq!(stamp(&ns.get(DEPLOYMENT, "w").await.unwrap()), stamp(&workload));
    let report = ns.get(DRIFT_REPORT, "deployment-w").await.unwrap();
    assert_eq!(report["status"]["reload"]["instance"], "restamp-system");
    assert_eq!(ns.get(CONFIG_MAP, "c").await.unwrap()["data"]["K"], "3");
    assert_ne!(state(&report), "");
}

fn patch_hash_key(cluster: &Cluster, patch: &Value) {
    let patch = patch.to_string();
    cluster.kubectl(&["patch", "secret", "restamp-hash-key", "--namespace=restamp-system", "--patch", &patch]);
}

/// Another operator on the same cluster, with a namespace of its own for its Lease and its key.
pub async fn second_installation(turn: &Turn, own: &Namespace, flags: &[Flag<'_>]) -> Operator {
    for kind in ["role", "rolebinding"] {
        let arguments = ["get", kind, "restamp", "--namespace=restamp-system", "--output=json"];
        let mut object: Value = serde_json::from_str(&turn.cluster().kubectl(&arguments)).unwrap();
        object["metadata"] = json!({"name": "restamp"});
        own.apply(&[object]);
    }
    turn.operator(&[&[("--own-namespace", own.name())], flags].concat()).await
}
