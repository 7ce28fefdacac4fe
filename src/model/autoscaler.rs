//! A HorizontalPodAutoscaler, reduced to what it scales.

use serde::Deserialize;

use crate::model::custom::group_of;
use crate::model::names::{Name, WorkloadId};

/// What restamp keeps of a HorizontalPodAutoscaler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Autoscaler {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    group: String,
    kind: String,
    target: String,
}

impl Autoscaler {
    /// Whether it sets the number of this workload's pods.
    pub fn scales(&self, workload: &WorkloadId) -> bool {
        self.namespace == workload.namespace
            && self.target == workload.name.as_str()
            && self.kind == workload.kind.as_str()
            && self.group == group_of(workload.kind.api_version())
    }
}

/// One as the API writes it, in whatever version.
#[derive(Debug, Clone, kube::Resource, Deserialize)]
#[resource(inherit = k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler)]
pub struct AutoscalerObject {
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    spec: Spec,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    scale_target_ref: Target,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    #[serde(default)]
    api_version: String,
    kind: String,
    name: String,
}

impl AutoscalerObject {
    /// What is kept of it; `None` without a name.
    pub fn read(self) -> Option<Autoscaler> {
        let Target { api_version, kind, name: target } = self.spec.scale_target_ref;
        let namespace = self.metadata.namespace.as_deref().unwrap_or("default").into();
        let name = self.metadata.name?.into();
        Some(Autoscaler { namespace, name, group: group_of(&api_version).to_owned(), kind, target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{deployment, stateful_set};
    use serde_json::json;

    #[test]
    fn it_scales_what_it_names() {
        let object: AutoscalerObject = serde_json::from_value(json!({
            "metadata": {"name": "h", "namespace": "ns"},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": "w"}, "maxReplicas": 3},
        }))
        .unwrap();
        let autoscaler = object.read().unwrap();
        let scaled = [deployment("w"), deployment("v"), stateful_set("w"), deployment("w").within("other")];
        assert_eq!(scaled.map(|workload| autoscaler.scales(&workload.build().id)), [true, false, false, false]);
    }
}
