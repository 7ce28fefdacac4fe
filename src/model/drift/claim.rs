//! What is said about each key of a config: a finding, or why there is none.

use std::collections::{BTreeMap, BTreeSet};

use super::{Case, Finding, NotLookedAt, Silence};
use crate::api::ignore_findings::IgnoredFindings;
use crate::model::config::Config;
use crate::model::consumers::Consumers;
use crate::model::managers::Managers;
use crate::model::names::KeyName;

/// What is said about one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// This is not as it should be.
    Finding(Finding),
    /// Nothing, for this reason.
    Silence(Silence),
}

/// What is said about each key of a config, live or declared; nothing at all about one that is not looked at.
pub fn claims_of(config: &Config, managers: &Managers, consumers: &Consumers) -> BTreeMap<KeyName, Claim> {
    if NotLookedAt::of(config).is_some() {
        return BTreeMap::new();
    }
    let case = Case::new(config, managers, consumers);
    let findings = case.findings().into_iter();
    let (ignored, _) = IgnoredFindings::of(&config.annotations);
    let by_key = findings.filter_map(|finding| {
        let key = finding.key()?.clone();
        let is_ignored = ignored.has(&finding.clone().into());
        Some((key, if is_ignored { Claim::Silence(Silence::Ignored) } else { Claim::Finding(finding) }))
    });
    let mut claims: BTreeMap<_, _> = by_key.collect();
    let declared = case.declared.keys().into_iter().map(|(key, _)| key);
    for key in config.values.keys().chain(declared).collect::<BTreeSet<_>>() {
        claims.entry(key.clone()).or_insert_with(|| Claim::Silence(case.silence(key)));
    }
    claims
}
