//! `RevertsOnApply`: a declared field is not live as it is declared, and the next apply reverts it.

use super::{Finding, WorkloadSight};
use crate::model::autoscaler::Autoscaling;
use crate::model::fields::owners::{FieldOwner, Through};
use crate::model::fields::{Change, Difference, FieldKind, Ownership};
use crate::model::managers::{Standing, applied_manifest};

pub(super) fn find(sight: &WorkloadSight<'_>) -> Vec<Finding> {
    if !sight.has_manifest() {
        return Vec::new();
    }
    // What an autoscaler sets has two owners: that is noted. Where none can be seen, there may be one.
    let may_be_autoscaled = sight.autoscaling != Autoscaling::Off;
    let autoscaled = |difference: &Difference| may_be_autoscaled && difference.kind == FieldKind::Replicas;
    let differences = sight.workload.fields.differences.iter().filter(|difference| !autoscaled(difference));
    let found = differences.filter_map(|difference| {
        let by = match changed_by(sight, difference) {
            Writers::Hand(owner) => Some(owner.into()),
            Writers::Somebody(owner) if difference.kind == FieldKind::Image => Some(owner.into()),
            Writers::SomeHand => None,
            Writers::Somebody(_) | Writers::Applier | Writers::Unknown => return None,
        };
        Some(Finding::RevertsOnApply { path: difference.path.clone(), shown: difference.shown.clone(), by })
    });
    found.collect()
}

/// Who made a field differ from its manifest.
pub(super) enum Writers<'a> {
    Hand(&'a FieldOwner),
    /// A controller is at work, or another pipeline.
    Somebody(&'a FieldOwner),
    /// It was taken out, and nobody but hands writes to this workload since its manifest was applied.
    SomeHand,
    /// An admission webhook changed what the applier sent.
    Applier,
    Unknown,
}

pub(super) fn changed_by<'a>(sight: &WorkloadSight<'a>, difference: &'a Difference) -> Writers<'a> {
    let fields = &sight.workload.fields;
    if fields.ownership == Ownership::Hidden {
        return Writers::Unknown;
    }
    let standing = |owner: &'a FieldOwner| (sight.managers.standing_on_workload(owner), owner);
    let others = |owner: &&FieldOwner| !applied_manifest(owner);
    if difference.change == Change::TakenOut {
        return taken_out_by(sight);
    }
    let lowest =
        difference.owners.iter().filter(others).map(standing).max_by_key(|(standing, owner)| (*standing, owner.time));
    match lowest {
        Some((Standing::Hand, owner)) => Writers::Hand(owner),
        Some((Standing::Somebody, owner)) => Writers::Somebody(owner),
        Some((Standing::Leaver, _)) => Writers::Applier,
        None if difference.owners.is_empty() => Writers::Unknown,
        None => Writers::Applier,
    }
}

/// Whoever takes out what another one owns leaves no trace of that. An admission policy may do so at each apply; so a
/// hand is meant only where one wrote something else since then.
fn taken_out_by<'a>(sight: &WorkloadSight<'a>) -> Writers<'a> {
    let writers = &sight.workload.fields.writers;
    let is_applier = |owner: &&FieldOwner| owner.wrote_manifest || applied_manifest(owner);
    let applied = writers.iter().filter(is_applier).filter_map(|owner| owner.time).max();
    let others = writers.iter().filter(|owner| !is_applier(owner) && owner.through == Through::Object);
    let mut standings = others.map(|owner| (sight.managers.standing_on_workload(owner), owner.time)).peekable();
    let hands_alone = |(standing, time): (Standing, _)| standing == Standing::Hand && time > applied;
    if standings.peek().is_some() && standings.all(hands_alone) { Writers::SomeHand } else { Writers::Unknown }
}

#[cfg(test)]
mod tests {
    use super::super::workload::tests::{APPLY, Applied, container, spec};
    use rstest::rstest;
    use serde_json::{Value, json};

    const IMAGE: &str = "spec.template.spec.containers[app].image";

    fn image() -> Applied {
        container(json!({"image": "a:1"}), json!({"image": "a:2"})).owns(APPLY, "Update", json!({"f:name": {}}))
    }

    fn image_by(manager: &str) -> Applied {
        image().owns(manager, "Update", json!({"f:image": {}}))
    }

    /// Changed by `kubectl edit`, which owns all that is below the container.
    fn edited(declared: Value, live: Value) -> Vec<String> {
        container(declared, live).owns("kubectl-edit", "Update", json!({})).found()
    }

    #[rstest]
    #[case::by_a_hand(image_by("kubectl-set"), "kubectl-set")]
    #[case::by_undo(image_by("kubectl"), "kubectl")]
    #[case::by_an_image_updater(image_by("keel"), "keel")]
    fn an_image_reverts_whoever_changed_it(#[case] applied: Applied, #[case] manager: &str) {
        assert_eq!(applied.found(), [format!("RevertsOnApply {IMAGE} a:1>a:2 ({manager})")]);
    }

    #[rstest]
    #[case::an_admission_webhook(image().owns(APPLY, "Update", json!({"f:image": {}})))]
    #[case::nobody(image())]
    #[case::the_same(container(json!({"image": "a:1"}), json!({"image": "a:1"})))]
    #[case::a_placeholder(
        container(json!({"image": " "}), json!({"image": "a:2"})).owns("image-trigger", "Update", json!({"f:image": {}})))]
    fn an_image_stays_where_it_is_as_the_applier_wants_it(#[case] applied: Applied) {
        assert_eq!(applied.found(), [""; 0]);
    }

    fn replicas(manager: &str) -> Applied {
        spec(json!({"replicas": 2}), json!({"replicas": 5})).owned(manager, "Update", json!({"f:replicas": {}}))
    }

    #[rstest]
    #[case::scaled(replicas("kubectl").through("scale"), &["RevertsOnApply spec.replicas 2>5 (kubectl)"])]
    #[case::edited(replicas("kubectl-edit"), &["RevertsOnApply spec.replicas 2>5 (kubectl-edit)"])]
    #[case::by_a_controller(replicas("kube-controller-manager").through("scale"), &[])]
    #[case::by_an_old_kubectls_apply_and_a_webhook(replicas(APPLY), &[])]
    #[case::in_the_status(replicas("kubectl-edit").through("status"), &[])]
    fn the_number_of_pods_reverts_where_a_hand_set_it(#[case] applied: Applied, #[case] expected: &[&str]) {
        assert_eq!(applied.found(), expected);
    }

    #[rstest]
    #[case::cores(json!({"limits": {"cpu": "0.5"}}), json!({"limits": {"cpu": "500m"}}))]
    #[case::bytes(json!({"requests": {"memory": "1024Mi"}}), json!({"requests": {"memory": "1Gi"}}))]
    #[case::a_number(json!({"limits": {"cpu": 1}}), json!({"limits": {"cpu": "1"}}))]
    fn equal_quantities_are_no_difference(#[case] declared: Value, #[case] live: Value) {
        assert_eq!(edited(json!({"resources": declared}), json!({"resources": live})), [""; 0]);
    }

    #[rstest]
    #[case::an_empty_list(json!({"args": [], "env": []}), json!({}))]
    #[case::a_default(json!({}), json!({"imagePullPolicy": "IfNotPresent"}))]
    #[case::a_null(json!({"imagePullPolicy": null}), json!({"imagePullPolicy": "Always"}))]
    #[case::a_variable_of_nothing(json!({"env": [{"name": "A", "value": ""}]}), json!({"env": [{"name": "A"}]}))]
    #[case::another_order(
        json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}),
        json!({"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}))]
    #[case::a_ports_protocol(
        json!({"ports": [{"containerPort": 80}]}), json!({"ports": [{"containerPort": 80, "protocol": "TCP"}]}))]
    #[case::two_of_one_name(
        json!({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
        json!({"env": [{"name": "A", "value": "3"}]}))]
    #[case::a_feature_that_is_off(json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}), json!({}))]
    #[case::a_port_by_number(
        json!({"livenessProbe": {"httpGet": {"port": "80"}}}), json!({"livenessProbe": {"httpGet": {"port": 80}}}))]
    fn what_the_api_takes_for_the_same_is_no_difference(#[case] declared: Value, #[case] live: Value) {
        assert_eq!(edited(declared, live), [""; 0]);
    }

    #[rstest]
    #[case::a_value(
        json!({"env": [{"name": "A", "value": "1"}]}), json!({"env": [{"name": "A", "value": "2"}]}), "env[A].value")]
    #[case::a_value_for_a_reference(
        json!({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}),
        json!({"env": [{"name": "A", "value": "2"}]}), "env[A].valueFrom")]
    #[case::another_kind_of_config(
        json!({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}),
        json!({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k"}}}]}),
        "env[A].valueFrom.secretKeyRef")]
    #[case::arguments(json!({"args": ["a", "b"]}), json!({"args": ["a"]}), "args")]
    #[case::the_environment_of_another_config(
        json!({"envFrom": [{"secretRef": {"name": "a"}}]}), json!({"envFrom": [{"secretRef": {"name": "b"}}]}), "envFrom")]
    #[case::a_limit(
        json!({"resources": {"limits": {"memory": "1Gi"}}}), json!({"resources": {"limits": {"memory": "2Gi"}}}),
        "resources.limits.memory 1Gi>2Gi")]
    #[case::a_port(
        json!({"ports": [{"containerPort": 80, "name": "a"}]}),
        json!({"ports": [{"containerPort": 80, "protocol": "TCP", "name": "b"}]}), "ports[80/TCP].name")]
    fn a_hands_change_is_named_by_its_path(#[case] declared: Value, #[case] live: Value, #[case] path: &str) {
        assert_eq!(
            edited(declared, live),
            [format!("RevertsOnApply spec.template.spec.containers[app].{path} (kubectl-edit)")]
        );
    }

    fn without_a_variable() -> Applied {
        let declared = json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]});
        let live = json!({"env": [{"name": "A", "value": "1"}]});
        container(declared, live).owns(APPLY, "Update", json!({"f:env": {"k:{\"name\":\"A\"}": {}}}))
    }

    #[rstest]
    #[case::a_hand_wrote_since(without_a_variable().owns("kubectl-edit", "Update", json!({"f:image": {}})).later(), 1)]
    #[case::and_an_autoscaler(
        without_a_variable().owned("kube-controller-manager", "Update", json!({"f:replicas": {}})).through("scale")
            .owns("kubectl-edit", "Update", json!({"f:image": {}})).later(), 1)]
    #[case::an_admission_policy_or_a_hand_without_a_trace(without_a_variable(), 0)]
    #[case::a_hand_wrote_before(without_a_variable().owns("kubectl-edit", "Update", json!({"f:image": {}})), 0)]
    #[case::or_a_controller(
        without_a_variable().owns("kubectl-edit", "Update", json!({"f:image": {}})).later()
            .owns("injector", "Update", json!({"f:image": {}})), 0)]
    fn a_member_that_was_taken_out_comes_back_where_a_hand_took_it(#[case] applied: Applied, #[case] expected: usize) {
        let found = applied.found();
        let b = "RevertsOnApply spec.template.spec.containers[app].env[B]";
        assert_eq!(found, vec![b; expected]);
    }

    #[test]
    fn labels_of_pods_count_and_restarts_do_not() {
        let template = |label: &str, restarted: &str| {
            json!({"template": {"metadata": {"labels": {"a.b/c": label},
                "annotations": {"kubectl.kubernetes.io/restartedAt": restarted, "restamp.dev/config-hash": restarted}}}})
        };
        let edited = spec(template("1", "x"), template("2", "y")).owned("kubectl-edit", "Update", json!({}));
        assert_eq!(edited.found(), ["RevertsOnApply spec.template.metadata.labels[a.b/c] (kubectl-edit)"]);
    }
}
