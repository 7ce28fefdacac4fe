//! The notes about a declared number of pods that somebody else sets, which is how scaling works, and no drift.

use super::reverts_on_apply::{Writers, changed_by};
use super::{Note, WorkloadSight};
use crate::model::autoscaler::Autoscaling;
use crate::model::fields::{FieldKind, Manifest, Replicas};

pub(super) fn notes(sight: &WorkloadSight<'_>) -> Vec<Note> {
    if !sight.has_manifest() {
        return Vec::new();
    }
    let fields = &sight.workload.fields;
    let declares = matches!(fields.manifest, Manifest::Current { replicas: Replicas::Declared, .. });
    if let (Autoscaling::By(autoscaler), true) = (sight.autoscaling, declares) {
        return vec![Note::Autoscaled(autoscaler.clone())];
    }
    let replicas = fields.differences.iter().filter(|difference| difference.kind == FieldKind::Replicas);
    let scaled = replicas.filter_map(|difference| match changed_by(sight, difference) {
        Writers::Somebody(by) => Some(Note::ScaledByController { shown: difference.shown.clone(), by: by.into() }),
        Writers::Hand(_) | Writers::SomeHand | Writers::Applier | Writers::Unknown => None,
    });
    scaled.collect()
}

#[cfg(test)]
mod tests {
    use super::super::workload::tests::{Applied, spec};
    use super::Autoscaling;
    use rstest::rstest;
    use serde_json::json;

    fn scaled_by(manager: &str) -> Applied {
        let owned = json!({"f:replicas": {}});
        spec(json!({"replicas": 2}), json!({"replicas": 5})).owned(manager, "Update", owned).through("scale")
    }

    /// The notes, and how many findings there are.
    fn said(applied: Applied, autoscaling: Autoscaling<'_>) -> (Vec<String>, usize) {
        let drift = applied.drift_beside(autoscaling);
        (drift.notes.iter().map(ToString::to_string).collect(), drift.findings.len())
    }

    const SCALED: &str = "kube-controller-manager scales it to 5, and the manifest declares 2; each apply sets it back for a \
                          while: leave spec.replicas out of the manifest";
    const TWO: &str = "HorizontalPodAutoscaler h scales it, and the manifest declares spec.replicas too: leave it out of the \
                       manifest";

    #[rstest]
    #[case::by_a_controller(scaled_by("kube-controller-manager"), None, &[SCALED], 0)]
    #[case::by_a_hand(scaled_by("kubectl"), None, &[], 1)]
    #[case::by_an_autoscaler(scaled_by("kube-controller-manager"), Some("h"), &[TWO], 0)]
    #[case::by_a_hand_beside_an_autoscaler(scaled_by("kubectl"), Some("h"), &[TWO], 0)]
    #[case::not_yet(spec(json!({"replicas": 2}), json!({"replicas": 2})), Some("h"), &[TWO], 0)]
    #[case::not_declared(spec(json!({}), json!({"replicas": 2})), Some("h"), &[], 0)]
    fn scaling_is_noted(
        #[case] applied: Applied,
        #[case] autoscaler: Option<&str>,
        #[case] notes: &[&str],
        #[case] findings: usize,
    ) {
        let autoscaler = autoscaler.map(Into::into);
        let autoscaling = autoscaler.as_ref().map_or(Autoscaling::Off, Autoscaling::By);
        let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
        assert_eq!(said(applied, autoscaling), (notes, findings));
    }

    #[test]
    fn where_autoscalers_cannot_be_seen_a_hand_may_be_beside_one() {
        assert_eq!(said(scaled_by("kubectl"), Autoscaling::Unknown), (vec![], 0));
        let noted = said(scaled_by("kube-controller-manager"), Autoscaling::Unknown);
        assert_eq!(noted, (vec![SCALED.to_owned()], 0));
    }
}
