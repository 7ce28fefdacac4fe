//! The objects that a scan looks at, wherever they come from.

use std::collections::BTreeMap;

use k8s_openapi::Metadata;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::model::config::{Config, Configs};
use crate::model::consumers::{Consumers, WorkloadReads};
use crate::model::consumption::Consumption;
use crate::model::names::{Name, WorkloadId, WorkloadKind, controller_of};

/// What a scan has to go by.
#[derive(Debug, Default)]
pub struct Inventory {
    configs: Configs,
    workloads: BTreeMap<WorkloadId, Consumption>,
    /// How many objects are of a kind that says nothing here.
    pub passed_over: usize,
}

impl Inventory {
    /// Takes a config in.
    pub fn add_config(&mut self, config: Config) {
        self.configs.insert(config);
    }

    /// Takes in what a workload reads, unless its owner stands for it.
    pub fn add_workload<W: Workload>(&mut self, object: &W) {
        let metadata = object.metadata();
        let owner = controller_of(metadata.owner_references.as_deref());
        if owner.is_some_and(|owner| W::WORKLOAD.is_represented_by(&owner.kind)) {
            return;
        }
        let (Some(name), Some(pod)) = (&metadata.name, object.pod()) else {
            return;
        };
        let namespace: Name = metadata.namespace.as_deref().unwrap_or("default").into();
        let consumption = Consumption::of(&namespace, pod);
        self.workloads.insert(WorkloadId { kind: W::WORKLOAD, namespace, name: name.as_str().into() }, consumption);
    }

    /// The configs, by kind, namespace and name.
    pub fn configs(&self) -> Vec<&Config> {
        let mut configs: Vec<_> = self.configs.iter().collect();
        configs.sort_by_key(|config| &config.id);
        configs
    }

    /// Who reads them.
    pub fn consumers(&self) -> Consumers {
        let workloads = self.workloads.iter().map(|(id, consumption)| WorkloadReads { id, consumption });
        Consumers::of(workloads, &self.configs)
    }
}

impl WorkloadKind {
    /// Whether an owner of this kind stands for an object of ours, so that it would count twice.
    fn is_represented_by(self, owner: &str) -> bool {
        match self {
            Self::ReplicaSet => owner == Self::Deployment.as_str(),
            Self::Job => owner == Self::CronJob.as_str(),
            Self::Pod => true,
            Self::Deployment | Self::StatefulSet | Self::DaemonSet | Self::CronJob => false,
        }
    }
}

/// A kind of object that has pods.
pub trait Workload: Metadata<Ty = ObjectMeta> {
    /// Which one.
    const WORKLOAD: WorkloadKind;

    /// The spec of its pods, if it has any.
    fn pod(&self) -> Option<&PodSpec>;
}

/// Says for each kind where its pods' spec is.
macro_rules! workloads {
    ($($kind:ident: |$object:ident| $pod:expr;)+) => {
        $(impl Workload for $kind {
            const WORKLOAD: WorkloadKind = WorkloadKind::$kind;

            fn pod(&self) -> Option<&PodSpec> {
                let $object = self;
                $pod
            }
        })+
    };
}

workloads! {
    Deployment: |it| it.spec.template.spec.as_ref();
    StatefulSet: |it| it.spec.template.spec.as_ref();
    DaemonSet: |it| it.spec.template.spec.as_ref();
    ReplicaSet: |it| it.spec.template.as_ref()?.spec.as_ref();
    Job: |it| it.spec.as_ref()?.template.spec.as_ref();
    CronJob: |it| it.spec.job_template.spec.as_ref()?.template.spec.as_ref();
    Pod: |it| it.spec.as_ref();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::secret;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn owned_by(kind: &str) -> Value {
        json!({"name": "o", "ownerReferences":
            [{"apiVersion": "x/v1", "kind": kind, "name": "owner", "uid": "u", "controller": true}]})
    }

    fn template() -> Value {
        json!({"spec": {"containers": [{"name": "app", "envFrom": [{"secretRef": {"name": "s"}}]}]}})
    }

    fn consumers<W: Workload + serde::de::DeserializeOwned>(object: Value) -> usize {
        let mut inventory = Inventory::default();
        let mut config = secret("s").value("A", "1").build();
        config.id.namespace = "default".into();
        let id = config.id.clone();
        inventory.add_config(config);
        inventory.add_workload(&serde_json::from_value::<W>(object).unwrap());
        inventory.consumers().of_key(&id, &"A".into()).len()
    }

    #[rstest]
    #[case::a_deployment(1, consumers::<Deployment>(json!({"metadata": {"name": "w"},
        "spec": {"selector": {}, "template": template()}})))]
    #[case::one_that_an_operator_owns(1, consumers::<Deployment>(json!({"metadata": owned_by("Database"),
        "spec": {"selector": {}, "template": template()}})))]
    #[case::a_cron_job(1, consumers::<CronJob>(json!({"metadata": {"name": "w"},
        "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": template()}}}})))]
    #[case::its_job(0, consumers::<Job>(json!({"metadata": owned_by("CronJob"), "spec": {"template": template()}})))]
    #[case::another_job(1, consumers::<Job>(json!({"metadata": owned_by("Pipeline"), "spec": {"template": template()}})))]
    #[case::a_replica_set(1, consumers::<ReplicaSet>(json!({"metadata": {"name": "w"},
        "spec": {"selector": {}, "template": template()}})))]
    #[case::one_of_a_deployment(0, consumers::<ReplicaSet>(json!({"metadata": owned_by("Deployment"),
        "spec": {"selector": {}, "template": template()}})))]
    #[case::a_bare_pod(1, consumers::<Pod>(json!({"metadata": {"name": "w"}, "spec": template()["spec"]})))]
    #[case::one_of_a_stateful_set(0, consumers::<Pod>(json!({"metadata": owned_by("StatefulSet"),
        "spec": template()["spec"]})))]
    fn a_workload_counts_once(#[case] expected: usize, #[case] consumers: usize) {
        assert_eq!(consumers, expected);
    }
}
