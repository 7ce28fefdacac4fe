//! How reloading stands for a workload, by its DriftReport; or why that is not known.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

use super::operator::OperatorExplanation;
use super::sought::{Sought, Unknown};
use super::why::{Rolls, Why};
use super::workload::WorkloadSight;
use crate::api::drift_report::DriftReport;
use crate::api::reload_status::{LastReload, ReloadState, ReloadStatus};
use crate::model::names::{ConfigName, KeyName, Uid};
use crate::model::record::{Answer, Entry};

/// How reloading stands: the record, without the digests in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reload {
    /// Where it stands.
    pub state: ReloadState,
    /// Why, in words; of a rollout that is held, what holds it.
    pub message: String,
    /// The namespace of the operator that keeps the record.
    pub instance: String,
    /// The last rollout that restamp caused.
    pub last_reload: Option<LastReload>,
    /// What is known of each consumed config.
    pub configs: Vec<ReloadOfConfig>,
}

/// What the record has of one consumed config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadOfConfig {
    /// The config.
    pub config: ConfigName,
    /// When it last changed, as far as restamp saw it.
    pub last_changed: Option<Timestamp>,
    /// Since when it is not there.
    pub absent_since: Option<Timestamp>,
    /// The change that some container may not have read yet.
    pub open: Option<OpenChange>,
}

/// A change that some container may not have read yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenChange {
    /// When it was first seen.
    pub since: Timestamp,
    /// The keys that changed; empty where they can't be named.
    pub keys: BTreeSet<KeyName>,
    /// What restamp did about it.
    pub answer: Answer,
}

/// Why it is not known how reloading stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoReload {
    /// In one word.
    pub reason: NoReloadReason,
    /// In words.
    pub message: String,
}

/// The reasons why it is not known how reloading stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum NoReloadReason {
    /// Nothing rolls it, so there is nothing to stand.
    NotWatched,
    /// The report is not there.
    NoReport,
    /// The report is about an earlier object of this name.
    AnotherSubject,
    /// The custom resource is not installed.
    NotInstalled,
    /// Whoever asks may not read the report.
    Forbidden,
    /// The files have no report.
    NotInFiles,
}

/// How reloading stands, or why that is not known.
pub(super) fn reload_of(
    sight: &WorkloadSight<'_>,
    why: &Why,
    operator: Option<&OperatorExplanation>,
) -> (Option<Reload>, Option<NoReload>) {
    let no = |reason, message: &str| (None, Some(NoReload { reason, message: message.to_owned() }));
    let reload = match sight.report {
        Sought::Found(report) => match report.status.as_ref().and_then(|status| status.reload.as_ref()) {
            Some(_) if !is_about(report, sight.workload.uid.as_ref()) => {
                let message = "the report is about an earlier object of this name, and not written anew yet";
                return no(NoReloadReason::AnotherSubject, message);
            }
            reload => reload,
        },
        Sought::Absent | Sought::NoSuchKind | Sought::Unknown(_) => None,
    };
    if let Some(reload) = reload {
        return (Some(Reload::from(reload)), None);
    }
    if why.rolls() == Rolls::No {
        return no(NoReloadReason::NotWatched, "nothing rolls it, so restamp keeps no record of it");
    }
    match sight.report {
        Sought::Found(_) | Sought::Absent => {
            let remark = operator.and_then(|operator| operator.remarks.first());
            let look = "the operator runs and watches it; if this stays so, see its log";
            no(NoReloadReason::NoReport, &format!("no report yet: {}", remark.map_or(look, |remark| &remark.message)))
        }
        Sought::NoSuchKind => no(
            NoReloadReason::NotInstalled,
            "the custom resource DriftReport is not installed, so no operator keeps a record: is restamp installed?",
        ),
        Sought::Unknown(Unknown::Forbidden | Unknown::Unreadable) => no(
            NoReloadReason::Forbidden,
            "not known, since you may not read its DriftReport; grant get on driftreports.restamp.dev",
        ),
        Sought::Unknown(Unknown::NotInFiles | Unknown::OnlyManifest) => {
            no(NoReloadReason::NotInFiles, "not known, since its DriftReport is not in the files")
        }
    }
}

/// Whether a report is about the object with this uid, as far as both say.
fn is_about(report: &DriftReport, uid: Option<&Uid>) -> bool {
    let owner = report.metadata.owner_references.as_ref().and_then(|owners| owners.first());
    match (owner, uid) {
        (Some(owner), Some(uid)) => owner.uid == uid.as_str(),
        _ => true,
    }
}

impl From<&ReloadStatus> for Reload {
    fn from(status: &ReloadStatus) -> Self {
        Self {
            state: status.state,
            message: status.message.clone(),
            instance: status.instance.clone(),
            last_reload: status.last_reload.clone(),
            configs: status.record.entries.iter().map(ReloadOfConfig::from).collect(),
        }
    }
}

impl From<&Entry> for ReloadOfConfig {
    fn from(entry: &Entry) -> Self {
        let open = entry.change.as_ref().map(|change| OpenChange {
            since: change.first_seen,
            keys: change.keys.clone(),
            answer: change.answer,
        });
        let Entry { config, last_changed, absent_since, .. } = entry;
        Self { config: config.clone(), last_changed: *last_changed, absent_since: *absent_since, open }
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::tests::scene;
    use super::*;
    use crate::api::auto_reload::AutoReload;
    use crate::api::drift_report::DriftReportStatus;
    use crate::model::builders::{WorkloadBuilder, at, deployment, named};
    use crate::model::digest::HashKey;
    use crate::model::record::{Change, Record, Seen};
    use crate::model::report;
    use rstest::rstest;

    fn entry(config: &str) -> Entry {
        let key: HashKey = crate::model::builders::hash_key("k");
        let id = named(config).within(&"ns".into());
        let digest = Some(key.digest_config(&id, std::iter::empty()));
        Entry {
            seen_to: None,
            config: named(config),
            digest,
            all: true,
            keys: [].into(),
            last_changed: Some(at(5)),
            absent_since: None,
            change: None,
        }
    }

    fn report(workload: WorkloadBuilder) -> DriftReport {
        let keys: BTreeSet<KeyName> = ["A".into()].into();
        let change = Change {
            first_seen: at(6),
            last_seen: at(7),
            version: None,
            keys,
            answer: Answer::Asked,
            seen: Seen::Happening,
        };
        let open = Entry { change: Some(change), ..entry("Secret/s") };
        let record = Record { entries: vec![entry("ConfigMap/c"), open], ..Record::default() };
        let status = ReloadStatus {
            state: ReloadState::Held,
            message: "it is being deleted".to_owned(),
            instance: "restamp-system".to_owned(),
            last_reload: Some(LastReload { time: at(3), cause: "key A of Secret s changed".to_owned() }),
            due: None,
            record,
        };
        let status = DriftReportStatus { reload: Some(status), ..DriftReportStatus::default() };
        report::of_workload(&workload.build(), status)
    }

    #[test]
    fn the_record_is_told_without_its_digests() {
        let mut scene = scene(deployment("w"));
        scene.report = Sought::Found(report(deployment("w")));
        let open = OpenChange { since: at(6), keys: ["A".into()].into(), answer: Answer::Asked };
        let config = |config, open| ReloadOfConfig {
            config: named(config),
            last_changed: Some(at(5)),
            absent_since: None,
            open,
        };
        let expected = Reload {
            state: ReloadState::Held,
            message: "it is being deleted".to_owned(),
            instance: "restamp-system".to_owned(),
            last_reload: Some(LastReload { time: at(3), cause: "key A of Secret s changed".to_owned() }),
            configs: vec![config("ConfigMap/c", None), config("Secret/s", Some(open))],
        };
        let explained = scene.explain();
        assert_eq!((explained.reload.as_ref(), explained.no_reload.as_ref()), (Some(&expected), None));
        let text = serde_json::to_string(&explained).unwrap();
        assert!(!text.contains("hmac") && !text.contains("digest"), "{text}");
    }

    #[rstest]
    #[case::not_there(deployment("w"), Sought::Absent, NoReloadReason::NoReport)]
    #[case::not_about_reloading(
        deployment("w"), Sought::Found(DriftReport { status: None, ..report(deployment("w")) }), NoReloadReason::NoReport)]
    #[case::about_an_earlier_one(
        deployment("w"), Sought::Found(report(deployment("w").uid("earlier"))), NoReloadReason::AnotherSubject)]
    #[case::no_such_kind(deployment("w"), Sought::NoSuchKind, NoReloadReason::NotInstalled)]
    #[case::hidden(deployment("w"), Sought::Unknown(Unknown::Forbidden), NoReloadReason::Forbidden)]
    #[case::in_files(deployment("w"), Sought::Unknown(Unknown::NotInFiles), NoReloadReason::NotInFiles)]
    #[case::opted_out(deployment("w").auto_reload(AutoReload::Off), Sought::NoSuchKind, NoReloadReason::NotWatched)]
    fn without_a_record_a_reason_is_given(
        #[case] workload: WorkloadBuilder,
        #[case] report: Sought<DriftReport>,
        #[case] expected: NoReloadReason,
    ) {
        let mut scene = scene(workload);
        scene.report = report;
        let explained = scene.explain();
        assert_eq!((explained.reload, explained.no_reload.map(|no| no.reason)), (None, Some(expected)));
    }

    #[test]
    fn while_the_annotation_does_not_parse_the_record_tells_what_counts() {
        let mut scene = scene(deployment("w").auto_reload(AutoReload::AtStart).env("Secret/s", "A"));
        let mut stored = report(deployment("w"));
        let reload = stored.status.as_mut().and_then(|status| status.reload.as_mut()).unwrap();
        reload.record.counting = crate::model::counting::Counting::of(AutoReload::AtStart);
        scene.report = Sought::Found(stored);
        let annotations = [("restamp.dev/auto-reload".to_owned(), "yes".to_owned())].into();
        scene.workload.opt_in = crate::api::opt_in::OptIn::read(Some(&annotations), None);
        let verdict = scene.explain().verdict;
        assert_eq!((verdict.rolls, verdict.reason), (Rolls::Yes, "OptedIn"));
    }
}
