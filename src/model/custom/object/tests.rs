//! What is read of custom objects, and what is passed over.

use rstest::rstest;
use serde_json::json;

use super::*;
use crate::model::custom::{KindName, kinds};

fn kind(text: &str) -> &'static CustomKind {
    &kinds(&[text.parse::<KindName>().unwrap()])[0]
}

fn clone_set(object: Value) -> Workload {
    serde_json::from_value::<CustomObject>(object).unwrap().read(kind("apps.kruise.io/v1alpha1/CloneSet")).unwrap()
}

fn rollout(annotations: &Value, spec: &Value) -> Workload {
    let metadata = json!({"name": "w", "namespace": "ns", "annotations": annotations});
    let object: CustomObject = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    object.read(kind("argoproj.io/v1alpha1/Rollout")).unwrap()
}

#[rstest]
#[case::nothing(json!({}), Progress::Unknown)]
#[case::counters_but_no_generation(json!({"replicas": 1, "updatedReplicas": 1}), Progress::Unknown)]
#[case::behind(json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2}), Progress::Unobserved)]
#[case::under_way(json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1}), Progress::InProgress)]
#[case::done(json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2}), Progress::Complete { pods: 2 })]
#[case::the_generation_as_text(
    json!({"observedGeneration": "2", "replicas": 2, "updatedReplicas": 2}), Progress::Complete { pods: 2 })]
#[case::a_hash_for_a_generation(json!({"observedGeneration": "7c9d", "replicas": 2}), Progress::Unknown)]
#[case::by_node(
    json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
        "updatedNumberScheduled": 3}),
    Progress::Complete { pods: 3 })]
#[case::of_other_types(json!({"observedGeneration": {}, "replicas": "two"}), Progress::Unknown)]
#[case::no_object(json!("Ready"), Progress::Unknown)]
fn a_status_tells_the_progress_as_far_as_it_can(#[case] status: Value, #[case] expected: Progress) {
    let workload = clone_set(json!({
        "metadata": {"name": "w", "namespace": "ns", "generation": 2}, "spec": {"replicas": 2}, "status": status,
    }));
    assert_eq!(workload.progress, expected);
}

#[test]
fn the_template_is_read_and_whatever_else_there_is_passed_over() {
    let template = json!({
        "metadata": {"annotations": {"restamp.dev/auto-reload": "true", (CONFIG_HASH): "s"}},
        "spec": {"containers": [{"name": "app", "envFrom": [{"secretRef": {"name": "s"}}], "unheardOf": 1}]},
    });
    // A DeploymentConfig's selector is a plain map.
    let spec = json!({"selector": {"app": "w"}, "template": template, "triggers": [{"type": "ConfigChange"}]});
    let workload = clone_set(json!({"metadata": {"name": "w", "namespace": "ns", "uid": "u"}, "spec": spec}));
    assert_eq!(workload.consumption.configs().len(), 1);
    assert_eq!(workload.stamp.as_deref(), Some("s"));
    assert!(workload.opt_in.auto_reload.is_some());
}

#[test]
fn a_template_that_makes_no_sense_consumes_nothing_and_is_no_error() {
    let workload = clone_set(json!({
        "metadata": {"name": "w", "namespace": "ns"}, "spec": {"template": {"spec": {"containers": "none"}}},
    }));
    assert!(workload.consumption.configs().is_empty());
}

#[test]
fn a_rollout_may_have_its_template_in_a_deployment() {
    let of = |api_version: &str| {
        rollout(&json!({}), &json!({"workloadRef": {"apiVersion": api_version, "kind": "Deployment", "name": "d"}}))
    };
    let deployment = WorkloadId { kind: WorkloadKind::Deployment, namespace: "ns".into(), name: "d".into() };
    assert_eq!(of("apps/v1").template_in, Some(deployment));
    assert_eq!(of("other.io/v1").template_in, None);
}

#[test]
fn a_rollout_that_is_to_be_restarted_has_its_stamp_on_itself() {
    let annotations = json!({"restamp.dev/rollout-strategy": "restart", (CONFIG_HASH): "s"});
    let restarted = rollout(&annotations, &json!({}));
    assert_eq!((restarted.lever, restarted.stamp.as_deref()), (Lever::RestartAt, Some("s")));
    let invalid = rollout(&json!({"restamp.dev/rollout-strategy": "recreate"}), &json!({}));
    assert_eq!((invalid.lever, invalid.opt_in.problems.len()), (Lever::Template, 1));
}

#[test]
fn reloaders_strategy_counts_where_its_vocabulary_does() {
    let annotations = json!({"reloader.stakater.com/rollout-strategy": "restart", (CONFIG_HASH): "s"});
    let mut rollout = rollout(&annotations, &json!({}));
    assert_eq!((rollout.lever, rollout.stamp.as_deref()), (Lever::Template, None));
    rollout.hear(Vocabulary::WithStakater);
    assert_eq!((rollout.lever, rollout.stamp.as_deref()), (Lever::RestartAt, Some("s")));
    rollout.hear(Vocabulary::Own);
    assert_eq!((rollout.lever, rollout.stamp.as_deref()), (Lever::Template, None));
}

#[test]
fn a_strategy_that_does_not_parse_is_still_told_when_the_vocabulary_is_another_one() {
    let annotations = json!({"restamp.dev/rollout-strategy": "recreate", "reloader.stakater.com/auto": "true"});
    let mut rollout = rollout(&annotations, &json!({}));
    rollout.hear(Vocabulary::WithStakater);
    assert_eq!(rollout.opt_in.problems.len(), 1);
}
