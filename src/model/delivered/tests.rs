//! What proves that a change was delivered.

use rstest::rstest;

use super::is_delivered;
use crate::model::builders::{PodBuilder, Scene, config_map, deployment, named, pod_of, running_since, scene};
use crate::model::record::Record;

/// At the second 0, version 10 of the config was seen to hold another value.
fn changed() -> (Record, Scene) {
    let before = || scene(deployment("w").env_from("ConfigMap/c"));
    let mut record = before().config(config_map("c").value("A", "1")).adopt();
    let scene = before().config(config_map("c").value("A", "2").at_version(10));
    scene.observe(&mut record);
    (record, scene)
}

#[rstest]
#[case::made_after(pod_of("rs-1", "p").made(0, 11).started("app", 1), true)]
#[case::made_before(pod_of("rs-1", "p").made(0, 9).started("app", 1), false)]
#[case::made_after_by_a_slow_clock(pod_of("rs-1", "p").made(-29, 11).started("app", 1), true)]
#[case::versions_and_times_that_contradict_prove_nothing(pod_of("rs-1", "p").made(-31, 11).started("app", 1), false)]
fn a_pod_that_was_made_after_the_change_has_read_it(#[case] pod: PodBuilder, #[case] expected: bool) {
    let (record, scene) = changed();
    assert_eq!(scene.pod(pod).see(|sight| is_delivered(&record, sight)), expected);
}

#[test]
fn the_version_of_a_change_is_its_configs_whatever_event_made_us_look() {
    // The template came to read a config that was changed after that edit, before we saw it.
    let mut record = scene(deployment("w")).adopt();
    let edited = scene(deployment("w").env_from("ConfigMap/c").at_version(8));
    let edited = edited.config(config_map("c").at_version(10)).pod(running_since(0).made(0, 9));
    edited.observe(&mut record);
    assert!(record.entry(&named("ConfigMap/c")).unwrap().change.is_some());
    assert!(!edited.see(|sight| is_delivered(&record, sight)));
}
