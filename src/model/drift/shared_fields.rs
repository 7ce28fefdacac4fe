//! The note about fields that more than one hand or applier writes: two manifests in turn, a script and a person, apply
//! and `set image`.

use std::collections::BTreeMap;

use super::{Note, WorkloadSight, Writer};
use crate::model::fields::Shared;
use crate::model::fields::owners::FieldOwner;
use crate::model::managed_fields::Operation;
use crate::model::managers::{Standing, is_kubectl_apply_of_fields};

pub(super) fn notes(sight: &WorkloadSight<'_>) -> Vec<Note> {
    sight.workload.fields.shared.iter().filter_map(|shared| note(sight, shared)).collect()
}

fn note(sight: &WorkloadSight<'_>, shared: &Shared) -> Option<Note> {
    let mut by_person: BTreeMap<Person<'_>, &FieldOwner> = BTreeMap::new();
    for owner in &shared.writers {
        let Some(person) = Person::of(sight, owner) else { continue };
        let last = by_person.entry(person).or_insert(owner);
        if last.time < owner.time {
            *last = owner;
        }
    }
    let mut writers: Vec<Writer> = by_person.into_values().map(Writer::from).collect();
    writers.sort_by_key(|writer| writer.since);
    let Shared { path, more, .. } = shared;
    (writers.len() > 1).then(|| Note::SharedFields { path: path.clone(), more: *more, writers })
}

/// Who stands behind a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Person<'a> {
    /// Whoever applies with kubectl, on the client's side or on the server's, today or with an old version.
    Kubectl,
    Other(&'a str),
}

impl<'a> Person<'a> {
    /// `None` for controllers.
    fn of(sight: &WorkloadSight<'_>, owner: &'a FieldOwner) -> Option<Self> {
        let name = owner.manager.as_str();
        match sight.managers.standing_on_workload(owner) {
            Standing::Leaver if name.contains("kubectl") => Some(Self::Kubectl),
            Standing::Leaver | Standing::Hand => Some(Self::Other(name)),
            Standing::Somebody if is_kubectl_apply_of_fields(owner) => Some(Self::Kubectl),
            Standing::Somebody if owner.operation == Operation::Apply && sight.managers.declares_fields(owner) => {
                Some(Self::Other(name))
            }
            Standing::Somebody => None,
        }
    }
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
