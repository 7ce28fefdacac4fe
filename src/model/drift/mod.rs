//! Where a config or a workload is not as it should be: one file per finding, and the owner table that they share.

mod claim;
mod digest_mismatch;
mod finding;
mod missing_key;
mod missing_reference;
mod mixed_digests;
mod mutable_tag;
mod note;
mod outdated_pods;
mod owner_table;
mod person;
mod remedy;
mod reverts_on_apply;
mod rollout_stalled;
mod running_digests;
mod scaling;
mod shared_fields;
mod shared_keys;
mod silence;
mod stale_key;
mod undeclared_field;
mod undeclared_key;
mod value_differs;
mod workload;

pub use claim::{Claim, claims_of};
pub use finding::{Finding, StaleCause, Writer};
pub use note::Note;
pub use outdated_pods::{Evidence, Outdated, Why};
pub use remedy::{Patient, remedy};
pub use rollout_stalled::Stall;
pub use silence::Silence;
pub use workload::{Obstacle, Reloading, WorkloadSight, drift_of_workload, next_look_at_workload};

use std::fmt;

use crate::api::annotations::IGNORE;
use crate::api::drift_report::Baseline;
use crate::api::expected_keys::ExpectedKeys;
use crate::api::ignore::Ignore;
use crate::api::ignore_findings::IgnoredFindings;
use crate::model::config::Config;
use crate::model::consumers::Consumers;
use crate::model::declared::Declared;
use crate::model::last_applied::LastApplied;
use crate::model::managed_fields::{ManagerEntry, Operation};
use crate::model::managers::Managers;
use crate::model::names::KeyName;

/// What there is to say about a config or a workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drift {
    /// What says what is declared.
    pub baseline: Baseline,
    /// What is not as it should be, by type, and by key or field.
    pub findings: Vec<Finding>,
    /// What is worth knowing beside.
    pub notes: Vec<Note>,
}

/// Why a config is not looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotLookedAt {
    /// This controller owns it as a whole, as `Kind/name`.
    Controlled(String),
    /// Its annotation says so.
    Ignored(Ignore),
}

impl fmt::Display for NotLookedAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controlled(owner) => write!(f, "{owner} owns it as a whole, so its keys are that one's affair"),
            Self::Ignored(ignore) => write!(f, "its annotation {IGNORE} is {ignore}"),
        }
    }
}

impl NotLookedAt {
    /// Whether, and why, this config is not looked at.
    pub fn of(config: &Config) -> Option<Self> {
        match (Ignore::read(&config.annotations), &config.controller) {
            (Ok(Some(ignore)), _) if ignore.covers_drift() => Some(Self::Ignored(ignore)),
            (_, Some(owner)) => Some(Self::Controlled(owner.clone())),
            (_, None) => None,
        }
    }
}

/// Looks at a config; `None` for one that is not looked at.
pub fn drift_of(config: &Config, managers: &Managers, consumers: &Consumers) -> Option<Drift> {
    if NotLookedAt::of(config).is_some() {
        return None;
    }
    let case = Case::new(config, managers, consumers);
    let (ignored, problems) = IgnoredFindings::of(&config.annotations);
    let mut findings = case.findings();
    ignored.leave_out_of(&mut findings);
    let malformed = Ignore::read(&config.annotations).err().map(Note::UnknownIgnore);
    let malformed = malformed.into_iter().chain(problems.into_iter().map(Note::InvalidAnnotation));
    Some(Drift { baseline: case.declared.baseline(), findings, notes: malformed.chain(case.notes()).collect() })
}

impl IgnoredFindings {
    /// Leaves out of what was found what its owner wants to hear nothing of.
    fn leave_out_of(&self, findings: &mut Vec<Finding>) {
        findings.retain(|finding| !self.has(&finding.clone().into()));
    }
}

/// A config under a look, with all that the rules ask.
struct Case<'a> {
    config: &'a Config,
    declared: Declared<'a>,
    managers: &'a Managers,
    consumers: &'a Consumers,
}

impl<'a> Case<'a> {
    fn new(config: &'a Config, managers: &'a Managers, consumers: &'a Consumers) -> Self {
        Self { config, declared: Declared::of(config, managers), managers, consumers }
    }

    fn findings(&self) -> Vec<Finding> {
        let rules = [stale_key::find, undeclared_key::find, missing_key::find, value_differs::find];
        rules.iter().flat_map(|find| find(self)).collect()
    }

    /// The live keys that somebody could have declared, and didn't.
    fn undeclared(&self) -> impl Iterator<Item = &'a KeyName> {
        let expected = ExpectedKeys::read(&self.config.annotations);
        let claimed = self.declared != Declared::Nothing;
        let live = self.config.values.keys().filter(move |_| claimed);
        live.filter(move |key| !self.declared.has(key) && !expected.has(key))
    }

    /// Who owns something of the config; nobody where managedFields are hidden, or are none that we can read.
    fn owners(&self) -> &'a [ManagerEntry] {
        self.config.managed_fields.as_deref().unwrap_or_default()
    }

    /// Whether the baseline speaks of the object as it is: owners are shown, and none beside the applier owns keys by
    /// Apply. Otherwise the annotation may be a leftover.
    fn declaration_is_current(&self) -> bool {
        !self.owners().is_empty() && self.another_applier().is_none()
    }

    /// Who applies keys beside the applier that the baseline speaks of.
    fn another_applier(&self) -> Option<&'a ManagerEntry> {
        let applying = |owner: &&ManagerEntry| owner.operation == Operation::Apply && !owner.keys.is_empty();
        let mut applying = self.owners().iter().filter(applying);
        applying.find(|owner| !self.declared.is_by(owner, self.managers))
    }

    fn notes(&self) -> Vec<Note> {
        let broken = (self.config.last_applied == LastApplied::Broken).then_some(Note::LastAppliedBroken);
        let hidden = self.hidden_owners_matter().then_some(Note::OwnersHidden);
        broken.into_iter().chain(hidden).chain(shared_keys::note(self)).collect()
    }

    /// Whether managedFields, if they were shown, could tell more.
    fn hidden_owners_matter(&self) -> bool {
        if !self.owners().is_empty() {
            return false;
        }
        let differs = |(key, value)| self.config.values.get(key).map(|live| live.fingerprint) != value;
        let nothing_declared = self.declared == Declared::Nothing && !self.config.values.is_empty();
        nothing_declared || self.undeclared().next().is_some() || self.declared.keys().into_iter().any(differs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{ConfigBuilder, secret};
    use crate::model::managed_fields::Operation::{Apply, Update};
    use rstest::rstest;

    /// `Type KEY (manager)` of every finding.
    pub(super) fn found(config: ConfigBuilder) -> Vec<String> {
        let drift = drift_of(&config.build(), &Managers::default(), &Consumers::default());
        drift.into_iter().flat_map(|drift| drift.findings).map(|finding| line(&finding)).collect()
    }

    fn line(finding: &Finding) -> String {
        let by = |writer: &Writer| format!(" ({})", writer.manager);
        match finding {
            Finding::StaleKey { key, cause: StaleCause::LeftByApply(writer), .. } => {
                format!("StaleKey {key}{}", by(writer))
            }
            Finding::StaleKey { key, cause: StaleCause::Unowned, .. } => format!("StaleKey {key}"),
            Finding::UndeclaredKey { key, by: writer, .. } => format!("UndeclaredKey {key}{}", by(writer)),
            Finding::MissingKey { key, .. } => format!("MissingKey {key}"),
            Finding::ValueDiffers { key, by: writer, .. } => {
                format!("ValueDiffers {key}{}", writer.as_ref().map(by).unwrap_or_default())
            }
            other => panic!("no finding about a config: {other:?}"),
        }
    }

    fn stale() -> ConfigBuilder {
        secret("s").value("A", "1").value("OLD", "2").declares(&[("A", "1")]).owned(
            "kubectl-client-side-apply",
            Update,
            &["A", "OLD"],
        )
    }

    #[rstest]
    #[case::it_stands_alone(stale(), true)]
    #[case::a_controller_owns_it(stale().controlled_by("ExternalSecret/e"), false)]
    #[case::its_drift_is_ignored(stale().annotated("restamp.dev/ignore", "drift"), false)]
    #[case::all_of_it_is_ignored(stale().annotated("restamp.dev/ignore", "all"), false)]
    #[case::its_reload_is_ignored(stale().annotated("restamp.dev/ignore", "reload"), true)]
    #[case::a_typo_ignores_nothing(stale().annotated("restamp.dev/ignore", "al"), true)]
    fn a_config_is_looked_at_when(#[case] config: ConfigBuilder, #[case] looked_at: bool) {
        let drift = drift_of(&config.build(), &Managers::default(), &Consumers::default());
        assert_eq!(drift.is_some(), looked_at);
    }

    #[test]
    fn an_expected_key_is_no_drift() {
        assert_eq!(found(stale()), ["StaleKey OLD (kubectl-client-side-apply)"]);
        assert_eq!(found(stale().annotated("restamp.dev/expected-keys", "O*")), [""; 0]);
    }

    #[test]
    fn an_ignored_finding_is_none_and_a_typo_ignores_nothing() {
        let ignoring = |what: &str| stale().annotated("restamp.dev/ignore-findings", what);
        assert_eq!(found(ignoring("StaleKey:O*")), [""; 0]);
        let claims = claims_of(&ignoring("StaleKey:O*").build(), &Managers::default(), &Consumers::default());
        assert_eq!(claims.get("OLD"), Some(&Claim::Silence(Silence::Ignored)));
        let drift = drift_of(&ignoring("Stale:O*").build(), &Managers::default(), &Consumers::default()).unwrap();
        assert!(
            matches!(drift.notes.as_slice(), [Note::InvalidAnnotation(_)]) && drift.findings.len() == 1,
            "{drift:?}"
        );
    }

    #[test]
    fn without_a_baseline_nothing_is_claimed() {
        let config = secret("s").value("A", "1").value("B", "2").owned("kubectl-create", Update, &["A"]);
        let drift = drift_of(&config.build(), &Managers::default(), &Consumers::default());
        assert_eq!(drift, Some(Drift { baseline: Baseline::None, findings: vec![], notes: vec![] }));
    }

    #[rstest]
    #[case::all_is_as_declared(secret("s").value("A", "1").declares(&[("A", "1")]), &[])]
    #[case::a_key_is_not_declared(secret("s").value("A", "1").declares(&[]), &[Note::OwnersHidden])]
    #[case::a_key_is_not_live(secret("s").declares(&[("A", "1")]), &[Note::OwnersHidden])]
    #[case::a_value_differs(secret("s").value("A", "1").declares(&[("A", "2")]), &[Note::OwnersHidden])]
    #[case::nothing_is_declared(secret("s").value("A", "1"), &[Note::OwnersHidden])]
    #[case::there_is_nothing(secret("s"), &[])]
    #[case::owners_are_shown(secret("s").value("A", "1").owned("kubectl-create", Update, &["A"]), &[])]
    #[case::the_annotation_is_broken(
        secret("s").value("A", "1").last_applied(LastApplied::Broken).owned("kubectl-create", Update, &["A"]),
        &[Note::LastAppliedBroken])]
    fn hidden_owners_give_a_note_and_no_finding(#[case] config: ConfigBuilder, #[case] notes: &[Note]) {
        let drift = drift_of(&config.build(), &Managers::default(), &Consumers::default()).unwrap();
        assert_eq!((drift.findings.as_slice(), drift.notes.as_slice()), (&[][..], notes));
    }

    #[test]
    fn findings_come_by_type_and_key() {
        let config = secret("s")
            .value("B-OLD", "1")
            .value("A-OLD", "1")
            .value("HAND", "1")
            .value("CHANGED", "2")
            .declares(&[("CHANGED", "1"), ("GONE", "1")])
            .owned("kubectl-client-side-apply", Update, &["B-OLD", "A-OLD"])
            .owned("kubectl-patch", Update, &["HAND", "CHANGED"]);
        let expected = [
            "StaleKey A-OLD (kubectl-client-side-apply)",
            "StaleKey B-OLD (kubectl-client-side-apply)",
            "UndeclaredKey HAND (kubectl-patch)",
            "MissingKey GONE",
            "ValueDiffers CHANGED (kubectl-patch)",
        ];
        assert_eq!(found(config), expected);
    }

    #[test]
    fn a_config_that_a_controller_applies_to_is_its_own_affair() {
        let config = secret("s")
            .value("A", "live")
            .value("token", "t")
            .declares(&[("A", "declared"), ("GONE", "1")])
            .owned("kubectl-patch", Update, &["A"])
            .owned("external-secrets", Apply, &["token"]);
        assert_eq!(found(config), [""; 0]);
    }
}
