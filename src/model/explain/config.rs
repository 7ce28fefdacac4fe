//! What there is to say about one ConfigMap or Secret: who owns which key, what is declared, who reads it, and what drift
//! says, or why it says nothing.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

use super::no_drift::NoDrift;
use super::workload::Subject;
use crate::api::annotations::IGNORE;
use crate::api::drift_report::{Baseline, Consumer, FindingStatus, Source};
use crate::api::ignore::Ignore;
use crate::model::config::Config;
use crate::model::consumers::Consumers;
use crate::model::declared::Declared;
use crate::model::drift::{Claim, Finding, NotLookedAt, StaleCause, claims_of, drift_of};
use crate::model::last_applied::{ANNOTATION, LastApplied};
use crate::model::managed_fields::{ManagerEntry, Operation};
use crate::model::managers::Managers;
use crate::model::names::{ConfigId, KeyName, Manager};

/// What there is to say about one config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigExplanation {
    /// Which one.
    pub subject: Subject,
    /// Why it is not looked at for drift, if it is not.
    pub not_looked_at: Option<String>,
    /// Why the operator reports no drift of it, where its flags say so.
    pub no_drift: Option<NoDrift>,
    /// Why its changes roll nobody, if so.
    pub rolls_nobody: Option<String>,
    /// What says which keys are declared.
    pub baseline: Baseline,
    /// What makes it the baseline; or why there is none.
    pub baseline_message: String,
    /// Who must mend it, where it says so.
    pub source: Option<Source>,
    /// What is worth knowing beside.
    pub notes: Vec<String>,
    /// Who owns which keys.
    pub managers: Vec<OwnedKeys>,
    /// The keys, live or declared.
    pub keys: Vec<KeyExplanation>,
}

/// The keys that a manager owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnedKeys {
    /// The manager.
    pub manager: Manager,
    /// How it writes.
    pub operation: Operation,
    /// Its last write to the object: its keys are at least as old.
    pub since: Option<Timestamp>,
    /// Its keys.
    pub keys: BTreeSet<KeyName>,
}

/// What there is to say about one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyExplanation {
    /// The key.
    pub key: KeyName,
    /// Whether it is there.
    pub live: bool,
    /// Whether the baseline declares it; none without a baseline.
    pub declared: Option<bool>,
    /// Who owns it.
    pub managers: Vec<Manager>,
    /// What drift says about it; nothing of a config that is not looked at.
    pub drift: Option<DriftOfKey>,
    /// Who reads it.
    pub consumers: Vec<Consumer>,
}

/// What drift says about a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftOfKey {
    /// Whether this is a finding; otherwise it is why there is none.
    pub is_finding: bool,
    /// The finding's type, or the reason for silence, in one word.
    pub reason: String,
    /// In words.
    pub message: String,
}

/// Explains a config, of which the operator's flags say this.
pub fn of_config(
    config: &Config,
    managers: &Managers,
    consumers: &Consumers,
    no_drift: Option<NoDrift>,
) -> ConfigExplanation {
    let declared = Declared::of(config, managers);
    let drift = drift_of(config, managers, consumers);
    let notes = drift.into_iter().flat_map(|drift| drift.notes);
    ConfigExplanation {
        subject: Subject::from(&config.id),
        not_looked_at: NotLookedAt::of(config).map(|why| why.to_string()),
        no_drift,
        rolls_nobody: rolls_nobody(config),
        baseline: declared.baseline(),
        baseline_message: baseline_message(config, &declared),
        source: config.origin.as_ref().and_then(|origin| origin.source.clone()),
        notes: notes.map(|note| note.to_string()).collect(),
        managers: config.managed_fields.iter().flatten().filter_map(OwnedKeys::of).collect(),
        keys: keys(config, &declared, managers, consumers),
    }
}

fn rolls_nobody(config: &Config) -> Option<String> {
    let ignore = Ignore::read(&config.annotations).ok().flatten().filter(|ignore| ignore.covers_reload())?;
    Some(format!("its annotation {IGNORE} is {ignore}"))
}

fn baseline_message(config: &Config, declared: &Declared<'_>) -> String {
    let annotation = match &config.last_applied {
        LastApplied::Absent => "there is no annotation of kubectl apply",
        LastApplied::Broken => "the annotation of kubectl apply does not parse",
        LastApplied::Foreign => "the annotation of kubectl apply is about another object, as controllers copy it",
        LastApplied::Declares(_) => return format!("annotation {ANNOTATION} of kubectl apply"),
    };
    let release = config.release();
    if let (Declared::HelmRelease(_), Some(release)) = (declared, release) {
        return format!("{annotation}; declared is what the manifest of Helm release {release} has");
    }
    let unread = release.map(|release| {
        format!("{annotation}, and Helm release {release} declares nothing of it that is known: see helm history, and deploy it")
    });
    let annotation = unread.as_deref().unwrap_or(annotation);
    match declared {
        Declared::LastApplied(_) | Declared::HelmRelease(_) | Declared::ManagedFields(_) => {
            format!("{annotation}; declared is what an applier owns by server-side apply")
        }
        Declared::Nothing if config.managed_fields.is_none() => {
            format!("{annotation}, and there are no managedFields that show what an applier owns")
        }
        Declared::Nothing => format!("{annotation}, and no applier owns keys by server-side apply"),
    }
}

fn keys(config: &Config, declared: &Declared<'_>, managers: &Managers, consumers: &Consumers) -> Vec<KeyExplanation> {
    let claims = claims_of(config, managers, consumers);
    let named = declared.keys().into_iter().map(|(key, _)| key);
    let keys: BTreeSet<&KeyName> = config.values.keys().chain(named).collect();
    let explained = keys.into_iter().map(|key| KeyExplanation {
        key: key.clone(),
        live: config.values.contains_key(key),
        declared: (*declared != Declared::Nothing).then(|| declared.has(key)),
        managers: owners_of(config, key),
        drift: claims.get(key).map(DriftOfKey::from),
        consumers: consumers.of_key(&config.id, key),
    });
    explained.collect()
}

fn owners_of(config: &Config, key: &KeyName) -> Vec<Manager> {
    let owners = config.managed_fields.iter().flatten().filter(|owner| owner.keys.contains(key));
    owners.map(|owner| owner.manager.clone()).collect()
}

impl OwnedKeys {
    /// The keys of this entry, if it has any.
    pub fn of(entry: &ManagerEntry) -> Option<Self> {
        let ManagerEntry { manager, operation, time, keys } = entry.clone();
        (!keys.is_empty()).then_some(Self { manager, operation, since: time, keys: keys.iter().cloned().collect() })
    }
}

impl From<&Claim> for DriftOfKey {
    fn from(claim: &Claim) -> Self {
        match claim {
            Claim::Finding(finding) => {
                Self { is_finding: true, reason: finding.r#type().to_string(), message: in_words(finding) }
            }
            Claim::Silence(silence) => {
                Self { is_finding: false, reason: silence.reason().to_owned(), message: silence.to_string() }
            }
        }
    }
}

fn in_words(finding: &Finding) -> String {
    match finding {
        Finding::StaleKey { cause: StaleCause::LeftByApply(writer), .. } => {
            format!("{} wrote it, and never prunes it", writer.manager)
        }
        Finding::StaleKey { cause: StaleCause::Unowned, .. } => "nobody owns it, so nobody prunes it".to_owned(),
        Finding::UndeclaredKey { by, .. } | Finding::UndeclaredField { by, .. } => format!("{} added it", by.manager),
        Finding::MissingKey { .. } => "the next apply adds it".to_owned(),
        Finding::ValueDiffers { by: Some(by), .. } | Finding::RevertsOnApply { by: Some(by), .. } => {
            format!("{} changed it, and the next apply reverts it", by.manager)
        }
        Finding::ValueDiffers { by: None, .. } | Finding::RevertsOnApply { by: None, .. } => {
            "the next apply reverts it".to_owned()
        }
        Finding::MissingReference(missing) => format!("{} does not exist", missing.config.local()),
        Finding::MixedDigests { .. }
        | Finding::DigestMismatch { .. }
        | Finding::OutdatedPods(_)
        | Finding::RolloutStalled(_) => FindingStatus::from(finding.clone()).message.unwrap_or_default(),
    }
}

impl From<&ConfigId> for Subject {
    fn from(id: &ConfigId) -> Self {
        Self { kind: id.kind.as_str(), namespace: id.namespace.clone(), name: id.name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{ConfigBuilder, secret};
    use crate::model::managed_fields::Operation::{Apply, Update};
    use rstest::rstest;

    fn explain(config: ConfigBuilder) -> ConfigExplanation {
        of_config(&config.build(), &Managers::default(), &Consumers::default(), None)
    }

    #[rstest]
    #[case::declared(secret("s").declares(&[]), Baseline::LastApplied, "annotation kubectl.kubernetes.io/last-applied")]
    #[case::applied(secret("s").owned("kubectl", Apply, &["A"]), Baseline::ManagedFields, "there is no annotation")]
    #[case::foreign(secret("s").last_applied(LastApplied::Foreign), Baseline::None, "is about another object")]
    #[case::broken(secret("s").last_applied(LastApplied::Broken), Baseline::None, "does not parse")]
    #[case::hidden(secret("s"), Baseline::None, "there are no managedFields")]
    #[case::made_by_hand(secret("s").owned("kubectl-create", Update, &["A"]), Baseline::None, "no applier owns keys")]
    fn the_baseline_is_given_a_reason(#[case] config: ConfigBuilder, #[case] baseline: Baseline, #[case] says: &str) {
        let explained = explain(config);
        assert_eq!(explained.baseline, baseline);
        assert!(explained.baseline_message.contains(says), "{}", explained.baseline_message);
    }

    #[test]
    fn each_key_tells_who_owns_it_and_what_drift_says() {
        let config = secret("s")
            .value("A", "1")
            .value("OLD", "1")
            .declares(&[("A", "1"), ("GONE", "1")])
            .owned("kubectl-client-side-apply", Update, &["A", "OLD"])
            .owned("kubectl-edit", Update, &[]);
        let explained = explain(config);
        let row = |key: &KeyExplanation| {
            let drift =
                key.drift.as_ref().map(|drift| format!("{} {}: {}", drift.is_finding, drift.reason, drift.message));
            format!("{} live={} declared={:?} {:?} {}", key.key, key.live, key.declared, key.managers, drift.unwrap())
        };
        let expected = [
            "A live=true declared=Some(true) [\"kubectl-client-side-apply\"] false AsDeclared: as declared",
            "GONE live=false declared=Some(true) [] true MissingKey: the next apply adds it",
            "OLD live=true declared=Some(false) [\"kubectl-client-side-apply\"] true StaleKey: \
             kubectl-client-side-apply wrote it, and never prunes it",
        ];
        assert_eq!(explained.keys.iter().map(row).collect::<Vec<_>>(), expected);
        assert_eq!(explained.managers.len(), 1, "who owns no key is not named");
    }

    #[rstest]
    #[case::a_controller_owns_it(secret("s").controlled_by("ExternalSecret/e"), "ExternalSecret/e owns it as a whole")]
    #[case::ignored(secret("s").annotated("restamp.dev/ignore", "drift"), "restamp.dev/ignore is drift")]
    fn of_a_config_that_is_not_looked_at_it_is_said_why(#[case] config: ConfigBuilder, #[case] says: &str) {
        let explained = explain(config.value("A", "1").declares(&[]));
        assert!(explained.not_looked_at.unwrap().contains(says));
        assert_eq!(explained.keys.iter().map(|key| key.drift.clone()).collect::<Vec<_>>(), [None]);
    }

    #[test]
    fn a_config_that_rolls_nobody_says_so_and_a_typo_is_a_note() {
        let ignored = explain(secret("s").annotated("restamp.dev/ignore", "all"));
        assert_eq!(ignored.rolls_nobody.as_deref(), Some("its annotation restamp.dev/ignore is all"));
        let typo = explain(secret("s").annotated("restamp.dev/ignore", "al"));
        assert_eq!((typo.rolls_nobody, typo.notes.len()), (None, 1));
    }
}
