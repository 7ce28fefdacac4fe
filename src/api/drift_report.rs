//! The custom resource `DriftReport`: what restamp says about one config or workload.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::consumption::{Refresh, Via};
use crate::model::names::{KeyName, Manager, Name};

/// What a DriftReport is about.
#[derive(Debug, Clone, PartialEq, Eq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "restamp.dev",
    version = "v1alpha1",
    kind = "DriftReport",
    shortname = "drift",
    namespaced,
    status = "DriftReportStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct DriftReportSpec {
    /// The object that this report is about, in the report's own namespace.
    pub subject: Subject,
}

/// An object in the report's namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// Its group and version, such as `v1` or `apps/v1`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: Name,
}

/// What restamp found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftReportStatus {
    /// `InSync`: whether the subject is as it is declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What says which keys or fields are declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// What is not as it should be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingStatus>,
    /// What is worth knowing, and is not drift.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The keys of the findings `StaleKey`, for a quick look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale_keys: Vec<KeyName>,
}

/// What says which keys or fields of an object are declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Baseline {
    /// The annotation that `kubectl apply` leaves.
    LastApplied,
    /// The manifest of a Helm release.
    HelmRelease,
    /// The keys that an applier owns by server-side apply.
    ManagedFields,
    /// Nothing: no claim is made.
    None,
}

/// One finding, as the API shows it: only the fields that its type has are set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingStatus {
    /// Its type.
    pub r#type: String,
    /// The key that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyName>,
    /// Why it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The field manager that left or wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<Manager>,
    /// That manager's last write: what was found is at least as old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
    /// The containers that read the key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumers: Vec<Consumer>,
}

/// One container's reading of one key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Consumer {
    /// `Kind/name` of the workload.
    pub workload: String,
    /// The container.
    pub container: Name,
    /// How it reads.
    pub via: Via,
    /// As what it sees the key: the variable's name, or the file's path.
    pub r#as: String,
    /// When it sees a change.
    pub refresh: Refresh,
}
