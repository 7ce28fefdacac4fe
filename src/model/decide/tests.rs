//! What is due, a sentence for each rule.

use jiff::Timestamp;
use rstest::rstest;

use super::{Decision, Hold, WaitReason};
use crate::model::builders::{
    Scene, WorkloadBuilder, at, config_map, custom, daemon_set, deployment, named, pod_of, running_since, scene,
    stateful_set,
};
use crate::model::consumption::Missing;
use crate::model::custom::kinds;
use crate::model::custom::rollout::Lever;
use crate::model::record::{LastStamp, Record};
use crate::model::workload::{Progress, Revision};

fn w() -> WorkloadBuilder {
    deployment("w").env_from("ConfigMap/c")
}

/// What there is to see of it after its config changed, with one pod that runs with the old value.
fn changed(workload: WorkloadBuilder) -> Scene {
    scene(workload).config(config_map("c").value("A", "2").at_version(10)).pod(running_since(-100))
}

/// Its record: the config changed at each of these seconds.
fn record(workload: &WorkloadBuilder, seconds: &[i64]) -> Record {
    let config = |value: i64| config_map("c").value("A", &value.to_string());
    let mut record = scene(workload.clone()).config(config(-1)).second(-100).adopt();
    for second in seconds.iter().copied() {
        let value = if Some(&second) == seconds.last() { 2 } else { second + 1000 };
        scene(workload.clone()).config(config(value).at_version(10)).second(second).observe(&mut record);
    }
    record
}

fn settling(until: i64) -> Decision {
    Decision::Wait { until: at(until), reason: WaitReason::Settling }
}

fn others(until: i64) -> Decision {
    Decision::Wait { until: at(until), reason: WaitReason::OthersRollout }
}

/// The record after its stamp was put on, and the workload that carries it.
fn stamped(workload: WorkloadBuilder, record: &mut Record, second: i64) -> WorkloadBuilder {
    let text = changed(workload.clone()).stamp();
    record.ask(text.clone(), at(second));
    record.confirm(&text);
    workload.generation(2).stamp(&text)
}

#[test]
fn nothing_is_due_while_no_entry_is_open() {
    assert_eq!(changed(w()).decide(&record(&w(), &[])), Decision::Nothing);
}

#[rstest]
#[case::at_once(&[0], 0, settling(5))]
#[case::almost(&[0], 4, settling(5))]
#[case::quiet(&[0], 5, Decision::Stamp)]
#[case::again_while_it_waits(&[0, 4], 5, settling(9))]
#[case::for_a_minute(&[0, 20, 40, 58], 59, settling(60))]
#[case::no_longer_than_that(&[0, 20, 40, 58, 60], 60, Decision::Stamp)]
#[case::after_the_clock_was_set_back(&[0], -3600, Decision::Stamp)]
fn it_waits_until_the_configs_are_quiet(#[case] seconds: &[i64], #[case] now: i64, #[case] expected: Decision) {
    let record = record(&w(), seconds);
    assert_eq!(changed(w()).second(now).decide(&record), expected);
}

#[test]
fn a_change_while_a_stamp_rolls_out_settles_too() {
    // The rollout takes long; the bound counts from the first change that it does not bring.
    let mut record = record(&w(), &[0]);
    let workload = stamped(w(), &mut record, 5);
    let again = scene(workload).config(config_map("c").value("A", "3").at_version(20)).pod(running_since(-100));
    let again = again.second(200);
    again.observe(&mut record);
    assert_eq!(again.decide(&record), settling(205));
}

#[test]
fn the_controller_is_at_it_while_the_template_carries_the_stamp() {
    let mut record = record(&w(), &[0]);
    let workload = stamped(w(), &mut record, 5);
    assert_eq!(changed(workload).second(6).decide(&record), Decision::RollingOut);
}

#[test]
fn it_is_closed_when_pods_prove_that_the_change_is_delivered() {
    let record = record(&w(), &[0]);
    let delivered = scene(w()).config(config_map("c").value("A", "2").at_version(10)).pod(running_since(30));
    assert_eq!(delivered.second(40).decide(&record), Decision::Close);
}

#[rstest]
#[case::none(scene)]
#[case::an_evicted_one(|workload| scene(workload).pod(running_since(-100).over()))]
fn with_no_pods_it_is_stamped_and_then_closed(#[case] scene: fn(WorkloadBuilder) -> Scene) {
    let mut record = record(&w(), &[0]);
    let see = |workload| scene(workload).config(config_map("c").value("A", "2").at_version(10)).second(10);
    assert_eq!(see(w()).decide(&record), Decision::Stamp);
    let workload = stamped(w(), &mut record, 10);
    assert_eq!(see(workload.clone().progress(Progress::Unobserved)).decide(&record), Decision::RollingOut);
    assert_eq!(see(workload.progress(Progress::Complete { pods: 0 })).decide(&record), Decision::Close);
}

#[rstest]
#[case::being_deleted(w().deleting(), Hold::BeingDeleted)]
#[case::an_object_is_missing(w().env_from("Secret/s"), Hold::Missing(Missing { config: named("Secret/s").within(&"ns".into()), key: None }))]
#[case::a_key_is_missing(w().env("ConfigMap/c", "B"), Hold::Missing(Missing { config: named("ConfigMap/c").within(&"ns".into()), key: Some("B".into()) }))]
fn it_is_held_while_a_rollout_would_do_harm(#[case] workload: WorkloadBuilder, #[case] expected: Hold) {
    let record = record(&w(), &[0]);
    assert_eq!(changed(workload).second(10).decide(&record), Decision::Hold(expected));
}

#[rstest]
#[case::first_pause(1, 19, Decision::Wait { until: at(20), reason: WaitReason::StampGone })]
#[case::first_again(1, 20, Decision::Stamp)]
#[case::second_pause(2, 69, Decision::Wait { until: at(70), reason: WaitReason::StampGone })]
#[case::second_again(2, 70, Decision::Stamp)]
#[case::given_up(3, 5000, Decision::Hold(Hold::StampStripped))]
fn a_stamp_that_is_taken_away_is_put_on_again_twice(#[case] times: u8, #[case] now: i64, #[case] expected: Decision) {
    let mut record = record(&w(), &[0]);
    record.stamp = Some(LastStamp { stripped: times, ..LastStamp::found("s".to_owned(), at(10)) });
    assert_eq!(changed(w()).second(now).decide(&record), expected);
}

#[rstest]
#[case::too_early(69, Decision::Wait { until: at(70), reason: WaitReason::MinInterval })]
#[case::in_time(70, Decision::Stamp)]
fn two_rollouts_are_as_far_apart_as_their_owner_wants(#[case] now: i64, #[case] expected: Decision) {
    let mut record = record(&w(), &[0]);
    record.stamp = Some(LastStamp::found("s".to_owned(), at(10)));
    assert_eq!(changed(w().min_interval(60)).second(now).decide(&record), expected);
}

#[rstest]
#[case::deployment(w(), "rs-2", None)]
#[case::stateful_set(stateful_set("w").env_from("ConfigMap/c").revision(Revision::Hash(Some("h2".to_owned()))), "w", Some("h2"))]
#[case::daemon_set(daemon_set("w").env_from("ConfigMap/c").revision(Revision::TemplateGeneration(Some("2".to_owned()))), "w", Some("h2"))]
fn it_waits_for_somebody_elses_rollout_of_pods_that_are_all_later(
    #[case] workload: WorkloadBuilder,
    #[case] owner: &str,
    #[case] hash: Option<&str>,
) {
    let record = record(&workload, &[0]);
    let workload = workload.progress(Progress::InProgress);
    let old = running_since(-100).hash("h1").template_generation("1");
    let of_the_new_revision = |name: &str| {
        let pod = pod_of(owner, name).template_generation("2");
        hash.into_iter().fold(pod, crate::model::builders::PodBuilder::hash)
    };
    let seen = |workload: &WorkloadBuilder, second| {
        let scene = scene(workload.clone()).config(config_map("c").value("A", "2").at_version(10));
        scene.replica_set("rs-2").pod(old.clone()).second(second)
    };
    let later = || of_the_new_revision("later").made(1, 11).started("app", 2);
    let earlier = || of_the_new_revision("earlier").made(-1, 9).started("app", -1);
    assert_eq!(seen(&workload, 10).decide(&record), others(600), "no pod of it yet");
    assert_eq!(seen(&workload, 10).pod(later()).decide(&record), others(600));
    assert_eq!(seen(&workload, 600).pod(later()).decide(&record), Decision::Stamp, "not for ever");
    assert_eq!(seen(&workload, 10).pod(later()).pod(earlier()).decide(&record), Decision::Stamp);
    assert_eq!(seen(&workload.clone().by_hand(), 10).pod(later()).decide(&record), Decision::Stamp);
    let complete = workload.clone().progress(Progress::Complete { pods: 1 });
    assert_eq!(seen(&complete, 10).pod(later()).decide(&record), others(600), "the old one is shown, and gone");
    assert_eq!(seen(&complete, 10).pod(earlier()).decide(&record), Decision::Stamp);
    let just_changed = workload.progress(Progress::Unobserved);
    assert_eq!(seen(&just_changed, 10).pod(earlier()).decide(&record), others(600), "what it leaves is not known yet");
    assert_eq!(seen(&just_changed, 600).pod(earlier()).decide(&record), Decision::Stamp, "not for ever");
}

#[test]
fn a_rollout_that_is_over_and_left_no_pods_is_not_waited_for() {
    let workload = w().progress(Progress::Complete { pods: 0 });
    let seen = scene(workload.clone()).config(config_map("c").value("A", "2").at_version(10)).replica_set("rs-2");
    assert_eq!(seen.second(10).decide(&record(&workload, &[0])), Decision::Stamp);
}

#[test]
fn an_image_set_back_while_its_pods_are_still_there_is_stamped() {
    // A's pods were there when the config changed; B's rollout stalled; A's ReplicaSet is the current one again.
    let workload = w().progress(Progress::InProgress);
    let record = record(&workload, &[0]);
    let seen = || changed(workload.clone()).pods_seen_to(11).pod(pod_of("rs-2", "stalled").waits("app")).second(10);
    assert_eq!(seen().replica_set("rs-2").decide(&record), others(600));
    assert_eq!(seen().replica_set("rs-1").decide(&record), Decision::Stamp);
}

#[test]
fn a_record_with_any_times_in_it_makes_no_panic() {
    let mut record = record(&w(), &[0]);
    let change = record.entry_mut(&named("ConfigMap/c")).unwrap().change.as_mut().unwrap();
    (change.first_seen, change.last_seen) = (Timestamp::MIN, Timestamp::MAX);
    assert_eq!(changed(w()).decide(&record), Decision::Stamp);
}

/// A custom workload with a change that is answered by a stamp, whose pods are not seen.
fn custom_stamped(lever: Lever, progress: Progress) -> Decision {
    let kind = &kinds(&["apps.kruise.io/v1alpha1/CloneSet".parse().unwrap()])[0];
    let workload = custom(kind, "w").env_from("ConfigMap/c").lever(lever).progress(progress);
    let mut record = record(&workload, &[0]);
    let stamped = stamped(workload, &mut record, 10);
    scene(stamped).config(config_map("c").value("A", "2").at_version(10)).second(60).decide(&record)
}

#[rstest]
#[case::done(Lever::Template, Progress::Complete { pods: 2 }, Decision::Close)]
#[case::under_way(Lever::Template, Progress::InProgress, Decision::RollingOut)]
#[case::it_does_not_say(Lever::Template, Progress::Unknown, Decision::RollingOut)]
#[case::no_pods(Lever::RestartAt, Progress::Complete { pods: 0 }, Decision::Close)]
#[case::a_restart_makes_no_new_revision(Lever::RestartAt, Progress::Complete { pods: 2 }, Decision::RollingOut)]
fn behind_a_stamp_the_word_of_a_custom_workloads_controller_counts_where_its_pods_are_not_seen(
    #[case] lever: Lever,
    #[case] progress: Progress,
    #[case] expected: Decision,
) {
    assert_eq!(custom_stamped(lever, progress), expected);
}

#[rstest]
#[case(Progress::Unknown)]
#[case(Progress::InProgress)]
fn a_custom_workload_of_which_little_is_known_is_stamped_at_once(#[case] progress: Progress) {
    let kind = &kinds(&["apps.kruise.io/v1alpha1/CloneSet".parse().unwrap()])[0];
    let workload = custom(kind, "w").env_from("ConfigMap/c").progress(progress);
    let record = record(&workload, &[0]);
    assert_eq!(changed(workload).second(10).decide(&record), Decision::Stamp);
}
