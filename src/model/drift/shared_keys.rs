//! The note about a config that more than one hand or applier writes: two pipelines in turn, a script and a person.

use super::person::{Person, last_writes};
use super::{Case, Note};
use crate::model::managers::is_helm;

pub(super) fn note(case: &Case<'_>) -> Option<Note> {
    let owners = case.owners().iter().filter(|owner| !owner.keys.is_empty());
    let writes = owners.filter_map(|owner| {
        let standing = case.managers.standing(owner);
        let declares = case.managers.declares(owner) || is_helm(&owner.manager);
        Some((Person::behind(owner.manager.as_str(), standing, declares)?, owner.into()))
    });
    let writers = last_writes(writes);
    (writers.len() > 1).then_some(Note::SharedKeys(writers))
}

#[cfg(test)]
mod tests {
    use super::super::drift_of;
    use crate::model::builders::{ConfigBuilder, secret};
    use crate::model::consumers::Consumers;
    use crate::model::managed_fields::Operation::{Apply, Update};
    use crate::model::managers::Managers;
    use rstest::rstest;

    const APPLY: &str = "kubectl-client-side-apply";
    const NOON: &str = "2026-11-30T12:00:00Z";
    const LATER: &str = "2026-11-30T13:00:00Z";

    fn config() -> ConfigBuilder {
        secret("s").value("A", "1").value("B", "1").declares(&[("A", "1"), ("B", "1")])
    }

    #[rstest]
    #[case::a_script_and_a_person(
        config().owned_at("kubectl-edit", Update, &["B"], LATER).owned_at(APPLY, Update, &["A"], NOON),
        Some("kubectl-client-side-apply and kubectl-edit; kubectl-edit wrote last, at 2026-11-30T13:00:00Z"))]
    #[case::two_pipelines(
        config().owned_at("argocd-controller", Apply, &["A"], LATER).owned_at("kustomize-controller", Apply, &["A"], NOON),
        Some("kustomize-controller and argocd-controller; argocd-controller wrote last, at 2026-11-30T13:00:00Z"))]
    #[case::a_release_and_a_person(
        config().owned_at("helm", Update, &["A"], NOON).owned_at("kubectl-edit", Update, &["B"], LATER),
        Some("helm and kubectl-edit; kubectl-edit wrote last, at 2026-11-30T13:00:00Z"))]
    #[case::kubectl_under_all_its_names(
        config().owned_at(APPLY, Update, &["A"], NOON).owned_at("kubectl-create", Update, &["B"], NOON)
            .owned_at("kubectl", Apply, &["A"], LATER).owned_at("before-first-apply", Update, &["B"], NOON), None)]
    #[case::a_controller_beside(
        config().owned_at(APPLY, Update, &["A"], NOON).owned_at("injector", Update, &["B"], LATER), None)]
    #[case::a_hand_that_set_a_label(
        config().owned_at(APPLY, Update, &["A"], NOON).owned_at("kubectl-label", Update, &[], LATER), None)]
    #[case::owners_are_hidden(config(), None)]
    fn several_writers_of_a_config_are_noted(#[case] config: ConfigBuilder, #[case] writers: Option<&str>) {
        let drift = drift_of(&config.build(), &Managers::default(), &Consumers::default()).unwrap();
        let notes: Vec<String> = drift.notes.iter().map(ToString::to_string).collect();
        let expected: Vec<String> =
            writers.into_iter().map(|writers| format!("its keys are written by {writers}")).collect();
        assert_eq!((notes, drift.findings), (expected, vec![]));
    }
}
