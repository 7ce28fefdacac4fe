//! Objects for tests: builders that default everything.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;

use crate::model::config::{Config, Field, LiveValue};
use crate::model::fingerprint::Fingerprint;
use crate::model::last_applied::LastApplied;
use crate::model::managed_fields::{ManagerEntry, Operation};
use crate::model::names::{ConfigId, ConfigKind, ResourceVersion};

/// A pod's spec from JSON.
pub(crate) fn pod(spec: serde_json::Value) -> PodSpec {
    serde_json::from_value(spec).unwrap()
}

/// A ConfigMap in namespace `ns`.
pub(crate) fn config_map(name: &str) -> ConfigBuilder {
    ConfigBuilder::new(ConfigKind::ConfigMap, name)
}

/// A Secret in namespace `ns`.
pub(crate) fn secret(name: &str) -> ConfigBuilder {
    ConfigBuilder::new(ConfigKind::Secret, name)
}

/// Makes a config.
pub(crate) struct ConfigBuilder(Config);

impl ConfigBuilder {
    fn new(kind: ConfigKind, name: &str) -> Self {
        Self(Config {
            id: ConfigId { kind, namespace: "ns".into(), name: name.into() },
            uid: Some(format!("uid-of-{name}").into()),
            resource_version: Some(ResourceVersion(1)),
            born: None,
            created: None,
            values: BTreeMap::new(),
            last_applied: LastApplied::Absent,
            managed_fields: None,
            controller: None,
            annotations: BTreeMap::new(),
        })
    }

    /// With this key in `data`.
    pub(crate) fn value(mut self, key: &str, value: &str) -> Self {
        let fingerprint = Fingerprint::of(value.as_bytes());
        self.0.values.insert(key.into(), LiveValue { fingerprint, field: Field::Data });
        self
    }

    /// With this key in `binaryData`.
    pub(crate) fn binary(mut self, key: &str, value: &str) -> Self {
        let fingerprint = Fingerprint::of(value.as_bytes());
        self.0.values.insert(key.into(), LiveValue { fingerprint, field: Field::BinaryData });
        self
    }

    /// Whose last-applied annotation declares these keys.
    pub(crate) fn declares(mut self, keys: &[(&str, &str)]) -> Self {
        let declared = keys.iter().map(|(key, value)| ((*key).into(), Fingerprint::of(value.as_bytes())));
        self.0.last_applied = LastApplied::Declares(declared.collect());
        self
    }

    /// Whose managedFields have this entry.
    pub(crate) fn owned(mut self, manager: &str, operation: Operation, keys: &[&str]) -> Self {
        let keys = keys.iter().map(|key| (*key).into()).collect();
        let entry = ManagerEntry { manager: manager.into(), operation, time: None, keys };
        self.0.managed_fields.get_or_insert_default().push(entry);
        self
    }

    /// Whose managedFields have this entry, last written at this time.
    pub(crate) fn owned_at(self, manager: &str, operation: Operation, keys: &[&str], time: &str) -> Self {
        let mut config = self.owned(manager, operation, keys);
        if let Some(entry) = config.0.managed_fields.iter_mut().flatten().last() {
            entry.time = Some(time.parse().unwrap());
        }
        config
    }

    /// With this last-applied annotation.
    pub(crate) fn last_applied(mut self, last_applied: LastApplied) -> Self {
        self.0.last_applied = last_applied;
        self
    }

    /// With this annotation.
    pub(crate) fn annotated(mut self, name: &str, value: &str) -> Self {
        self.0.annotations.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Owned as a whole by this controller.
    pub(crate) fn controlled_by(mut self, controller: &str) -> Self {
        self.0.controller = Some(controller.to_owned());
        self
    }

    /// At this resourceVersion.
    pub(crate) fn at_version(mut self, version: u64) -> Self {
        self.0.resource_version = Some(ResourceVersion(version));
        self
    }

    /// The config.
    pub(crate) fn build(self) -> Config {
        self.0
    }
}
