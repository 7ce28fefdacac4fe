//! Volumes of the Secrets Store CSI driver. The test stands for the driver: it writes a status for each pod, as the driver
//! does when it mounts a volume and when it rotates it.

use serde_json::{Value, json};

use crate::support::cluster::{Cluster, Installed};
use crate::support::kind::{CLASS_STATUS, DEPLOYMENT, POD};
use crate::support::manifests::deployment;
use crate::support::namespace::{Namespace, stamp};
use crate::support::operator::{Operator, restamp};
use crate::support::waiting::{PATIENCE, poll};
use crate::support::{shared, shared_operator, turn};

const CRD: &str = "secretproviderclasspodstatuses.secrets-store.csi.x-k8s.io";

/// Installs the kind with the fields of the driver's own CRD, which has no status subresource.
fn install(cluster: &Cluster) {
    let text = json!({"type": "string"});
    let object = json!({"type": "object", "properties": {"id": text, "version": text}});
    let status = json!({"type": "object", "properties": {"mounted": {"type": "boolean"}, "podName": text,
        "secretProviderClassName": text, "targetPath": text, "objects": {"type": "array", "items": object}}});
    let schema = json!({"type": "object", "properties": {"status": status}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": CRD},
        "spec": {
            "group": CLASS_STATUS.group, "scope": "Namespaced",
            "names": {"kind": CLASS_STATUS.name, "plural": CLASS_STATUS.plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    cluster.kubectl_reading(&crd.to_string(), &["apply", "--filename=-"]);
    cluster.kubectl(&["wait", "--for=condition=Established", &format!("crd/{CRD}")]);
}

/// Waits until the operator has listed the statuses: from then on it takes what pods hold for read.
async fn watched(operator: &Operator) {
    let line = "restamp_watch_synced{kind=\"SecretProviderClass\"} 1\n";
    let synced = async || operator.get("/metrics").is_some_and(|(_, metrics)| metrics.contains(line));
    assert!(poll(PATIENCE, synced).await.is_ok(), "{}", operator.log());
}

/// A workload with a volume of the class `vault`.
fn mounting(name: &str, annotations: &Value) -> Value {
    let mut workload = deployment(name).build();
    workload["metadata"]["annotations"] = annotations.clone();
    let spec = &mut workload["spec"]["template"]["spec"];
    spec["containers"][0]["volumeMounts"] = json!([{"name": "vault", "mountPath": "/vault", "readOnly": true}]);
    spec["volumes"] = json!([{"name": "vault", "csi": {"driver": "secrets-store.csi.k8s.io", "readOnly": true,
        "volumeAttributes": {"secretProviderClass": "vault"}}}]);
    workload
}

fn opted_in() -> Value {
    json!({"restamp.dev/auto-reload": "true"})
}

/// The driver mounts, or rotates, the volumes of all pods of this workload: they hold this version now.
async fn hold(ns: &Namespace, workload: &str, version: &str) {
    let statuses = ns.pods(workload).await.into_iter().map(|pod| {
        let (name, uid) = (pod["metadata"]["name"].as_str().unwrap(), &pod["metadata"]["uid"]);
        let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}]);
        json!({
            "apiVersion": CLASS_STATUS.api_version(), "kind": CLASS_STATUS.name,
            "metadata": {"name": format!("{name}-{}-vault", ns.name()), "ownerReferences": owner},
            "status": {"podName": name, "secretProviderClassName": "vault", "mounted": true, "targetPath": "/x",
                "objects": [{"id": "db", "version": version}]},
        })
    });
    ns.apply(&statuses.collect::<Vec<_>>());
}

async fn generation(ns: &Namespace, workload: &str) -> Value {
    ns.get(DEPLOYMENT, workload).await.unwrap()["metadata"]["generation"].clone()
}

#[tokio::test]
async fn a_rotation_is_one_rollout_and_the_pods_that_it_makes_roll_nothing() {
    let ns = shared("rotated").await;
    install(ns.cluster());
    watched(shared_operator().await).await;
    ns.apply(&[mounting("w", &opted_in())]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    hold(&ns, "w", "1").await;
    ns.kubectl(&["scale", "deployment/w", "--replicas=3"]);
    ns.until_all(POD, "to be three", |pods| pods.len() == 3).await;
    ns.rolled_out(DEPLOYMENT, "w").await;
    hold(&ns, "w", "1").await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 0, "pods that merely start");

    hold(&ns, "w", "hunter2").await;
    ns.reloaded(DEPLOYMENT, "w", "").await;
    hold(&ns, "w", "hunter2").await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 1);
    let said = ns.events(DEPLOYMENT, "w", "Reloaded").await;
    assert_eq!(said, ["Reloading: key db of SecretProviderClass vault changed"]);
    let report = ns.get(crate::support::kind::DRIFT_REPORT, "deployment-w").await.unwrap();
    assert!(!report.to_string().contains("hunter2") && !shared_operator().await.log().contains("hunter2"));

    let kubeconfig = ns.cluster().kubeconfig();
    let explained =
        restamp(&["explain", "deployment/w", "--namespace", ns.name()]).env("KUBECONFIG", kubeconfig).output();
    let explained = String::from_utf8(explained.unwrap().stdout).unwrap();
    let row = explained.lines().find(|line| line.contains("SecretProviderClass/vault") && line.contains("csi"));
    assert!(row.is_some_and(|row| row.contains("yes")), "{explained}");
}

#[tokio::test]
async fn a_rollout_by_somebody_else_after_the_store_has_changed_is_not_followed_by_ours() {
    let ns = shared("others").await;
    install(ns.cluster());
    watched(shared_operator().await).await;
    ns.apply(&[mounting("w", &opted_in())]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    hold(&ns, "w", "1").await;
    ns.kubectl(&["rollout", "restart", "deployment/w"]);
    ns.rolled_out(DEPLOYMENT, "w").await;
    hold(&ns, "w", "2").await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 1, "the restart alone");
}

#[tokio::test]
async fn a_driver_that_is_installed_later_is_watched_and_what_it_rotates_while_restamp_is_away_is_caught() {
    let turn = turn().await;
    turn.cluster().kubectl(&["delete", "crd", CRD, "--ignore-not-found"]);
    let ns = turn.namespace("late-driver").await;
    let operator = turn.operator(&[]).await;
    ns.apply(&[mounting("w", &opted_in())]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    let metrics = operator.get("/metrics").unwrap().1;
    assert!(!metrics.contains("kind=\"SecretProviderClass\""), "nothing is behind: {metrics}");
    let log = operator.log();
    let told: Vec<&str> =
        log.lines().filter(|line| line.contains(CLASS_STATUS.name) && !line.contains("DEBUG")).collect();
    assert_eq!(told, [""; 0], "nobody is told that there is no driver");

    install(turn.cluster());
    watched(&operator).await;
    hold(&ns, "w", "1").await;
    ns.operator_has_caught_up().await;
    operator.stop().await;
    let operator = turn.operator(&[]).await;
    watched(&operator).await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 0);

    operator.stop().await;
    hold(&ns, "w", "2").await;
    let operator = turn.operator(&[]).await;
    ns.reloaded(DEPLOYMENT, "w", "").await;
    hold(&ns, "w", "2").await;
    operator.stop().await;
    let operator = turn.operator(&[]).await;
    watched(&operator).await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn reloaders_annotations_about_classes_count() {
    let turn = turn().await;
    install(turn.cluster());
    let ns = turn.namespace("reloaders-classes").await;
    let operator = turn.operator(&[("--stakater-annotations", "")]).await;
    watched(&operator).await;
    let named = json!({"secretproviderclass.reloader.stakater.com/reload": "vault"});
    let mut naming = deployment("named").build();
    naming["metadata"]["annotations"] = named;
    ns.apply(&[
        mounting("auto", &json!({"secretproviderclass.reloader.stakater.com/auto": "true"})),
        mounting("all", &json!({"reloader.stakater.com/auto": "true"})),
        mounting(
            "excluded",
            &json!({"reloader.stakater.com/auto": "true",
                "secretproviderclasses.exclude.reloader.stakater.com/reload": "vault"}),
        ),
        mounting("of-secrets", &json!({"secret.reloader.stakater.com/auto": "true"})),
        naming,
    ]);
    let [rolled, left] = [["auto", "all", "named"], ["excluded", "of-secrets", "excluded"]];
    for name in rolled.iter().chain(&left) {
        ns.adopted(DEPLOYMENT, name).await;
    }
    let mounting = ["auto", "all", "excluded", "of-secrets"];
    for name in mounting {
        hold(&ns, name, "1").await;
    }
    for name in mounting {
        hold(&ns, name, "2").await;
    }
    for name in rolled {
        ns.reloaded(DEPLOYMENT, name, "").await;
    }
    ns.operator_has_caught_up().await;
    for name in rolled {
        assert_eq!(generation(&ns, name).await, 2, "{name} once");
    }
    for name in left {
        assert_eq!(stamp(&ns.get(DEPLOYMENT, name).await.unwrap()), "", "{name}");
    }
}

#[tokio::test]
async fn without_the_right_to_see_statuses_restamp_says_so_once_and_goes_on() {
    let cluster = Cluster::start_without_nodes(Installed::Everything);
    install(&cluster);
    let role = cluster.kubectl(&["get", "clusterrole", "restamp", "--output=json"]);
    let mut role: Value = serde_json::from_str(&role).unwrap();
    role["rules"].as_array_mut().unwrap().retain(|rule| rule["apiGroups"][0] != CLASS_STATUS.group);
    cluster.kubectl_reading(&role.to_string(), &["replace", "--filename=-"]);

    let operator = Operator::start(&cluster, &[]).await;
    let errors = "restamp_watch_errors_total{kind=\"SecretProviderClass\"} ";
    let failed_again = async || {
        let metrics = operator.get("/metrics").unwrap().1;
        metrics.lines().any(|line| line.strip_prefix(errors).is_some_and(|count| count.parse::<u64>().unwrap() > 1))
    };
    assert!(poll(PATIENCE, failed_again).await.is_ok(), "{}", operator.log());
    let log = operator.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains(CLASS_STATUS.plural)).collect();
    assert_eq!(told.len(), 1, "{log}");
    // The other kinds may still be at their first list.
    let is_ready = async || operator.get("/readyz").is_some_and(|(status, _)| status == 200);
    assert!(poll(PATIENCE, is_ready).await.is_ok(), "{:?}", operator.get("/readyz"));
}
