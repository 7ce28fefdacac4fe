//! The spec that a workload's last-applied annotation declares.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Manifest;
use crate::model::names::{WorkloadId, WorkloadKind};

/// An object of a custom kind.
#[derive(Serialize, Deserialize)]
struct Custom {
    spec: CustomSpec,
}

/// What is known of the spec of a custom kind.
#[derive(Serialize, Deserialize)]
pub struct CustomSpec {
    /// How many pods there are to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The pod template.
    pub template: PodTemplateSpec,
}

/// The declared spec; `None` without an annotation, and otherwise what is wrong with it.
pub(super) fn spec_of(id: &WorkloadId, annotation: Option<&str>) -> Result<Option<Map<String, Value>>, Manifest> {
    let Some(text) = annotation else { return Ok(None) };
    let manifest: Value = serde_json::from_str(text).map_err(|_| Manifest::Broken)?;
    let metadata = manifest.get("metadata").ok_or(Manifest::Broken)?;
    let says =
        |object: &Value, field: &str, expected: &str| object.get(field).and_then(Value::as_str) == Some(expected);
    let is_own = says(&manifest, "apiVersion", id.kind.api_version())
        && says(&manifest, "kind", id.kind.as_str())
        && says(metadata, "name", id.name.as_str())
        && says(metadata, "namespace", id.namespace.as_str());
    if !is_own {
        return Err(Manifest::Foreign);
    }
    declared_spec(id.kind, manifest).map(Some).ok_or(Manifest::Broken)
}

/// The spec in a manifest of this kind; `None` if it does not have the kind's form.
pub fn declared_spec(kind: WorkloadKind, manifest: Value) -> Option<Map<String, Value>> {
    match as_the_api_reads_it(kind, manifest)?.get_mut("spec").map(Value::take) {
        Some(Value::Object(spec)) => Some(spec),
        _ => None,
    }
}

/// The manifest, without what the kind's type doesn't have: of such a field it can't be told whether it is live.
fn as_the_api_reads_it(kind: WorkloadKind, manifest: Value) -> Option<Value> {
    fn read<K: Serialize + DeserializeOwned>(manifest: Value) -> Option<Value> {
        serde_json::to_value(serde_json::from_value::<K>(manifest).ok()?).ok()
    }
    match kind {
        WorkloadKind::Deployment => read::<Deployment>(manifest),
        WorkloadKind::StatefulSet => read::<StatefulSet>(manifest),
        WorkloadKind::DaemonSet => read::<DaemonSet>(manifest),
        WorkloadKind::ReplicaSet => read::<ReplicaSet>(manifest),
        WorkloadKind::CronJob => read::<CronJob>(manifest),
        WorkloadKind::Job => read::<Job>(manifest),
        WorkloadKind::Custom(_) => read::<Custom>(manifest),
        WorkloadKind::Pod => None,
    }
}
