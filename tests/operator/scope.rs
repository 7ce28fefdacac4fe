//! Which part of the cluster is watched: flags, and what comes into scope and goes out of it.

use serde_json::Value;

use crate::support::cluster::Cluster;
use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT};
use crate::support::manifests::{config_map, deployment};
use crate::support::namespace::{Namespace, stamp};
use crate::support::turn;

fn workload_and_config(value: &str) -> [Value; 2] {
    [config_map("c", &[("K", value)]), deployment("w").env_from_config_map("c").into()]
}

fn change(ns: &Namespace, value: &str) {
    ns.apply(&[config_map("c", &[("K", value)])]);
}

async fn stamp_in(ns: &Namespace) -> String {
    stamp(&ns.get(DEPLOYMENT, "w").await.unwrap()).to_owned()
}

#[tokio::test]
async fn a_namespace_that_gains_the_labels_is_picked_up_and_one_that_loses_them_is_dropped_at_once() {
    let turn = turn().await;
    let [witness, ns] = [turn.namespace("witness").await, turn.namespace("labelled").await];
    let label = |ns: &Namespace, label: &str| ns.kubectl(&["label", "namespace", ns.name(), label]);
    label(&witness, "restamp.test/team=x");
    let operator = turn.operator(&[("--namespace-selector", "restamp.test/team=x")]).await;
    ns.apply(&workload_and_config("1"));
    ns.rolled_out(DEPLOYMENT, "w").await;
    change(&ns, "2");
    witness.operator_has_caught_up().await;
    assert_eq!((stamp_in(&ns).await.as_str(), ns.list(DRIFT_REPORT).await.len()), ("", 0));

    label(&ns, "restamp.test/team=x");
    let history = ns.adopted(DEPLOYMENT, "w").await;
    change(&ns, "3");
    ns.reloaded(DEPLOYMENT, "w", "").await;
    assert_eq!(history.rollouts().await, 1);

    label(&ns, "restamp.test/team-");
    label(&witness, "restamp.test/other=y");
    witness.operator_has_caught_up().await;
    let before = stamp_in(&ns).await;
    change(&ns, "4");
    witness.operator_has_caught_up().await;
    assert_eq!(stamp_in(&ns).await, before);
    // What changed meanwhile is caught, as after a restart.
    label(&ns, "restamp.test/team=x");
    ns.reloaded(DEPLOYMENT, "w", &before).await;
    assert_eq!(history.rollouts().await, 2);
    assert!(!operator.log().contains("watch fails"), "{}", operator.log());
}

#[tokio::test]
async fn excluded_namespaces_are_left_alone() {
    let turn = turn().await;
    let [witness, ns] = [turn.namespace("witness").await, turn.namespace("excluded").await];
    let _operator = turn.operator(&[("--exclude-namespace", ns.name())]).await;
    ns.apply(&workload_and_config("1"));
    ns.rolled_out(DEPLOYMENT, "w").await;
    change(&ns, "2");
    witness.operator_has_caught_up().await;
    assert_eq!((stamp_in(&ns).await.as_str(), ns.list(DRIFT_REPORT).await.len()), ("", 0));
}

#[tokio::test]
async fn named_namespaces_are_watched_with_roles_alone() {
    let turn = turn().await;
    let [one, other, out] = [turn.namespace("one").await, turn.namespace("other").await, turn.namespace("out").await];
    let account = &format!("roles-of-{}", one.name());
    grant_roles(turn.cluster(), account, &[&one, &other]);
    let operator = turn.operator_as(account, &[("--namespace", one.name()), ("--namespace", other.name())]).await;
    for ns in [&one, &other, &out] {
        ns.apply(&workload_and_config("1"));
    }
    out.rolled_out(DEPLOYMENT, "w").await;
    for ns in [&one, &other] {
        ns.adopted(DEPLOYMENT, "w").await;
        change(ns, "2");
    }
    change(&out, "2");
    for ns in [&one, &other] {
        ns.reloaded(DEPLOYMENT, "w", "").await;
    }
    one.operator_has_caught_up().await;
    assert_eq!(stamp_in(&out).await, "");

    let (_, metrics) = operator.get("/metrics").unwrap();
    assert!(metrics.contains("restamp_watch_synced{kind=\"Secret\"} 1\n"), "{metrics}");
    assert!(!metrics.contains("kind=\"Namespace\""), "{metrics}");
    assert!(!operator.log().to_lowercase().contains("forbidden"), "{}", operator.log());
}

#[tokio::test]
async fn a_config_without_the_labels_rolls_nothing_and_keeps_nothing_waiting() {
    let turn = turn().await;
    let ns = turn.namespace("configs").await;
    let _operator = turn.operator(&[("--config-selector", "restamp.test/roll")]).await;
    ns.apply(&workload_and_config("1"));
    ns.apply(&[
        config_map("unlabelled", &[("K", "1")]),
        deployment("both").env_from_config_map("c").env_from_config_map("unlabelled").into(),
    ]);
    ns.kubectl(&["label", "configmap", "c", "restamp.test/roll=yes"]);
    let history = ns.adopted(DEPLOYMENT, "both").await;
    ns.apply(&[config_map("unlabelled", &[("K", "2")])]);
    let seen = ns.adopted(DEPLOYMENT, "w").await;
    change(&ns, "2");
    ns.reloaded(DEPLOYMENT, "w", "").await;
    ns.reloaded(DEPLOYMENT, "both", "").await;
    assert_eq!((history.rollouts().await, seen.rollouts().await), (1, 1));
}

/// Gives an account what `docs/scope.md` says that `--namespace` needs, and no more.
pub fn grant_roles(cluster: &Cluster, account: &str, namespaces: &[&Namespace]) {
    grant_own_namespace(cluster, account);
    for ns in namespaces {
        grant_role(cluster, account, ns, "roles", &[]);
    }
}

/// Makes an account, with what it needs in the operator's own namespace.
pub fn grant_own_namespace(cluster: &Cluster, account: &str) {
    cluster.kubectl(&["create", "serviceaccount", account, "--namespace=restamp-system"]);
    let subject = format!("--serviceaccount=restamp-system:{account}");
    cluster.kubectl(&["create", "rolebinding", account, "--role=restamp", &subject, "--namespace=restamp-system"]);
}

/// Gives an account what the chart has in this template with these values, in one namespace.
pub fn grant_role(cluster: &Cluster, account: &str, ns: &Namespace, template: &str, values: &[&str]) {
    let account = format!("serviceAccount.name={account}");
    let namespace = format!("run.namespace={{{}}}", ns.name());
    let role = cluster.rendered(template, &[&[account.as_str(), &namespace], values].concat());
    ns.kubectl_reading(&role, &["apply", "--filename=-"]);
}
