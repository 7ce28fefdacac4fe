//! The objects that a scan or an explanation looks at, wherever they come from.

use std::collections::BTreeMap;

use crate::api::drift_report::DriftReport;
use crate::model::autoscaler::Autoscaler;
use crate::model::config::{Config, Configs};
use crate::model::consumers::{Consumers, WorkloadReads};
use crate::model::names::{ConfigKind, Name, WorkloadId};
use crate::model::namespace::Namespace;
use crate::model::workload::Workload;

/// What there is to go by.
#[derive(Debug, Default)]
pub struct Inventory {
    configs: Configs,
    workloads: BTreeMap<WorkloadId, Workload>,
    /// What scales workloads.
    pub autoscalers: Vec<Autoscaler>,
    /// The namespaces, where files hold them.
    pub namespaces: BTreeMap<Name, Namespace>,
    /// Our own reports, where files hold them.
    pub reports: Vec<DriftReport>,
    /// How many objects are of a kind that says nothing here.
    pub passed_over: usize,
}

impl Inventory {
    /// Takes a config in.
    pub fn add_config(&mut self, config: Config) {
        self.configs.insert(config);
    }

    /// Objects of these kinds may have been left out.
    pub fn may_lack(&mut self, kinds: impl IntoIterator<Item = ConfigKind>) {
        self.configs.may_have_more(kinds);
    }

    /// Takes in a workload.
    pub fn add_workload(&mut self, workload: Workload) {
        self.workloads.insert(workload.id.clone(), workload);
    }

    /// The workloads by their id, also those in whose place another one counts.
    pub fn workloads(&self) -> &BTreeMap<WorkloadId, Workload> {
        &self.workloads
    }

    /// What scales this workload.
    pub fn autoscaler_of(&self, workload: &WorkloadId) -> Option<&Name> {
        self.autoscalers.iter().find(|autoscaler| autoscaler.scales(workload)).map(|autoscaler| &autoscaler.name)
    }

    /// The configs.
    pub fn configs(&self) -> &Configs {
        &self.configs
    }

    /// The configs alone.
    pub fn into_configs(self) -> Configs {
        self.configs
    }

    /// Who reads them: every workload that counts by itself.
    pub fn consumers(&self) -> Consumers {
        let workloads = self.workloads.iter().filter(|(_, workload)| workload.is_its_own());
        let reads = workloads.map(|(id, workload)| WorkloadReads { id, consumption: &workload.consumption });
        Consumers::of(reads, &self.configs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::secret;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn reader(owner: Value) -> Workload {
        let object = json!({"metadata": {"name": "w", "ownerReferences": owner}, "spec": {"selector": {},
            "template": {"spec": {"containers": [{"name": "app", "envFrom": [{"secretRef": {"name": "s"}}]}]}}}});
        Workload::of_replica_set(&serde_json::from_value(object).unwrap()).unwrap()
    }

    #[rstest]
    #[case::by_itself(json!([]), 1)]
    #[case::not_beside_its_owner(
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u", "controller": true}]), 0)]
    fn a_workload_counts_once(#[case] owner: Value, #[case] expected: usize) {
        let mut inventory = Inventory::default();
        let mut config = secret("s").value("A", "1").build();
        config.id.namespace = "default".into();
        let id = config.id.clone();
        inventory.add_config(config);
        inventory.add_workload(reader(owner));
        assert_eq!(inventory.consumers().of_key(&id, &"A".into()).len(), expected);
    }
}
