//! What the index knows, for a person who looks for a fault. Names, versions and decisions: no value, and no digest.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::model::config::Config;
use crate::model::decide::Decision;
use crate::model::index::{Index, Tracked};
use crate::model::last_applied::LastApplied;
use crate::model::names::{KeyName, Name, ResourceVersion};

/// The index.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dump {
    /// Whether each watched kind has had its first full list.
    pub synced: BTreeMap<&'static str, bool>,
    /// How many objects of those kinds there are that are not listed below.
    pub counts: BTreeMap<&'static str, usize>,
    /// ConfigMaps and Secrets, in the order of their names.
    pub configs: Vec<ConfigDump>,
    /// Objects with a pod template, in the order of their names.
    pub workloads: Vec<WorkloadDump>,
}

/// A ConfigMap or Secret.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigDump {
    namespace: Name,
    kind: &'static str,
    name: Name,
    resource_version: Option<ResourceVersion>,
    keys: Vec<KeyName>,
    last_applied: &'static str,
    consumers: Vec<String>,
}

/// A workload.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadDump {
    namespace: Name,
    kind: &'static str,
    name: Name,
    resource_version: Option<ResourceVersion>,
    generation: i64,
    progress: String,
    is_stamped: bool,
    pods: usize,
    reads: Vec<String>,
    /// What is due, and why; none if it is not adopted.
    decision: Option<String>,
    /// The entries of its record.
    record: Vec<EntryDump>,
}

/// An entry of a record.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryDump {
    config: String,
    last_changed: Option<Timestamp>,
    /// Since when a change is not delivered.
    open_since: Option<Timestamp>,
}

impl Index {
    /// What it knows at this time.
    pub fn dump(&self, now: Timestamp) -> Dump {
        let synced = self.scope.watched().map(|kind| (kind.as_str(), self.is_synced(kind)));
        let mut configs: Vec<_> = self.configs.iter().map(|config| self.dump_config(config)).collect();
        let mut workloads: Vec<_> = self.workloads().map(|tracked| self.dump_workload(tracked, now)).collect();
        configs.sort_unstable();
        workloads.sort_unstable();
        let counts = [
            ("Pod", self.pods.len()),
            ("ReplicaSet", self.replica_sets.len()),
            ("Namespace", self.namespaces.len()),
            ("DriftReport", self.stored.len()),
        ];
        Dump { synced: synced.collect(), counts: counts.into(), configs, workloads }
    }

    fn dump_config(&self, config: &Config) -> ConfigDump {
        ConfigDump {
            namespace: config.id.namespace.clone(),
            kind: config.id.kind.as_str(),
            name: config.id.name.clone(),
            resource_version: config.resource_version,
            keys: config.values.keys().cloned().collect(),
            last_applied: match config.last_applied {
                LastApplied::Absent => "absent",
                LastApplied::Broken => "broken",
                LastApplied::Foreign => "foreign",
                LastApplied::Declares(_) => "declares",
            },
            consumers: self.consumers(&config.id).map(|tracked| tracked.workload.id.to_string()).collect(),
        }
    }

    fn dump_workload(&self, tracked: &Tracked, now: Timestamp) -> WorkloadDump {
        let workload = &tracked.workload;
        let entries = tracked.record.iter().flat_map(|record| &record.entries);
        WorkloadDump {
            namespace: workload.id.namespace.clone(),
            kind: workload.id.kind.label(),
            name: workload.id.name.clone(),
            resource_version: workload.version,
            generation: workload.generation,
            progress: format!("{:?}", workload.progress),
            is_stamped: workload.stamp.is_some(),
            pods: workload.uid.as_ref().map_or(0, |uid| self.pods_of_workload(&workload.id, uid).len()),
            reads: workload.consumption.configs().into_iter().map(ToString::to_string).collect(),
            decision: self.decide(&workload.id, now).map(|decision| in_words(&decision)),
            record: entries
                .map(|entry| EntryDump {
                    config: entry.config.to_string(),
                    last_changed: entry.last_changed,
                    open_since: entry.change.as_ref().map(|change| change.first_seen),
                })
                .collect(),
        }
    }
}

fn in_words(decision: &Decision) -> String {
    match decision {
        Decision::Nothing => "nothing is due".to_owned(),
        Decision::Close => "what changed is delivered".to_owned(),
        Decision::RollingOut => "the stamp is being rolled out".to_owned(),
        Decision::Wait { until, reason } => format!("{reason}, until {until}"),
        Decision::Hold(hold) => format!("held: {hold}"),
        Decision::Stamp => "a stamp is due".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::builders::{at, config_map, deployment, keyring, policy};
    use crate::model::index::{Event, Object};
    use crate::model::names::{ConfigKind, WorkloadKind};
    use crate::model::watched::Watched;

    #[test]
    fn it_names_what_there_is_and_shows_no_value() {
        let mut index = Index::new(Arc::new(keyring()), policy(), "restamp-system");
        let config = Object::Config(config_map("c").value("A", "hunter2").build());
        let workload = Object::from(deployment("w").env_from("ConfigMap/c").build());
        index.apply(Event::Applied(Watched::Config(ConfigKind::ConfigMap), config), at(0));
        index.apply(Event::Applied(Watched::Workload(WorkloadKind::Deployment), workload), at(0));
        let dump = serde_json::to_value(index.dump(at(1))).unwrap();
        assert_eq!(dump["configs"][0]["keys"], serde_json::json!(["A"]));
        assert_eq!(dump["configs"][0]["consumers"], serde_json::json!(["Deployment ns/w"]));
        assert_eq!(dump["workloads"][0]["reads"], serde_json::json!(["ConfigMap ns/c"]));
        assert_eq!(dump["synced"]["ConfigMap"], false);
        assert!(!dump.to_string().contains("hunter2"));
    }
}
