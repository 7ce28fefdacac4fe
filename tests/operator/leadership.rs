//! Several operators: one leads, the others stand by.

use crate::support::kind::DEPLOYMENT;
use crate::support::manifests::{config_map, deployment};
use crate::support::namespace::stamp;
use crate::support::turn;
use crate::support::waiting::{PATIENCE, poll};

#[tokio::test]
async fn a_standby_takes_over_from_a_leader_that_crashed_and_nothing_rolls_twice() {
    let turn = turn().await;
    let ns = turn.namespace("standby").await;
    let leader = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    let _standby = turn.standby(&[]).await;

    leader.kill();
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn a_leader_that_is_told_to_stop_hands_over_at_once() {
    let turn = turn().await;
    let ns = turn.namespace("handover").await;
    // Nobody would wait for this lease to run out.
    let lease = [("--lease-seconds", "3600")];
    let leader = turn.operator(&lease).await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    let _standby = turn.standby(&lease).await;

    leader.stop().await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn a_leader_that_slept_past_its_lease_leaves_the_work_to_the_next_one() {
    let turn = turn().await;
    let ns = turn.namespace("paused").await;
    let sleeper = turn.operator(&[]).await;
    let workloads: Vec<String> = (0..10).map(|number| format!("w-{number}")).collect();
    ns.apply(&[config_map("c", &[("K", "1")])]);
    let manifests: Vec<_> = workloads.iter().map(|name| deployment(name).env_from_config_map("c").into()).collect();
    ns.apply(&manifests);
    let mut histories = Vec::new();
    for name in &workloads {
        histories.push(ns.adopted(DEPLOYMENT, name).await);
    }
    let _standby = turn.standby(&[]).await;

    sleeper.pause();
    ns.apply(&[config_map("c", &[("K", "2")])]);
    let mut stamps = Vec::new();
    for name in &workloads {
        stamps.push(stamp(&ns.reloaded(DEPLOYMENT, name, "").await).to_owned());
    }
    // When it wakes, the first change is quiet for long, in its eyes, and nobody has told it that its lease is gone.
    ns.apply(&[config_map("c", &[("K", "3")])]);
    sleeper.resume();
    for (name, stamp) in workloads.iter().zip(&stamps) {
        ns.reloaded(DEPLOYMENT, name, stamp).await;
    }
    let told = poll(PATIENCE, async || sleeper.log().contains("no longer leading")).await;
    assert!(told.is_ok(), "it goes on leading; its log:\n{}", sleeper.log());
    ns.operator_has_caught_up().await;

    assert!(!sleeper.log().contains("\"message\":\"reload\""), "it wrote after it slept:\n{}", sleeper.log());
    for history in histories {
        assert_eq!(history.rollouts().await, 2);
    }
}
