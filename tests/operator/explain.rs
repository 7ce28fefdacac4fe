//! `restamp explain` of what an operator really does: why nothing happens where nothing happens.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::cluster::{Cluster, Installed, install_yaml};
use crate::support::kind::DEPLOYMENT;
use crate::support::manifests::{config_map, deployment, secret};
use crate::support::operator::{Operator, restamp};
use crate::support::turn;
use crate::support::waiting::{PATIENCE, poll};

/// What it says to whoever has this kubeconfig, as JSON.
pub fn explain_as(kubeconfig: &Path, object: &str, namespace: &str) -> Value {
    let mut command = restamp(&["explain", object, "--namespace", namespace, "--output", "json"]);
    let output = command.env("KUBECONFIG", kubeconfig).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What it says to the administrator.
pub fn explain(cluster: &Cluster, object: &str, namespace: &str) -> Value {
    explain_as(&cluster.kubeconfig(), object, namespace)
}

/// The reasons of its remarks about the operator.
fn remarks(explained: &Value) -> Vec<String> {
    let remarks = explained["operator"]["remarks"].as_array().unwrap();
    remarks.iter().map(|remark| remark["reason"].as_str().unwrap().to_owned()).collect()
}

async fn until_remarks_are(cluster: &Cluster, expected: &[&str]) -> Value {
    let mut last = Value::Null;
    let found = poll(PATIENCE, async || {
        last = explain(cluster, "deploy/w", "default");
        remarks(&last) == expected
    });
    assert!(found.await.is_ok(), "waited for {expected:?}: {:#}", last["operator"]);
    last
}

/// Gives the operator the rights that are installed, or these without one resource.
fn grant(cluster: &Cluster, without: &str) {
    let before = install_yaml(|kind| kind == "ClusterRole");
    let rbac = before.replace(&format!("  - configmaps\n  - {without}\n  - pods\n"), "  - configmaps\n  - pods\n");
    assert_eq!(without.is_empty(), rbac == before);
    cluster.kubectl_reading(&rbac, &["apply", "--filename=-"]);
}

fn apply(cluster: &Cluster, manifests: &[Value]) {
    let text: Vec<String> = manifests.iter().map(Value::to_string).collect();
    cluster.kubectl_reading(&text.join("\n---\n"), &["apply", "--filename=-"]);
}

/// Proves that a right that is lacking from the start, or is lost later, and an operator that is stopped, are told.
#[tokio::test]
async fn a_lacking_right_is_told_until_it_is_there_and_so_is_an_operator_that_stops() {
    let cluster = Cluster::start_without_nodes(Installed::Everything);
    apply(&cluster, &[secret("s", &[("K", "1")]), deployment("w").env_from_secret("s").into()]);
    let never = explain(&cluster, "deploy/w", "default");
    assert_eq!((remarks(&never), &never["operator"]["running"]), (vec!["NotInstalled".to_owned()], &json!("No")));

    grant(&cluster, "secrets");
    let operator = Operator::spawn(&cluster, &["--settle", "1s", "--log", "restamp=debug"]);
    let lacking = until_remarks_are(&cluster, &["NotRead"]).await;
    let message = lacking["operator"]["remarks"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("it may not read objects of kind Secret; grant its ServiceAccount"), "{message}");
    assert_eq!((&lacking["rolls"], &lacking["operator"]["running"]), (&json!("Yes"), &json!("Yes")));

    grant(&cluster, "");
    let operator = operator.ready().await;
    until_remarks_are(&cluster, &[]).await;
    let current = async || explain(&cluster, "deploy/w", "default")["reload"]["state"] == "Current";
    assert!(poll(PATIENCE, current).await.is_ok(), "{}", operator.log());

    // A watch lives on until it ends, so the API server ends it.
    grant(&cluster, "secrets");
    cluster.restart("kube-apiserver");
    until_remarks_are(&cluster, &["NotRead"]).await;
    assert!(operator.get("/metrics").unwrap().1.contains("restamp_watch_failing{kind=\"Secret\"} 1\n"));
    grant(&cluster, "");
    apply(&cluster, &[secret("s", &[("K", "2")])]);
    until_remarks_are(&cluster, &[]).await;
    assert!(operator.get("/metrics").unwrap().1.contains("restamp_watch_failing{kind=\"Secret\"} 0\n"));

    operator.stop().await;
    let stopped = until_remarks_are(&cluster, &["NotRunning"]).await;
    assert_eq!(stopped["operator"]["running"], "No");
}

/// Proves what somebody without rights of his own gets to know, and what is unknown to him where the operator's
/// installation does not let him look.
#[tokio::test]
async fn whoever_may_not_look_is_told_what_is_unknown() {
    let cluster = Cluster::start_without_nodes(Installed::Everything);
    apply(&cluster, &[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    cluster.kubectl(&["create", "serviceaccount", "asker", "--namespace=restamp-system"]);
    let subject = "--serviceaccount=restamp-system:asker";
    let resources = "--resource=deployments.apps,configmaps,secrets,driftreports.restamp.dev";
    cluster.kubectl(&["create", "role", "asker", "--verb=get,list", resources]);
    cluster.kubectl(&["create", "rolebinding", "asker", "--role=asker", subject]);
    let _operator = Operator::start(&cluster, &["--settle", "1s"]).await;
    until_remarks_are(&cluster, &[]).await;

    let asker = cluster.kubeconfig_of("asker");
    let allowed = explain_as(&asker, "deploy/w", "default");
    assert_eq!((remarks(&allowed), &allowed["operator"]["version"]), (vec![], &json!(env!("CARGO_PKG_VERSION"))));

    let annotate = |version: &str| {
        let annotation = format!("restamp.dev/version={version}");
        cluster.kubectl(&["annotate", "--overwrite", "crd/driftreports.restamp.dev", &annotation]);
    };
    annotate("999.0.0");
    assert_eq!(remarks(&explain_as(&asker, "deploy/w", "default")), ["OlderThanCrd"]);
    annotate("0.0.1");
    assert_eq!(remarks(&explain_as(&asker, "deploy/w", "default")), ["NewerThanCrd"]);

    cluster.kubectl(&["delete", "rolebinding", "restamp-published", "--namespace=restamp-system"]);
    cluster.kubectl(&["delete", "clusterrolebinding", "restamp-published"]);
    let unknown = async || {
        let explained = explain_as(&asker, "deploy/w", "default");
        let expected = [json!("Unknown"), Value::Null];
        remarks(&explained) == ["RunningUnknown", "ScopeUnknown"]
            && [explained["operator"]["running"].clone(), explained["operator"]["version"].clone()] == expected
    };
    assert!(poll(PATIENCE, unknown).await.is_ok(), "{:#}", explain_as(&asker, "deploy/w", "default"));
}

/// Proves that the flags of a running operator decide what is said.
#[tokio::test]
async fn what_the_operator_was_told_to_leave_alone_is_said_to_roll_nothing() {
    let turn = turn().await;
    let [witness, ns] = [turn.namespace("witness").await, turn.namespace("left-out").await];
    let mut silent = deployment("silent").env_from_config_map("c").build();
    silent["metadata"].as_object_mut().unwrap().remove("annotations");
    for ns in [&witness, &ns] {
        ns.apply(&[
            config_map("c", &[("K", "1")]),
            deployment("w").env_from_config_map("c").into(),
            crate::support::manifests::stateful_set("db").env_from_config_map("c").into(),
            silent.clone(),
        ]);
    }
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "app", "image": "localhost/app:1",
        "envFrom": [{"configMapRef": {"name": "c"}}]}]}});
    witness.apply(&[json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "annotations":
        {"restamp.dev/auto-reload": "true"}}, "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}}})]);
    let flags = [
        ("--exclude-namespace", ns.name()),
        ("--ignore-workload-kind", "StatefulSet"),
        ("--auto-reload-all", ""),
        ("--rerun-jobs", ""),
    ];
    let operator = turn.operator(&[&flags[..], &[("--config-selector", "!restamp.test/left-out")]].concat()).await;
    witness.adopted(DEPLOYMENT, "silent").await;
    let reason = |object: &str, namespace: &str| explain(turn.cluster(), object, namespace)["reason"].clone();
    assert_eq!(reason("deploy/w", ns.name()), "NamespaceNotWatched");
    assert_eq!(reason("deploy/w", witness.name()), "OptedIn");
    assert_eq!(reason("sts/db", witness.name()), "KindIgnored");
    assert_eq!(reason("deploy/silent", witness.name()), "ByFlag");
    assert_eq!(reason("cronjob/nightly", witness.name()), "OptedIn");
    witness.kubectl(&["label", "configmap", "c", "restamp.test/left-out=yes"]);
    let row = explain(turn.cluster(), "deploy/w", witness.name())["readings"][0].clone();
    assert_eq!((&row["rolls"], &row["reason"]), (&json!("No"), &json!("ConfigNotWatched")));
    operator.stop().await;
}
