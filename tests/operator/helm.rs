//! Drift of the objects of a Helm release: what its newest deployed revision declares is what counts.

use std::io::Write as _;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::support::kind::DRIFT_REPORT;
use crate::support::manifests::deployment;
use crate::support::namespace::Namespace;
use crate::support::turn;

/// What helm puts on each of its objects.
fn of_release(mut object: Value, ns: &Namespace) -> Value {
    object["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
    object["metadata"]["annotations"] =
        json!({"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": ns.name()});
    object
}

fn secret(keys: &[&str]) -> Value {
    let data: serde_json::Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), json!("1"))).collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": data})
}

fn workload(image: &str) -> Value {
    let mut manifest = deployment("w").env_from_secret("s").image(image).build();
    manifest["metadata"]["annotations"] = json!({});
    manifest
}

/// Writes what helm keeps of a revision, as helm writes it; none of the objects.
fn keep_revision(ns: &Namespace, number: u32, status: &str, objects: &[Value]) {
    let documents: Vec<String> = objects.iter().map(|object| format!("---\n# Source: web\n{object}\n")).collect();
    let content = json!({"name": "web", "version": number, "info": {"status": status}, "manifest": documents.concat()});
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(content.to_string().as_bytes()).unwrap();
    let labels = json!({"owner": "helm", "name": "web", "version": number.to_string(), "status": status});
    let record = json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {"name": format!("sh.helm.release.v1.web.v{number}"), "labels": labels},
        "stringData": {"release": BASE64_STANDARD.encode(packed.finish().unwrap())}});
    ns.kubectl_reading(&record.to_string(), &["create", "--field-manager=helm", "--filename=-"]);
}

fn findings(report: &Value) -> Vec<String> {
    let findings = report["status"]["findings"].as_array().into_iter().flatten();
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap_or_default().to_owned();
    findings
        .map(|finding| format!("{} {}{}", text(finding, "type"), text(finding, "key"), text(finding, "path")))
        .collect()
}

fn is_in_sync(report: &Value) -> bool {
    report["status"]["conditions"][0]["status"] == "True"
}

#[tokio::test]
async fn what_a_release_declares_is_what_counts_also_after_an_upgrade_that_changes_no_object() {
    let turn = turn().await;
    let ns = turn.namespace("helm").await;
    let _operator = turn.operator(&[("--report-after", "0s")]).await;
    keep_revision(&ns, 1, "deployed", &[secret(&["A", "OLD"]), workload("localhost/app:1")]);
    for object in [secret(&["A", "OLD"]), workload("localhost/app:1")] {
        let object = of_release(object, &ns).to_string();
        ns.kubectl_reading(&object, &["create", "--field-manager=helm", "--filename=-"]);
    }
    ns.kubectl(&["set", "image", "deployment/w", "app=localhost/app:2"]);
    let image = "RevertsOnApply spec.template.spec.containers[app].image".to_owned();
    let report =
        ns.until(DRIFT_REPORT, "deployment-w", "to name the image", |report| findings(report) == [image.clone()]).await;
    let source = json!({"kind": "Release", "namespace": ns.name(), "name": "web"});
    assert_eq!((&report["status"]["baseline"], &report["status"]["source"]), (&json!("HelmRelease"), &source));
    assert!(ns.get(DRIFT_REPORT, "secret-s").await.is_none_or(|report| findings(&report).is_empty()));

    // `stringData` is not pruned: the upgrade sends no change of the Secret at all.
    keep_revision(&ns, 2, "deployed", &[secret(&["A"]), workload("localhost/app:2")]);
    let stale = ["StaleKey OLD".to_owned()];
    let report =
        ns.until(DRIFT_REPORT, "secret-s", "to name the key that went", |report| findings(report) == stale).await;
    assert_eq!(report["status"]["findings"][0]["manager"], "helm");
    ns.until(DRIFT_REPORT, "deployment-w", "to be in sync", is_in_sync).await;

    ns.kubectl(&["patch", "secret", "s", "--type=json", "--patch", r#"[{"op":"remove","path":"/data/OLD"}]"#]);
    ns.until(DRIFT_REPORT, "secret-s", "to be in sync", is_in_sync).await;

    // Of a revision that is not deployed nobody knows what is live of it.
    ns.kubectl(&["set", "image", "deployment/w", "app=localhost/app:3"]);
    ns.until(DRIFT_REPORT, "deployment-w", "to name the image again", |report| findings(report) == [image.clone()])
        .await;
    keep_revision(&ns, 3, "failed", &[secret(&["A"]), workload("localhost/app:3")]);
    ns.until(DRIFT_REPORT, "deployment-w", "to claim nothing", |report| {
        findings(report).is_empty() && report["status"]["baseline"] == "None"
    })
    .await;
}
