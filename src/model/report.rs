//! From what was found about a subject to the DriftReport that says it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference, Time};
use sha2::{Digest as _, Sha256};

use crate::api::drift_report::{
    Baseline, Counts, DriftReport, DriftReportSpec, DriftReportStatus, FindingStatus, FindingType, InSync,
    MAX_FINDINGS, Subject,
};
use crate::model::config::Config;
use crate::model::drift::{Drift, Note};
use crate::model::names::{ConfigId, Name, Uid, WorkloadId};
use crate::model::source::Origin;
use crate::model::workload::Workload;

/// Which report: its namespace and its name.
pub type ReportKey = (Name, String);

/// The label that all our reports carry.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "restamp");

/// The report on a config.
pub fn of_config(config: &Config, status: DriftReportStatus) -> DriftReport {
    let kind = config.id.kind.as_str().to_owned();
    let subject = Subject { api_version: "v1".to_owned(), kind, name: config.id.name.clone() };
    let label = config.id.kind.as_str();
    let status = from(config.origin.as_deref(), status);
    of_subject(subject, label, &config.id.namespace, config.uid.as_ref(), status)
}

/// The report on a workload.
pub fn of_workload(workload: &Workload, status: DriftReportStatus) -> DriftReport {
    let WorkloadId { kind, namespace, name } = &workload.id;
    let api_version = kind.api_version().to_owned();
    let subject = Subject { api_version, kind: kind.as_str().to_owned(), name: name.clone() };
    let status = from(workload.origin.as_deref(), status);
    of_subject(subject, kind.label(), namespace, workload.uid.as_ref(), status)
}

/// The same status, of a subject that comes from there.
fn from(origin: Option<&Origin>, status: DriftReportStatus) -> DriftReportStatus {
    DriftReportStatus { source: origin.and_then(|origin| origin.source.clone()), ..status }
}

fn of_subject(
    subject: Subject,
    label: &str,
    namespace: &Name,
    uid: Option<&Uid>,
    status: DriftReportStatus,
) -> DriftReport {
    let owner = uid.map(|uid| OwnerReference {
        api_version: subject.api_version.clone(),
        kind: subject.kind.clone(),
        name: subject.name.to_string(),
        uid: uid.to_string(),
        ..OwnerReference::default()
    });
    let mut report = DriftReport::new(&name_of(label, &subject.name), DriftReportSpec { subject });
    report.metadata.namespace = Some(namespace.to_string());
    report.metadata.labels = Some([(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned())].into());
    report.metadata.owner_references = owner.map(|owner| vec![owner]);
    report.status = Some(status);
    report
}

/// What there is to say about a config or a workload, as a report's status.
pub fn status_of(drift: Drift, now: Timestamp) -> DriftReportStatus {
    let in_sync = in_sync(&drift);
    let all: Vec<FindingStatus> = drift.findings.into_iter().map(FindingStatus::from).collect();
    let condition = condition(in_sync, &all, now);
    let counts = Some(Counts::of(&all));
    let (findings, left_out) = fit(all);
    let stale = findings.iter().filter(|finding| finding.r#type == FindingType::StaleKey);
    let stale_keys = stale.filter_map(|finding| finding.key.clone()).collect();
    let notes = fit_notes(drift.notes.iter().map(Note::to_string)).chain(left_out.into_note()).collect();
    let baseline = Some(drift.baseline);
    let source = None;
    DriftReportStatus {
        conditions: vec![condition],
        baseline,
        counts,
        source,
        findings,
        notes,
        stale_keys,
        reload: None,
    }
}

/// The same status; a condition that says what it said before keeps the time since when it says so.
pub fn continuing(mut status: DriftReportStatus, previous: &DriftReportStatus) -> DriftReportStatus {
    for condition in &mut status.conditions {
        let before = previous.conditions.iter().find(|before| before.type_ == condition.type_);
        if let Some(before) = before.filter(|before| before.status == condition.status) {
            condition.last_transition_time = before.last_transition_time.clone();
        }
    }
    status
}

/// Which report is about this config.
pub fn key_of_config(id: &ConfigId) -> ReportKey {
    (id.namespace.clone(), name_of(id.kind.as_str(), &id.name))
}

/// Which report is about this workload.
pub fn key_of_workload(id: &WorkloadId) -> ReportKey {
    (id.namespace.clone(), name_of(id.kind.label(), &id.name))
}

/// The name of the report on this subject: `secret-build-service-secrets`. One that would be too long is cut, and a
/// hash keeps it unique.
pub fn name_of(kind: &str, name: &Name) -> String {
    const LONGEST: usize = 253;
    const HASH: usize = 10;
    let full = format!("{}-{name}", kind.to_lowercase());
    if full.len() <= LONGEST {
        return full;
    }
    let hash: String = Sha256::digest(&full).iter().map(|byte| format!("{byte:02x}")).collect();
    let kept: String = full.chars().take(LONGEST - HASH - 1).collect();
    let hash: String = hash.chars().take(HASH).collect();
    format!("{}-{hash}", kept.trim_end_matches(['.', '-']))
}

/// Whether a subject of which this was found is as it is declared.
pub fn in_sync(drift: &Drift) -> InSync {
    match drift.baseline {
        _ if !drift.findings.is_empty() => InSync::Drifted,
        Baseline::None => InSync::NoBaseline,
        _ if drift.notes.contains(&Note::OwnersHidden) => InSync::OwnersHidden,
        _ => InSync::AsDeclared,
    }
}

fn condition(in_sync: InSync, findings: &[FindingStatus], now: Timestamp) -> Condition {
    Condition {
        type_: InSync::TYPE.to_owned(),
        status: in_sync.status().to_owned(),
        reason: in_sync.reason().to_owned(),
        message: message(in_sync, findings),
        last_transition_time: to_the_second(now),
        observed_generation: None,
    }
}

fn message(in_sync: InSync, findings: &[FindingStatus]) -> String {
    match in_sync {
        InSync::AsDeclared => "no drift".to_owned(),
        InSync::NoBaseline => "nothing says what is declared".to_owned(),
        InSync::OwnersHidden => "not known: managedFields are hidden".to_owned(),
        InSync::Drifted => {
            let counts = FindingType::ALL.into_iter().filter_map(|r#type| {
                let many = findings.iter().filter(|finding| finding.r#type == r#type).count();
                (many > 0).then(|| r#type.count(many))
            });
            counts.collect::<Vec<_>>().join(", ")
        }
    }
}

/// The API writes times to the second, and would give back another one than we wrote.
pub(super) fn to_the_second(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

/// What did not fit into a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct LeftOut {
    findings: usize,
    consumers: usize,
}

impl LeftOut {
    fn into_note(self) -> Option<String> {
        let Self { findings, consumers } = self;
        (self != Self::default())
            .then(|| format!("a report holds no more: {findings} findings and {consumers} consumers are left out"))
    }
}

/// As many findings as the API server takes in one object (etcd's limit is 1.5 MiB): where it gets tight, the
/// consumers go first.
fn fit(findings: Vec<FindingStatus>) -> (Vec<FindingStatus>, LeftOut) {
    const ROOM: usize = 1024 * 1024;
    let mut room = ROOM;
    let mut kept = Vec::new();
    let mut left_out = LeftOut::default();
    for mut finding in findings {
        if size(&finding) > room {
            left_out.consumers += std::mem::take(&mut finding.consumers).len();
        }
        match room.checked_sub(size(&finding)) {
            Some(rest) if kept.len() < MAX_FINDINGS => {
                room = rest;
                kept.push(finding);
            }
            _ => left_out.findings += 1,
        }
    }
    (kept, left_out)
}

/// As many notes, each as long, as a person reads, and a count of the others.
fn fit_notes(notes: impl ExactSizeIterator<Item = String>) -> impl Iterator<Item = String> {
    const MOST: usize = 100;
    const LONGEST: usize = 1_000;
    let left_out = notes.len().saturating_sub(MOST);
    let kept = notes.take(MOST).map(|note| note.chars().take(LONGEST).collect());
    kept.chain((left_out > 0).then(|| format!("a report holds no more: {left_out} notes are left out")))
}

/// About what a finding takes in an object: itself, and its key once more among the stale ones.
fn size(finding: &FindingStatus) -> usize {
    let own = serde_json::to_vec(finding).map_or(0, |json| json.len());
    own + finding.key.as_ref().map_or(0, |key| key.as_str().len()) + 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::drift_report::{Cause, Consumer};
    use crate::model::builders::secret;
    use crate::model::consumption::{Refresh, Via};
    use crate::model::drift::{Finding, StaleCause, Writer};
    use crate::model::names::KeyName;
    use rstest::rstest;
    use serde_json::json;

    const NOON: &str = "2026-11-30T12:00:00Z";

    fn consumer(container: &str) -> Consumer {
        Consumer {
            workload: "Deployment/w".to_owned(),
            container: container.into(),
            via: Via::EnvFrom,
            r#as: "K".to_owned(),
            refresh: Refresh::AtStart,
        }
    }

    fn stale(key: &str) -> Finding {
        let writer = Writer { manager: "kubectl-create".into(), since: Some(NOON.parse().unwrap()) };
        Finding::StaleKey { key: key.into(), cause: StaleCause::LeftByApply(writer), consumers: vec![consumer("app")] }
    }

    fn drift(findings: Vec<Finding>) -> Drift {
        Drift { baseline: Baseline::LastApplied, findings, notes: vec![] }
    }

    #[test]
    fn a_report_says_all_that_was_found() {
        let unowned = Finding::StaleKey { key: "L".into(), cause: StaleCause::Unowned, consumers: vec![] };
        let missing = Finding::MissingKey { key: "M".into(), consumers: vec![] };
        let now = "2026-11-30T13:00:00.5Z".parse().unwrap();
        let status = status_of(drift(vec![stale("K"), unowned, missing]), now);
        let report = of_config(&secret("s").build(), status);
        let expected = json!({
            "apiVersion": "restamp.dev/v1alpha1", "kind": "DriftReport",
            "metadata": {
                "name": "secret-s", "namespace": "ns", "labels": {"app.kubernetes.io/managed-by": "restamp"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "uid-of-s"}],
            },
            "spec": {"subject": {"apiVersion": "v1", "kind": "Secret", "name": "s"}},
            "status": {
                "conditions": [{
                    "type": "InSync", "status": "False", "reason": "Drifted",
                    "message": "2 stale keys, 1 missing key", "lastTransitionTime": "2026-11-30T13:00:00Z",
                }],
                "baseline": "LastApplied",
                "counts": {"staleKeys": 2, "other": 1},
                "findings": [
                    {"type": "StaleKey", "key": "K", "cause": "LeftByApply", "manager": "kubectl-create", "since": NOON,
                        "consumers": [{"workload": "Deployment/w", "container": "app", "via": "envFrom", "as": "K",
                            "refresh": "AtStart"}]},
                    {"type": "StaleKey", "key": "L", "cause": "Unowned"},
                    {"type": "MissingKey", "key": "M"},
                ],
                "staleKeys": ["K", "L"],
            },
        });
        assert_eq!(serde_json::to_value(report).unwrap(), expected);
    }

    #[rstest]
    #[case::clean(drift(vec![]), InSync::AsDeclared)]
    #[case::drifted(drift(vec![stale("K")]), InSync::Drifted)]
    #[case::no_baseline(Drift { baseline: Baseline::None, findings: vec![], notes: vec![] }, InSync::NoBaseline)]
    #[case::hidden(
        Drift { baseline: Baseline::LastApplied, findings: vec![], notes: vec![Note::OwnersHidden] },
        InSync::OwnersHidden)]
    fn what_is_not_known_is_never_called_clean(#[case] drift: Drift, #[case] expected: InSync) {
        assert_eq!(in_sync(&drift), expected);
    }

    #[test]
    fn a_condition_keeps_its_time_while_it_says_the_same() {
        let at = |findings, time: &str| status_of(drift(findings), time.parse().unwrap());
        let before = at(vec![stale("K")], NOON);
        let still = continuing(at(vec![stale("L"), stale("M")], "2026-11-30T13:00:00Z"), &before);
        let over = continuing(at(vec![], "2026-11-30T13:00:00Z"), &before);
        let time = |status: &DriftReportStatus| status.conditions[0].last_transition_time.0.to_string();
        assert_eq!((time(&still), time(&over)), (NOON.to_owned(), "2026-11-30T13:00:00Z".to_owned()));
        assert_eq!(still.stale_keys, [KeyName::from("L"), KeyName::from("M")]);
    }

    #[test]
    fn every_subject_has_a_report_name_of_its_own_that_the_api_takes() {
        assert_eq!(name_of("ConfigMap", &"kube-root-ca.crt".into()), "configmap-kube-root-ca.crt");
        let long = |end: &str| name_of("ConfigMap", &format!("{}{end}", "a.".repeat(124)).as_str().into());
        assert!(long("x").len() <= 253);
        assert_ne!(long("x"), long("y"));
        assert!(long("x").starts_with("configmap-a.a.") && !long("x").contains(".-"), "{}", long("x"));
    }

    #[test]
    fn what_does_not_fit_is_counted_and_the_consumers_go_first() {
        let many = (0..6_000).map(|number| FindingStatus {
            key: Some(format!("KEY_{number}").as_str().into()),
            cause: Some(Cause::LeftByApply),
            ..FindingStatus::from(stale("K"))
        });
        let status = status_of(drift(vec![]), NOON.parse().unwrap());
        let (kept, left_out) = fit(many.collect());
        let status = DriftReportStatus { findings: kept, ..status };
        assert!(serde_json::to_vec(&status).unwrap().len() < 1_100_000);
        assert_eq!(status.findings.len() + left_out.findings, 6_000);
        assert!(left_out.consumers > 0, "{left_out:?}");
    }

    #[test]
    fn notes_that_nobody_would_read_are_counted() {
        let note = |number| Note::MutableTag {
            container: format!("{number}-{}", "x".repeat(2_000)).as_str().into(),
            image: "a".into(),
        };
        let many = Drift { notes: (0..102).map(note).collect(), ..drift(vec![]) };
        let notes = status_of(many, NOON.parse().unwrap()).notes;
        assert_eq!((notes.len(), notes[0].len()), (101, 1_000));
        assert_eq!(notes[100], "a report holds no more: 2 notes are left out");
    }

    #[test]
    fn the_count_of_what_was_found_is_of_all_of_it() {
        let findings = (0..6_000).map(|number| stale(&format!("KEY_{number}"))).collect();
        let status = status_of(drift(findings), NOON.parse().unwrap());
        assert_eq!(status.conditions[0].message, "6000 stale keys");
        assert_eq!(status.counts, Some(Counts { stale_keys: 6_000, other: 0 }));
        assert_eq!(status.notes.len(), 1);
    }
}
