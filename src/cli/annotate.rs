//! What `approve` and `resume` have in common: a hash that a report names goes into an annotation of its subject.

use std::io::Write;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::json;

use crate::api::drift_report::{DriftReport, DriftReportStatus};
use crate::cli::Failure;
use crate::cli::explain::object::{Kind, ObjectName};
use crate::cli::live::block_on;
use crate::connect::{ConnectError, Target};
use crate::model::names::{ConfigKind, WorkloadKind};
use crate::model::report::name_of;
use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;

/// Why nothing was annotated.
#[derive(Debug, thiserror::Error)]
pub enum AnnotateError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The report can't be read.
    #[error("cannot read DriftReport {namespace}/{name}: {cause}; grant get on driftreports.restamp.dev")]
    Report {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why not.
        cause: ApiError,
    },
    /// Nothing waits for it.
    #[error(
        "nothing of {object} in namespace {namespace} {waits}; see restamp explain {object} --namespace {namespace}"
    )]
    Nothing {
        /// The object.
        object: ObjectName,
        /// Its namespace.
        namespace: String,
        /// For what nothing waits.
        waits: &'static str,
    },
    /// The object can't be written.
    #[error("cannot annotate {object} in namespace {namespace}: {cause}; grant patch on {}", object.kind.plural())]
    Write {
        /// The object.
        object: ObjectName,
        /// Its namespace.
        namespace: String,
        /// Why not.
        cause: ApiError,
    },
    /// It is of a kind that is not built in.
    #[error(
        "{0} is not of a kind that is built in; annotate it with kubectl: see status.reload.message of its DriftReport"
    )]
    OtherKind(ObjectName),
}

/// What is to be annotated.
pub(super) struct Request<'a> {
    pub target: &'a Target,
    pub namespace: Option<&'a str>,
    pub object: &'a ObjectName,
    pub annotation: &'static str,
    /// The hash that the report names.
    pub hash: fn(&DriftReportStatus) -> Option<String>,
    /// What the report's subject waits for, after "nothing of it".
    pub waits: &'static str,
}

/// Annotates the object with the hash that its report names.
pub(super) fn annotate(request: &Request<'_>, done: &str, out: &mut impl Write) -> Result<(), Failure> {
    let (namespace, hash) = block_on(async {
        let client = request.target.connect().await.map_err(AnnotateError::from)?.client;
        let namespace = request.namespace.unwrap_or(client.default_namespace()).to_owned();
        let hash = request.write(client, &namespace).await?;
        Ok::<_, Failure>((namespace, hash))
    })?;
    writeln!(out, "{} in namespace {namespace}: {done} {hash}", request.object).map_err(Failure::Output)
}

impl Request<'_> {
    async fn write(&self, client: Client, namespace: &str) -> Result<String, AnnotateError> {
        let object = || self.object.clone();
        let resource = resource(&self.object.kind).ok_or_else(|| AnnotateError::OtherKind(object()))?;
        let name = name_of(self.object.kind.as_str(), &self.object.name);
        let reports: Api<DriftReport> = Api::namespaced(client.clone(), namespace);
        let report = in_time(reports.get_opt(&name)).await;
        let report = report.map_err(|cause| AnnotateError::Report { namespace: namespace.to_owned(), name, cause })?;
        let hash = report.and_then(|report| (self.hash)(&report.status?));
        let nothing =
            || AnnotateError::Nothing { object: object(), namespace: namespace.to_owned(), waits: self.waits };
        let hash = hash.ok_or_else(nothing)?;
        let objects: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
        let patch = Patch::Merge(json!({"metadata": {"annotations": {(self.annotation): hash}}}));
        let written = in_time(objects.patch_metadata(self.object.name.as_str(), &PatchParams::default(), &patch)).await;
        let failed = |cause| AnnotateError::Write { object: object(), namespace: namespace.to_owned(), cause };
        written.map(|_| hash).map_err(failed)
    }
}

fn resource(kind: &Kind) -> Option<ApiResource> {
    let (api_version, kind) = match kind {
        Kind::Config(ConfigKind::ConfigMap | ConfigKind::Secret) => ("v1", kind.as_str()),
        Kind::Workload(WorkloadKind::Custom(_)) | Kind::Config(_) | Kind::Other(_) => return None,
        Kind::Workload(workload) => (workload.api_version(), workload.as_str()),
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Some(ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)))
}
