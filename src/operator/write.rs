//! The writes: each has a deadline, names the state that it was decided on, and is safe to repeat.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::pinned_kind;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::api::annotations::CONFIG_HASH;
use crate::api::drift_report::{DriftReport, DriftReportStatus};
use crate::model::custom::CustomKind;
use crate::model::index::{Act, StampOrder};
use crate::model::managers::FIELD_MANAGER;
use crate::model::names::{ResourceVersion, WorkloadId, WorkloadKind};
use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;

/// A workload after its stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamped {
    /// Its version.
    pub version: ResourceVersion,
    /// Its generation.
    pub generation: i64,
}

/// Whether `kubectl rollout history` gets to know why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChangeCause {
    /// It does not: later revisions would inherit the text.
    #[default]
    Omit,
    /// It does, unless another manager owns that annotation.
    Write,
}

const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";

/// Puts a stamp on: one server-side apply of one annotation. With uid and resourceVersion in it, the API server
/// refuses what was decided on an old state, and makes nothing that is gone.
pub async fn stamp(client: &Client, order: &StampOrder, change_cause: ChangeCause) -> Result<Stamped, ApiError> {
    let apply = PatchParams::apply(FIELD_MANAGER);
    if change_cause == ChangeCause::Write {
        let annotations = json!({(CHANGE_CAUSE): format!("restamp: {}", order.cause)});
        let metadata = json!({"uid": order.uid, "resourceVersion": order.version, "annotations": annotations});
        match apply_stamp(client, order, metadata, &apply).await {
            // Somebody else's, or forbidden by a policy: the stamp matters more than why it is there.
            Err(ApiError::Owned | ApiError::Refused(_)) => {}
            answer => return answer,
        }
    }
    let metadata = json!({"uid": order.uid, "resourceVersion": order.version});
    apply_stamp(client, order, metadata, &apply.force()).await
}

/// The fields that are ours: the annotation of the pod template, or the time from which on pods are restarted, with the
/// annotation on the object itself.
fn stamp_patch(order: &StampOrder, mut metadata: Value) -> Value {
    let kind = order.workload.kind;
    let spec = match order.act {
        Act::Stamp | Act::MakeAgain | Act::Run(_) => {
            json!({"template": {"metadata": {"annotations": {(CONFIG_HASH): order.text}}}})
        }
        Act::RestartAt(time) => {
            if let Some(metadata) = metadata.as_object_mut() {
                let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
                annotations.as_object_mut().map(|all| all.insert(CONFIG_HASH.to_owned(), json!(order.text)));
            }
            json!({"restartAt": time.to_string()})
        }
    };
    json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": metadata, "spec": spec})
}

async fn apply_stamp(
    client: &Client,
    order: &StampOrder,
    metadata: Value,
    apply: &PatchParams,
) -> Result<Stamped, ApiError> {
    let kind = order.workload.kind;
    let resource = resource(client, kind).await?;
    let workloads: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), order.workload.namespace.as_str(), &resource);
    let patch = stamp_patch(order, metadata);
    let name = order.workload.name.as_str();
    let answer = in_time(workloads.patch_metadata(name, apply, &Patch::Apply(&patch))).await?;
    Ok(Stamped {
        version: version(&answer.metadata)?,
        generation: answer.metadata.generation.ok_or_else(|| ApiError::Unreadable("metadata.generation".to_owned()))?,
    })
}

/// Where a report stands in the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub version: ResourceVersion,
}

impl Place {
    /// Where this report stands, if it was read from the API server.
    pub fn of(report: &DriftReport) -> Option<Self> {
        Self::read(&report.metadata).ok()
    }

    fn read(metadata: &ObjectMeta) -> Result<Self, ApiError> {
        let uid = metadata.uid.clone().ok_or_else(|| ApiError::Unreadable("metadata.uid".to_owned()))?;
        Ok(Self { uid, version: version(metadata)? })
    }
}

/// Makes a report, without its status.
pub async fn create_report(client: &Client, report: &DriftReport) -> Result<Place, ApiError> {
    let namespace = report.metadata.namespace.as_deref().unwrap_or_default();
    let reports: Api<DriftReport> = Api::namespaced(client.clone(), namespace);
    let bare = DriftReport { status: None, ..report.clone() };
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let made = in_time(reports.create(&params, &bare)).await?;
    Place::read(&made.metadata)
}

/// Writes a report's status over the one that stands there.
pub async fn write_status(
    client: &Client,
    metadata: &ObjectMeta,
    status: &DriftReportStatus,
    place: &Place,
) -> Result<Place, ApiError> {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    let reports: Api<DriftReport> = Api::namespaced(client.clone(), namespace);
    let patch = json!({
        "apiVersion": "restamp.dev/v1alpha1",
        "kind": "DriftReport",
        "metadata": {"uid": place.uid, "resourceVersion": place.version},
        "status": status,
    });
    let apply = PatchParams::apply(FIELD_MANAGER).force();
    let written = in_time(reports.patch_status(name, &apply, &Patch::Apply(&patch))).await?;
    Place::read(&written.metadata)
}

/// Deletes a report, if it is still the one that was meant.
pub async fn delete_report(client: &Client, namespace: &str, name: &str, place: &Place) -> Result<(), ApiError> {
    let reports: Api<DriftReport> = Api::namespaced(client.clone(), namespace);
    let preconditions =
        Preconditions { uid: Some(place.uid.clone()), resource_version: Some(place.version.to_string()) };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match in_time(reports.delete(name, &params)).await {
        Ok(_) | Err(ApiError::NotFound) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A workload as it is.
pub async fn object(client: &Client, id: &WorkloadId) -> Result<DynamicObject, ApiError> {
    let resource = resource(client, id.kind).await?;
    let workloads: Api<DynamicObject> = Api::namespaced_with(client.clone(), id.namespace.as_str(), &resource);
    in_time(workloads.get(id.name.as_str())).await
}

async fn resource(client: &Client, kind: WorkloadKind) -> Result<ApiResource, ApiError> {
    if let WorkloadKind::Custom(kind) = kind {
        return discover(client, kind).await;
    }
    let (group, version) = kind.api_version().split_once('/').unwrap_or(("", kind.api_version()));
    Ok(ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind.as_str())))
}

/// Under which path the API server has a custom kind; its plural is anything.
pub async fn discover(client: &Client, kind: &CustomKind) -> Result<ApiResource, ApiError> {
    let name = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
    in_time(pinned_kind(client, &name)).await.map(|(resource, _)| resource)
}

pub(super) fn version(metadata: &ObjectMeta) -> Result<ResourceVersion, ApiError> {
    let version = metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
    version.ok_or_else(|| ApiError::Unreadable("metadata.resourceVersion".to_owned()))
}
