//! Which keys of a config are declared, and what says so: its baseline.

use std::collections::BTreeSet;

use crate::api::drift_report::Baseline;
use crate::model::config::Config;
use crate::model::fingerprint::Fingerprint;
use crate::model::keys::KeyMap;
use crate::model::last_applied::LastApplied;
use crate::model::managed_fields::{ManagerEntry, Operation};
use crate::model::managers::{Managers, Standing, is_helm, is_kubectl_apply};
use crate::model::names::KeyName;

/// The declared keys of one config, from the first source that has any say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declared<'a> {
    /// Keys and values, by the annotation of `kubectl apply`.
    LastApplied(&'a KeyMap<Fingerprint>),
    /// Keys and values, by the manifest of the Helm release.
    HelmRelease(&'a KeyMap<Fingerprint>),
    /// Keys that an applier owns by server-side apply. Their declared values are not known.
    ManagedFields(BTreeSet<&'a KeyName>),
    /// Nothing says anything.
    Nothing,
}

impl<'a> Declared<'a> {
    /// What is declared of this config.
    pub fn of(config: &'a Config, managers: &Managers) -> Self {
        if let LastApplied::Declares(keys) = &config.last_applied {
            return Self::LastApplied(keys);
        }
        if let Some(keys) = &config.released {
            return Self::HelmRelease(keys);
        }
        let appliers = config.managed_fields.iter().flatten().filter(|owner| managers.declares(owner));
        let keys: BTreeSet<_> = appliers.flat_map(|applier| applier.keys.iter()).collect();
        if keys.is_empty() { Self::Nothing } else { Self::ManagedFields(keys) }
    }

    /// What says so.
    pub fn baseline(&self) -> Baseline {
        match self {
            Self::LastApplied(_) => Baseline::LastApplied,
            Self::HelmRelease(_) => Baseline::HelmRelease,
            Self::ManagedFields(_) => Baseline::ManagedFields,
            Self::Nothing => Baseline::None,
        }
    }

    /// Whether this key is declared.
    pub fn has(&self, key: &KeyName) -> bool {
        match self {
            Self::LastApplied(keys) | Self::HelmRelease(keys) => keys.contains_key(key),
            Self::ManagedFields(keys) => keys.contains(key),
            Self::Nothing => false,
        }
    }

    /// The declared keys, and their values where they are known.
    pub fn keys(&self) -> Vec<(&'a KeyName, Option<Fingerprint>)> {
        match self {
            Self::LastApplied(keys) | Self::HelmRelease(keys) => {
                keys.iter().map(|(key, value)| (key, Some(*value))).collect()
            }
            Self::ManagedFields(keys) => keys.iter().map(|key| (*key, None)).collect(),
            Self::Nothing => Vec::new(),
        }
    }

    /// Whether this owner's Apply is the very one that the baseline speaks of. Beside another one, the annotation may
    /// be a leftover of the time before it.
    pub fn is_by(&self, owner: &ManagerEntry, managers: &Managers) -> bool {
        match self {
            Self::LastApplied(_) => is_kubectl_apply(owner),
            Self::HelmRelease(_) => owner.operation == Operation::Apply && is_helm(&owner.manager),
            Self::ManagedFields(_) => managers.declares(owner),
            Self::Nothing => false,
        }
    }

    /// What the owner of a key is, beside this baseline.
    pub fn standing(&self, owner: &ManagerEntry, managers: &Managers) -> Standing {
        match self {
            Self::HelmRelease(_) => managers.standing_beside_helm(owner),
            Self::LastApplied(_) | Self::ManagedFields(_) | Self::Nothing => managers.standing(owner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{ConfigBuilder, secret};
    use crate::model::managed_fields::Operation::{Apply, Update};
    use rstest::rstest;

    #[rstest]
    #[case::the_annotation_comes_first(
        secret("s").declares(&[("A", "1")]).owned("kubectl", Apply, &["B"]), Baseline::LastApplied, &["A"])]
    #[case::an_annotation_that_declares_no_key_counts(
        secret("s").declares(&[]).owned("kubectl", Apply, &["B"]), Baseline::LastApplied, &[])]
    #[case::then_the_release(
        secret("s").released(&[("A", "1")]).owned("helm", Apply, &["B"]), Baseline::HelmRelease, &["A"])]
    #[case::the_annotation_comes_before_the_release(
        secret("s").declares(&[("A", "1")]).released(&[("B", "1")]), Baseline::LastApplied, &["A"])]
    #[case::then_what_appliers_own_by_apply(
        secret("s").owned("kubectl", Apply, &["B"]).owned("helm", Apply, &["C"]), Baseline::ManagedFields, &["B", "C"])]
    #[case::a_controller_that_applies_is_no_baseline(
        secret("s").owned("external-secrets", Apply, &["A"]), Baseline::None, &[])]
    #[case::nor_is_an_update(secret("s").owned("kubectl", Update, &["A"]), Baseline::None, &[])]
    #[case::nor_an_applier_that_owns_no_key(secret("s").owned("kubectl", Apply, &[]), Baseline::None, &[])]
    #[case::a_foreign_annotation_says_nothing(
        secret("s").last_applied(LastApplied::Foreign).owned("kubectl", Apply, &["B"]), Baseline::ManagedFields, &["B"])]
    #[case::nor_does_a_broken_one(secret("s").last_applied(LastApplied::Broken), Baseline::None, &[])]
    fn the_first_source_that_applies_is_the_baseline(
        #[case] config: ConfigBuilder,
        #[case] baseline: Baseline,
        #[case] keys: &[&str],
    ) {
        let config = config.build();
        let declared = Declared::of(&config, &Managers::default());
        let names: Vec<&str> = declared.keys().into_iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!((declared.baseline(), names.as_slice()), (baseline, keys));
    }
}
