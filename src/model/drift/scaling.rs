//! The notes about a declared number of pods that somebody else sets, which is how scaling works, and no drift.

use super::reverts_on_apply::{Writers, changed_by};
use super::{Note, WorkloadSight};
use crate::model::fields::{FieldKind, Manifest, Replicas};

pub(super) fn notes(sight: &WorkloadSight<'_>) -> Vec<Note> {
    if !sight.has_manifest() {
        return Vec::new();
    }
    let fields = &sight.workload.fields;
    let declares = matches!(fields.manifest, Manifest::Current { replicas: Replicas::Declared, .. });
    if let Some(autoscaler) = sight.autoscaler.filter(|_| declares) {
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
    use rstest::rstest;
    use serde_json::json;

    fn scaled_by(manager: &str) -> Applied {
        let owned = json!({"f:replicas": {}});
        spec(json!({"replicas": 2}), json!({"replicas": 5})).owned(manager, "Update", owned).through("scale")
    }

    fn texts(applied: Applied, autoscaler: Option<&str>) -> Vec<String> {
        applied.drift_beside(autoscaler).notes.iter().map(ToString::to_string).collect()
    }

    const SCALED: &str = "kube-controller-manager scales it to 5, and the manifest declares 2; each apply sets it back for a \
                          while: leave spec.replicas out of the manifest";
    const TWO: &str = "HorizontalPodAutoscaler h scales it, and the manifest declares spec.replicas too: leave it out of the \
                       manifest";

    #[rstest]
    #[case::by_a_controller(scaled_by("kube-controller-manager"), None, &[SCALED])]
    #[case::by_a_hand(scaled_by("kubectl"), None, &[])]
    #[case::by_an_autoscaler(scaled_by("kube-controller-manager"), Some("h"), &[TWO])]
    #[case::not_yet(spec(json!({"replicas": 2}), json!({"replicas": 2})), Some("h"), &[TWO])]
    #[case::not_declared(spec(json!({}), json!({"replicas": 2})), Some("h"), &[])]
    fn scaling_is_noted(#[case] applied: Applied, #[case] autoscaler: Option<&str>, #[case] expected: &[&str]) {
        assert_eq!(texts(applied, autoscaler), expected);
    }
}
