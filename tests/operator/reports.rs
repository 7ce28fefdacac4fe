//! The custom resource as kubectl shows it.

use serde_json::Value;

use crate::support::cluster::{is_oldest, repository, shared as shared_cluster};
use crate::support::kind::DRIFT_REPORT;
use crate::support::manifests::{config_map, deployment, secret};
use crate::support::shared;

#[test]
fn the_api_server_takes_the_definition_without_a_warning() {
    let definition = std::fs::read_to_string(repository("crds/driftreports.yaml")).unwrap();
    let cluster = shared_cluster();
    // It warns of what is new only, so that it must not know the definition yet.
    let unknown = definition.replace("restamp.dev", "warnings.example.org");
    let create = |text: &str| {
        let args = ["create", "--dry-run=server", "--warnings-as-errors", "--filename=-"];
        let output = cluster.kubectl_with(&cluster.kubeconfig(), &args, text);
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(create(&unknown), (true, String::new()));
    if is_oldest() {
        return; // it warns of nothing
    }
    let (_, warned) = create(&unknown.replace("format: int32", "format: uint32"));
    assert!(warned.contains("unrecognized format \"uint32\""), "{warned}");
}

#[tokio::test]
async fn a_list_of_reports_says_how_much_was_found() {
    let ns = shared("columns").await;
    let reader = deployment("w").env_from_secret("s").env_from_config_map("c");
    ns.apply(&[secret("s", &[("A", "1"), ("B", "1"), ("KEPT", "1")]), config_map("c", &[("K", "1")]), reader.into()]);
    ns.apply(&[secret("s", &[("KEPT", "1")])]);
    ns.kubectl(&["patch", "secret/s", "--patch", r#"{"stringData":{"HAND":"1"}}"#]);
    let is_complete = |report: &Value| report["status"]["findings"].as_array().is_some_and(|all| all.len() == 3);
    ns.until(DRIFT_REPORT, "secret-s", "to tell of all three", is_complete).await;
    ns.until(DRIFT_REPORT, "deployment-w", "to be about reloading", |report| !report["status"]["reload"].is_null())
        .await;

    let table = ns.kubectl(&["get", "drift", "--sort-by=.metadata.name"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split("  ").map(str::trim).collect()).collect();
    let rows: Vec<Vec<&str>> =
        rows.into_iter().map(|row| row.into_iter().filter(|cell| !cell.is_empty()).collect()).collect();
    let header = ["NAME", "KIND", "SUBJECT", "IN SYNC", "STALE KEYS", "OTHER", "RELOAD", "LAST RELOAD", "AGE"];
    assert_eq!(rows[0], header, "{table}");
    assert_eq!(rows[1][..6], ["deployment-w", "Deployment", "w", "True", "0", "0"], "{table}");
    assert_eq!(rows[2][..6], ["secret-s", "Secret", "s", "False", "2", "1"], "{table}");

    let selected = ["get", "drift", "--field-selector=spec.subject.kind=Secret,spec.subject.name=s", "--output=name"];
    assert_eq!(ns.kubectl(&selected), "driftreport.restamp.dev/secret-s\n");
    let patch = r#"{"spec":{"subject":{"name":"other"}}}"#;
    let args = ["patch", "drift/secret-s", "--type=merge", "--patch", patch, "--namespace", ns.name()];
    let refused = ns.cluster().kubectl_with(&ns.cluster().kubeconfig(), &args, "");
    let refused = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.contains("the subject of a report can't be changed"), "{refused}");
}
