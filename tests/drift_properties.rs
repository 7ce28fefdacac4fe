//! Whatever stands in the annotation and in managedFields: nothing panics, and what is broken yields no finding.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, reason = "a test may panic")]

use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use proptest::prelude::*;
use restamp::model::autoscaler::Autoscaling;
use restamp::model::config::{Configs, SecretObject};
use restamp::model::consumers::Consumers;
use restamp::model::drift::{Drift, WorkloadSight, drift_of, drift_of_workload};
use restamp::model::helm::{ReleaseSecret, Releases};
use restamp::model::managers::Managers;
use restamp::model::revision::OwnPods;
use restamp::model::workload::Workload;
use serde_json::{Value, json};

/// A Secret with one key, or none if it doesn't have the form of one.
fn drift(annotation: &str, managed_fields: Value) -> Option<Drift> {
    let secret: SecretObject = serde_json::from_value(json!({
        "metadata": {
            "name": "s", "namespace": "ns", "managedFields": managed_fields,
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": annotation},
        },
        "data": {"K": BASE64_STANDARD.encode("live")},
    }))
    .ok()?;
    drift_of(&secret.config, &Managers::default(), &Consumers::default())
}

fn manifest() -> String {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"},
        "stringData": {"OTHER": "declared"}})
    .to_string()
}

/// A Deployment with another image than this annotation may declare, and a variable of which it says nothing.
fn workload_drift(annotation: &str, managed_fields: Value) -> Option<Drift> {
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {
            "name": "w", "namespace": "ns", "managedFields": managed_fields,
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": annotation},
        },
        "spec": spec("app:2", json!([{"name": "EXTRA", "value": "1"}])),
    }))
    .ok()?;
    let workload = Workload::of_deployment(&deployment)?;
    let (configs, managers) = (Configs::default(), Managers::default());
    let sight = WorkloadSight {
        workload: &workload,
        configs: &configs,
        managers: &managers,
        autoscaling: Autoscaling::Off,
        own_pods: OwnPods { workload: &workload, pods: &[], replica_set: None },
        reloading: None,
        now: Timestamp::UNIX_EPOCH,
    };
    Some(drift_of_workload(&sight))
}

fn spec(image: &str, env: Value) -> Value {
    json!({"selector": {}, "template": {"spec": {"containers": [{"name": "app", "image": image, "env": env}]}}})
}

fn workload_manifest() -> String {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "ns"},
        "spec": spec("app:1", json!([]))})
    .to_string()
}

fn field_owners() -> Value {
    let container = json!({"f:image": {}, "f:env": {"k:{\"name\":\"EXTRA\"}": {".": {}}}});
    let spec = json!({"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"app\"}": container}}}});
    json!([{"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": spec}}])
}

fn owners() -> Value {
    json!([{"manager": "kubectl-client-side-apply", "operation": "Update", "fieldsV1": {"f:data": {"f:K": {}}}}])
}

/// Specs of pods with members that have no name, the same one, or none at all.
fn any_spec() -> impl Strategy<Value = Value> {
    let text =
        || prop::sample::select(vec![json!("A"), json!("B"), json!(""), json!(null), json!("1Gi"), json!("1024Mi")]);
    let variable = (text(), text()).prop_map(|(name, value)| json!({"name": name, "value": value}));
    let port = (0..3_u16).prop_map(|port| json!({"containerPort": port}));
    let container = (text(), text(), prop::collection::vec(variable, 0..4), prop::collection::vec(port, 0..3), text());
    let container = container.prop_map(|(name, image, env, ports, memory)| {
        json!({"name": name, "image": image, "env": env, "ports": ports, "resources": {"limits": {"memory": memory}}})
    });
    let containers = prop::collection::vec(container, 0..3);
    containers.prop_map(|containers| json!({"selector": {}, "template": {"spec": {"containers": containers}}}))
}

/// JSON of the words that stand in managedFields, without those that would make an entry whole.
fn broken_managed_fields() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "manager",
        "kubectl",
        "time",
        "fieldsV1",
        "f:data",
        "f:stringData",
        "f:K",
        "f:spec",
        "f:template",
        "f:containers",
        "k:{\"name\":\"app\"}",
        "f:image",
        ".",
        "Update",
        "subresource",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let fields = prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner.clone(), 0..6);
        prop_oneof![prop::collection::vec(inner, 0..6).prop_map(Value::from), fields.prop_map(Value::from_iter),]
    })
}

#[test]
fn the_same_objects_whole_have_findings() {
    assert_eq!(drift(&manifest(), owners()).unwrap().findings.len(), 2);
}

#[test]
fn so_does_the_same_workload() {
    assert_eq!(workload_drift(&workload_manifest(), field_owners()).unwrap().findings.len(), 2);
}

/// A Secret that a hand changed, and whose Helm release has these bytes in it.
fn drift_of_released(release: &str) -> Option<Drift> {
    let labels = json!({"owner": "helm", "name": "r", "version": "1", "status": "deployed"});
    let secret: ReleaseSecret = serde_json::from_value(json!({
        "type": "helm.sh/release.v1", "data": {"release": release},
        "metadata": {"name": "sh.helm.release.v1.r.v1", "namespace": "ns", "labels": labels},
    }))
    .unwrap();
    let (id, revision, release) = secret.read().unwrap();
    let mut releases = Releases::default();
    releases.insert(id, revision, release);
    let mut secret: SecretObject = serde_json::from_value(json!({
        "metadata": {
            "name": "s", "namespace": "ns", "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "ns"},
            "managedFields": [{"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:data": {"f:K": {}}}}],
        },
        "data": {"K": BASE64_STANDARD.encode("live")},
    }))
    .unwrap();
    secret.config.compare_with(&releases);
    drift_of(&secret.config, &Managers::default(), &Consumers::default())
}

/// As Helm keeps it.
fn released(content: &str) -> String {
    BASE64_STANDARD.encode(BASE64_STANDARD.encode(content))
}

#[test]
fn a_release_that_is_whole_yields_a_finding() {
    let manifest = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {K: declared}\n";
    let drift = drift_of_released(&released(&json!({"manifest": manifest}).to_string())).unwrap();
    assert_eq!(drift.findings.len(), 1);
}

proptest! {
    #[test]
    fn a_broken_release_yields_no_finding(text in ".{0,200}", cut in 0_usize..400) {
        let manifest = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {K: declared}\n";
        let whole = released(&json!({"manifest": manifest}).to_string());
        let cut = whole.chars().take(cut.min(whole.len() - 8)).collect();
        for release in [text.clone(), released(&text), cut] {
            prop_assert_eq!(drift_of_released(&release).unwrap().findings, vec![]);
        }
    }

    #[test]
    fn a_broken_annotation_of_a_workload_yields_no_finding(text in "(?s).*") {
        let drift = workload_drift(&text, field_owners()).unwrap();
        prop_assert!(drift.findings.is_empty(), "{drift:?}");
    }

    #[test]
    fn nor_does_one_of_a_workload_that_was_cut(cut in 0usize..workload_manifest().len()) {
        let drift = workload_drift(&workload_manifest()[..cut], field_owners()).unwrap();
        prop_assert!(drift.findings.is_empty(), "{drift:?}");
    }

    #[test]
    fn nor_do_broken_managed_fields_of_a_workload(fields in broken_managed_fields()) {
        let drift = workload_drift(&workload_manifest(), fields);
        prop_assert!(drift.as_ref().is_none_or(|drift| drift.findings.is_empty()), "{drift:?}");
    }

    #[test]
    fn any_spec_is_compared(live in any_spec(), declared in any_spec()) {
        let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "ns"},
            "spec": declared});
        let entry = json!({"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": {}}});
        let object = json!({"metadata": {"name": "w", "namespace": "ns", "managedFields": [entry],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": manifest.to_string()}}, "spec": live});
        if let Ok(deployment) = serde_json::from_value::<Deployment>(object) {
            let workload = Workload::of_deployment(&deployment).unwrap();
            if live == declared {
                prop_assert!(workload.fields.differences.is_empty(), "{:?}", workload.fields);
            }
        }
    }

    #[test]
    fn a_broken_annotation_yields_no_finding(text in "(?s).*") {
        let drift = drift(&text, owners()).unwrap();
        prop_assert!(drift.findings.is_empty(), "{drift:?}");
    }

    #[test]
    fn nor_does_one_that_was_cut(cut in 0usize..manifest().len()) {
        let drift = drift(&manifest()[..cut], owners()).unwrap();
        prop_assert!(drift.findings.is_empty(), "{drift:?}");
    }

    #[test]
    fn nor_do_broken_managed_fields(fields in broken_managed_fields()) {
        let drift = drift(&manifest(), fields);
        prop_assert!(drift.as_ref().is_none_or(|drift| drift.findings.is_empty()), "{drift:?}");
    }

    #[test]
    fn nor_do_both(text in "(?s).*", fields in broken_managed_fields()) {
        let drift = drift(&text, fields);
        prop_assert!(drift.as_ref().is_none_or(|drift| drift.findings.is_empty()), "{drift:?}");
    }
}
