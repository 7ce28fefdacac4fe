//! Where a workload is not as it should be.

use jiff::Timestamp;

use super::{
    Drift, Finding, Note, digest_mismatch, missing_reference, mixed_digests, mutable_tag, outdated_pods,
    reverts_on_apply, rollout_stalled, scaling, shared_fields, undeclared_field,
};
use crate::api::annotations::IGNORE_FINDINGS;
use crate::api::drift_report::Baseline;
use crate::model::autoscaler::Autoscaling;
use crate::model::config::Configs;
use crate::model::decide::Decision;
use crate::model::fields::{Manifest, ManifestOrigin, Ownership};
use crate::model::managers::Managers;
use crate::model::pod::{Phase, Pod};
use crate::model::record::Record;
use crate::model::revision::OwnPods;
use crate::model::workload::Workload;

/// A workload under a look, with all that the rules ask.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadSight<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The configs.
    pub configs: &'a Configs,
    /// Who is who among those who write.
    pub managers: &'a Managers,
    /// Which HorizontalPodAutoscaler scales it.
    pub autoscaling: Autoscaling<'a>,
    /// Its pods.
    pub own_pods: OwnPods<'a>,
    /// How reloading stands, where the operator follows it.
    pub reloading: Option<Reloading<'a>>,
    /// The time.
    pub now: Timestamp,
}

/// How reloading of a workload stands.
#[derive(Debug, Clone, Copy)]
pub struct Reloading<'a> {
    /// What is known of its configs.
    pub record: &'a Record,
    /// What is due.
    pub decision: &'a Decision,
    /// Why what is due is not done.
    pub obstacle: Option<Obstacle<'a>>,
}

/// Why a stamp that is due is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle<'a> {
    /// The last one failed; it is tried again.
    Failure(&'a str),
    /// It is a dry run.
    DryRun,
}

impl<'a> WorkloadSight<'a> {
    /// The pods that count: none that is terminating or has finished.
    pub(super) fn active(&self) -> impl Iterator<Item = &'a Pod> + use<'a> {
        self.own_pods.pods.iter().copied().filter(|pod| pod.phase == Phase::Active)
    }
}

/// Looks at a workload.
pub fn drift_of_workload(sight: &WorkloadSight<'_>) -> Drift {
    let rules = [
        reverts_on_apply::find,
        undeclared_field::find,
        missing_reference::find,
        mixed_digests::find,
        digest_mismatch::find,
        outdated_pods::find,
        rollout_stalled::find,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|find| find(sight)).collect();
    sight.workload.opt_in.ignored.leave_out_of(&mut findings);
    Drift { baseline: sight.baseline(), findings, notes: sight.notes() }
}

/// When there may be more to say, though nothing happens until then.
pub fn next_look_at_workload(sight: &WorkloadSight<'_>) -> Option<Timestamp> {
    rollout_stalled::next_look(sight)
}

impl WorkloadSight<'_> {
    /// What says which fields are declared.
    pub(super) fn baseline(&self) -> Baseline {
        let fields = &self.workload.fields;
        match fields.manifest {
            Manifest::Current { origin: ManifestOrigin::LastApplied, .. } => Baseline::LastApplied,
            Manifest::Current { origin: ManifestOrigin::HelmRelease, .. } => Baseline::HelmRelease,
            _ if fields.appliers().any(|applier| self.managers.declares_fields(applier)) => Baseline::ManagedFields,
            Manifest::Absent | Manifest::Broken | Manifest::Foreign | Manifest::Overtaken => Baseline::None,
        }
    }

    /// Whether a manifest says what is declared, so that the values are known.
    pub(super) fn has_manifest(&self) -> bool {
        matches!(self.workload.fields.manifest, Manifest::Current { .. })
    }

    fn notes(&self) -> Vec<Note> {
        let fields = &self.workload.fields;
        let problems = self.workload.opt_in.problems.iter().filter(|problem| problem.name == IGNORE_FINDINGS);
        let invalid = problems.cloned().map(Note::InvalidAnnotation);
        let broken = (fields.manifest == Manifest::Broken).then_some(Note::LastAppliedBroken);
        let hidden = self.hidden_owners_matter().then_some(Note::OwnersHidden);
        let left_out = (fields.left_out > 0).then_some(Note::FieldsLeftOut(fields.left_out));
        let rules =
            [scaling::notes, shared_fields::notes, mixed_digests::notes, digest_mismatch::notes, mutable_tag::notes];
        let more = rules.iter().flat_map(|note| note(self));
        invalid.chain(broken).chain(hidden).chain(more).chain(left_out).collect()
    }

    /// Whether managedFields, if they were shown, could tell more.
    fn hidden_owners_matter(&self) -> bool {
        let fields = &self.workload.fields;
        fields.ownership == Ownership::Hidden && !(fields.differences.is_empty() && fields.additions.is_empty())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::api::drift_report::FindingStatus;
    use crate::model::names::ConfigKind;
    use k8s_openapi::api::apps::v1::Deployment;
    use rstest::rstest;
    use serde_json::{Value, json};

    pub(in super::super) const APPLY: &str = "kubectl-client-side-apply";

    /// A Deployment that was applied: its manifest's spec, its live one, and the entries of managedFields.
    pub(in super::super) struct Applied {
        declared: Value,
        live: Value,
        owners: Vec<Value>,
        annotations: Value,
    }

    /// One with this container in its manifest, and live with this one.
    pub(in super::super) fn container(declared: Value, live: Value) -> Applied {
        let named = |mut container: Value| {
            container["name"] = json!("app");
            json!({"template": {"spec": {"containers": [container]}}})
        };
        spec(named(declared), named(live))
    }

    /// One with this spec in its manifest, and live with this one.
    pub(in super::super) fn spec(declared: Value, live: Value) -> Applied {
        Applied { declared, live, owners: Vec::new(), annotations: json!({}) }
    }

    impl Applied {
        /// Whose managedFields have this entry, about these fields of the spec.
        pub(in super::super) fn owned(mut self, manager: &str, operation: &str, spec: Value) -> Self {
            let metadata = match (manager, operation) {
                (APPLY, _) => json!({"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {}}}),
                _ => json!({}),
            };
            let fields = json!({"f:metadata": metadata, "f:spec": spec});
            self.owners.push(json!({
                "manager": manager, "operation": operation, "time": "2026-11-30T12:00:00Z", "fieldsV1": fields,
            }));
            self
        }

        /// The same about these fields of the container.
        pub(in super::super) fn owns(self, manager: &str, operation: &str, container: Value) -> Self {
            let members = json!({"k:{\"name\":\"app\"}": container});
            self.owned(manager, operation, json!({"f:template": {"f:spec": {"f:containers": members}}}))
        }

        /// The entry that was made last is of this subresource.
        pub(in super::super) fn through(mut self, subresource: &str) -> Self {
            self.owners.last_mut().unwrap()["subresource"] = json!(subresource);
            self
        }

        /// The entry that was made last was written an hour after the others.
        pub(in super::super) fn later(mut self) -> Self {
            self.owners.last_mut().unwrap()["time"] = json!("2026-11-30T13:00:00Z");
            self
        }

        pub(in super::super) fn annotated(mut self, name: &str, value: &str) -> Self {
            self.annotations[name] = json!(value);
            self
        }

        pub(in super::super) fn build(mut self) -> Workload {
            let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "w", "namespace": "ns"}, "spec": self.declared});
            let annotation = "kubectl.kubernetes.io/last-applied-configuration";
            if self.annotations.get(annotation).is_none() {
                self.annotations[annotation] = json!(manifest.to_string());
            }
            let object: Deployment = serde_json::from_value(json!({
                "metadata": {"name": "w", "namespace": "ns", "annotations": self.annotations, "managedFields": self.owners},
                "spec": self.live,
            }))
            .unwrap();
            Workload::of_deployment(&object).unwrap()
        }

        pub(in super::super) fn drift(self) -> Drift {
            self.drift_beside(Autoscaling::Off)
        }

        /// The same where this is known of who scales it.
        pub(in super::super) fn drift_beside(self, autoscaling: Autoscaling<'_>) -> Drift {
            let workload = &self.build();
            let sight = WorkloadSight {
                workload,
                configs: &Configs::with_unknown(ConfigKind::ALL.into()),
                managers: &Managers::default(),
                autoscaling,
                own_pods: OwnPods { workload, pods: &[], replica_set: None },
                reloading: None,
                now: Timestamp::UNIX_EPOCH,
            };
            drift_of_workload(&sight)
        }

        /// `Type path declared>live (manager)` of every finding.
        pub(in super::super) fn found(self) -> Vec<String> {
            let statuses = self.drift().findings.into_iter().map(FindingStatus::from);
            let line = |status: FindingStatus| {
                let shown = status.declared.zip(status.live).map(|(declared, live)| format!(" {declared}>{live}"));
                let by = status.manager.map(|manager| format!(" ({manager})"));
                format!(
                    "{} {}{}{}",
                    status.r#type,
                    status.path.unwrap_or_default(),
                    shown.unwrap_or_default(),
                    by.unwrap_or_default()
                )
            };
            statuses.map(line).collect()
        }
    }

    fn image_changed() -> Applied {
        container(json!({"image": "a:1"}), json!({"image": "a:2"})).owns(
            "kubectl-set",
            "Update",
            json!({"f:image": {}}),
        )
    }

    #[rstest]
    #[case::ours(image_changed(), Baseline::LastApplied, 1)]
    #[case::broken(image_changed().annotated("kubectl.kubernetes.io/last-applied-configuration", "{"), Baseline::None, 0)]
    #[case::overtaken(image_changed().owns("argocd-controller", "Apply", json!({"f:env": {}})), Baseline::ManagedFields, 0)]
    #[case::a_controller_applies(image_changed().owns("scaler", "Apply", json!({"f:resources": {}})), Baseline::None, 0)]
    #[case::our_own_stamp_declares_nothing(
        image_changed().owned("restamp", "Apply",
            json!({"f:template": {"f:metadata": {"f:annotations": {"f:restamp.dev/config-hash": {}}}}})),
        Baseline::LastApplied, 1)]
    #[case::kubectl_keeps_the_annotation_up_to_date(
        image_changed().owns("kubectl", "Apply", json!({"f:env": {}})), Baseline::LastApplied, 1)]
    #[case::copied_from_a_parent(
        image_changed().annotated("kubectl.kubernetes.io/last-applied-configuration",
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"parent","namespace":"ns"},"spec":{}}"#),
        Baseline::None, 0)]
    fn the_annotation_counts_while_nobody_else_applies(
        #[case] applied: Applied,
        #[case] baseline: Baseline,
        #[case] findings: usize,
    ) {
        let drift = applied.drift();
        assert_eq!((drift.baseline, drift.findings.len()), (baseline, findings), "{drift:?}");
    }

    #[test]
    fn hidden_owners_give_a_note_and_no_finding() {
        let drift = container(json!({"image": "a:1"}), json!({"image": "a:2"})).drift();
        assert_eq!((drift.findings, drift.notes), (vec![], vec![Note::OwnersHidden]));
    }

    #[test]
    fn an_ignored_finding_is_none() {
        let ignoring = |what: &str| image_changed().annotated("restamp.dev/ignore-findings", what).found().len();
        let path = "RevertsOnApply:spec.template.spec.containers[app].image";
        let counts =
            [path, "RevertsOnApply", "RevertsOnApply:*.image", "UndeclaredField", "RevertsOnApply:spec.replicas"];
        assert_eq!(counts.map(ignoring), [0, 0, 0, 1, 1]);
    }

    #[test]
    fn what_does_not_parse_ignores_nothing_and_is_noted() {
        let drift = image_changed().annotated("restamp.dev/ignore-findings", "RevertOnApply").drift();
        assert_eq!(drift.findings.len(), 1);
        let notes: Vec<String> = drift.notes.iter().map(ToString::to_string).collect();
        assert!(
            notes[0].starts_with("annotation restamp.dev/ignore-findings has the value \"RevertOnApply\""),
            "{notes:?}"
        );
    }
}
