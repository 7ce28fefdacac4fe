//! Others who write the same objects: no fight, and no rollout that they did not cause themselves.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT};
use crate::support::manifests::{Workload, config_map, deployment};
use crate::support::namespace::{Namespace, stamp, state};
use crate::support::waiting::poll;
use crate::support::{shared, turn};

/// A workload that reads ConfigMap `c`.
fn reader() -> Workload {
    deployment("w").env_from_config_map("c")
}

async fn reloaded_once(ns: &Namespace) -> crate::support::history::History {
    ns.apply(&[config_map("c", &[("K", "1")]), config_map("d", &[("K", "1")]), reader().into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    history
}

#[tokio::test]
async fn the_same_manifest_applied_again_rolls_nothing() {
    let ns = shared("again").await;
    let history = reloaded_once(&ns).await;
    let manifest: Value = reader().into();
    ns.apply(std::slice::from_ref(&manifest));
    ns.kubectl_reading(&manifest.to_string(), &["apply", "--server-side", "--force-conflicts", "--filename=-"]);
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn a_replace_that_takes_the_stamp_away_is_a_rollout_of_its_own_and_the_only_one() {
    let ns = shared("replace").await;
    let history = reloaded_once(&ns).await;
    let manifest: Value = reader().into();
    ns.kubectl_reading(&manifest.to_string(), &["replace", "--filename=-"]);
    ns.operator_has_caught_up().await;
    ns.rolled_out(DEPLOYMENT, "w").await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 2);
}

#[tokio::test]
async fn an_edit_that_makes_the_template_read_another_config_is_one_rollout() {
    let ns = shared("edited").await;
    let history = reloaded_once(&ns).await;
    ns.apply(&[reader().env_from_config_map("d").into()]);
    ns.operator_has_caught_up().await;
    ns.rolled_out(DEPLOYMENT, "w").await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 2);
    ns.apply(&[config_map("d", &[("K", "2")])]);
    ns.until(DEPLOYMENT, "w", "to be rolled for the other config", |workload| {
        workload["metadata"]["generation"].as_i64() == Some(4)
    })
    .await;
}

#[tokio::test]
async fn a_workload_that_is_deleted_and_made_again_is_another_one() {
    let ns = shared("remade").await;
    let history = reloaded_once(&ns).await;
    drop(history);
    ns.kubectl(&["delete", "deployment", "w"]);
    ns.apply(&[reader().into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 0);
    ns.apply(&[config_map("c", &[("K", "3")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn an_undo_to_a_revision_before_the_opt_in_is_told() {
    let ns = shared("undone").await;
    let mut before: Value = reader().into();
    before["metadata"]["annotations"] = json!({});
    ns.apply(&[config_map("c", &[("K", "1")]), before]);
    ns.rolled_out(DEPLOYMENT, "w").await;
    ns.apply(&[reader().image("localhost/app:2").into()]);
    ns.adopted(DEPLOYMENT, "w").await;

    ns.kubectl(&["rollout", "undo", "deployment/w"]);
    let mut told = Vec::new();
    let found = poll(Duration::from_secs(60), async || {
        told = ns.events(DEPLOYMENT, "w", "OptInGone").await;
        !told.is_empty()
    });
    assert!(found.await.is_ok(), "there is no Event");
    assert!(told[0].contains("undo"), "{told:?}");
}

#[tokio::test]
async fn whoever_strips_the_stamp_again_and_again_is_told_and_left_alone() {
    let turn = turn().await;
    let ns = turn.namespace("stripped").await;
    let operator = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), reader().into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    // So that the self-heal is faster than any rollout.
    ns.kubectl(&["rollout", "pause", "deployment/w"]);
    ns.apply(&[config_map("c", &[("K", "2")])]);

    // A self-heal: what the manifest does not have goes.
    let mut stamps = Vec::new();
    let heals = poll(Duration::from_secs(120), async || {
        let workload = ns.get(DEPLOYMENT, "w").await.unwrap();
        if !stamp(&workload).is_empty() {
            stamps.push(stamp(&workload).to_owned());
            let patch = json!({"spec": {"template": {"metadata": {"annotations": {"restamp.dev/config-hash": null}}}}});
            ns.kubectl(&[
                "patch",
                "deployment",
                "w",
                "--type=merge",
                "--field-manager=argocd-controller",
                "--patch",
                &patch.to_string(),
            ]);
        }
        ns.get(DRIFT_REPORT, "deployment-w").await.is_some_and(|report| state(&report) == "Held")
    });
    assert!(heals.await.is_ok(), "it goes on after {} stamps:\n{}", stamps.len(), operator.log());
    assert_eq!(stamps.len(), 3, "{stamps:?}");
    let held = ns.events(DEPLOYMENT, "w", "ReloadHeld").await;
    assert_eq!(held.len(), 1, "{held:?}");
    let report = ns.get(DRIFT_REPORT, "deployment-w").await.unwrap();
    let message = report["status"]["reload"]["message"].to_string();
    assert!(message.contains("again and again"), "{message}");
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 6);
}
