//! `deploy/policies`, on a real API server. All tests of the operator run under those for its account.

use std::process::Output;

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::cluster::{Cluster, repository, shared as shared_cluster};
use crate::support::kind::{DAEMON_SET, DEPLOYMENT, Kind, STATEFUL_SET};
use crate::support::manifests::{daemon_set, deployment, stateful_set};
use crate::support::namespace::Namespace;
use crate::support::waiting::{PATIENCE, poll};
use crate::support::{shared, turn};

/// Runs kubectl with a token of the operator's, as a thief does. It makes nothing.
fn steal(args: &[&str], input: &str) -> Output {
    let cluster = shared_cluster();
    cluster.kubectl_with(&cluster.kubeconfig_of("restamp"), &[args, &["--dry-run=server"]].concat(), input)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn patch(ns: &Namespace, kind: Kind, patch: &Value) -> Output {
    let patch = patch.to_string();
    steal(&["patch", kind.plural, "w", "--namespace", ns.name(), "--type=json", "--patch", &patch], "")
}

async fn workloads() -> Namespace {
    let ns = shared("thief").await;
    let mut all: [Value; 3] = [deployment("w").into(), stateful_set("w").into(), daemon_set("w").into()];
    all[0]["spec"]["minReadySeconds"] = json!(1);
    all.iter_mut().for_each(|workload| workload["metadata"]["annotations"] = json!({"example.org/a": "1"}));
    ns.apply(&all);
    ns
}

/// Waits for the denial: a policy counts soon after it is installed.
async fn assert_denied(policy: &str, attempt: impl Fn() -> Output) {
    let denied = async || {
        let output = attempt();
        let denial = format!("ValidatingAdmissionPolicy '{policy}'");
        !output.status.success() && stderr(&output).contains(&denial)
    };
    assert!(poll(PATIENCE, denied).await.is_ok(), "{:?}", attempt());
}

const CONTAINER: &str = "/spec/template/spec/containers/0";

#[rstest]
#[case::an_image("replace", format!("{CONTAINER}/image"), json!("evil"))]
#[case::a_command("add", format!("{CONTAINER}/command"), json!(["sh"]))]
#[case::a_variable("add", format!("{CONTAINER}/env"), json!([{"name": "LD_PRELOAD", "value": "/evil.so"}]))]
#[case::an_init_container("add", "/spec/template/spec/initContainers".to_owned(), json!([{"name": "i", "image": "evil"}]))]
#[case::another_account("add", "/spec/template/spec/serviceAccountName".to_owned(), json!("admin"))]
#[case::replicas("replace", "/spec/replicas".to_owned(), json!(0))]
#[case::a_field_of_the_spec("replace", "/spec/minReadySeconds".to_owned(), json!(9))]
#[case::no_more_of_a_field("remove", "/spec/minReadySeconds".to_owned(), Value::Null)]
#[case::a_label_of_pods("add", "/spec/template/metadata/labels/x".to_owned(), json!("y"))]
#[case::an_annotation_of_pods("add", "/spec/template/metadata/annotations".to_owned(), json!({"sidecar/inject": "evil"}))]
#[case::a_label("add", "/metadata/labels".to_owned(), json!({"x": "y"}))]
#[case::an_annotation("add", "/metadata/annotations/x".to_owned(), json!("y"))]
#[case::another_annotation("replace", "/metadata/annotations/example.org~1a".to_owned(), json!("2"))]
#[case::an_annotation_that_goes("remove", "/metadata/annotations/example.org~1a".to_owned(), Value::Null)]
#[case::a_cause("add", "/metadata/annotations/kubernetes.io~1change-cause".to_owned(), json!("y"))]
#[case::a_finalizer("add", "/metadata/finalizers".to_owned(), json!(["x.y/z"]))]
#[tokio::test]
async fn who_steals_the_operators_token_cannot(#[case] op: &str, #[case] path: String, #[case] value: Value) {
    let ns = workloads().await;
    let operation = json!([{"op": op, "path": path, "value": value}]);
    assert_denied("restamp-workloads", || patch(&ns, DEPLOYMENT, &operation)).await;
}

#[tokio::test]
async fn a_workload_of_each_kind_keeps_its_image_and_gets_annotations_of_restamp() {
    let ns = workloads().await;
    for kind in [DEPLOYMENT, STATEFUL_SET, DAEMON_SET] {
        let image = json!([{"op": "replace", "path": format!("{CONTAINER}/image"), "value": "evil"}]);
        assert_denied("restamp-workloads", || patch(&ns, kind, &image)).await;
        let annotation = json!({"restamp.dev/x": "y"});
        let own = json!([
            {"op": "add", "path": "/spec/template/metadata/annotations", "value": annotation},
            {"op": "add", "path": "/metadata/annotations/restamp.dev~1x", "value": "y"},
        ]);
        let allowed = patch(&ns, kind, &own);
        assert!(allowed.status.success(), "{}", stderr(&allowed));
    }
}

#[rstest]
#[case::another_secret("create secret generic x --type=restamp.dev/hash-key")]
#[case::another_type("create secret generic restamp-hash-key --type=Opaque")]
#[case::another_config_map("create configmap x")]
#[tokio::test]
async fn in_its_own_namespace_the_operators_token_makes_nothing_but(#[case] command: &str) {
    let words: Vec<&str> = command.split(' ').chain(["--namespace=restamp-system"]).collect();
    assert_denied("restamp-own-objects", || steal(&words, "")).await;
}

#[rstest]
#[case::a_lease(json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"}}))]
#[case::a_token_of_another_account(json!({
    "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
    "metadata": {"name": "restamp-hash-key", "annotations": {"kubernetes.io/service-account.name": "default"}},
}))]
#[tokio::test]
async fn in_its_own_namespace_the_operators_token_does_not_make(#[case] object: Value) {
    let create = ["create", "--namespace=restamp-system", "--filename=-"];
    assert_denied("restamp-own-objects", || steal(&create, &object.to_string())).await;
}

/// Applies a Secret of these keys as a person does; what kubectl warns of.
fn applied(cluster: &Cluster, ns: &Namespace, field: &str, keys: &[&str], flags: &[&str]) -> String {
    let keys: serde_json::Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), json!("c2VjcmV0"))).collect();
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": ns.name()}, field: keys});
    let apply = [&["apply", "--filename=-"], flags].concat();
    let output = cluster.kubectl_with(&cluster.kubeconfig(), &apply, &secret.to_string());
    assert!(output.status.success(), "{}", stderr(&output));
    stderr(&output)
}

#[tokio::test]
async fn who_applies_string_data_is_told_that_keys_will_stay_and_which_ones_do() {
    let turn = turn().await;
    let cluster = turn.cluster();
    let ns = turn.namespace("string-data").await;
    let folder = repository("deploy/policies/string-data");
    cluster.kubectl(&["apply", "--kustomize", folder.to_str().unwrap()]);
    let warns = async || applied(cluster, &ns, "stringData", &["A", "B"], &["--dry-run=server"]).contains("Warning");
    assert!(poll(PATIENCE, warns).await.is_ok());

    let first = applied(cluster, &ns, "stringData", &["A", "B"], &[]);
    assert!(first.contains("kubectl apply never removes a key that was once in stringData; use data"), "{first}");
    let second = applied(cluster, &ns, "stringData", &["A"], &[]);
    assert!(second.contains("no longer in the manifest, yet live: B;"), "{second}");
    assert!(!second.contains("secret") && !second.contains("c2VjcmV0"), "{second}");

    // Who else writes it is told nothing, and nor is who applies data. What the server applies does not show, unless it was
    // applied by kubectl before.
    let labelled = ["label", "secret", "s", "a=b", "--namespace", ns.name()];
    assert_eq!(stderr(&cluster.kubectl_with(&cluster.kubeconfig(), &labelled, "")), "");
    assert_eq!(applied(cluster, &ns, "data", &["A"], &[]), "");
    ns.kubectl(&["delete", "secret", "s"]);
    assert_eq!(applied(cluster, &ns, "stringData", &["A"], &["--server-side"]), "");
    cluster.kubectl(&["delete", "--kustomize", folder.to_str().unwrap()]);
}
