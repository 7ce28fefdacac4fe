//! An object of a custom kind, as the API writes it: its metadata, its pod template, and what its status counts.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope, Resource};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::api::annotations::CONFIG_HASH;
use crate::api::vocabulary::Vocabulary;
use crate::model::custom::rollout::Lever;
use crate::model::custom::{CustomKind, group_of};
use crate::model::fields::{CustomSpec, Fields};
use crate::model::names::{WorkloadId, WorkloadKind};
use crate::model::workload::{Counts, Progress, Workload, progress};

/// An object with a pod template at `spec.template`.
#[derive(Debug, Clone, Deserialize)]
pub struct CustomObject {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Lenient<Spec>,
    #[serde(default)]
    status: Lenient<Status>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    template: Lenient<PodTemplateSpec>,
    workload_ref: Lenient<Reference>,
    replicas: Lenient<i32>,
}

/// Where an Argo Rollout takes its pod template from, if it has none itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    api_version: String,
    kind: String,
    name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    observed_generation: Lenient<Number>,
    replicas: Lenient<i32>,
    updated_replicas: Lenient<i32>,
    desired_number_scheduled: Lenient<i32>,
    current_number_scheduled: Lenient<i32>,
    updated_number_scheduled: Lenient<i32>,
}

/// Why nothing is known of an object's pod template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTemplate {
    /// It has none.
    Absent,
    /// What it has is none that could be read.
    Odd,
}

/// A number, or a text of one: Argo writes `observedGeneration` like this.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Number {
    Number(i64),
    Text(String),
}

impl Number {
    fn value(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
        }
    }
}

/// What there is, if it is what we expect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Lenient<T> {
    /// There is nothing.
    #[default]
    Absent,
    /// There is something else.
    Odd,
    /// It is.
    Read(T),
}

impl<T> Lenient<T> {
    fn get(&self) -> Option<&T> {
        match self {
            Self::Read(read) => Some(read),
            Self::Absent | Self::Odd => None,
        }
    }

    fn is_odd(&self) -> bool {
        matches!(self, Self::Odd)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.is_null() {
            return Ok(Self::Absent);
        }
        Ok(serde_json::from_value(value).map_or(Self::Odd, Self::Read))
    }
}

impl Resource for CustomObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl CustomObject {
    /// What is kept of it.
    pub fn read(&self, kind: &'static CustomKind) -> Option<Workload> {
        let spec = self.spec.get().cloned().unwrap_or_default();
        let template = spec.template.get();
        let mut workload = Workload::of_template(WorkloadKind::Custom(kind), &self.metadata, template)?;
        workload.progress = self.progress(&spec);
        if let Some(template) = template.cloned() {
            let spec = CustomSpec { replicas: spec.replicas.get().copied(), template };
            workload.fields = Fields::of(&workload.id, &self.metadata, &spec).into();
        }
        if kind.is_argo_rollout() {
            self.read_rollout(&spec, &mut workload);
        }
        Some(workload)
    }

    /// Why nothing is known of its pod template, unless it has one, or says where that stands.
    pub fn lacks_template(&self) -> Option<NoTemplate> {
        let Some(spec) = self.spec.get() else {
            return Some(if self.spec.is_odd() { NoTemplate::Odd } else { NoTemplate::Absent });
        };
        match (&spec.template, &spec.workload_ref) {
            (Lenient::Read(_), _) | (_, Lenient::Read(_)) => None,
            (Lenient::Odd, _) | (_, Lenient::Odd) => Some(NoTemplate::Odd),
            (Lenient::Absent, Lenient::Absent) => Some(NoTemplate::Absent),
        }
    }

    /// What only an Argo Rollout has.
    fn read_rollout(&self, spec: &Spec, workload: &mut Workload) {
        let annotations = self.metadata.annotations.clone().unwrap_or_default();
        workload.choose_lever(&annotations, Vocabulary::Own);
        if workload.lever == Lever::RestartAt {
            workload.stamp = annotations.get(CONFIG_HASH).cloned();
        }
        let deployment = spec.workload_ref.get().filter(|reference| {
            reference.kind == WorkloadKind::Deployment.as_str() && group_of(&reference.api_version) == "apps"
        });
        workload.template_in = deployment.map(|reference| WorkloadId {
            kind: WorkloadKind::Deployment,
            namespace: workload.id.namespace.clone(),
            name: reference.name.as_str().into(),
        });
    }

    /// What the status counts, as Deployments do it or as DaemonSets do.
    fn progress(&self, spec: &Spec) -> Progress {
        let status = self.status.get().cloned().unwrap_or_default();
        let Some(observed) = status.observed_generation.get().and_then(Number::value) else {
            return Progress::Unknown;
        };
        let count = |count: &Lenient<i32>| count.get().copied();
        let by_node = count(&status.desired_number_scheduled);
        progress(&Counts {
            observed: Some(observed) >= self.metadata.generation,
            desired: by_node.or(count(&spec.replicas)).unwrap_or(1),
            pods: count(&status.replicas).or(count(&status.current_number_scheduled)).unwrap_or_default(),
            updated: count(&status.updated_replicas).or(count(&status.updated_number_scheduled)).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests;
