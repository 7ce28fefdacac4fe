//! The image as the chart installs it, in a pod of a real node, and containers that really run: `make test-node`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::running::finding;
use crate::scenario::{KEPT, REMOVED, build_service, is_drifted, without_the_removed};
use crate::support::cluster::Cluster;
use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT};
use crate::support::manifests::{config_map, deployment, secret};
use crate::support::namespace::{Namespace, stamp};
use crate::support::waiting::{PATIENCE, poll};

/// A namespace on the real node, where the chart's pods are at work.
async fn on_the_node(word: &str) -> Namespace {
    Namespace::create(node().await, word).await
}

/// The cluster with the real node. It is never dropped: its minder stops it.
async fn node() -> &'static Cluster {
    static NODE: OnceCell<&Cluster> = OnceCell::const_new();
    NODE.get_or_init(async || {
        let image = std::env::var("RESTAMP_IMAGE").expect("RESTAMP_IMAGE must name the image: run `make test-node`");
        let cluster: &Cluster = Box::leak(Box::new(Cluster::start_with_a_real_node()));
        cluster.push(&format!("oci-archive:{image}"), &format!("restamp:{}", env!("CARGO_PKG_VERSION")));
        let install = [
            ["install", "restamp", "deploy/helm/restamp", "--create-namespace"].as_slice(),
            // The rest is as by default, in less time.
            &["--set", "image.repository=registry.example.org/restamp,run.settle=1s,run.reportAfter=2s"],
            &["--wait", "--timeout", "90s"],
        ];
        let said = cluster.helm().args(install.concat()).output().unwrap();
        assert!(said.status.success(), "{}\n{}", String::from_utf8_lossy(&said.stderr), pods_of_the_operator(cluster));
        cluster
    })
    .await
}

/// What a person would look at first.
fn pods_of_the_operator(cluster: &Cluster) -> String {
    let of = |args: &[&str]| {
        let output = cluster.kubectl_with(&cluster.kubeconfig(), &[&["--namespace=restamp-system"], args].concat(), "");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    of(&["describe", "pods"]) + &of(&["logs", "--selector=app.kubernetes.io/name=restamp", "--tail=50", "--prefix"])
}

/// Runs one of busybox's commands in this pod.
fn in_pod(ns: &Namespace, pod: &Value, command: &[&str]) -> String {
    let name = pod["metadata"]["name"].as_str().unwrap();
    ns.kubectl(&[&["exec", name, "--", "/busybox"], command].concat())
}

/// The variables of the one container of each pod of this workload.
async fn environments(ns: &Namespace, workload: &str) -> Vec<BTreeMap<String, String>> {
    let pods = ns.pods(workload).await;
    let variable = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    pods.iter().map(|pod| in_pod(ns, pod, &["env"]).lines().filter_map(variable).collect()).collect()
}

fn has(environment: &BTreeMap<String, String>, variables: &[(&str, &str)]) -> bool {
    variables.iter().all(|(name, value)| environment.get(*name).is_some_and(|live| live == value))
}

fn has_none(environment: &BTreeMap<String, String>, variables: &[(&str, &str)]) -> bool {
    variables.iter().all(|(name, _)| !environment.contains_key(*name))
}

#[tokio::test]
async fn one_of_the_charts_pods_leads_and_none_has_a_shell() {
    let cluster = node().await;
    let kubectl = |args: &[&str]| cluster.kubectl(&[&["--namespace=restamp-system"], args].concat());
    let pods: Value = serde_json::from_str(&kubectl(&["get", "pods", "--output=json"])).unwrap();
    let pods = pods["items"].as_array().unwrap();
    assert_eq!(pods.len(), 2);
    let names: Vec<&str> = pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap()).collect();
    let lease: Value = serde_json::from_str(&kubectl(&["get", "lease", "restamp-leader", "--output=json"])).unwrap();
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap();
    assert!(names.iter().any(|name| holder.starts_with(name)), "{holder} leads, and the pods are {names:?}");

    for pod in pods {
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0, "{}", pods_of_the_operator(cluster));
        let name = pod["metadata"]["name"].as_str().unwrap();
        let version = kubectl(&["exec", name, "--", "/restamp", "--version"]);
        assert_eq!(version.trim(), format!("restamp {}", env!("CARGO_PKG_VERSION")));
        let exec = ["--namespace=restamp-system", "exec", name, "--", "sh", "-c", "true"];
        let shell = cluster.kubectl_with(&cluster.kubeconfig(), &exec, "");
        let said = String::from_utf8_lossy(&shell.stderr);
        assert!(!shell.status.success() && said.contains("executable file not found"), "{said}");
    }
}

#[tokio::test]
async fn stale_variables_are_in_the_containers_until_the_secret_is_mended() {
    let ns = on_the_node("tools").await;
    ns.apply(&[secret("build-service-secrets", &[KEPT, REMOVED].concat()), build_service()]);
    let history = ns.adopted(DEPLOYMENT, "build-service").await;

    // Not even a restart rids the containers of them.
    ns.apply(&[secret("build-service-secrets", &KEPT)]);
    ns.kubectl(&["rollout", "restart", "deployment/build-service"]);
    ns.rolled_out(DEPLOYMENT, "build-service").await;
    let environments_before = environments(&ns, "build-service").await;
    assert_eq!(environments_before.len(), 2);
    assert!(environments_before.iter().all(|environment| has(environment, &[KEPT, REMOVED].concat())));

    let report = ns.until(DRIFT_REPORT, "secret-build-service-secrets", "to name stale keys", is_drifted).await;
    assert_eq!(report["status"]["staleKeys"], json!(REMOVED.map(|(key, _)| key)));
    let consumer = &report["status"]["findings"][0]["consumers"][0];
    assert_eq!(consumer["container"], "build-service-node");

    let patch = without_the_removed();
    ns.kubectl(&["patch", "secret", "build-service-secrets", "--type=json", "--patch", &patch]);
    ns.reloaded(DEPLOYMENT, "build-service", "").await;
    ns.kubectl(&["wait", "--for=condition=InSync", "drift/secret-build-service-secrets", "--timeout=60s"]);
    let environments_after = environments(&ns, "build-service").await;
    assert_eq!(environments_after.len(), 2);
    for environment in environments_after {
        assert!(has(&environment, &KEPT) && has_none(&environment, &REMOVED), "{:?}", environment.keys());
    }
    ns.operator_has_caught_up().await;
    // The restart, and one of ours.
    assert_eq!(history.rollouts().await, 2);
}

#[tokio::test]
async fn a_changed_value_is_in_the_variables_of_all_containers_after_one_rollout() {
    let ns = on_the_node("changed").await;
    ns.apply(&[config_map("c", &[("LEVEL", "info")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    for level in ["debug", "trace"] {
        let before = ns.get(DEPLOYMENT, "w").await.unwrap();
        ns.apply(&[config_map("c", &[("LEVEL", level)])]);
        ns.reloaded(DEPLOYMENT, "w", stamp(&before)).await;
        let environments = environments(&ns, "w").await;
        assert_eq!(environments.len(), 2);
        assert!(environments.iter().all(|environment| has(environment, &[("LEVEL", level)])), "{environments:?}");
    }
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 2);
}

#[tokio::test]
async fn at_start_leaves_a_mounted_config_map_to_the_kubelet() {
    let ns = on_the_node("in-place").await;
    let mut workload = deployment("w").build();
    workload["metadata"]["annotations"]["restamp.dev/auto-reload"] = json!("at-start");
    let pod = &mut workload["spec"]["template"]["spec"];
    pod["volumes"] = json!([{"name": "config", "configMap": {"name": "c"}}]);
    pod["containers"][0]["volumeMounts"] = json!([{"name": "config", "mountPath": "/config"}]);
    ns.apply(&[config_map("c", &[("LEVEL", "info")]), workload]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    let pods = ns.pods("w").await;
    let all_read = |level: &str| pods.iter().all(|pod| in_pod(&ns, pod, &["cat", "/config/LEVEL"]) == level);
    assert!(all_read("info"));

    ns.apply(&[config_map("c", &[("LEVEL", "debug")])]);
    assert!(poll(PATIENCE, async || all_read("debug")).await.is_ok(), "the files of the volume did not change");
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 0);
    let identity = |pod: &Value| {
        let container = &pod["status"]["containerStatuses"][0];
        (pod["metadata"]["uid"].clone(), container["containerID"].clone(), container["restartCount"].clone())
    };
    let after = ns.pods("w").await;
    assert!(after.iter().map(identity).eq(pods.iter().map(identity)), "a container was restarted");
}

#[tokio::test]
async fn a_tag_that_moved_gives_two_digests_until_all_pods_have_the_new_one() {
    let ns = on_the_node("moved").await;
    let image = format!("{}/app:stable", ns.name());
    // Those that no other test runs: a node that knows an image by several names shows any of them.
    ns.cluster().push("app:2", &image);
    let mut workload = deployment("w").image(&format!("registry.example.org/{image}")).build();
    workload["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = json!("Always");
    ns.apply(&[workload]);
    ns.adopted(DEPLOYMENT, "w").await;
    let report = ns.get(DRIFT_REPORT, "deployment-w").await.unwrap();
    assert_eq!(report["status"]["findings"], Value::Null);

    ns.cluster().push("app:3", &image);
    let pods = ns.pods("w").await;
    ns.kubectl(&["delete", "pod", pods[0]["metadata"]["name"].as_str().unwrap()]);
    ns.rolled_out(DEPLOYMENT, "w").await;
    let report = ns
        .until(DRIFT_REPORT, "deployment-w", "to tell of two digests", |report| {
            finding(report, "MixedDigests").is_some()
        })
        .await;
    let mixed = finding(&report, "MixedDigests").unwrap();
    let mut told: Vec<&str> = mixed["digests"].as_array().unwrap().iter().map(digest_of_finding).collect();
    told.sort_unstable();
    let pods = ns.pods("w").await;
    let mut running: Vec<&str> = pods.iter().map(digest_of_pod).collect();
    running.sort_unstable();
    assert_eq!(told, running);
    assert_ne!(running[0], running[1]);

    ns.kubectl(&["rollout", "restart", "deployment/w"]);
    ns.until(DRIFT_REPORT, "deployment-w", "to have no findings", |report| report["status"]["findings"].is_null())
        .await;
}

fn digest_of_finding(digest: &Value) -> &str {
    digest["digest"].as_str().unwrap()
}

fn digest_of_pod(pod: &Value) -> &str {
    pod["status"]["containerStatuses"][0]["imageID"].as_str().unwrap().split_once('@').unwrap().1
}
