//! Kinds that the operator is told of by `--workload-kind`: with CRDs of the test's own, and no controller for them.

use serde_json::{Value, json};

use crate::explain::explain;
use crate::support::cluster::Cluster;
use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT, Kind};
use crate::support::manifests::{config_map, deployment};
use crate::support::namespace::{Namespace, report_name, stamp, state};
use crate::support::turn;

const ROLLER: Kind = Kind { group: "restamp.test", version: "v1", name: "Roller", plural: "rollerz" };
const LATECOMER: Kind = Kind { group: "restamp.test", version: "v1", name: "Latecomer", plural: "latecomers" };
const ROLLOUT: Kind = Kind { group: "argoproj.io", version: "v1alpha1", name: "Rollout", plural: "rollouts" };

fn flag(kind: Kind) -> String {
    format!("{}/{}/{}", kind.group, kind.version, kind.name)
}

/// Installs a kind whose objects may have any field, and lets the operator roll it.
fn install(cluster: &Cluster, kind: Kind) {
    let name = format!("{}.{}", kind.plural, kind.group);
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": any, "status": any}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {
            "group": kind.group, "scope": "Namespaced",
            "names": {"kind": kind.name, "plural": kind.plural, "singular": kind.name.to_lowercase()},
            "versions": [{"name": kind.version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}],
        },
    });
    cluster.kubectl_reading(&crd.to_string(), &["apply", "--filename=-"]);
    cluster.kubectl(&["wait", "--for=condition=Established", &format!("crd/{name}")]);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": [kind.group], "resources": [kind.plural], "verbs": ["get", "list", "watch", "patch"]}],
    });
    cluster.kubectl_reading(&role.to_string(), &["apply", "--filename=-"]);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "restamp", "namespace": "restamp-system"}],
    });
    cluster.kubectl_reading(&binding.to_string(), &["apply", "--filename=-"]);
    // As docs/workload-kinds.md says.
    let rule =
        json!({"apiGroups": [kind.group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": [kind.plural]});
    let patch = json!([{"op": "add", "path": "/spec/matchConstraints/resourceRules/-", "value": rule}]).to_string();
    cluster.kubectl(&["patch", "validatingadmissionpolicy", "restamp-workloads", "--type=json", "--patch", &patch]);
}

/// One that reads a ConfigMap, with fields that nobody has heard of.
fn object(kind: Kind, annotations: &Value) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.name, "metadata": {"name": "w", "annotations": annotations},
        "spec": {
            "selector": {"app": "w"},
            "unheardOf": {"list": [1, {"deep": null, "kept": "yes"}], "number": 1.5},
            "template": {
                "metadata": {"labels": {"app": "w"}, "unheardOf": ["x"]},
                "spec": {"containers": [{"name": "app", "image": "localhost/app:1", "unheardOf": {"a": "b"},
                    "envFrom": [{"configMapRef": {"name": "c"}}]}]},
            },
        },
    })
}

fn opted_in() -> Value {
    json!({"restamp.dev/auto-reload": "true"})
}

async fn current(ns: &Namespace, kind: Kind) {
    let report = report_name(kind, "w");
    ns.until(DRIFT_REPORT, &report, "to be current", |report| state(report) == "Current").await;
}

async fn stamped(ns: &Namespace, kind: Kind, after: &str) -> Value {
    let holds = |object: &Value| !stamp(object).is_empty() && stamp(object) != after;
    ns.until(kind, "w", "to carry a new stamp", holds).await
}

/// What its controller would say: all pods are of the present template.
async fn finish(ns: &Namespace, kind: Kind) {
    let generation = ns.get(kind, "w").await.unwrap()["metadata"]["generation"].clone();
    let status = json!({"observedGeneration": generation, "replicas": 1, "updatedReplicas": 1});
    let patch = json!({"status": status}).to_string();
    ns.kubectl(&["patch", kind.plural, "w", "--subresource=status", "--type=merge", "--patch", &patch]);
}

#[tokio::test]
async fn a_custom_workload_is_stamped_once_for_a_change_and_keeps_all_its_fields() {
    let turn = turn().await;
    let ns = turn.namespace("custom").await;
    install(turn.cluster(), ROLLER);
    let without = turn.operator(&[]).await;
    ns.apply(&[object(ROLLER, &opted_in())]);
    ns.operator_has_caught_up().await;
    let explained = explain(turn.cluster(), "roller/w", ns.name());
    assert_eq!((&explained["rolls"], &explained["reason"]), (&json!("No"), &json!("KindNotWatched")), "{explained:#}");
    without.stop().await;

    let _operator = turn.operator(&[("--workload-kind", &flag(ROLLER))]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), object(ROLLER, &opted_in())]);
    current(&ns, ROLLER).await;
    let mut before = ns.get(ROLLER, "w").await.unwrap();

    ns.apply(&[config_map("c", &[("K", "2")])]);
    let mut after = stamped(&ns, ROLLER, "").await;
    let first = stamp(&after).to_owned();
    ns.operator_has_caught_up().await;
    let live = ns.get(ROLLER, "w").await.unwrap();
    assert_eq!((stamp(&live), &live["metadata"]["generation"]), (first.as_str(), &json!(2)));
    after["spec"]["template"]["metadata"].as_object_mut().unwrap().remove("annotations");
    assert_eq!(before["spec"].take(), after["spec"].take());

    finish(&ns, ROLLER).await;
    current(&ns, ROLLER).await;
    for name in ["Roller/w", "rollerz.restamp.test/w", "roller.v1.restamp.test/w"] {
        let explained = explain(turn.cluster(), name, ns.name());
        let told = (&explained["reason"], &explained["reload"]["state"], &explained["readings"][0]["rolls"]);
        assert_eq!(told, (&json!("OptedIn"), &json!("Current"), &json!("Yes")), "{explained:#}");
        assert_eq!(explained["reload"]["lastReload"]["cause"], "key K of ConfigMap c changed");
    }
    ns.apply(&[config_map("c", &[("K", "3")])]);
    stamped(&ns, ROLLER, &first).await;
}

#[tokio::test]
async fn a_kind_that_is_installed_later_delays_no_other_and_is_watched_once_it_is_there() {
    let turn = turn().await;
    let ns = turn.namespace("late").await;
    let operator = turn.operator(&[("--workload-kind", &flag(LATECOMER))]).await;
    ns.operator_has_caught_up().await;
    assert!(operator.log().contains("Latecomer"), "{}", operator.log());

    install(turn.cluster(), LATECOMER);
    ns.apply(&[config_map("c", &[("K", "1")]), object(LATECOMER, &opted_in())]);
    current(&ns, LATECOMER).await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    stamped(&ns, LATECOMER, "").await;
    let (_, metrics) = operator.get("/metrics").unwrap();
    assert!(metrics.contains("restamp_watch_synced{kind=\"Latecomer\"} 1\n"), "{metrics}");
}

#[tokio::test]
async fn a_rollout_is_restarted_where_that_is_what_its_owner_wants() {
    let turn = turn().await;
    let ns = turn.namespace("restart").await;
    install(turn.cluster(), ROLLOUT);
    let _operator = turn.operator(&[("--workload-kind", &flag(ROLLOUT))]).await;
    let annotations = json!({"restamp.dev/auto-reload": "true", "restamp.dev/rollout-strategy": "restart"});
    ns.apply(&[config_map("c", &[("K", "1")]), object(ROLLOUT, &annotations)]);
    current(&ns, ROLLOUT).await;
    let before = ns.get(ROLLOUT, "w").await.unwrap();
    ns.apply(&[config_map("c", &[("K", "2")])]);
    let restarted = |object: &Value| !object["spec"]["restartAt"].is_null();
    let after = ns.until(ROLLOUT, "w", "to be restarted", restarted).await;
    assert_eq!(before["spec"]["template"], after["spec"]["template"]);
    assert!(after["metadata"]["annotations"]["restamp.dev/config-hash"].is_string());
    ns.operator_has_caught_up().await;
    assert_eq!(ns.get(ROLLOUT, "w").await.unwrap()["spec"], after["spec"]);
}

#[tokio::test]
async fn reloaders_rollout_strategy_counts_where_its_annotations_do() {
    let turn = turn().await;
    let [plain, moved] = [turn.namespace("plain").await, turn.namespace("moved").await];
    install(turn.cluster(), ROLLOUT);
    moved.kubectl(&["label", "namespace", moved.name(), "restamp.test/moved="]);
    let selector = ("--stakater-namespace-selector", "restamp.test/moved");
    let _operator =
        turn.operator(&[("--workload-kind", &flag(ROLLOUT)), ("--stakater-annotations", ""), selector]).await;
    let annotations = json!({"restamp.dev/auto-reload": "true", "reloader.stakater.com/rollout-strategy": "restart"});
    for ns in [&plain, &moved] {
        ns.apply(&[config_map("c", &[("K", "1")]), object(ROLLOUT, &annotations)]);
        current(ns, ROLLOUT).await;
        ns.apply(&[config_map("c", &[("K", "2")])]);
    }
    let restarted = |object: &Value| !object["spec"]["restartAt"].is_null();
    let rolled = stamped(&plain, ROLLOUT, "").await;
    assert!(!restarted(&rolled), "{rolled:#}");
    let other = moved.until(ROLLOUT, "w", "to be restarted", restarted).await;
    assert_eq!(stamp(&other), "");
}

#[tokio::test]
async fn a_rollout_with_its_template_in_a_deployment_has_that_one_stamped() {
    let turn = turn().await;
    let ns = turn.namespace("workload-ref").await;
    install(turn.cluster(), ROLLOUT);
    let _operator = turn.operator(&[("--workload-kind", &flag(ROLLOUT))]).await;
    let mut holder: Value = deployment("holder").env_from_config_map("c").build();
    holder["metadata"].as_object_mut().unwrap().remove("annotations");
    let mut rollout = object(ROLLOUT, &opted_in());
    let reference = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "holder"});
    rollout["spec"] = json!({"workloadRef": reference, "replicas": 2});
    ns.apply(&[config_map("c", &[("K", "1")]), holder, rollout]);
    let history = ns.adopted(DEPLOYMENT, "holder").await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "holder", "").await;
    assert_eq!(history.rollouts().await, 1);
    let rollout = ns.get(ROLLOUT, "w").await.unwrap();
    assert_eq!(rollout["spec"], json!({"workloadRef": reference, "replicas": 2}));
    assert_eq!(ns.get(DRIFT_REPORT, "rollout-w").await, None);
    for asked in ["rollout/w", "deploy/holder"] {
        let explained = explain(turn.cluster(), asked, ns.name());
        let told = (&explained["subject"]["name"], &explained["templateOf"]["name"], &explained["reason"]);
        assert_eq!(told, (&json!("holder"), &json!("w"), &json!("OptedIn")), "{explained:#}");
        assert_eq!(explained["reload"]["state"], "Current");
    }
}
