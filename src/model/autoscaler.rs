//! HorizontalPodAutoscalers, reduced to what they scale.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::custom::group_of;
use crate::model::names::{Name, WorkloadId};
use crate::model::scope::Scope;

/// What restamp keeps of a HorizontalPodAutoscaler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Autoscaler {
    /// What it is called.
    pub id: AutoscalerId,
    api_version: String,
    kind: String,
    target: String,
}

/// What a HorizontalPodAutoscaler is called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AutoscalerId {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

/// What is known of who scales a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Autoscaling<'a> {
    /// No HorizontalPodAutoscaler does.
    Off,
    /// This one does.
    By(&'a Name),
    /// HorizontalPodAutoscalers can't be seen, so that of a number of pods nothing is claimed.
    Unknown,
}

impl Autoscaler {
    /// Whether it sets the number of this workload's pods.
    pub fn scales(&self, workload: &WorkloadId) -> bool {
        self.id.namespace == workload.namespace
            && self.target == workload.name.as_str()
            && self.kind == workload.kind.as_str()
            && group_of(&self.api_version) == group_of(workload.kind.api_version())
    }

    /// The workload that it scales, if that is of a watched kind.
    pub fn target(&self, scope: &Scope) -> Option<WorkloadId> {
        let kind = scope.workload_kind(&self.api_version, &self.kind)?;
        Some(WorkloadId { kind, namespace: self.id.namespace.clone(), name: self.target.as_str().into() })
    }
}

/// All of them that were seen.
#[derive(Debug, Default)]
pub struct Autoscalers(BTreeMap<Name, BTreeMap<Name, Autoscaler>>);

impl Autoscalers {
    /// Takes one in; tells what was known of it.
    pub fn insert(&mut self, autoscaler: Autoscaler) -> Option<Autoscaler> {
        let AutoscalerId { namespace, name } = autoscaler.id.clone();
        self.0.entry(namespace).or_default().insert(name, autoscaler)
    }

    /// It is gone; tells what was known of it.
    pub fn remove(&mut self, id: &AutoscalerId) -> Option<Autoscaler> {
        let there = self.0.get_mut(&id.namespace)?;
        let gone = there.remove(&id.name);
        if there.is_empty() {
            self.0.remove(&id.namespace);
        }
        gone
    }

    /// The name of the one that scales this workload.
    pub fn of(&self, workload: &WorkloadId) -> Option<&Name> {
        let mut there = self.0.get(&workload.namespace)?.values();
        there.find(|autoscaler| autoscaler.scales(workload)).map(|autoscaler| &autoscaler.id.name)
    }

    /// What they are called.
    pub fn ids(&self) -> impl Iterator<Item = &AutoscalerId> {
        self.0.values().flat_map(BTreeMap::values).map(|autoscaler| &autoscaler.id)
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
        Some(Autoscaler { id: AutoscalerId { namespace, name }, api_version, kind, target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{deployment, stateful_set};
    use serde_json::json;

    fn read(name: &str, target: &str) -> Autoscaler {
        let object: AutoscalerObject = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": target}, "maxReplicas": 3},
        }))
        .unwrap();
        object.read().unwrap()
    }

    #[test]
    fn it_scales_what_it_names() {
        let autoscaler = read("h", "w");
        let scaled = [deployment("w"), deployment("v"), stateful_set("w"), deployment("w").within("other")];
        assert_eq!(scaled.map(|workload| autoscaler.scales(&workload.build().id)), [true, false, false, false]);
        assert_eq!(autoscaler.target(&Scope::default()), Some(deployment("w").build().id));
    }

    #[test]
    fn one_that_scales_something_else_now_leaves_the_first() {
        let mut autoscalers = Autoscalers::default();
        let [w, v] = ["w", "v"].map(|name| deployment(name).build().id);
        assert_eq!(autoscalers.insert(read("h", "w")), None);
        assert_eq!((autoscalers.of(&w), autoscalers.of(&v)), (Some(&"h".into()), None));
        assert_eq!(autoscalers.insert(read("h", "v")), Some(read("h", "w")));
        assert_eq!((autoscalers.of(&w), autoscalers.of(&v)), (None, Some(&"h".into())));
        let id = read("h", "v").id;
        assert_eq!((autoscalers.remove(&id), autoscalers.remove(&id)), (Some(read("h", "v")), None));
        assert_eq!((autoscalers.of(&v), autoscalers.ids().count()), (None, 0));
    }
}
