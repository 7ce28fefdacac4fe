//! Who reads which key: the consumption of many workloads, by config and key.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::drift_report::Consumer;
use crate::model::config::Configs;
use crate::model::consumption::{Consumption, Read};
use crate::model::names::{ConfigId, KeyName, WorkloadId};

/// A workload and what it reads.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadReads<'a> {
    /// Which one.
    pub id: &'a WorkloadId,
    /// What its containers read.
    pub consumption: &'a Consumption,
}

/// The consumers of every key that has any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consumers(BTreeMap<ConfigId, BTreeMap<KeyName, BTreeSet<Consumer>>>);

impl Consumers {
    /// What these workloads read of these configs.
    pub fn of<'a>(workloads: impl IntoIterator<Item = WorkloadReads<'a>>, configs: &Configs) -> Self {
        let mut consumers = Self::default();
        for workload in workloads {
            for read in workload.consumption.reads(configs) {
                let consumer = consumer(workload.id, &read);
                consumers.0.entry(read.config).or_default().entry(read.key).or_default().insert(consumer);
            }
        }
        consumers
    }

    /// Who reads this key, in a stable order.
    pub fn of_key(&self, config: &ConfigId, key: &KeyName) -> Vec<Consumer> {
        let consumers = self.0.get(config).and_then(|keys| keys.get(key));
        consumers.into_iter().flatten().cloned().collect()
    }
}

fn consumer(workload: &WorkloadId, read: &Read) -> Consumer {
    Consumer {
        workload: format!("{}/{}", workload.kind, workload.name),
        container: read.container.clone(),
        via: read.via,
        r#as: read.seen_as.clone(),
        refresh: read.via.refresh(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{pod, secret};
    use crate::model::consumption::{Refresh, Via};
    use crate::model::names::WorkloadKind;
    use serde_json::json;

    #[test]
    fn consumers_are_found_by_config_and_key_whatever_the_order_of_the_workloads() {
        let configs = Configs::from_iter([secret("s").value("A", "1").build()]);
        let consumption = Consumption::of(
            &"ns".into(),
            &pod(json!({"containers": [{"name": "app", "envFrom": [{"secretRef": {"name": "s"}}]}]})),
        );
        let id = |kind, name: &str| WorkloadId { kind, namespace: "ns".into(), name: name.into() };
        let (job, deployment) = (id(WorkloadKind::Job, "j"), id(WorkloadKind::Deployment, "w"));
        let reads = |id| WorkloadReads { id, consumption: &consumption };

        let consumers = Consumers::of([reads(&job), reads(&deployment)], &configs);
        assert_eq!(consumers, Consumers::of([reads(&deployment), reads(&job)], &configs));

        let consumer = |workload: &str| Consumer {
            workload: workload.to_owned(),
            container: "app".into(),
            via: Via::EnvFrom,
            r#as: "A".to_owned(),
            refresh: Refresh::AtStart,
        };
        let secret = secret("s").build().id;
        assert_eq!(consumers.of_key(&secret, &"A".into()), [consumer("Deployment/w"), consumer("Job/j")]);
        assert_eq!(consumers.of_key(&secret, &"B".into()), []);
    }
}
