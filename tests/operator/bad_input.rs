//! What `restamp run` says when it can't work: a clear sentence that says what to do, and no panic.

use std::net::TcpListener;
use std::path::Path;
use std::process::Output;

use rstest::rstest;
use serde_json::json;

use crate::support::cluster::{self, Cluster, Installed};
use crate::support::kind::DEPLOYMENT;
use crate::support::manifests::{config_map, deployment};
use crate::support::operator::{Operator, free_address, restamp};
use crate::support::{kind, shared, waiting};

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: SERVER}}]
users: [{name: u, user: {token: t}}]
";

#[test]
fn an_api_server_that_does_not_answer() {
    let server = format!("https://{}", free_address());
    let output = run_with(&KUBECONFIG.replace("SERVER", &server));
    assert_fails_saying(&output, &["cannot reach the API server", &server]);
}

#[test]
fn a_kubeconfig_that_does_not_parse() {
    let output = run_with("clusters: {");
    assert_fails_saying(&output, &["kubeconfig"]);
}

#[test]
fn a_kubeconfig_that_is_not_there() {
    let output = restamp(&["run"]).env("KUBECONFIG", "/no/such/kubeconfig").output().unwrap();
    assert_fails_saying(&output, &["/no/such/kubeconfig"]);
}

#[test]
fn a_port_that_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = restamp(&["run", "--bind", &address]).env("KUBECONFIG", "/dev/null").output().unwrap();
    assert_fails_saying(&output, &[&address, "--bind"]);
}

#[rstest]
#[case(&["run", "--no-such-flag"])]
#[case(&["run", "--settle", "soon"])]
#[case(&["run", "--bind", "everywhere"])]
#[case(&["run", "--log", "restamp=loud"])]
#[case(&["run", "--lease-seconds", "2147483648"])]
#[case(&["run", "--own-namespace", "Not a name"])]
fn wrong_usage(#[case] args: &[&str]) {
    let output = restamp(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--help"), "{said}");
}

#[tokio::test]
async fn a_missing_crd() {
    let cluster = Cluster::start_without_nodes(Installed::NoCrd);
    let mut operator = Operator::spawn(&cluster, &[]);
    assert_eq!(operator.ended().await.code(), Some(1));
    let log = operator.log();
    assert!(log.contains("apply crds/driftreports.yaml"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

#[tokio::test]
async fn a_crd_of_an_earlier_version() {
    let cluster = Cluster::start_without_nodes(Installed::Everything);
    let crd = cluster.kubectl(&["get", "crd", "driftreports.restamp.dev", "--output=json"]);
    let mut crd: serde_json::Value = serde_json::from_str(&crd).unwrap();
    let reload = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/reload/properties/record";
    crd.pointer_mut(&format!("{reload}/properties")).unwrap().as_object_mut().unwrap().remove("attempt").unwrap();
    cluster.kubectl_reading(&crd.to_string(), &["replace", "--filename=-"]);
    let mut operator = Operator::spawn(&cluster, &[]);
    assert_eq!(operator.ended().await.code(), Some(1));
    let log = operator.log();
    assert!(log.contains("it has no status.reload.record.attempt; apply crds/driftreports.yaml"), "{log}");
}

#[tokio::test]
async fn a_time_beyond_those_that_we_can_hold_stops_nothing() {
    let [poisoned, beside] = [shared("poisoned").await, shared("beside").await];
    // The API server takes it from whoever may write a Deployment.
    let mut manifest = deployment("w").env_from_config_map("c").build();
    manifest["spec"]["template"]["metadata"]["creationTimestamp"] = json!("9999-12-31T23:59:59Z");
    poisoned.apply(&[config_map("c", &[("K", "1")]), manifest]);
    beside.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    for ns in [&poisoned, &beside] {
        let history = ns.adopted(DEPLOYMENT, "w").await;
        ns.apply(&[config_map("c", &[("K", "2")])]);
        ns.reloaded(DEPLOYMENT, "w", "").await;
        assert_eq!(history.rollouts().await, 1);
    }
}

#[test]
fn an_empty_namespace_of_its_own() {
    for output in [
        restamp(&["run", "--own-namespace="]).output().unwrap(),
        restamp(&["run"]).env("POD_NAMESPACE", "").output().unwrap(),
    ] {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("name the one that the operator runs in"), "{said}");
    }
}

#[tokio::test]
async fn a_namespace_of_its_own_that_is_not_there() {
    let mut operator = Operator::spawn(cluster::shared(), &["--own-namespace", "nowhere"]);
    assert_eq!(operator.ended().await.code(), Some(1));
    let log = operator.log();
    assert!(log.contains("namespace nowhere does not exist; create it, or name the operator's own"), "{log}");
    let mut command = restamp(&["run", "--bind", &free_address().to_string(), "--own-namespace", "nowhere"]);
    let administrator = command.env("KUBECONFIG", cluster::shared().kubeconfig()).output().unwrap();
    assert_fails_saying(&administrator, &["error: namespace nowhere does not exist"]);
}

#[tokio::test]
async fn a_namespace_where_it_may_not_have_a_lease() {
    let mut operator = Operator::spawn(cluster::shared(), &["--own-namespace", "default"]);
    assert_eq!(operator.ended().await.code(), Some(1));
    let log = operator.log();
    assert!(log.contains("grant get, create and patch on leases in this namespace"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

#[tokio::test]
async fn a_forbidden_kind() {
    let cluster = Cluster::start_without_nodes(Installed::Everything);
    let role = cluster.kubectl(&["get", "clusterrole", "restamp", "--output=json"]);
    let mut role: serde_json::Value = serde_json::from_str(&role).unwrap();
    let rules = role["rules"].as_array_mut().unwrap();
    for resources in rules.iter_mut().filter_map(|rule| rule["resources"].as_array_mut()) {
        resources.retain(|resource| resource != "statefulsets");
    }
    cluster.kubectl_reading(&role.to_string(), &["replace", "--filename=-"]);

    let operator = Operator::spawn(&cluster, &[]);
    let said = async || operator.log().contains("statefulsets");
    assert!(waiting::poll(waiting::PATIENCE, said).await.is_ok(), "{}", operator.log());
    let (status, body) = operator.get("/readyz").unwrap();
    assert_eq!(status, 503);
    assert!(body.contains(kind::STATEFUL_SET.name), "{body}");
    let metrics = || operator.get("/metrics").unwrap().1;
    // The others may still be at their first list.
    let secrets_are_synced = async || metrics().contains(r#"restamp_watch_synced{kind="Secret"} 1"#);
    assert!(waiting::poll(waiting::PATIENCE, secrets_are_synced).await.is_ok(), "{}", metrics());
    assert!(metrics().contains(r#"restamp_watch_synced{kind="StatefulSet"} 0"#), "{}", metrics());
    assert_eq!(operator.get("/healthz").unwrap().0, 200);
    assert!(!operator.log().contains("panicked"), "{}", operator.log());
}

fn run_with(kubeconfig: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig).unwrap();
    run(&path)
}

fn run(kubeconfig: &Path) -> Output {
    restamp(&["run", "--bind", &free_address().to_string()]).env("KUBECONFIG", kubeconfig).output().unwrap()
}

#[track_caller]
fn assert_fails_saying(output: &Output, parts: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(parts.iter().all(|part| said.contains(part)), "{parts:?} are not all in: {said}");
    assert!(!said.contains("panicked"), "{said}");
}
