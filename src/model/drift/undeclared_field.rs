//! `UndeclaredField`: a hand added a container, a variable or a volume that no manifest declares.

use super::{Finding, WorkloadSight};
use crate::api::drift_report::Baseline;
use crate::model::managers::Standing;

pub(super) fn find(sight: &WorkloadSight<'_>) -> Vec<Finding> {
    if sight.baseline() == Baseline::None {
        return Vec::new();
    }
    let found = sight.workload.fields.additions.iter().filter_map(|addition| {
        let owners = addition.owners.iter().map(|owner| (sight.managers.standing_on_workload(owner), owner));
        match owners.max_by_key(|(standing, owner)| (*standing, owner.time)) {
            Some((Standing::Hand, owner)) => {
                Some(Finding::UndeclaredField { path: addition.path.clone(), by: owner.into() })
            }
            // A controller's own, or an admission webhook's.
            Some((Standing::Somebody | Standing::Leaver, _)) | None => None,
        }
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::workload::tests::{APPLY, Applied, container, spec};
    use rstest::rstest;
    use serde_json::{Value, json};

    /// Nothing is declared of the container, and this is live.
    fn with(live: Value) -> Applied {
        container(json!({}), live).owns(APPLY, "Update", json!({"f:name": {}}))
    }

    fn variable() -> Applied {
        with(json!({"env": [{"name": "A", "value": "1"}]}))
    }

    fn env(keys: Value) -> Value {
        json!({"f:env": {"k:{\"name\":\"A\"}": keys}})
    }

    #[rstest]
    #[case::a_hand(variable().owns("kubectl-set", "Update", env(json!({".": {}, "f:name": {}}))), &["kubectl-set"])]
    #[case::an_injector(variable().owns("injector", "Update", env(json!({".": {}}))), &[])]
    #[case::a_webhook_at_apply(variable().owns(APPLY, "Update", env(json!({".": {}}))), &[])]
    #[case::nobody(variable(), &[])]
    #[case::a_hand_and_a_controller(
        variable().owns("kubectl-edit", "Update", env(json!({".": {}}))).owns("injector", "Update", env(json!({".": {}}))), &[])]
    #[case::a_hand_at_a_part_of_it(variable().owns("kubectl-edit", "Update", env(json!({"f:value": {}}))), &[])]
    fn a_variable_that_a_hand_added_is_undeclared(#[case] applied: Applied, #[case] by: &[&str]) {
        let path = "spec.template.spec.containers[app].env[A]";
        let expected: Vec<String> = by.iter().map(|by| format!("UndeclaredField {path} ({by})")).collect();
        assert_eq!(applied.found(), expected);
    }

    #[rstest]
    #[case::a_config(json!({"secretRef": {"name": "s"}}), "Secret/s")]
    #[case::with_a_prefix(json!({"configMapRef": {"name": "c"}, "prefix": "P_"}), "ConfigMap/c:P_")]
    fn an_entry_of_env_from_is_named_by_its_source(#[case] entry: Value, #[case] name: &str) {
        let path = format!("UndeclaredField spec.template.spec.containers[app].envFrom[{name}] (kubectl-edit)");
        let owned = json!({"f:envFrom": {}});
        let alone = with(json!({"envFrom": [entry]})).owns("kubectl-edit", "Update", owned.clone());
        assert_eq!(alone.found(), [path.as_str()]);
        let declared = json!({"configMapRef": {"name": "declared"}});
        let beside = container(json!({"envFrom": [declared]}), json!({"envFrom": [entry, declared]}));
        assert_eq!(beside.owns("kubectl-edit", "Update", owned).found(), [path.as_str()]);
    }

    #[test]
    fn a_container_and_a_volume_are_named_without_what_is_in_them() {
        let declared = json!({"template": {"spec": {"containers": [{"name": "app"}]}}});
        let live = json!({"template": {"spec": {
            "containers": [{"name": "app"}, {"name": "debug", "env": [{"name": "A", "value": "1"}]}],
            "initContainers": [{"name": "first"}],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        }}});
        let by_hand = spec(declared, live).owned(
            "kubectl-edit",
            "Update",
            json!({"f:template": {"f:spec": {
                "f:containers": {"k:{\"name\":\"debug\"}": {".": {}}},
                "f:initContainers": {"k:{\"name\":\"first\"}": {".": {}}},
                "f:volumes": {"k:{\"name\":\"tmp\"}": {".": {}}},
            }}}),
        );
        let expected = ["initContainers[first]", "containers[debug]", "volumes[tmp]"];
        assert_eq!(
            by_hand.found(),
            expected.map(|name| format!("UndeclaredField spec.template.spec.{name} (kubectl-edit)"))
        );
    }

    fn applied_server_side(hand: Value) -> Applied {
        let live = json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]});
        let applier = json!({".": {}, "f:name": {}, "f:env": {"k:{\"name\":\"B\"}": {".": {}, "f:name": {}}}});
        container(json!({}), live).owns("argocd-controller", "Apply", applier).owns("kubectl-edit", "Update", hand)
    }

    #[test]
    fn what_an_applier_owns_is_declared_also_without_an_annotation() {
        let added = applied_server_side(env(json!({".": {}, "f:name": {}, "f:value": {}})));
        assert_eq!(added.found(), ["UndeclaredField spec.template.spec.containers[app].env[A] (kubectl-edit)"]);
        let changed = applied_server_side(json!({"f:env": {"k:{\"name\":\"B\"}": {"f:value": {}}}}));
        assert_eq!(changed.found(), [""; 0]);
    }
}
