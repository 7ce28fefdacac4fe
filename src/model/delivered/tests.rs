//! What proves that a change was delivered.

use rstest::rstest;

use super::is_delivered;
use crate::model::builders::{
    PodBuilder, Scene, WorkloadBuilder, at, config_map, deployment, named, pod_of, running_since, scene,
};
use crate::model::pod::Started;
use crate::model::record::Record;
use crate::model::workload::Progress;

fn w() -> WorkloadBuilder {
    deployment("w").env_from("ConfigMap/c")
}

/// At the second 0, version 10 of the config was seen to hold another value.
fn changed(workload: WorkloadBuilder) -> (Record, Scene) {
    let before = || scene(workload.clone());
    let mut record = before().config(config_map("c").value("A", "1")).adopt();
    let scene = before().config(config_map("c").value("A", "2").at_version(10));
    scene.observe(&mut record);
    (record, scene)
}

fn delivered(record: &Record, scene: &Scene) -> bool {
    scene.see(|sight| is_delivered(record, sight))
}

#[rstest]
#[case::made_after(pod_of("rs-1", "p").made(0, 11).started("app", 1), true)]
#[case::made_before(pod_of("rs-1", "p").made(0, 9).started("app", 1), false)]
#[case::made_after_by_a_slow_clock(pod_of("rs-1", "p").made(-29, 11).started("app", 1), true)]
#[case::versions_and_times_that_contradict_prove_nothing(pod_of("rs-1", "p").made(-31, 11).started("app", 1), false)]
#[case::started_long_after(running_since(30), true)]
#[case::started_as_clocks_may_differ(running_since(29), false)]
#[case::started_at_an_unknown_time(pod_of("rs-1", "p").shows("app", Started::Unknown), false)]
#[case::over_and_alone(pod_of("rs-1", "p").started("app", 30).over(), false)]
fn pods_prove_it(#[case] pod: PodBuilder, #[case] expected: bool) {
    let (record, scene) = changed(w());
    assert_eq!(delivered(&record, &scene.pod(pod).second(60)), expected);
}

#[test]
fn every_pod_must_prove_it_that_is_not_over() {
    let scene = || changed(w()).1.pod(running_since(30));
    let (record, _) = changed(w());
    assert!(delivered(&record, &scene().pod(running_since(-9).named("terminating").over())));
    assert!(!delivered(&record, &scene().pod(running_since(-9).named("old"))));
}

#[test]
fn every_open_change_must_be_read() {
    let (mut record, _) = changed(w());
    let again = scene(w()).config(config_map("c").value("A", "3").at_version(20)).second(20).pod(running_since(30));
    again.observe(&mut record);
    assert!(!delivered(&record, &again));
    let later = scene(w()).config(config_map("c").value("A", "3").at_version(20)).pod(running_since(50));
    assert!(delivered(&record, &later.second(60)));
}

#[test]
fn no_pods_prove_nothing() {
    let (record, scene) = changed(w());
    assert!(!delivered(&record, &scene));
}

#[rstest]
#[case::waiting(pod_of("rs-1", "p").waits("app"))]
#[case::not_shown_yet(pod_of("rs-1", "p"))]
fn a_container_that_waits_reads_when_it_starts(#[case] pod: PodBuilder) {
    let seen = |second, pods_seen_to| {
        let (record, scene) = changed(w());
        delivered(&record, &scene.pod(pod.clone()).second(second).pods_seen_to(pods_seen_to))
    };
    assert!(seen(5, 11));
    assert!(!seen(4, 11), "its start may not show yet");
    assert!(!seen(5, 10), "the watch of pods may be behind");
}

#[test]
fn a_pod_that_carries_the_stamp_was_made_after_it() {
    let (mut record, _) = changed(w());
    let of_the_stamp = || changed(w()).1.pod(running_since(1).stamp("s")).second(6);
    record.ask("s".to_owned(), at(5));
    assert!(!delivered(&record, &of_the_stamp()), "it is not known to be on the template");
    record.confirm("s");
    assert!(delivered(&record, &of_the_stamp()));
    assert!(!delivered(&record, &of_the_stamp().pod(running_since(1).named("other").stamp("before"))));
}

#[test]
fn only_containers_that_read_it_count() {
    let workload = || w().container("sidecar");
    let (record, scene) = changed(workload());
    let scene = scene.pod(running_since(30).started("sidecar", -100));
    assert!(delivered(&record, &scene));
}

#[rstest]
#[case::of_another_revision(w().container("sidecar"), "rs-2")]
#[case::of_a_paused_deployment(w().container("sidecar").by_hand(), "rs-1")]
#[case::while_the_controller_is_behind(w().container("sidecar").progress(Progress::Unobserved), "rs-1")]
fn what_a_pod_of_another_template_reads_is_not_known(#[case] workload: WorkloadBuilder, #[case] current: &str) {
    let (record, scene) = changed(workload);
    let scene = scene.replica_set(current).pod(running_since(30).started("sidecar", -100));
    assert!(!delivered(&record, &scene));
}

#[test]
fn an_init_container_that_has_finished_read_when_it_ran() {
    let workload = || deployment("w").init_env_from("init", "ConfigMap/c");
    let seen = |second| {
        let (record, scene) = changed(workload());
        delivered(&record, &scene.pod(running_since(30).started("init", second)))
    };
    assert!(seen(30));
    assert!(!seen(-1));
}

#[test]
fn a_pod_whose_replica_set_is_not_seen_yet_may_be_one_of_its() {
    let (record, scene) = changed(w());
    assert!(!delivered(&record, &scene.pod(running_since(30)).unplaced_pods()));
}

#[test]
fn the_version_of_a_change_is_its_configs_whatever_event_made_us_look() {
    // The template came to read a config that was changed after that edit, before we saw it.
    let mut record = scene(deployment("w")).adopt();
    let edited = scene(w().at_version(8));
    let edited = edited.config(config_map("c").at_version(10)).pod(running_since(0).made(0, 9));
    edited.observe(&mut record);
    assert!(record.entry(&named("ConfigMap/c")).unwrap().change.is_some());
    assert!(!delivered(&record, &edited));
}
