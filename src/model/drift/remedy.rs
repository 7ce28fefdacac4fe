//! What each type of finding means, and the command that mends it.

use serde_json::json;

use crate::api::drift_report::{Baseline, DriftReport, FindingStatus, FindingType, SourceKind};
use crate::model::config::{Config, Field};
use crate::model::names::{KeyName, Name, WorkloadKind};
use crate::model::workload::{ByHand, Strategy, Workload};

/// What commands about a subject go by.
#[derive(Debug, Clone, Copy)]
pub struct Patient<'a> {
    /// Its report.
    pub report: &'a DriftReport,
    /// Itself, if it is a config.
    pub config: Option<&'a Config>,
    /// Itself, if it is a workload.
    pub workload: Option<&'a Workload>,
    /// What kubectl must be told of the cluster: `--context=c`.
    pub connection: &'a [String],
}

impl FindingType {
    /// What it means, for a person.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::StaleKey => {
                "the key is live, yet no manifest declares it any more, and no apply removes it: remove it"
            }
            Self::UndeclaredKey => "a person added the key, and no manifest declares it: declare it, or remove it",
            Self::MissingKey => "the manifest declares the key, and it was removed: apply the manifest again",
            Self::ValueDiffers => {
                "the next apply reverts what a person changed: declare the new value, or apply the manifest again"
            }
            Self::RevertsOnApply => {
                "the next apply reverts the field: declare what is live, or apply the manifest again"
            }
            Self::UndeclaredField => "a person added it, and no apply removes it: declare it, or remove it",
            Self::MissingReference => "new pods can't start without it: make it, or mark the reference optional",
            Self::MixedDigests => {
                "pods of one revision run different images under one tag: restart them, or pin a digest"
            }
            Self::DigestMismatch => "a pod runs another image than its template pins: restart it",
            Self::OutdatedPods => {
                "containers started before what they read at their start last changed: have them start anew"
            }
            Self::RolloutStalled => "the rollout makes no progress: mend what blocks it, or roll back",
        }
    }
}

/// The command that mends this finding, and all others of its type that one command mends; for a shell.
pub fn remedy(patient: &Patient<'_>, finding: &FindingStatus) -> String {
    match finding.r#type {
        FindingType::StaleKey | FindingType::UndeclaredKey => patient.removes(finding.r#type),
        FindingType::MissingKey | FindingType::ValueDiffers | FindingType::RevertsOnApply => patient.applies(),
        FindingType::UndeclaredField => patient.kubectl("edit", &patient.subject(), &[]),
        FindingType::MissingReference => patient.makes(finding),
        FindingType::MixedDigests | FindingType::DigestMismatch | FindingType::OutdatedPods => {
            patient.restarts().unwrap_or_else(|| patient.kubectl("describe", &patient.subject(), &[]))
        }
        FindingType::RolloutStalled => {
            patient.rolls("undo").unwrap_or_else(|| patient.kubectl("describe", &patient.subject(), &[]))
        }
    }
}

impl Patient<'_> {
    /// As kubectl takes it: `secret/s`, and of a custom kind with version and group.
    fn subject(&self) -> String {
        let subject = &self.report.spec.subject;
        let kind = subject.kind.to_lowercase();
        let custom = !["v1", "apps/v1", "batch/v1"].contains(&subject.api_version.as_str());
        match subject.api_version.split_once('/').filter(|_| custom) {
            Some((group, version)) => format!("{kind}.{version}.{group}/{}", subject.name),
            None => format!("{kind}/{}", subject.name),
        }
    }

    fn kubectl(&self, command: &str, object: &str, flags: &[String]) -> String {
        let namespace = self.report.metadata.namespace.as_deref().unwrap_or_default();
        let flags = [&[format!("--namespace={namespace}")], self.connection, flags].concat();
        let words: Vec<String> = std::iter::once(object.to_owned()).chain(flags).map(|word| quoted(&word)).collect();
        format!("kubectl {command} {}", words.join(" "))
    }

    /// One patch for all keys of this type: after it, the object has another version. The tests keep it from an object
    /// that has changed since, without telling a value.
    fn removes(&self, r#type: FindingType) -> String {
        let findings = self.report.status.iter().flat_map(|status| &status.findings);
        let keys = findings.filter(|finding| finding.r#type == r#type).filter_map(|finding| finding.key.as_ref());
        let test = |path: &str, value: String| json!({"op": "test", "path": path, "value": value});
        let uid = self.config.and_then(|config| config.uid.as_ref());
        let version = self.config.and_then(|config| config.resource_version);
        let uid = uid.map(|uid| test("/metadata/uid", uid.to_string()));
        let version = version.map(|version| test("/metadata/resourceVersion", version.to_string()));
        let removals = keys.map(|key| json!({"op": "remove", "path": self.pointer(key)}));
        let patch = serde_json::Value::from_iter(uid.into_iter().chain(version).chain(removals));
        self.kubectl("patch", &self.subject(), &["--type=json".to_owned(), format!("--patch={patch}")])
    }

    /// Where a key stands, as a JSON pointer.
    fn pointer(&self, key: &KeyName) -> String {
        let live = self.config.and_then(|config| config.values.get(key));
        let field = match live.map(|live| live.field) {
            Some(Field::BinaryData) => "binaryData",
            Some(Field::Data) | None => "data",
        };
        format!("/{field}/{}", key.as_str().replace('~', "~0").replace('/', "~1"))
    }

    /// Applies what is declared once more.
    fn applies(&self) -> String {
        let again = vec!["--filename=-".to_owned()];
        let status = self.report.status.as_ref();
        match status.and_then(|status| status.baseline) {
            Some(Baseline::LastApplied) => {
                let last = self.kubectl("apply view-last-applied", &self.subject(), &["--output=json".to_owned()]);
                let apply = self.kubectl("apply", "--validate=strict", &again);
                format!("{last} | {apply}")
            }
            Some(Baseline::HelmRelease) => {
                let namespace = self.report.metadata.namespace.as_deref().unwrap_or_default();
                let source = status.and_then(|status| status.source.as_ref());
                let release = source.filter(|source| source.kind == SourceKind::Release);
                let namespace = release.and_then(|release| release.namespace.as_ref()).map_or(namespace, Name::as_str);
                let release = quoted(release.map_or("RELEASE", |release| release.name.as_str()));
                format!("helm upgrade {release} CHART --reuse-values {}", quoted(&format!("--namespace={namespace}")))
            }
            Some(Baseline::ManagedFields | Baseline::None) | None => {
                self.kubectl("apply", "--server-side", &["--filename=MANIFEST".to_owned()])
            }
        }
    }

    /// Makes what a container needs.
    fn makes(&self, finding: &FindingStatus) -> String {
        let object = finding.object.as_deref().unwrap_or_default();
        match (object.split_once('/'), &finding.key) {
            (Some((kind, name)), Some(_)) => self.kubectl("edit", &format!("{}/{name}", kind.to_lowercase()), &[]),
            (Some(("Secret", name)), None) => {
                self.kubectl("create secret generic", name, &["--from-env-file=FILE".to_owned()])
            }
            (Some((kind, name)), None) => {
                self.kubectl(&format!("create {}", kind.to_lowercase()), name, &["--from-env-file=FILE".to_owned()])
            }
            (None, _) => self.kubectl("edit", &self.subject(), &[]),
        }
    }

    /// Has its pods start anew. A restart is refused while a Deployment is paused, and leaves the pods where their owner has
    /// the say; one that is deleted comes back.
    fn restarts(&self) -> Option<String> {
        match self.workload.map_or(Strategy::Rolling, |workload| workload.strategy) {
            Strategy::Rolling => self.rolls("restart"),
            Strategy::ByHand(ByHand::Paused) => {
                let [resume, restart] = [self.rolls("resume")?, self.rolls("restart")?];
                Some(format!("{resume} && {restart}"))
            }
            Strategy::ByHand(ByHand::OnDelete | ByHand::Partition) => Some(self.kubectl("delete pod", "POD", &[])),
        }
    }

    /// `kubectl rollout`, of a kind that has it.
    fn rolls(&self, how: &str) -> Option<String> {
        let kinds = [WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::DaemonSet];
        let has_it = kinds.iter().any(|kind| kind.as_str() == self.report.spec.subject.kind);
        has_it.then(|| self.kubectl(&format!("rollout {how}"), &self.subject(), &[]))
    }
}

/// A word as a shell takes it, whatever it holds: names in a file may be anything.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{config_map, deployment, secret};
    use crate::model::drift::{Drift, Finding, StaleCause};
    use crate::model::report;
    use rstest::rstest;

    fn stale(key: &str) -> Finding {
        Finding::StaleKey { key: key.into(), cause: StaleCause::Unowned, consumers: vec![] }
    }

    fn drift(findings: Vec<Finding>) -> crate::api::drift_report::DriftReportStatus {
        let drift = Drift { baseline: Baseline::LastApplied, findings, notes: vec![] };
        report::status_of(drift, "2026-11-30T12:00:00Z".parse().unwrap())
    }

    fn of_config(config: &Config, findings: Vec<Finding>, connection: &[String]) -> String {
        let report = report::of_config(config, drift(findings));
        let patient = Patient { report: &report, config: Some(config), workload: None, connection };
        remedy(&patient, &report.status.as_ref().unwrap().findings[0])
    }

    #[test]
    fn one_patch_removes_all_stale_keys_of_the_very_object_that_was_seen() {
        let config = config_map("c").value("A", "1").binary("B", "1").build();
        assert_eq!(
            of_config(&config, vec![stale("A"), stale("B")], &["--context=x y".to_owned()]),
            "kubectl patch configmap/c --namespace=ns '--context=x y' --type=json \
             '--patch=[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"uid-of-c\"},\
             {\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"1\"},\
             {\"op\":\"remove\",\"path\":\"/data/A\"},{\"op\":\"remove\",\"path\":\"/binaryData/B\"}]'"
        );
    }

    #[test]
    fn what_was_applied_is_applied_again() {
        let missing = vec![Finding::MissingKey { key: "A".into(), consumers: vec![] }];
        assert_eq!(
            of_config(&secret("s").build(), missing, &[]),
            "kubectl apply view-last-applied secret/s --namespace=ns --output=json | \
             kubectl apply --validate=strict --namespace=ns --filename=-"
        );
    }

    #[test]
    fn a_workload_is_restarted_and_another_kind_is_looked_at() {
        let finding = FindingStatus::new(FindingType::OutdatedPods);
        let mut report = report::of_workload(&deployment("w").build(), drift(vec![]));
        let of =
            |report: &DriftReport| remedy(&Patient { report, config: None, workload: None, connection: &[] }, &finding);
        assert_eq!(of(&report), "kubectl rollout restart deployment/w --namespace=ns");
        report.spec.subject.kind = "Rollout".to_owned();
        report.spec.subject.api_version = "argoproj.io/v1alpha1".to_owned();
        assert_eq!(of(&report), "kubectl describe rollout.v1alpha1.argoproj.io/w --namespace=ns");
    }

    #[rstest]
    #[case::paused(
        ByHand::Paused,
        "kubectl rollout resume deployment/w --namespace=ns && kubectl rollout restart deployment/w --namespace=ns"
    )]
    #[case::on_delete(ByHand::OnDelete, "kubectl delete pod POD --namespace=ns")]
    #[case::partition(ByHand::Partition, "kubectl delete pod POD --namespace=ns")]
    fn pods_that_a_restart_leaves_are_replaced_in_another_way(#[case] by_hand: ByHand, #[case] expected: &str) {
        let mut workload = deployment("w").build();
        workload.strategy = Strategy::ByHand(by_hand);
        let report = report::of_workload(&workload, drift(vec![]));
        let patient = Patient { report: &report, config: None, workload: Some(&workload), connection: &[] };
        assert_eq!(remedy(&patient, &FindingStatus::new(FindingType::OutdatedPods)), expected);
    }

    #[rstest]
    #[case("secret/s", "secret/s")]
    #[case("a; rm -rf $HOME", "'a; rm -rf $HOME'")]
    #[case("it's", r"'it'\''s'")]
    #[case("", "''")]
    fn a_shell_obeys_no_name(#[case] word: &str, #[case] expected: &str) {
        assert_eq!(quoted(word), expected);
    }
}
