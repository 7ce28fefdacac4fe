//! The custom resource `DriftReport`: what restamp says about one config or workload.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::reload_status::ReloadStatus;
use crate::model::consumption::{Refresh, Via};
use crate::model::digest::ChangeId;
use crate::model::names::{KeyName, Manager, Name};

/// As many findings as a report holds at most; the rest is counted in a note.
pub const MAX_FINDINGS: usize = 5_000;

/// What a DriftReport is about.
#[derive(Debug, Clone, PartialEq, Eq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "restamp.dev",
    version = "v1alpha1",
    kind = "DriftReport",
    shortname = "drift",
    category = "restamp",
    namespaced,
    status = "DriftReportStatus",
    derive = "PartialEq",
    doc = "What restamp says about one ConfigMap, Secret or workload: whether it is as it is declared.",
    selectable = ".spec.subject.kind",
    selectable = ".spec.subject.name",
    printcolumn = r#"{"name": "Kind", "type": "string", "jsonPath": ".spec.subject.kind"}"#,
    printcolumn = r#"{"name": "Subject", "type": "string", "jsonPath": ".spec.subject.name"}"#,
    printcolumn = r#"{"name": "In Sync", "type": "string", "description": "Whether the subject is as it is declared",
        "jsonPath": ".status.conditions[?(@.type==\"InSync\")].status"}"#,
    printcolumn = r#"{"name": "Stale Keys", "type": "integer", "description": "How many keys are live, yet declared nowhere",
        "jsonPath": ".status.counts.staleKeys"}"#,
    printcolumn = r#"{"name": "Other", "type": "integer", "description": "How many other findings there are",
        "jsonPath": ".status.counts.other"}"#,
    printcolumn = r#"{"name": "Drift", "type": "string", "description": "What was found, in short",
        "jsonPath": ".status.conditions[?(@.type==\"InSync\")].message", "priority": 1}"#,
    printcolumn = r#"{"name": "Reload", "type": "string", "description": "How reloading stands, for a workload that is opted in",
        "jsonPath": ".status.reload.state"}"#,
    printcolumn = r#"{"name": "Last Reload", "type": "date", "description": "The last rollout that restamp caused",
        "jsonPath": ".status.reload.lastReload.time"}"#,
    printcolumn = r#"{"name": "Baseline", "type": "string", "description": "What says which keys are declared",
        "jsonPath": ".status.baseline", "priority": 1}"#,
    printcolumn = r#"{"name": "Source", "type": "string", "description": "Who must mend it", "jsonPath": ".status.source.name",
        "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct DriftReportSpec {
    /// The object that this report is about, in the report's own namespace. It never changes.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "the subject of a report can't be changed"}
    ]))]
    pub subject: Subject,
}

/// A report as the API server has it. Its schema admits what restamp can't read, such as an edit by hand or what another
/// version wrote: then the status counts for nothing, so that one report doesn't make the list of all unreadable.
#[derive(Debug, Clone, kube::Resource, Deserialize)]
#[resource(inherit = DriftReport)]
#[serde(from = "RawReport")]
pub struct StoredReport {
    metadata: ObjectMeta,
    spec: DriftReportSpec,
    /// Its status; none if there is none.
    status: Option<Result<DriftReportStatus, Unreadable>>,
}

/// A status that restamp can't read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The installation that keeps the report, as far as that can be read.
    pub instance: Option<String>,
}

impl Unreadable {
    fn of(status: &serde_json::Value) -> Self {
        let instance = status.pointer("/reload/instance").and_then(serde_json::Value::as_str);
        Self { instance: instance.map(str::to_owned) }
    }
}

#[derive(Deserialize)]
struct RawReport {
    metadata: ObjectMeta,
    spec: DriftReportSpec,
    status: Option<serde_json::Value>,
}

impl From<RawReport> for StoredReport {
    fn from(raw: RawReport) -> Self {
        let status = raw.status.map(|status| {
            let unreadable = Unreadable::of(&status);
            serde_json::from_value(status).map_err(|_| unreadable)
        });
        Self { metadata: raw.metadata, spec: raw.spec, status }
    }
}

impl StoredReport {
    /// The report, without a status if that can't be read.
    pub fn read(self) -> (DriftReport, Result<(), Unreadable>) {
        let (status, readable) = match self.status.transpose() {
            Ok(status) => (status, Ok(())),
            Err(unreadable) => (None, Err(unreadable)),
        };
        (DriftReport { metadata: self.metadata, spec: self.spec, status }, readable)
    }
}

/// An object in the report's namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// Its group and version, such as `v1` or `apps/v1`.
    #[schemars(length(min = 1, max = 317))]
    pub api_version: String,
    /// Its kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: Name,
}

/// What restamp found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftReportStatus {
    /// `InSync`: whether the subject is as it is declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// What says which keys or fields are declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// How much was found, also what a report has no room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Where the subject comes from, where it says so itself: who must mend it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What is not as it should be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_FINDINGS), extend("x-kubernetes-list-type" = "atomic"))]
    pub findings: Vec<FindingStatus>,
    /// What is worth knowing, and is not drift.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub notes: Vec<String>,
    /// The keys of the findings `StaleKey`, for a quick look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_FINDINGS), extend("x-kubernetes-list-type" = "atomic"))]
    pub stale_keys: Vec<KeyName>,
    /// How reloading stands, for a workload that is opted in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload: Option<ReloadStatus>,
}

/// How many findings there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Keys that are live, yet declared nowhere.
    #[schemars(with = "i32", range(min = 0))]
    pub stale_keys: u32,
    /// All other findings.
    #[schemars(with = "i32", range(min = 0))]
    pub other: u32,
}

impl Counts {
    /// What these findings come to.
    pub fn of(findings: &[FindingStatus]) -> Self {
        let stale = findings.iter().filter(|finding| finding.r#type == FindingType::StaleKey).count();
        let count = |many: usize| u32::try_from(many).unwrap_or(u32::MAX);
        Self { stale_keys: count(stale), other: count(findings.len() - stale) }
    }
}

/// What an object comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// What it is.
    pub kind: SourceKind,
    /// Where it is, as far as the object tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Name>,
    /// Its name.
    pub name: Name,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// The kinds of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SourceKind {
    /// An application of Argo CD.
    Application,
    /// A Kustomization of Flux.
    Kustomization,
    /// A HelmRelease of Flux.
    HelmRelease,
    /// A release of Helm itself.
    Release,
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Application => "Application",
            Self::Kustomization => "Kustomization",
            Self::HelmRelease => "HelmRelease",
            Self::Release => "Release",
        })
    }
}

/// The condition `InSync`, by its reasons: each has one status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InSync {
    /// `True`: nothing was found.
    AsDeclared,
    /// `False`: something was found.
    Drifted,
    /// `Unknown`: nothing says what is declared.
    NoBaseline,
    /// `Unknown`: something differs, and the object doesn't show who wrote it.
    OwnersHidden,
}

impl InSync {
    /// The condition's type.
    pub const TYPE: &str = "InSync";

    /// The condition's status.
    pub fn status(self) -> &'static str {
        match self {
            Self::AsDeclared => "True",
            Self::Drifted => "False",
            Self::NoBaseline | Self::OwnersHidden => "Unknown",
        }
    }

    /// The condition's reason.
    pub fn reason(self) -> &'static str {
        match self {
            Self::AsDeclared => "AsDeclared",
            Self::Drifted => "Drifted",
            Self::NoBaseline => "NoBaseline",
            Self::OwnersHidden => "OwnersHidden",
        }
    }
}

/// What says which keys or fields of an object are declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub enum Baseline {
    /// The annotation that `kubectl apply` leaves.
    LastApplied,
    /// The manifest of a Helm release.
    HelmRelease,
    /// The keys that an applier owns by server-side apply.
    ManagedFields,
    /// Nothing: no claim is made.
    #[default]
    None,
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::LastApplied => "LastApplied",
            Self::HelmRelease => "HelmRelease",
            Self::ManagedFields => "ManagedFields",
            Self::None => "None",
        })
    }
}

/// One finding, as the API shows it: only the fields that its type has are set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingStatus {
    /// Its type.
    pub r#type: FindingType,
    /// The config that it is about, as `Kind/name`, where that is not the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The key that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyName>,
    /// The field that it is about; members of a list by their key, as in `spec.template.spec.containers[app].image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The container that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Name>,
    /// What is declared there: for images, replicas and resources only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    /// What is live there: for images, replicas and resources only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
    /// Whether it is known, or follows from what is usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// How many pods it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", range(min = 0))]
    pub pods: Option<u32>,
    /// When the first of the containers that it is about started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_start: Option<Time>,
    /// The image digests that run, and in how many pods each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub digests: Vec<RunningDigest>,
    /// What blocks, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The change that it is about, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeId>,
    /// Why it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The field manager that left or wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<Manager>,
    /// That manager's last write: what was found is at least as old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// The containers that read the key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub consumers: Vec<Consumer>,
}

impl FindingStatus {
    /// A finding of this type, of which nothing else is said yet.
    pub fn new(r#type: FindingType) -> Self {
        Self {
            r#type,
            object: None,
            key: None,
            path: None,
            container: None,
            declared: None,
            live: None,
            certainty: None,
            pods: None,
            oldest_start: None,
            digests: Vec::new(),
            message: None,
            change: None,
            cause: None,
            manager: None,
            since: None,
            consumers: Vec::new(),
        }
    }
}

/// The types of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum FindingType {
    /// A key is live that no manifest declares any more.
    StaleKey,
    /// A key was added by hand, and no manifest declares it.
    UndeclaredKey,
    /// A key is declared, and not live.
    MissingKey,
    /// A hand changed a declared value: the next apply reverts it.
    ValueDiffers,
    /// A declared field has another value: the next apply reverts it.
    RevertsOnApply,
    /// A hand added a container, a variable or a volume that no manifest declares.
    UndeclaredField,
    /// A container needs a config or a key that does not exist: new pods can't start.
    MissingReference,
    /// Pods of one revision run different images under one tag.
    MixedDigests,
    /// A pod runs another image than the digest that its template pins.
    DigestMismatch,
    /// Containers started before what they read at their start last changed.
    OutdatedPods,
    /// The rollout makes no progress.
    RolloutStalled,
    /// A change failed in workloads that read it, and reaches no others.
    ChangeHalted,
}

impl FindingType {
    /// Every type.
    pub const ALL: [Self; 12] = [
        Self::StaleKey,
        Self::UndeclaredKey,
        Self::MissingKey,
        Self::ValueDiffers,
        Self::RevertsOnApply,
        Self::UndeclaredField,
        Self::MissingReference,
        Self::MixedDigests,
        Self::DigestMismatch,
        Self::OutdatedPods,
        Self::RolloutStalled,
        Self::ChangeHalted,
    ];

    /// So many of this type, in words.
    pub fn count(self, many: usize) -> String {
        let (one, more) = match self {
            Self::StaleKey => ("stale key", "stale keys"),
            Self::UndeclaredKey => ("undeclared key", "undeclared keys"),
            Self::MissingKey => ("missing key", "missing keys"),
            Self::ValueDiffers => ("changed value", "changed values"),
            Self::RevertsOnApply => ("field that the next apply reverts", "fields that the next apply reverts"),
            Self::UndeclaredField => ("undeclared field", "undeclared fields"),
            Self::MissingReference => ("missing reference", "missing references"),
            Self::MixedDigests => ("container with mixed images", "containers with mixed images"),
            Self::DigestMismatch => ("container with a wrong image", "containers with a wrong image"),
            Self::OutdatedPods => ("config that pods read too early", "configs that pods read too early"),
            Self::RolloutStalled => ("stalled rollout", "stalled rollouts"),
            Self::ChangeHalted => ("halted change", "halted changes"),
        };
        format!("{many} {}", if many == 1 { one } else { more })
    }
}

impl fmt::Display for FindingType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::StaleKey => "StaleKey",
            Self::UndeclaredKey => "UndeclaredKey",
            Self::MissingKey => "MissingKey",
            Self::ValueDiffers => "ValueDiffers",
            Self::RevertsOnApply => "RevertsOnApply",
            Self::UndeclaredField => "UndeclaredField",
            Self::MissingReference => "MissingReference",
            Self::MixedDigests => "MixedDigests",
            Self::DigestMismatch => "DigestMismatch",
            Self::OutdatedPods => "OutdatedPods",
            Self::RolloutStalled => "RolloutStalled",
            Self::ChangeHalted => "ChangeHalted",
        })
    }
}

/// Whether a finding is known, or follows from what is usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Certainty {
    /// restamp saw it.
    Certain,
    /// The objects say when a manager last wrote, but not what: it may be something else.
    Likely,
}

impl fmt::Display for Certainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
        })
    }
}

/// An image digest that runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningDigest {
    /// The digest, as in `sha256:…`.
    pub digest: String,
    /// In how many pods it runs.
    #[schemars(with = "i32", range(min = 0))]
    pub pods: u32,
}

/// Why a stale key is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Cause {
    /// The apply that wrote it doesn't prune it.
    LeftByApply,
    /// Nobody owns it, so nobody prunes it.
    Unowned,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::LeftByApply => "LeftByApply",
            Self::Unowned => "Unowned",
        })
    }
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

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn stored(status: Value) -> StoredReport {
        let report = json!({
            "apiVersion": "restamp.dev/v1alpha1", "kind": "DriftReport",
            "metadata": {"name": "deployment-w", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
            "spec": {"subject": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}},
            "status": status,
        });
        serde_json::from_value(report).unwrap()
    }

    fn reload(record: Value) -> Value {
        json!({"reload": {"state": "Current", "instance": "restamp-system", "record": record}})
    }

    #[rstest]
    #[case::no_status(Value::Null, false)]
    #[case::an_empty_one(json!({}), true)]
    #[case::a_record(reload(json!({"entries": [{"config": "ConfigMap/c", "all": true}]})), true)]
    fn a_report_is_read_as_it_is(#[case] status: Value, #[case] has_status: bool) {
        let (report, readable) = stored(status).read();
        assert_eq!((report.status.is_some(), readable), (has_status, Ok(())));
    }

    #[rstest]
    #[case::no_config(reload(json!({"entries": [{"config": "garbage", "all": true}]})), Some("restamp-system"))]
    #[case::no_state_of_ours(json!({"reload": {"state": "Later", "instance": "i", "record": {}}}), Some("i"))]
    #[case::no_finding_of_ours(json!({"findings": [{"type": "OfALaterVersion"}]}), None)]
    fn of_a_status_that_cannot_be_read_only_whose_it_is_counts(#[case] status: Value, #[case] instance: Option<&str>) {
        let (report, readable) = stored(status).read();
        assert_eq!((report.status, readable), (None, Err(Unreadable { instance: instance.map(str::to_owned) })));
        assert_eq!(report.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(report.spec.subject.name, "w".into());
    }
}
