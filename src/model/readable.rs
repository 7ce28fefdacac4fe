//! An object that is read whatever it holds, so that one bad object stops no watch and no list of the others.
//!
//! The API server takes what our types don't: a time like `9999-12-31T23:59:59Z` in a pod template, where anybody may
//! write one, is beyond the latest that our library knows.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;

/// The fields that hold times, in metadata and in its managedFields.
const TIMES: [&str; 3] = ["creationTimestamp", "deletionTimestamp", "time"];

/// An object of kind `K`, if it can be read as one.
#[derive(Debug, Clone)]
pub struct Readable<K> {
    metadata: ObjectMeta,
    object: Option<K>,
}

impl<K> Readable<K> {
    /// The object, if it could be read.
    pub fn get(&self) -> Option<&K> {
        self.object.as_ref()
    }

    /// The object; otherwise what is known of it.
    pub fn read(self) -> Result<K, Box<ObjectMeta>> {
        self.object.ok_or_else(|| Box::new(self.metadata))
    }
}

impl<'de, K: DeserializeOwned + Resource> Deserialize<'de> for Readable<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        let object = K::deserialize(&value).ok().or_else(|| {
            drop_unknown_times(&mut value);
            K::deserialize(&value).ok()
        });
        let metadata = object.as_ref().map_or_else(|| name_of(&value), |object| object.meta().clone());
        Ok(Self { metadata, object })
    }
}

/// Takes out each time that is none to us, wherever it is.
fn drop_unknown_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_time = |name: &str| TIMES.contains(&name);
            let known = |value: &Value| value.as_str().is_some_and(|text| text.parse::<Timestamp>().is_ok());
            fields.retain(|name, value| !is_time(name) || !value.is_string() || known(value));
            fields.values_mut().for_each(drop_unknown_times);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_unknown_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What tells which object it is, and which version of it.
fn name_of(value: &Value) -> ObjectMeta {
    let text = |field: &str| value.get("metadata")?.get(field)?.as_str().map(str::to_owned);
    ObjectMeta {
        name: text("name"),
        namespace: text("namespace"),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        ..ObjectMeta::default()
    }
}

impl<K: Resource> Resource for Readable<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(of: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(of)
    }

    fn group(of: &Self::DynamicType) -> Cow<'_, str> {
        K::group(of)
    }

    fn version(of: &Self::DynamicType) -> Cow<'_, str> {
        K::version(of)
    }

    fn api_version(of: &Self::DynamicType) -> Cow<'_, str> {
        K::api_version(of)
    }

    fn plural(of: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(of)
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;
    use rstest::rstest;
    use serde_json::json;

    const LATE: &str = "9999-12-31T23:59:59Z";

    fn with(pointer: &str, value: Value) -> Readable<Deployment> {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "w", "namespace": "ns", "resourceVersion": "7", "managedFields": [{
                "manager": "m", "operation": "Update", "time": "2026-11-30T12:00:00Z", "fieldsV1": {},
            }]},
            "spec": {"replicas": 2, "selector": {}, "template": {
                "metadata": {"creationTimestamp": null, "labels": {"time": LATE}},
                "spec": {"containers": []},
            }},
        });
        *object.pointer_mut(pointer).unwrap() = value;
        serde_json::from_value(object).unwrap()
    }

    #[rstest]
    #[case::nothing("/metadata/name", json!("w"))]
    #[case::in_the_template("/spec/template/metadata/creationTimestamp", json!(LATE))]
    #[case::in_managed_fields("/metadata/managedFields/0/time", json!(LATE))]
    fn a_time_that_is_none_to_us_costs_that_time_alone(#[case] pointer: &str, #[case] value: Value) {
        let object = with(pointer, value).read().unwrap();
        assert_eq!((object.metadata.name.as_deref(), object.spec.replicas), (Some("w"), Some(2)));
        assert_eq!(object.metadata.managed_fields.map(|entries| entries.len()), Some(1));
    }

    #[test]
    fn what_can_not_be_read_is_named() {
        let metadata = with("/spec/replicas", json!("many")).read().unwrap_err();
        assert_eq!((metadata.name.as_deref(), metadata.resource_version.as_deref()), (Some("w"), Some("7")));
    }
}
