//! When a workload rolls, how often, and when it does not.

use rstest::rstest;
use serde_json::Value;

use crate::support::kind::{CONFIG_MAP, DAEMON_SET, DEPLOYMENT, DRIFT_REPORT, Kind, POD, STATEFUL_SET};
use crate::support::manifests::{Workload, config_map, daemon_set, deployment, secret, stateful_set};
use crate::support::namespace::{Namespace, stamp_of_template, state};
use crate::support::{shared, shared_operator};

#[rstest]
#[case::deployment(DEPLOYMENT, deployment("w"))]
#[case::stateful_set(STATEFUL_SET, stateful_set("w"))]
#[case::daemon_set(DAEMON_SET, daemon_set("w"))]
#[tokio::test]
async fn one_change_rolls_each_kind_of_workload_once(#[case] kind: Kind, #[case] workload: Workload) {
    let ns = shared("once").await;
    ns.apply(&[config_map("c", &[("K", "1")]), workload.env_from_config_map("c").into()]);
    let history = ns.adopted(kind, "w").await;
    let before = names(&ns.pods("w").await);

    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(kind, "w", "").await;
    ns.operator_has_caught_up().await;

    assert_eq!(history.rollouts().await, 1);
    let uids = names(&ns.pods("w").await);
    assert!(uids.iter().all(|pod| !before.contains(pod)), "a pod from before the change is left");
}

#[tokio::test]
async fn events_and_metrics_say_what_rolled_and_why() {
    let ns = shared("said").await;
    ns.apply(&[
        secret("s", &[("LOG_LEVEL", "info"), ("OTHER", "1")]),
        config_map("c", &[("K", "1")]),
        deployment("w").env_from_secret("s").into(),
        deployment("v").env_from_secret("s").env_from_config_map("c").into(),
    ]);
    ns.adopted(DEPLOYMENT, "w").await;
    ns.adopted(DEPLOYMENT, "v").await;
    ns.apply(&[secret("s", &[("LOG_LEVEL", "debug"), ("OTHER", "1")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    ns.reloaded(DEPLOYMENT, "v", "").await;
    ns.operator_has_caught_up().await;

    let reloaded = ns.events(DEPLOYMENT, "w", "Reloaded").await;
    assert_eq!(reloaded, ["Reloading: key LOG_LEVEL of Secret s changed"]);
    let changed = ns.events(crate::support::kind::SECRET, "s", "ConfigChanged").await;
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert!(changed[0].contains("LOG_LEVEL") && changed[0].contains("2 workloads"), "{changed:?}");
    assert_eq!(ns.events(CONFIG_MAP, "c", "ConfigChanged").await, [""; 0]);
    let (_, metrics) = shared_operator().await.get("/metrics").unwrap();
    let ours: Vec<&str> = metrics.lines().filter(|line| line.contains(ns.name())).collect();
    let reloads =
        format!("restamp_reloads_total{{kind=\"Deployment\",namespace=\"{}\",result=\"stamped\"}}", ns.name());
    // Two here, and the one of the witness.
    assert!(ours.contains(&format!("{reloads} 3").as_str()), "{ours:#?}");
}

#[tokio::test]
async fn a_label_on_a_config_rolls_nothing() {
    let ns = shared("label").await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    ns.kubectl(&["label", "configmap", "c", "team=tools"]);
    ns.kubectl(&["annotate", "configmap", "c", "note=seen"]);
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 0);
}

#[tokio::test]
async fn a_key_that_nobody_reads_rolls_nothing() {
    let ns = shared("unread").await;
    ns.apply(&[config_map("c", &[("READ", "1")]), deployment("w").env_of_config_map("c", "READ").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&[config_map("c", &[("READ", "1"), ("UNREAD", "1")])]);
    ns.apply(&[config_map("c", &[("READ", "1"), ("UNREAD", "2")])]);
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 0);
}

#[tokio::test]
async fn a_missing_required_key_holds_the_rollout_until_it_is_there() {
    let ns = shared("held").await;
    let workload = deployment("w").env_of_config_map("c", "A").env_of_config_map("c", "B");
    ns.apply(&[config_map("c", &[("A", "1"), ("B", "1")]), workload.into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&[config_map("c", &[("A", "2")])]);
    ns.until(DRIFT_REPORT, "deployment-w", "to say that the rollout is held", |report| state(report) == "Held").await;
    assert_eq!(history.rollouts().await, 0);

    ns.apply(&[config_map("c", &[("A", "2"), ("B", "1")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn a_config_and_then_the_image_changed_together_roll_once() {
    let ns = shared("together").await;
    let workload = deployment("w").env_from_config_map("c");
    ns.apply(&[config_map("c", &[("K", "1")]), workload.clone().into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    let before = names(&ns.pods("w").await);

    ns.apply(&[config_map("c", &[("K", "2")]), workload.image("localhost/app:2").into()]);
    ns.operator_has_caught_up().await;

    until_none_is_left(&ns, before).await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn somebodys_rollout_whose_pods_read_the_change_is_waited_for() {
    let ns = shared("others").await;
    let workload = deployment("w").env_from_config_map("c");
    ns.apply(&[config_map("c", &[("K", "1")]), workload.clone().into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;

    // Its rollout goes no further than its first pod.
    ns.apply(&[config_map("c", &[("K", "2")]), workload.clone().image("localhost/bad:2").into()]);
    let waits = |report: &Value| report["status"]["reload"]["message"].as_str().unwrap_or_default().contains("rollout");
    ns.until(DRIFT_REPORT, "deployment-w", "to wait for the rollout in progress", waits).await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 1);

    ns.apply(&[workload.image("localhost/app:3").into()]);
    ns.adopted(DEPLOYMENT, "w").await;
    ns.operator_has_caught_up().await;
    let stamps: Vec<String> =
        history.changes().await.iter().map(|template| stamp_of_template(template).to_owned()).collect();
    assert_eq!(stamps, ["", ""]);
}

#[tokio::test]
async fn a_workload_that_somebody_writes_to_all_the_time_rolls_once() {
    let ns = shared("busy").await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    // The stamp is decided on a version that is not the present one any more, again and again.
    for number in 0..300 {
        ns.annotate(DEPLOYMENT, "w", &format!("note-{number}")).await;
    }
    ns.reloaded(DEPLOYMENT, "w", "").await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn old_pods_that_come_into_use_again_with_an_earlier_image_are_replaced() {
    let ns = shared("image-back").await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    ns.adopted(DEPLOYMENT, "w").await;
    let before = names(&ns.pods("w").await);

    // Its rollout stalls: the old pods go on.
    ns.kubectl(&["set", "image", "deployment/w", "app=localhost/bad:2"]);
    ns.until_all(POD, "to hold one that can't start", |pods| pods.iter().any(is_stuck)).await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.kubectl(&["set", "image", "deployment/w", "app=localhost/app:1"]);

    until_none_is_left(&ns, before).await;
    ns.adopted(DEPLOYMENT, "w").await;
}

#[tokio::test]
async fn old_pods_that_come_into_use_again_by_an_undo_are_replaced() {
    let ns = shared("undo").await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    ns.adopted(DEPLOYMENT, "w").await;
    let before = names(&ns.pods("w").await);

    ns.kubectl(&["set", "image", "deployment/w", "app=localhost/bad:2"]);
    ns.until_all(POD, "to hold one that can't start", |pods| pods.iter().any(is_stuck)).await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    // By then the stuck template carries a stamp, or not yet: both must end well.
    ns.kubectl(&["rollout", "undo", "deployment/w", "--to-revision=1"]);

    until_none_is_left(&ns, before).await;
}

#[tokio::test]
async fn pods_that_started_on_a_value_that_was_set_back_are_replaced() {
    let ns = shared("set-back").await;
    ns.apply(&[config_map("c", &[("K", "a")]), deployment("w").env_from_config_map("c").into()]);
    ns.adopted(DEPLOYMENT, "w").await;

    ns.apply(&[config_map("c", &[("K", "b")])]);
    ns.kubectl(&["rollout", "restart", "deployment/w"]);
    ns.rolled_out(DEPLOYMENT, "w").await;
    let on_b = names(&ns.pods("w").await);
    ns.apply(&[config_map("c", &[("K", "a")])]);

    until_none_is_left(&ns, on_b).await;
    ns.adopted(DEPLOYMENT, "w").await;
}

fn names(pods: &[Value]) -> Vec<String> {
    pods.iter().map(|pod| pod["metadata"]["uid"].as_str().unwrap().to_owned()).collect()
}

fn is_stuck(pod: &Value) -> bool {
    pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ErrImagePull"
}

/// Waits until none of these pods is there any more.
async fn until_none_is_left(ns: &Namespace, before: Vec<String>) {
    let gone = |pods: &[Value]| names(pods).iter().all(|pod| !before.contains(pod));
    ns.until_all(POD, "to be none of those from before", gone).await;
    ns.rolled_out(DEPLOYMENT, "w").await;
}
