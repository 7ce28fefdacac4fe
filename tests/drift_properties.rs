//! Whatever stands in the annotation and in managedFields: nothing panics, and what is broken yields no finding.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, reason = "a test may panic")]

use base64::prelude::{BASE64_STANDARD, Engine as _};
use proptest::prelude::*;
use restamp::model::config::SecretObject;
use restamp::model::consumers::Consumers;
use restamp::model::drift::{Drift, drift_of};
use restamp::model::managers::Managers;
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

fn owners() -> Value {
    json!([{"manager": "kubectl-client-side-apply", "operation": "Update", "fieldsV1": {"f:data": {"f:K": {}}}}])
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

proptest! {
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
