//! The note about fields that more than one hand or applier writes: two manifests in turn, a script and a person, apply
//! and `set image`.

use super::person::{Person, last_writes};
use super::{Note, WorkloadSight};
use crate::model::fields::Shared;

pub(super) fn notes(sight: &WorkloadSight<'_>) -> Vec<Note> {
    sight.workload.fields.shared.iter().filter_map(|shared| note(sight, shared)).collect()
}

fn note(sight: &WorkloadSight<'_>, shared: &Shared) -> Option<Note> {
    let writes = shared.writers.iter().filter_map(|owner| {
        let (standing, declares) = (sight.managers.standing_on_workload(owner), sight.managers.declares_fields(owner));
        Some((Person::behind(owner.manager.as_str(), standing, declares)?, owner.into()))
    });
    let writers = last_writes(writes);
    let Shared { path, more, .. } = shared;
    (writers.len() > 1).then(|| Note::SharedFields { path: path.clone(), more: *more, writers })
}

#[cfg(test)]
mod tests {
    use super::super::workload::tests::{APPLY, Applied, container};
    use rstest::rstest;
    use serde_json::{Value, json};

    fn image() -> Applied {
        container(json!({"image": "a:1"}), json!({"image": "a:1"}))
    }

    fn owned() -> Value {
        json!({"f:image": {}})
    }

    const PATH: &str = "spec.template.spec.containers[app].image";

    #[rstest]
    #[case::apply_and_set_image(
        image().owns(APPLY, "Update", json!({"f:name": {}})).owns("kubectl-set", "Update", owned()),
        Some("kubectl-client-side-apply and kubectl-set; kubectl-set"))]
    #[case::two_manifests(
        image().owns("argocd-controller", "Apply", owned()).owns("kustomize-controller", "Apply", owned()),
        Some("argocd-controller and kustomize-controller; kustomize-controller"))]
    #[case::kubectl_alone(image().owns(APPLY, "Update", owned()).owns("kubectl", "Apply", owned()), None)]
    #[case::a_controller(image().owns(APPLY, "Update", owned()).owns("keel", "Update", owned()), None)]
    #[case::each_their_own(
        image().owns(APPLY, "Update", owned()).owns("kubectl-edit", "Update", json!({"f:env": {}})), None)]
    fn writers_of_one_field_are_noted(#[case] applied: Applied, #[case] writers: Option<&str>) {
        let notes: Vec<String> = applied.drift().notes.iter().map(ToString::to_string).collect();
        let expected: Vec<String> = writers
            .into_iter()
            .map(|writers| format!("{PATH} is written by {writers} wrote last, at 2026-11-30T12:00:00Z"))
            .collect();
        assert_eq!(notes, expected);
    }
}
