//! What `restamp scan --explain` tells to do does what it says, on the real API server.

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::cluster::shared as shared_cluster;
use crate::support::kind::{CONFIG_MAP, DEPLOYMENT, Kind, SECRET};
use crate::support::manifests::{config_map, deployment, secret};
use crate::support::namespace::Namespace;
use crate::support::operator::restamp;

/// What a scan of a namespace prints.
fn scan(ns: &Namespace, args: &[&str]) -> String {
    let kubeconfig = ns.cluster().kubeconfig();
    let mut scan = restamp(&["scan", "--namespace", ns.name(), "--kubeconfig", kubeconfig.to_str().unwrap()]);
    let output = scan.args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The types of what it finds.
fn found(ns: &Namespace) -> Vec<String> {
    let list: Value = serde_json::from_str(&scan(ns, &["--output=json"])).unwrap();
    let reports = list["items"].as_array().unwrap().iter();
    let findings = reports.flat_map(|report| report["status"]["findings"].as_array().into_iter().flatten());
    findings.map(|finding| finding["type"].as_str().unwrap().to_owned()).collect()
}

/// The command that it tells for this type.
fn command(ns: &Namespace, r#type: &str) -> String {
    let text = scan(ns, &["--explain"]);
    let told = text.lines().skip_while(|line| !line.starts_with(&format!("{type}: ")));
    told.skip(2).map(|line| line.trim().to_owned()).next().unwrap_or_else(|| panic!("no command for {type} in\n{text}"))
}

/// An object but for who wrote it, and its version.
async fn content(ns: &Namespace, kind: Kind, name: &str) -> Value {
    let mut object = ns.get(kind, name).await.unwrap();
    for field in ["managedFields", "resourceVersion"] {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    object
}

#[rstest]
#[case::a_secret(SECRET, secret("s", &[("KEPT", "1"), ("OLD", "1"), ("OLDER", "1")]), secret("s", &[("KEPT", "1")]), "StaleKey")]
#[case::a_config_map(
    CONFIG_MAP,
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"KEPT": "1"}}),
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"KEPT": "1"}}),
    "UndeclaredKey"
)]
#[tokio::test]
async fn the_command_removes_the_keys_and_changes_nothing_else(
    #[case] kind: Kind,
    #[case] before: Value,
    #[case] after: Value,
    #[case] r#type: &str,
) {
    let ns = Namespace::create(shared_cluster(), "remedy").await;
    ns.apply(&[before]);
    ns.apply(&[after]);
    if kind == CONFIG_MAP {
        ns.kubectl(&["patch", "configmap/s", "--patch", r#"{"data":{"HAND":"1"},"binaryData":{"BYTES":"AP8="}}"#]);
    }
    assert_eq!(found(&ns), [r#type, r#type]);
    let mut expected = content(&ns, kind, "s").await;
    for key in ["OLD", "OLDER", "HAND"] {
        expected["data"].as_object_mut().unwrap().remove(key);
    }
    expected.as_object_mut().unwrap().remove("binaryData");

    let command = command(&ns, r#type);
    let done = ns.cluster().shell(&command);
    assert!(done.status.success(), "{command}\n{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(found(&ns), [""; 0]);
    let mut left = content(&ns, kind, "s").await;
    left.as_object_mut().unwrap().retain(|field, value| field != "binaryData" || *value != json!({}));
    assert_eq!(left, expected);
}

#[tokio::test]
async fn the_command_leaves_alone_what_has_changed_since() {
    let ns = Namespace::create(shared_cluster(), "changed").await;
    ns.apply(&[secret("s", &[("KEPT", "1"), ("OLD", "1")])]);
    ns.apply(&[secret("s", &[("KEPT", "1")])]);
    let command = command(&ns, "StaleKey");
    ns.apply(&[secret("s", &[("KEPT", "1"), ("OLD", "2")])]);
    let refused = ns.cluster().shell(&command);
    assert!(!refused.status.success(), "{}", String::from_utf8_lossy(&refused.stdout));
    assert_eq!(ns.get(SECRET, "s").await.unwrap()["data"]["OLD"], "Mg==");
}

#[tokio::test]
async fn the_command_applies_what_was_declared() {
    let ns = Namespace::create(shared_cluster(), "applied").await;
    let workload = || deployment("w").env_from_config_map("c").into();
    ns.apply(&[config_map("c", &[("A", "1"), ("B", "1")]), workload()]);
    let patch = r#"[{"op":"remove","path":"/data/A"},{"op":"replace","path":"/data/B","value":"2"}]"#;
    ns.kubectl(&["patch", "configmap/c", "--type=json", "--patch", patch]);
    ns.kubectl(&["set", "image", "deployment/w", "app=localhost/app:2"]);
    let mut types = found(&ns);
    types.sort();
    assert_eq!(types, ["MissingKey", "RevertsOnApply", "ValueDiffers"]);
    for r#type in ["MissingKey", "RevertsOnApply"] {
        let done = ns.cluster().shell(&command(&ns, r#type));
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    assert_eq!(found(&ns), [""; 0]);
    assert_eq!(ns.get(CONFIG_MAP, "c").await.unwrap()["data"], json!({"A": "1", "B": "1"}));
    let image = ns.get(DEPLOYMENT, "w").await.unwrap()["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    assert_eq!(image, "localhost/app:1");
}
