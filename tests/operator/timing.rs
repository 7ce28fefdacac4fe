//! When a rollout comes: after a quiet time, not more often than its owner wants, and not while it would do harm.

use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT};
use crate::support::manifests::{config_map, deployment};
use crate::support::namespace::{stamp, state};
use crate::support::{shared, turn};
use serde_json::Value;

#[tokio::test]
async fn a_burst_over_many_configs_is_one_rollout() {
    let ns = shared("burst").await;
    let names: Vec<String> = (0..20).map(|number| format!("c-{number}")).collect();
    let workload = names.iter().fold(deployment("w"), |workload, name| workload.env_from_config_map(name));
    let configs = |value: &str| names.iter().map(|name| config_map(name, &[("K", value)])).collect::<Vec<Value>>();
    ns.apply(&configs("1"));
    ns.apply(&[workload.into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&configs("2"));
    ns.reloaded(DEPLOYMENT, "w", "").await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn the_least_time_between_two_rollouts_outlives_the_operator() {
    let turn = turn().await;
    let ns = turn.namespace("interval").await;
    let operator = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    ns.kubectl(&["annotate", "deployment", "w", "restamp.dev/min-interval=1h"]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    let first = stamp(&ns.reloaded(DEPLOYMENT, "w", "").await).to_owned();

    ns.apply(&[config_map("c", &[("K", "3")])]);
    let waits =
        |report: &Value| report["status"]["reload"]["message"].as_str().is_some_and(|it| it.contains("min-interval"));
    ns.until(DRIFT_REPORT, "deployment-w", "to wait for the interval", waits).await;
    operator.kill();
    let _operator = turn.operator(&[]).await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 1);

    ns.kubectl(&["annotate", "deployment", "w", "restamp.dev/min-interval-"]);
    ns.reloaded(DEPLOYMENT, "w", &first).await;
    assert_eq!(history.rollouts().await, 2);
}

#[tokio::test]
async fn a_hold_is_told_once_and_counted_while_it_lasts() {
    let turn = turn().await;
    let ns = turn.namespace("hold").await;
    let operator = turn.operator(&[]).await;
    let held = |many: usize| {
        let metric = format!("restamp_held_workloads{{reason=\"MissingReference\"}} {many}");
        operator.get("/metrics").unwrap().1.contains(&metric)
    };
    let workload = deployment("w").env_of_config_map("c", "A").env_of_config_map("c", "B");
    ns.apply(&[config_map("c", &[("A", "1"), ("B", "1")]), workload.into()]);
    ns.adopted(DEPLOYMENT, "w").await;
    assert!(held(0), "something is held already");

    for value in ["2", "3", "4"] {
        ns.apply(&[config_map("c", &[("A", value)])]);
        ns.operator_has_caught_up().await;
        ns.until(DRIFT_REPORT, "deployment-w", "to be held", |report| state(report) == "Held").await;
    }
    assert!(held(1), "{}", operator.get("/metrics").unwrap().1);
    let told = ns.events(DEPLOYMENT, "w", "ReloadHeld").await;
    assert!(matches!(told.as_slice(), [one] if one.contains("ConfigMap c") && one.contains('B')), "{told:?}");

    ns.apply(&[config_map("c", &[("A", "4"), ("B", "1")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    assert!(held(0), "{}", operator.get("/metrics").unwrap().1);
}
