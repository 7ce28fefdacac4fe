//! What counts for one workload: which configs and keys, and which ways to consume them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::auto_reload::AutoReload;
use crate::api::patterns::{ConfigPattern, Exclusion};
use crate::api::vocabulary::Vocabulary;
use crate::model::consumption::Refresh;
use crate::model::names::{ConfigId, ConfigKind, KeyName};

/// What a workload's owner wants to roll it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counting {
    /// Which ways to consume a ConfigMap count.
    #[serde(default)]
    pub config_maps: AutoReload,
    /// Which ways to consume a Secret count.
    #[serde(default)]
    pub secrets: AutoReload,
    /// Which ways to consume a SecretProviderClass count.
    #[serde(default)]
    pub provider_classes: AutoReload,
    /// What counts although no container names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reload_on: Vec<ConfigPattern>,
    /// What does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Exclusion>,
    /// Whose annotations count on the configs.
    #[serde(default, skip_serializing_if = "Vocabulary::is_own")]
    pub vocabulary: Vocabulary,
}

impl Counting {
    /// All that is consumed.
    pub fn everything() -> Self {
        Self::of(AutoReload::Everything)
    }

    /// All that is consumed in the ways that this annotation names.
    pub fn of(auto_reload: AutoReload) -> Self {
        let [config_maps, secrets, provider_classes] = [auto_reload; 3];
        Self { config_maps, secrets, provider_classes, ..Self::default() }
    }

    /// Whether nothing counts: the workload is not opted in.
    pub fn is_off(&self) -> bool {
        ConfigKind::ALL.into_iter().all(|kind| self.of_kind(kind) == AutoReload::Off) && self.reload_on.is_empty()
    }

    /// Whether a config counts that is consumed like this.
    pub fn counts(&self, config: &ConfigId, refresh: Refresh) -> bool {
        (self.of_kind(config.kind).counts(refresh) || self.names(config)) && !self.excludes(config)
    }

    /// Which ways to consume a config of this kind count.
    pub fn of_kind(&self, kind: ConfigKind) -> AutoReload {
        match kind {
            ConfigKind::ConfigMap => self.config_maps,
            ConfigKind::Secret => self.secrets,
            ConfigKind::SecretProviderClass => self.provider_classes,
        }
    }

    /// Whether a config counts even if no container names it.
    pub fn names(&self, config: &ConfigId) -> bool {
        self.reload_on.iter().any(|pattern| pattern.matches(config)) && !self.excludes(config)
    }

    /// Whether all of a config is excluded.
    pub fn excludes(&self, config: &ConfigId) -> bool {
        self.exclude.iter().any(|exclusion| exclusion.covers(config))
    }

    /// Whether one key of a config is excluded.
    pub fn excludes_key(&self, config: &ConfigId, key: &KeyName) -> bool {
        self.exclude.iter().any(|exclusion| exclusion.covers_key(config, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str) -> ConfigId {
        ConfigId { kind: ConfigKind::Secret, namespace: "ns".into(), name: name.into() }
    }

    #[test]
    fn what_is_named_counts_in_every_way_and_what_is_excluded_in_none() {
        let counting = Counting {
            reload_on: vec!["secret/a*".parse().unwrap()],
            exclude: vec!["secret/ab".parse().unwrap(), "secret/ac:KEY".parse().unwrap()],
            ..Counting::of(AutoReload::AtStart)
        };
        assert!(counting.counts(&secret("a"), Refresh::InPlace) && counting.names(&secret("a")));
        assert!(counting.counts(&secret("b"), Refresh::AtStart) && !counting.counts(&secret("b"), Refresh::InPlace));
        assert!(!counting.counts(&secret("ab"), Refresh::AtStart) && !counting.names(&secret("ab")));
        assert!(
            counting.excludes_key(&secret("ac"), &"KEY".into()) && !counting.excludes_key(&secret("ac"), &"A".into())
        );
    }

    #[test]
    fn it_survives_being_written_down() {
        let counting = Counting {
            reload_on: vec!["secret/a*".parse().unwrap()],
            exclude: vec!["secret/ac:KEY".parse().unwrap()],
            ..Counting::everything()
        };
        let text = serde_json::to_string(&counting).unwrap();
        assert_eq!(serde_json::from_str::<Counting>(&text).unwrap(), counting);
    }
}
