//! Custom kinds: any kind with a pod template at `spec.template` that the operator is told of, such as Argo's Rollout.
//!
//! Nothing is known of them but that. What their objects say is read leniently: a field of another type than expected
//! says nothing, and keeps no other object from being read.

pub mod object;
pub mod rollout;

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::model::names::{ConfigKind, WorkloadKind};

/// A kind by its group, version and name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CustomKind {
    /// Its group and version, as in manifests.
    pub api_version: String,
    /// Its name, as in manifests.
    pub kind: String,
    /// What it is called where no group is said: its name, if no other watched kind has that.
    pub label: String,
}

impl CustomKind {
    /// Its group.
    pub fn group(&self) -> &str {
        group_of(&self.api_version)
    }

    /// Its version.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(self.api_version.as_str(), |(_, version)| version)
    }

    /// Whether it is the kind whose pods can be replaced in two ways.
    pub fn is_argo_rollout(&self) -> bool {
        self.group() == "argoproj.io" && self.kind == "Rollout"
    }

    /// Whether an object of this type is of this kind, in whatever version.
    pub fn is(&self, api_version: &str, kind: &str) -> bool {
        self.kind == kind && self.group() == group_of(api_version)
    }
}

/// The group in an `apiVersion`; empty for the core.
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// A kind as a flag names it: `GROUP/VERSION/KIND`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindName {
    group: String,
    version: String,
    kind: String,
}

/// A text that names no kind that can be watched as a workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoKind {
    /// It does not have three parts.
    #[error("write GROUP/VERSION/KIND, such as argoproj.io/v1alpha1/Rollout")]
    Malformed,
    /// It is watched anyway, or can't be.
    #[error("{0} needs no flag, and takes none")]
    BuiltIn(String),
}

impl FromStr for KindName {
    type Err = NoKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('/');
        let (Some(group), Some(version), Some(kind), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(NoKind::Malformed);
        };
        let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
        let is_group = group.split('.').all(|part| is_word(&part.replace('-', "x")));
        if !is_group || !is_word(version) || !is_word(kind) || !kind.starts_with(|c: char| c.is_ascii_uppercase()) {
            return Err(NoKind::Malformed);
        }
        let known = |known: &WorkloadKind| known.as_str() == kind && group_of(known.api_version()) == group;
        if WorkloadKind::ALL.iter().any(known) || group == "restamp.dev" {
            return Err(NoKind::BuiltIn(kind.to_owned()));
        }
        Ok(Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() })
    }
}

/// The kinds of these names, each once, for as long as the process runs.
pub fn kinds(names: &[KindName]) -> &'static [CustomKind] {
    let names: BTreeSet<&KindName> = names.iter().collect();
    let kinds = names.iter().map(|name| CustomKind {
        api_version: format!("{}/{}", name.group, name.version),
        kind: name.kind.clone(),
        label: label(name, &names),
    });
    Box::leak(kinds.collect::<Vec<_>>().into_boxed_slice())
}

fn label(name: &KindName, all: &BTreeSet<&KindName>) -> String {
    let is_taken = WorkloadKind::ALL.iter().any(|kind| kind.as_str() == name.kind)
        || ConfigKind::ALL.iter().any(|kind| kind.as_str() == name.kind)
        || all.iter().any(|other| other.kind == name.kind && *other != name);
    if is_taken { format!("{}.{}", name.kind, name.group) } else { name.kind.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn names(texts: &[&str]) -> Vec<KindName> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[rstest]
    #[case::two_parts("v1/Rollout")]
    #[case::four_parts("a/b/c/D")]
    #[case::a_plural("argoproj.io/v1alpha1/rollouts")]
    #[case::no_group("/v1/Thing")]
    #[case::a_space("a.b/v1/My Kind")]
    fn a_kind_is_named_by_group_version_and_kind(#[case] text: &str) {
        assert_eq!(text.parse::<KindName>(), Err(NoKind::Malformed));
    }

    #[rstest]
    #[case("apps/v1/Deployment")]
    #[case("batch/v1/Job")]
    #[case("restamp.dev/v1alpha1/DriftReport")]
    fn what_is_built_in_takes_no_flag(#[case] text: &str) {
        assert!(matches!(text.parse::<KindName>(), Err(NoKind::BuiltIn(_))));
    }

    #[test]
    fn a_kind_is_called_by_its_group_where_its_name_is_another_ones_too() {
        let all = names(&[
            "argoproj.io/v1alpha1/Rollout",
            "apps.kruise.io/v1beta1/StatefulSet",
            "apps.kruise.io/v1alpha1/CloneSet",
            "other.io/v1/CloneSet",
            "argoproj.io/v1alpha1/Rollout",
        ]);
        let labels: BTreeSet<&str> = kinds(&all).iter().map(|kind| kind.label.as_str()).collect();
        let expected = ["CloneSet.apps.kruise.io", "CloneSet.other.io", "Rollout", "StatefulSet.apps.kruise.io"];
        assert_eq!(labels, BTreeSet::from(expected));
    }

    #[test]
    fn another_version_of_a_kind_is_the_same_kind() {
        let kind = &kinds(&names(&["argoproj.io/v1alpha1/Rollout"]))[0];
        assert_eq!((kind.group(), kind.version()), ("argoproj.io", "v1alpha1"));
        assert!(kind.is("argoproj.io/v1beta1", "Rollout") && !kind.is("other.io/v1alpha1", "Rollout"));
    }
}
