//! Taking a workload into care.

use serde_json::Value;

use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT};
use crate::support::manifests::{config_map, deployment};
use crate::support::shared;

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
