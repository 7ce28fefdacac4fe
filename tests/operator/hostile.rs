//! Whatever somebody may write into a cluster: it costs the operator little, and delays nobody else.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::breaking_turn;
use crate::support::kind::{CONFIG_MAP, DEPLOYMENT, DRIFT_REPORT, EVENT, SECRET};
use crate::support::manifests::{config_map, deployment, secret};
use crate::support::namespace::{Namespace, report_name, stamp, state};

/// The API server's limit for a Secret, in bytes of its values.
const LARGEST: usize = 1024 * 1024;
const KEYS: usize = 5_000;
/// A backtracking engine would be at this for ever, and a compiled one in need of much memory.
const REGEX: &str = "((((a{1,100}){1,100}){1,100})+)+$";

fn large(fill: u8) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "large"},
        "data": {"K": STANDARD.encode(vec![fill; LARGEST])},
    })
}

/// No UTF-8.
fn binary(last: u8) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "binary"},
        "binaryData": {"K": STANDARD.encode([0xff, 0xfe, 0x80, last])},
    })
}

fn many(keys: usize, value: &str) -> Value {
    let data: BTreeMap<String, &str> = (0..keys).map(|number| (format!("K{number}"), value)).collect();
    let pairs: Vec<(&str, &str)> = data.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    secret("many", &pairs)
}

/// No variable can hold what is no text.
fn mounting_binary() -> Value {
    let mut workload = deployment("binary").build();
    let pod = &mut workload["spec"]["template"]["spec"];
    pod["volumes"] = json!([{"name": "v", "configMap": {"name": "binary"}}]);
    pod["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    workload
}

/// Its name is as long as names get, and so is that of its config.
fn long(name: &str) -> Value {
    let mut workload = deployment(name).env_from_config_map(name).build();
    for labels in ["/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        *workload.pointer_mut(labels).unwrap() = json!({"app": "long"});
    }
    workload
}

fn annotated(mut object: Value, annotation: &str, value: &str) -> Value {
    object["metadata"]["annotations"][annotation] = json!(value);
    object
}

/// `kubectl apply` would write a third of it into an annotation, for which it is too large.
fn replace(ns: &Namespace, verb: &str, objects: &[Value]) {
    for object in objects {
        ns.kubectl_reading(&object.to_string(), &[verb, "--filename=-"]);
    }
}

#[tokio::test]
async fn hostile_objects_roll_as_others_do_and_delay_nobody() {
    let turn = breaking_turn().await;
    let operator = turn.operator(&[("--stakater-annotations", "")]).await;
    let [hostile, beside] = [turn.namespace("hostile").await, turn.namespace("beside").await];
    beside.operator_has_caught_up().await;
    let before = operator.memory();

    let name = "n".repeat(253);
    let keys: Vec<String> = (0..1_000).map(|number| format!("K{number}")).collect();
    let variables =
        |value: &str| config_map("variables", &keys.iter().map(|key| (key.as_str(), value)).collect::<Vec<_>>());
    replace(&hostile, "create", &[large(b'a'), binary(1), variables("1"), config_map(&name, &[("K", "1")])]);
    hostile.apply(&[many(KEYS, "1")]);
    let noise = "configmap/x-*,".repeat(250 * 1024 / 14);
    let with_many = (0..5).map(|number| deployment(&format!("many-{number}")).env_from_secret("many").build());
    let of_variables = keys.iter().fold(deployment("variables"), |it, key| it.env_of_config_map("variables", key));
    let workloads: Vec<Value> = with_many
        .chain([
            deployment("large").env_from_secret("large").build(),
            mounting_binary(),
            of_variables.build(),
            long(&name),
            annotated(deployment("noise").build(), "restamp.dev/reload-on", &noise),
            annotated(deployment("regex").build(), "configmap.reloader.stakater.com/reload", REGEX),
        ])
        .collect();
    replace(&hostile, "create", &workloads);
    beside.operator_has_caught_up().await;
    for adopted in ["large", "binary", "variables", "many-0", "many-4"] {
        hostile.adopted(DEPLOYMENT, adopted).await;
    }
    // The name of its report can't be the usual one.
    let is_adopted = |report: &Value| report["spec"]["subject"]["name"] == name && state(report) == "Current";
    let has_long = |reports: &[Value]| reports.iter().any(is_adopted);
    hostile.until_all(DRIFT_REPORT, "to have one about the long name", has_long).await;

    replace(&hostile, "replace", &[large(b'b'), binary(2), variables("2"), config_map(&name, &[("K", "2")])]);
    // All keys but one stay, and are stale.
    hostile.apply(&[many(1, "2")]);
    beside.operator_has_caught_up().await;
    for rolled in ["large", "binary", "variables", "many-0", "many-4"] {
        hostile.reloaded(DEPLOYMENT, rolled, "").await;
    }
    hostile.until(DEPLOYMENT, &name, "to carry a stamp", |workload| !stamp(workload).is_empty()).await;
    hostile.until_all(DRIFT_REPORT, "to have one about the long name", has_long).await;
    hostile
        .until(DRIFT_REPORT, &report_name(SECRET, "many"), "to name the stale keys", |report| {
            report["status"]["counts"]["staleKeys"] == KEYS - 1
                || report["status"]["staleKeys"].as_array().is_some_and(|keys| keys.len() == KEYS - 1)
        })
        .await;
    let told = |events: &[Value]| events.iter().any(|event| event["reason"] == "InvalidAnnotation");
    hostile.until_all(EVENT, "to tell of the regular expression", told).await;

    let after = operator.memory();
    assert!(after < before + 64 * 1024, "it uses {after} KiB; before it was {before}");
    let log = operator.log();
    assert!(!log.contains("panicked") && !log.contains("defect"), "{log}");
    operator.stop().await;
}

#[tokio::test]
async fn namespaces_that_are_deleted_under_load_leave_nothing_and_delay_nobody() {
    let turn = breaking_turn().await;
    let operator = turn.operator(&[]).await;
    let beside = turn.namespace("beside").await;
    let mut doomed = vec![];
    for number in 0..4 {
        let ns = turn.namespace(&format!("doomed-{number}")).await;
        let workloads = (0..10).map(|number| deployment(&format!("w-{number}")).env_from_config_map("c").into());
        ns.apply(&[config_map("c", &[("K", "1")])]);
        ns.apply(&workloads.collect::<Vec<Value>>());
        ns.adopted(DEPLOYMENT, "w-9").await;
        doomed.push(ns);
    }
    for ns in &doomed {
        ns.patch(CONFIG_MAP, "c", json!({"data": {"K": "2"}})).await;
        turn.cluster().kubectl(&["delete", "namespace", ns.name(), "--wait=false"]);
    }
    beside.operator_has_caught_up().await;
    for ns in &doomed {
        ns.until_all(DRIFT_REPORT, "to be none", <[Value]>::is_empty).await;
        ns.until_all(DEPLOYMENT, "to be none", <[Value]>::is_empty).await;
    }
    beside.operator_has_caught_up().await;
    let log = operator.log();
    assert!(!log.contains("panicked") && !log.contains("defect"), "{log}");
    // Nobody has to act. What another test has left on this control plane is not meant.
    let is_theirs = |line: &&str| doomed.iter().any(|ns| line.contains(ns.name()));
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains(" WARN ")).filter(is_theirs).collect();
    assert_eq!(warnings, [""; 0]);
    operator.stop().await;
}
