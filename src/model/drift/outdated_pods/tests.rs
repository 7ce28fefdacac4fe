use std::collections::BTreeSet;

use super::*;
use crate::model::builders::{
    ConfigBuilder, PodBuilder, Scene, WorkloadBuilder, at, config_map, deployment, named, running_since, scene,
};
use crate::model::decide::WaitReason;
use crate::model::managed_fields::Operation::{Apply, Update};
use crate::model::names::{ConfigKind, ResourceVersion};
use crate::model::pod::Blocker;
use crate::model::record::{Answer, Entry, LastStamp, Record};
use crate::model::workload::Deadline;
use rstest::rstest;

/// A config whose key `K` an applier wrote at the second 100, and whose key `L` a controller wrote at 500.
fn config() -> ConfigBuilder {
    let config = config_map("c").value("K", "1").value("L", "1");
    let config = config.owned_at("kubectl-client-side-apply", Update, &["K"], &at(100).to_string());
    config.owned_at("injector", Update, &["L"], &at(500).to_string()).owned_at(
        "kubectl-label",
        Update,
        &[],
        &at(3600).to_string(),
    )
}

fn reader() -> WorkloadBuilder {
    deployment("w").env("ConfigMap/c", "K")
}

fn of(workload: WorkloadBuilder, pod: PodBuilder) -> Scene {
    scene(workload).config(config()).pod(pod)
}

fn found(scene: &Scene) -> Vec<Outdated> {
    let outdated = |finding| match finding {
        Finding::OutdatedPods(outdated) => outdated,
        other => panic!("{other:?}"),
    };
    scene.look(find).into_iter().map(outdated).collect()
}

#[rstest]
#[case::long_before(of(reader(), running_since(70)), 1)]
#[case::within_what_clocks_may_differ(of(reader(), running_since(71)), 0)]
#[case::shown_before_by_the_servers_own_clock(of(reader(), running_since(99).status_written(99)), 1)]
#[case::shown_in_the_same_second(of(reader(), running_since(99).status_written(100)), 0)]
#[case::after(of(reader(), running_since(131)), 0)]
#[case::after_by_a_node_that_is_behind(of(reader(), running_since(100).status_written(140)), 0)]
#[case::another_key_by_another_manager(of(reader(), running_since(200)), 0)]
#[case::that_key_too(of(reader().env("ConfigMap/c", "L"), running_since(200)), 1)]
#[case::all_keys(of(deployment("w").env_from("ConfigMap/c"), running_since(200)), 1)]
#[case::a_whole_volume(of(deployment("w").volume("ConfigMap/c"), running_since(0)), 0)]
#[case::restarted_in_its_pod(of(reader(), running_since(0).started("app", 200)), 0)]
#[case::waiting(of(reader(), running_since(0).waits("app")), 0)]
#[case::another_container(of(reader(), running_since(200).started("other", 0)), 0)]
#[case::a_finished_init_container(
    of(deployment("w").init_env_from("init", "ConfigMap/c"), running_since(600).done("init", 0)), 0)]
#[case::terminating(of(reader(), running_since(0).over()), 0)]
#[case::of_an_earlier_revision(
    of(reader().progress(Progress::InProgress), running_since(0).owner("rs-0")), 0)]
#[case::of_the_present_revision(of(reader().progress(Progress::InProgress), running_since(0)), 1)]
#[case::of_an_earlier_revision_that_stays(
    of(reader().progress(Progress::InProgress).deadline(Deadline::Exceeded), running_since(0).owner("rs-0")), 1)]
#[case::of_a_paused_rollout(of(reader().by_hand(), running_since(0).owner("rs-0")), 1)]
#[case::nothing_is_told_of_owners(
    scene(reader()).config(config_map("c").value("K", "1")).pod(running_since(0)), 0)]
#[case::ignored(
    scene(reader()).config(config().annotated("restamp.dev/ignore", "reload")).pod(running_since(0)), 0)]
#[case::an_apply_that_is_no_declaration(
    scene(reader()).config(config_map("c").value("K", "1").owned_at("external-secrets", Apply, &["K"], &at(100).to_string()))
        .pod(running_since(0)), 1)]
#[case::being_deleted(of(reader().deleting(), running_since(0)), 0)]
fn what_started_before_a_likely_change_is_outdated(#[case] scene: Scene, #[case] expected: usize) {
    assert_eq!(found(&scene).len(), expected, "{:?}", found(&scene));
}

#[test]
fn a_likely_one_names_who_wrote_and_counts_pods() {
    let scene = of(reader(), running_since(50)).pod(running_since(20).named("q")).pod(running_since(400).named("r"));
    let write = LastWrite { manager: "kubectl-client-side-apply".into(), time: Some(at(100)) };
    let evidence = Evidence::Written { write, strategy: Strategy::Rolling };
    assert_eq!(found(&scene), [Outdated { config: named("ConfigMap/c"), pods: 2, oldest_start: at(20), evidence }]);
}

#[test]
fn a_write_that_was_seen_to_change_no_value_counts_for_nothing() {
    let written =
        |time: &str| config_map("c").value("K", "1").owned_at("kubectl-client-side-apply", Update, &["K"], time);
    let mut labelled = written(&at(600).to_string()).build();
    labelled.follow(&written(&at(100).to_string()).build());
    let last = labelled.last_write_of(|_| true).unwrap();
    assert_eq!(last.time, Some(at(100)));
    let mut changed =
        config_map("c").value("K", "2").owned_at("kubectl-edit", Update, &["K"], &at(1200).to_string()).build();
    changed.follow(&labelled);
    assert_eq!(changed.last_write_of(|_| true).unwrap().time, Some(at(1200)));
}

/// A record with a change of `K` that was seen at the second 100 and at the version 10.
fn record(seen: Seen) -> Record {
    let change = Change {
        first_seen: at(100),
        last_seen: at(100),
        version: Some(ResourceVersion(10)),
        keys: ["K".into()].into(),
        answer: Answer::Stamped,
        seen,
    };
    let entry = Entry { last_changed: Some(at(100)), change: Some(change), ..closed() };
    let stamp =
        LastStamp { cause: "key K of ConfigMap c changed".to_owned(), ..LastStamp::found("s".to_owned(), at(101)) };
    Record { entries: vec![entry], stamp: Some(stamp), ..Record::default() }
}

fn closed() -> Entry {
    Entry {
        config: named("ConfigMap/c"),
        digest: None,
        all: false,
        keys: [].into(),
        last_changed: None,
        absent_since: None,
        seen_to: None,
        change: None,
    }
}

fn certain(scene: &Scene, record: &Record, decision: &Decision, obstacle: Option<Obstacle<'_>>) -> Vec<Finding> {
    scene.look(|sight| {
        let reloading = Some(Reloading { record, decision, obstacle });
        find(&WorkloadSight { reloading, ..*sight })
    })
}

fn old() -> PodBuilder {
    running_since(99).at_version(9)
}

#[rstest]
#[case::seen_running_before(old(), Seen::Happening, 1)]
#[case::seen_only_since(running_since(99).at_version(11), Seen::Happening, 0)]
#[case::long_before(running_since(70).at_version(11), Seen::Happening, 1)]
#[case::restarted(running_since(131).at_version(11), Seen::Happening, 0)]
#[case::waiting(old().waits("app"), Seen::Happening, 0)]
#[case::made_from_the_stamp(old().stamp("s"), Seen::Happening, 0)]
#[case::found_when_the_operator_came_back(old(), Seen::Afterwards, 0)]
fn what_ran_before_a_change_that_was_seen_is_certain(
    #[case] pod: PodBuilder,
    #[case] seen: Seen,
    #[case] expected: usize,
) {
    let paused = of(reader().by_hand(), pod);
    assert_eq!(certain(&paused, &record(seen), &Decision::RollingOut, None).len(), expected);
}

fn held() -> Decision {
    Decision::Hold(Hold::Missing(crate::model::consumption::Missing {
        config: ConfigId { kind: ConfigKind::Secret, namespace: "ns".into(), name: "s".into() },
        key: None,
    }))
}

fn stalled() -> WorkloadBuilder {
    reader().progress(Progress::InProgress).deadline(Deadline::Exceeded)
}

#[rstest]
#[case::under_way(reader(), Decision::RollingOut, None, None)]
#[case::about_to_be(reader(), Decision::Wait { until: at(200), reason: WaitReason::Settling }, None, None)]
#[case::as_its_owner_wants(
    reader(), Decision::Wait { until: at(200), reason: WaitReason::MinInterval }, None, None)]
#[case::tried_again_at_once(reader(), Decision::Stamp, None, None)]
#[case::paused(reader().by_hand(), Decision::RollingOut, None, Some(Why::ByHand(ByHand::Paused)))]
#[case::stalled(stalled(), Decision::RollingOut, None, Some(Why::Stalled))]
#[case::stripped(
    reader().template_written("kubectl-rollout", 101), Decision::Hold(Hold::StampStripped), None,
    Some(Why::Stripped(Some(LastWrite { manager: "kubectl-rollout".into(), time: Some(at(101)) }))))]
#[case::stripped_by_whoever_left_no_trace(
    reader().template_written("kubectl-client-side-apply", 100), Decision::Hold(Hold::StampStripped), None,
    Some(Why::Stripped(None)))]
#[case::held(reader(), held(), None, Some(Why::Held(
    "required Secret s does not exist, new pods could not start; create it".to_owned())))]
#[case::failing(
    reader(), Decision::Stamp, Some(Obstacle::Failure("cannot stamp")), Some(Why::Failing("cannot stamp".to_owned())))]
#[case::a_dry_run(reader(), Decision::Stamp, Some(Obstacle::DryRun), Some(Why::DryRun))]
#[case::another_installations(
    reader(), Decision::Hold(Hold::OtherInstance { instance: "other".to_owned() }), None, None)]
fn nothing_is_said_while_the_change_is_on_its_way(
    #[case] workload: WorkloadBuilder,
    #[case] decision: Decision,
    #[case] obstacle: Option<Obstacle<'static>>,
    #[case] expected: Option<Why>,
) {
    let found = certain(&of(workload, old()), &record(Seen::Happening), &decision, obstacle);
    let whys = found.into_iter().map(|finding| match finding {
        Finding::OutdatedPods(Outdated { evidence: Evidence::Seen { why, .. }, .. }) => why,
        other => panic!("{other:?}"),
    });
    assert_eq!(whys.collect::<Vec<_>>(), Vec::from_iter(expected));
}

#[test]
fn a_blocked_pod_of_the_new_revision_does_not_hide_the_old_ones() {
    let scene =
        of(stalled(), old().owner("rs-0")).pod(running_since(0).named("q").waits("app").blocked(Blocker::Image, 0));
    assert_eq!(certain(&scene, &record(Seen::Happening), &Decision::RollingOut, None).len(), 1);
}

#[rstest]
#[case::never_changed_since_it_is_followed(closed(), 1)]
#[case::read_by_all_since(Entry { last_changed: Some(at(10)), ..closed() }, 0)]
fn what_the_operator_knows_goes_before_what_is_likely(#[case] entry: Entry, #[case] expected: usize) {
    let record = Record { entries: vec![entry], ..Record::default() };
    assert_eq!(certain(&of(reader(), running_since(0)), &record, &Decision::Nothing, None).len(), expected);
}

#[test]
fn a_config_that_does_not_count_for_the_operator_is_not_spoken_of() {
    assert_eq!(certain(&of(reader(), running_since(0)), &Record::default(), &Decision::Nothing, None), []);
}

#[test]
fn another_key_is_read_by_another_container() {
    let workload = reader().by_hand().container("other").env("ConfigMap/c", "L");
    let scene = of(workload, running_since(131).at_version(9).started("other", 0));
    assert_eq!(certain(&scene, &record(Seen::Happening), &Decision::RollingOut, None), []);
    let mut unnamed = record(Seen::Happening);
    unnamed.open_changes_mut().for_each(|change| change.keys = BTreeSet::new());
    assert_eq!(certain(&scene, &unnamed, &Decision::RollingOut, None).len(), 1);
}
