//! `RevertsOnApply`: a declared field is not live as it is declared, and the next apply reverts it.

use jiff::Timestamp;

use super::{Finding, WorkloadSight};
use crate::model::autoscaler::Autoscaling;
use crate::model::fields::owners::{FieldOwner, Through};
use crate::model::fields::{Change, Difference, FieldKind, Ownership};
use crate::model::managers::{Standing, TakesOut, applied_manifest};

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
    if sight.workload.fields.ownership == Ownership::Hidden {
        return Writers::Unknown;
    }
    if difference.change == Change::TakenOut {
        return taken_out_by(sight, difference.kind);
    }
    let standing = |owner: &'a FieldOwner| (sight.managers.standing_on_workload(owner), owner);
    let others = |owner: &&FieldOwner| !applied_manifest(owner);
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
/// hand is meant only where one wrote something else since then, by a command that can take this out.
fn taken_out_by<'a>(sight: &WorkloadSight<'a>, kind: FieldKind) -> Writers<'a> {
    let Some(applied) = last_apply(sight) else { return Writers::Unknown };
    let writers = &sight.workload.fields.writers;
    let others = writers.iter().filter(|owner| !is_applier(owner) && owner.through == Through::Object);
    let (hands, more): (Vec<_>, Vec<_>) =
        others.partition(|owner| sight.managers.standing_on_workload(owner) == Standing::Hand);
    let can = |hand: &&FieldOwner| match TakesOut::by(&hand.manager) {
        TakesOut::Anything => true,
        TakesOut::Variables => kind == FieldKind::Variable,
        TakesOut::Nothing => false,
    };
    let did = hands.into_iter().filter(can).any(|hand| hand.time > Some(applied));
    if more.is_empty() && did { Writers::SomeHand } else { Writers::Unknown }
}

/// When the manifest was applied last, by those who own something of the spec.
fn last_apply(sight: &WorkloadSight<'_>) -> Option<Timestamp> {
    sight.workload.fields.writers.iter().filter(|owner| is_applier(owner)).filter_map(|owner| owner.time).max()
}

fn is_applier(owner: &FieldOwner) -> bool {
    owner.wrote_manifest || applied_manifest(owner)
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
    #[case::what_a_probe_does(
        json!({"livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 1}}),
        json!({"livenessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1}}), "livenessProbe.httpGet")]
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

    #[rstest]
    #[case::by_a_hand(json!({"f:hostPath": {".": {}}}), 1)]
    #[case::by_a_hand_at_another_field(json!({"f:name": {}}), 0)]
    fn an_empty_volume_for_which_another_stands_reverts(#[case] owned: Value, #[case] expected: usize) {
        let volume = |source: &str| json!({"template": {"spec": {"volumes": [{"name": "v", (source): {}}]}}});
        let volumes = json!({"f:template": {"f:spec": {"f:volumes": {"k:{\"name\":\"v\"}": owned}}}});
        let found = spec(volume("emptyDir"), volume("hostPath")).owned("kubectl-edit", "Update", volumes).found();
        assert_eq!(found, vec!["RevertsOnApply spec.template.spec.volumes[v].emptyDir (kubectl-edit)"; expected]);
    }

    fn without_a_variable() -> Applied {
        let declared = json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]});
        let live = json!({"env": [{"name": "A", "value": "1"}]});
        container(declared, live).owns(APPLY, "Update", json!({"f:env": {"k:{\"name\":\"A\"}": {}}}))
    }

    fn and_by(applied: Applied, manager: &str) -> Applied {
        applied.owns(manager, "Update", json!({"f:image": {}}))
    }

    #[rstest]
    #[case::a_hand_wrote_since(and_by(without_a_variable(), "kubectl-edit").later(), 1)]
    #[case::with_the_command_for_variables(and_by(without_a_variable(), "kubectl-set").later(), 1)]
    #[case::with_a_command_that_takes_nothing_out(and_by(without_a_variable(), "kubectl-rollout").later(), 0)]
    #[case::and_an_autoscaler(
        and_by(without_a_variable().owned("kube-controller-manager", "Update", json!({"f:replicas": {}})).through("scale"),
            "kubectl-edit").later(), 1)]
    #[case::and_another_one_before(and_by(and_by(without_a_variable(), "kubectl-patch"), "kubectl-edit").later(), 1)]
    #[case::an_admission_policy_or_a_hand_without_a_trace(without_a_variable(), 0)]
    #[case::a_hand_wrote_before(and_by(without_a_variable(), "kubectl-edit"), 0)]
    #[case::or_a_controller(and_by(and_by(without_a_variable(), "kubectl-edit").later(), "injector"), 0)]
    fn a_member_that_was_taken_out_comes_back_where_a_hand_took_it(#[case] applied: Applied, #[case] expected: usize) {
        let found = applied.found();
        let b = "RevertsOnApply spec.template.spec.containers[app].env[B]";
        assert_eq!(found, vec![b; expected]);
    }

    /// Paths of what is said where the hand of this name wrote something else since the apply.
    fn taken_out(by: &str, declared: Value, live: Value) -> Vec<String> {
        let applied = container(declared, live).owns(APPLY, "Update", json!({"f:name": {}}));
        let found = and_by(applied, by).later().found();
        let beginning = "RevertsOnApply spec.template.spec.containers[app].";
        found.iter().map(|found| found.strip_prefix(beginning).unwrap().to_owned()).collect()
    }

    #[rstest]
    #[case::a_value(
        json!({"env": [{"name": "A", "value": "1"}]}), json!({"env": [{"name": "A"}]}), "env[A].value")]
    #[case::a_reference(
        json!({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}),
        json!({"env": [{"name": "A"}]}), "env[A].valueFrom")]
    #[case::a_command(json!({"command": ["a"]}), json!({}), "command")]
    #[case::a_limit(
        json!({"resources": {"limits": {"memory": "1Gi", "cpu": "1"}}}), json!({"resources": {"limits": {"cpu": "1"}}}),
        "resources.limits.memory")]
    #[case::all_limits(json!({"resources": {"limits": {"memory": "1Gi"}}}), json!({"resources": {}}), "resources.limits")]
    #[case::a_probe(json!({"livenessProbe": {"tcpSocket": {"port": 80}}}), json!({}), "livenessProbe")]
    #[case::what_a_container_may_do(
        json!({"securityContext": {"runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}}}), json!({}),
        "securityContext")]
    #[case::a_part_of_it(
        json!({"securityContext": {"runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}}}),
        json!({"securityContext": {"runAsNonRoot": true}}), "securityContext.capabilities")]
    #[case::a_mount(
        json!({"volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": true}]}),
        json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}), "volumeMounts[/v].readOnly")]
    fn a_field_that_was_taken_out_comes_back_where_a_hand_took_it(
        #[case] declared: Value,
        #[case] live: Value,
        #[case] path: &str,
    ) {
        assert_eq!(taken_out("kubectl-edit", declared.clone(), live.clone()), [path]);
        let by_set: &[&str] = if path.starts_with("env") { &[path] } else { &[] };
        assert_eq!(taken_out("kubectl-set", declared.clone(), live.clone()), by_set);
        let without_a_trace = container(declared, live).owns(APPLY, "Update", json!({"f:name": {}}));
        assert_eq!(without_a_trace.found(), [""; 0]);
    }

    #[rstest]
    #[case::what_is_nothing(json!({"args": [], "tty": false, "securityContext": {"privileged": false}}))]
    #[case::what_a_feature_may_drop(json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}))]
    #[case::a_part_that_a_feature_may_drop(json!({"livenessProbe": {"grpc": {"port": 80}}}))]
    #[case::a_null(json!({"command": null}))]
    fn what_an_api_server_may_drop_was_not_taken_out(#[case] declared: Value) {
        assert_eq!(taken_out("kubectl-edit", declared, json!({})), [""; 0]);
    }

    #[test]
    fn fields_of_pods_and_of_the_workload_count_as_well() {
        let pod = json!({"automountServiceAccountToken": false, "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["h"]}],
            "nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}], "dnsPolicy": "None"});
        let declared = json!({"paused": true, "template": {"metadata": {"labels": {"a": ""}}, "spec": pod}});
        let live = json!({"template": {"metadata": {}, "spec": {"containers": []}}});
        let applied = spec(declared, live).owned(APPLY, "Update", json!({"f:replicas": {}}));
        let found = applied.owned("kubectl-edit", "Update", json!({"f:replicas": {}})).later().found();
        let expected = [
            "paused",
            "template.metadata.labels",
            "template.spec.automountServiceAccountToken",
            "template.spec.hostAliases[1.2.3.4]",
            "template.spec.nodeSelector",
            "template.spec.tolerations",
        ];
        assert_eq!(found, expected.map(|path| format!("RevertsOnApply spec.{path}")));
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

    #[test]
    fn a_restart_that_a_manifest_was_made_with_was_not_taken_out() {
        let annotations = json!({"kubectl.kubernetes.io/restartedAt": "x", "restamp.dev/config-hash": "y"});
        let declared = json!({"template": {"metadata": {"annotations": annotations}}});
        let applied =
            spec(declared, json!({"template": {"metadata": {}}})).owned(APPLY, "Update", json!({"f:replicas": {}}));
        assert_eq!(applied.owned("kubectl-edit", "Update", json!({"f:replicas": {}})).later().found(), [""; 0]);
    }
}
