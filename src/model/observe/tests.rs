//! When entries open, a sentence for each rule.

use std::collections::BTreeSet;

use jiff::Timestamp;
use rstest::rstest;

use super::News;
use crate::api::auto_reload::AutoReload;
use crate::model::adoption::{Adopted, Adoption};
use crate::model::builders::{
    ConfigBuilder, PodBuilder, Scene, WorkloadBuilder, at, config_map, deployment, hash_key, keyring, named, pod_of,
    running_since, scene, secret,
};
use crate::model::digest::{Digest, Keyring};
use crate::model::policy::{Adopt, Edge, Policy};
use crate::model::record::{Answer, Change, LastStamp, Record};

fn w() -> WorkloadBuilder {
    deployment("w").env_from("ConfigMap/c")
}

fn c(value: &str) -> ConfigBuilder {
    config_map("c").value("A", value)
}

/// Seen with this config.
fn with(workload: WorkloadBuilder, config: ConfigBuilder) -> Scene {
    scene(workload).config(config)
}

fn news(keys: &[&str]) -> Vec<News> {
    let keys = keys.iter().map(|key| (*key).into()).collect();
    vec![News::Changed { config: named("ConfigMap/c"), keys }]
}

fn change(record: &Record) -> Option<&Change> {
    record.entry(&named("ConfigMap/c"))?.change.as_ref()
}

/// What a second look finds after a first sight.
fn then(first: &Scene, second: &Scene) -> Vec<News> {
    second.observe(&mut first.adopt())
}

#[rstest]
#[case::nothing(c("1"), &[])]
#[case::another_version(c("1").at_version(9), &[])]
#[case::another_value(c("2"), &["A"])]
#[case::one_more_key(c("1").value("B", "1"), &["B"])]
#[case::one_key_less(config_map("c"), &["A"])]
#[case::an_annotation(c("1").annotated("restamp.dev/x", "y"), &[])]
#[case::a_key_that_no_variable_can_show(c("1").binary("b", "1"), &[])]
#[case::made_again_with_the_same_content(c("1").uid("again").at_version(9), &[])]
#[case::made_again_with_another(c("2").uid("again").at_version(9), &["A"])]
fn it_opens_when_consumed_keys_change(#[case] config: ConfigBuilder, #[case] keys: &[&str]) {
    let expected = if keys.is_empty() { Vec::new() } else { news(keys) };
    assert_eq!(then(&with(w(), c("1")), &with(w(), config)), expected);
}

#[test]
fn it_opens_again_when_a_value_goes_back() {
    let mut record = with(w(), c("1")).adopt();
    with(w(), c("2").at_version(2)).second(1).observe(&mut record);
    assert_eq!(with(w(), c("1").at_version(3)).second(2).observe(&mut record), news(&["A"]));
    assert_eq!(change(&record).map(|change| (change.first_seen, change.last_seen)), Some((at(1), at(2))));
}

#[test]
fn a_key_that_nobody_reads_opens_nothing() {
    let workload = || deployment("w").env("ConfigMap/c", "A");
    assert_eq!(then(&with(workload(), c("1")), &with(workload(), c("1").value("B", "2"))), []);
}

#[test]
fn a_value_that_no_longer_fits_a_variable_is_a_change() {
    let workload = || deployment("w").env("ConfigMap/c", "A").optional();
    assert_eq!(then(&with(workload(), c("1")), &with(workload(), config_map("c").binary("A", "1"))), news(&["A"]));
}

#[rstest]
#[case::restamp_did_not_see_it_being_made(w(), c("1").at_version(9), false)]
#[case::the_config_is_older(w().born(10), c("1").at_version(9), false)]
#[case::the_config_is_newer(w().born(10), c("1").at_version(11), true)]
#[case::its_pods_waited_for_it(w().born(10), c("1").at_version(11).born(11), false)]
#[case::it_was_written_since_they_may_have_started(w().born(10), c("1").at_version(12).born(11), true)]
#[case::its_pods_do_not_wait(deployment("w").optional().env_from("ConfigMap/c").born(10), c("1").at_version(11).born(11), true)]
fn at_first_sight_it_opens_only_for_a_config_that_is_newer(
    #[case] workload: WorkloadBuilder,
    #[case] config: ConfigBuilder,
    #[case] opens: bool,
) {
    let record = with(workload, config).adopt();
    assert_eq!(change(&record).is_some(), opens);
}

fn optional() -> WorkloadBuilder {
    deployment("w").optional().env_from("ConfigMap/c")
}

fn mixed() -> WorkloadBuilder {
    w().container("sidecar").optional().env_from("ConfigMap/c")
}

#[rstest]
#[case::required(w(), c("1").at_version(5).born(5), running_since(1), false)]
#[case::optional(optional(), c("1").at_version(5).born(5), running_since(1), true)]
#[case::optional_for_one_container(mixed(), c("1").at_version(5).born(5), running_since(1), true)]
#[case::written_since_it_was_made(w(), c("1").at_version(6).born(5), running_since(1), true)]
#[case::found_in_a_list(w(), c("1").at_version(5), running_since(1), true)]
#[case::there_are_readers_of_an_earlier_one(w(), c("1").at_version(5).born(5).made(0), running_since(-31), true)]
#[case::clocks_may_differ(w(), c("1").at_version(5).born(5).made(0), running_since(-30), false)]
fn a_config_that_appears_later_opens_where_a_container_did_not_wait_for_it(
    #[case] workload: WorkloadBuilder,
    #[case] config: ConfigBuilder,
    #[case] pod: PodBuilder,
    #[case] opens: bool,
) {
    let expected = if opens { news(&["A"]) } else { Vec::new() };
    assert_eq!(then(&scene(workload.clone()), &with(workload, config).pod(pod)), expected);
}

#[test]
fn deletion_by_itself_opens_nothing() {
    assert_eq!(then(&with(w(), c("1")), &scene(w())), []);
}

#[rstest]
#[case::another_content(w(), "2", running_since(-100), true)]
#[case::the_same(w(), "1", running_since(1), false)]
#[case::the_same_optional_and_started_before(optional(), "1", running_since(-31), false)]
#[case::the_same_optional_and_started_in_between(optional(), "1", running_since(1), true)]
#[case::the_same_optional_as_clocks_may_differ(optional(), "1", running_since(-30), true)]
#[case::the_same_optional_and_just_starting(optional(), "1", pod_of("rs-1", "p").waits("app"), true)]
#[case::the_same_optional_and_not_shown(optional(), "1", pod_of("rs-1", "p"), true)]
#[case::the_same_optional_and_over(optional(), "1", running_since(1).over(), false)]
fn a_config_that_was_deleted_appears_again(
    #[case] workload: WorkloadBuilder,
    #[case] value: &str,
    #[case] pod: PodBuilder,
    #[case] opens: bool,
) {
    let mut record = with(workload.clone(), c("1")).second(-200).adopt();
    scene(workload.clone()).observe(&mut record);
    let news = with(workload, c(value).uid("again").at_version(9)).pod(pod).second(2).observe(&mut record);
    assert_eq!(!news.is_empty(), opens);
}

#[rstest]
#[case::one_more_config(deployment("w"), w(), &[""])]
#[case::one_less(w(), deployment("w"), &[])]
#[case::one_more_key(deployment("w").env("ConfigMap/c", "A"), deployment("w").env("ConfigMap/c", "A").env("ConfigMap/c", "B"), &["B"])]
#[case::whatever_keys_there_are(deployment("w").env("ConfigMap/c", "A"), w(), &[""])]
#[case::one_key_less(w(), deployment("w").env("ConfigMap/c", "A"), &[])]
#[case::in_another_way(w(), deployment("w").volume("ConfigMap/c"), &[])]
fn an_edit_of_the_template_opens_what_it_brings(
    #[case] before: WorkloadBuilder,
    #[case] after: WorkloadBuilder,
    #[case] keys: &[&str],
) {
    let config = || c("1").value("B", "1");
    let expected = match keys {
        [] => Vec::new(),
        [""] => news(&[]),
        _ => news(keys),
    };
    assert_eq!(then(&with(before, config()), &with(after, config())), expected);
}

#[test]
fn an_undone_edit_opens_for_keys_that_went_in_between() {
    // All keys, one key, the other one removed, all keys again: pods of the first template may still run.
    let mut record = with(w(), c("1").value("B", "1")).adopt();
    let one = || deployment("w").env("ConfigMap/c", "A");
    with(one(), c("1").value("B", "1")).observe(&mut record);
    assert_eq!(with(one(), c("1")).observe(&mut record), []);
    assert_eq!(with(w(), c("1")).observe(&mut record), news(&[]));
}

#[test]
fn a_config_that_is_consumed_no_more_leaves_the_record() {
    let mut record = with(w(), c("1")).adopt();
    scene(deployment("w")).observe(&mut record);
    assert_eq!(record.entries, []);
}

#[rstest]
#[case::files_count_now(AutoReload::AtStart, AutoReload::Everything, "1", false)]
#[case::files_count_no_more(AutoReload::Everything, AutoReload::AtStart, "1", false)]
#[case::and_a_variable_changed_too(AutoReload::AtStart, AutoReload::Everything, "2", true)]
fn a_change_of_the_mode_opens_nothing_by_itself(
    #[case] before: AutoReload,
    #[case] after: AutoReload,
    #[case] value: &str,
    #[case] opens: bool,
) {
    let workload = |mode| deployment("w").env("ConfigMap/c", "A").volume("ConfigMap/c").auto_reload(mode);
    let config = |value| c(value).value("B", "1");
    let news = then(&with(workload(before), config("1")), &with(workload(after), config(value)));
    assert_eq!(!news.is_empty(), opens);
}

#[test]
fn a_change_of_the_mode_does_not_hide_what_an_edit_of_the_template_brings() {
    // As a rollout undo does, which sets the workload's annotations back, too.
    let before = deployment("w").env("ConfigMap/c", "A").volume("Secret/s").auto_reload(AutoReload::AtStart);
    let config = || c("1").value("B", "1");
    let first = with(before.clone(), config()).config(secret("s").value("T", "1"));
    let after = before.env("ConfigMap/c", "B").auto_reload(AutoReload::Everything);
    assert_eq!(then(&first, &with(after, config()).config(secret("s").value("T", "1"))), news(&["B"]));
}

fn two_keys(current: &str, older: &str) -> Keyring {
    Keyring::new(hash_key(current), vec![hash_key(older)])
}

#[rstest]
#[case::the_same("1", &[])]
#[case::changed_meanwhile("2", &["A"])]
fn a_record_made_with_an_older_hash_key_is_compared_under_that_one(#[case] value: &str, #[case] keys: &[&str]) {
    let mut record = with(w(), c("1")).adopt();
    let expected = if keys.is_empty() { Vec::new() } else { news(keys) };
    assert_eq!(with(w(), c(value)).keyring(two_keys("k2", "k1")).observe(&mut record), expected);
    let digest = record.entry(&named("ConfigMap/c")).and_then(|entry| entry.digest.clone());
    assert_eq!(digest.unwrap().key_id(), Some("k2"));
}

#[test]
fn an_entry_whose_hash_key_is_lost_starts_anew() {
    let mut record = with(w().env("Secret/s", "T"), c("1")).config(secret("s").value("T", "1")).adopt();
    let lost = || Keyring::new(hash_key("k2"), Vec::new());
    let both = with(w().env("Secret/s", "T"), c("2").made(0)).config(secret("s").value("T", "1"));
    let news = both.pod(running_since(-1)).keyring(lost()).observe(&mut record);
    let maybe_unread = [named("ConfigMap/c")].into();
    assert_eq!(news, [News::Adopted(Adopted { why: Adoption::HashKeyLost, maybe_unread })], "once, and pods testify");
    assert_eq!(change(&record), None);
    assert_eq!(with(w(), c("2")).keyring(lost()).observe(&mut record), []);
}

#[test]
fn an_entry_of_another_algorithm_starts_anew() {
    let mut record = with(w(), c("1")).adopt();
    record.entries[0].digest = Some(Digest::from_text("blake3:k1:abc"));
    let adopted = Adopted { why: Adoption::OtherAlgorithm, maybe_unread: BTreeSet::new() };
    assert_eq!(with(w(), c("2")).observe(&mut record), [News::Adopted(adopted)]);
    assert_eq!(with(w(), c("2")).observe(&mut record), []);
    assert_eq!(change(&record), None);
}

/// A record in which the config changed and a stamp answers it, and the workload with that stamp.
fn stamped() -> (Record, WorkloadBuilder) {
    let mut record = with(w(), c("1")).adopt();
    let scene = with(w(), c("2").at_version(9));
    scene.observe(&mut record);
    record.ask(scene.stamp(), at(1));
    record.confirm(&scene.stamp());
    (record, w().generation(2).stamp(&scene.stamp()))
}

#[test]
fn a_stamp_that_is_taken_away_answers_nothing_any_more() {
    let (mut record, _) = stamped();
    let gone = with(w().generation(3), c("2").at_version(9));
    assert_eq!(gone.observe(&mut record), [News::StampGone]);
    assert_eq!(change(&record).map(|change| change.answer), Some(Answer::None));
    assert_eq!(gone.observe(&mut record), [], "said once");
    assert_eq!(record.stamp.map(|stamp| stamp.stripped), Some(1));
}

#[test]
fn a_stamp_that_is_taken_away_when_all_is_delivered_does_not_matter() {
    let (mut record, _) = stamped();
    record.close();
    assert_eq!(with(w().generation(3), c("2").at_version(9)).observe(&mut record), []);
}

#[test]
fn a_stamp_under_way_stays_asked_while_the_earlier_one_is_gone() {
    let (mut record, _) = stamped();
    let gone = with(w().generation(3), c("2").at_version(9));
    gone.observe(&mut record);
    record.ask("again".to_owned(), at(20));
    gone.observe(&mut record);
    record.confirm("again");
    assert!(record.is_answered());
}

#[test]
fn a_stamp_that_was_put_back_by_an_undo_is_an_earlier_one() {
    let (mut record, workload) = stamped();
    let earlier = record.stamp.clone().unwrap().text;
    let again = with(workload.clone(), c("3").at_version(10));
    again.observe(&mut record);
    record.ask(again.stamp(), at(2));
    record.confirm(&again.stamp());
    let undone = with(w().generation(4).stamp(&earlier), c("3").at_version(10));
    assert_eq!(undone.observe(&mut record), [News::StampGone]);
}

#[rstest]
#[case::fits("2", Answer::Stamped)]
#[case::does_not_fit("3", Answer::None)]
fn after_a_crash_a_stamp_that_the_record_does_not_name_tells(#[case] now: &str, #[case] expected: Answer) {
    let mut record = with(w(), c("1")).adopt();
    let (_, workload) = stamped();
    let seen = with(workload, c(now).at_version(10)).after_a_restart();
    seen.observe(&mut record);
    assert_eq!(change(&record).map(|change| change.answer), Some(expected));
}

#[test]
fn after_a_crash_a_stamp_for_a_state_that_is_no_more_opens_every_entry() {
    // Set to 2, stamped, the operator killed before it wrote that down, and set back to 1.
    let mut record = with(w(), c("1")).adopt();
    let (_, workload) = stamped();
    with(workload, c("1").at_version(10)).after_a_restart().observe(&mut record);
    assert_eq!(change(&record).map(|change| change.answer), Some(Answer::None));
}

#[test]
fn after_a_crash_a_stamp_for_a_state_that_is_no_more_dates_what_is_open_anew() {
    // Open since the first second; a later stamp was made for what the record never knew, and pods started on that.
    let mut record = with(w(), c("1")).adopt();
    with(w(), c("2").at_version(10)).observe(&mut record);
    let other = with(w(), c("3")).stamp();
    let live = with(w().generation(2).stamp(&other), c("2").at_version(12)).after_a_restart();
    live.second(60).observe(&mut record);
    assert_eq!(change(&record).map(|change| (change.last_seen, change.answer)), Some((at(60), Answer::None)));
}

#[test]
fn a_stamp_whose_answer_was_lost_answers_nothing_that_changed_after_it_was_sent() {
    // Set to 2, a stamp sent; set to 3 and back to 2 before it is seen: its pods may have read 3.
    let mut record = with(w(), c("1")).adopt();
    let sent = with(w(), c("2").at_version(10));
    sent.observe(&mut record);
    record.ask(sent.stamp(), at(5));
    with(w(), c("3").at_version(11)).observe(&mut record);
    with(w(), c("2").at_version(12)).observe(&mut record);
    let live = || with(w().generation(2).stamp(&sent.stamp()), c("2").at_version(12));
    let seen = |mut record: Record, scene: Scene| {
        scene.observe(&mut record);
        change(&record).map(|change| change.answer)
    };
    assert_eq!(seen(record.clone(), live()), Some(Answer::None));
    let written: Record = serde_json::from_value(serde_json::to_value(&record).unwrap()).unwrap();
    assert_eq!(seen(written, live().after_a_restart()), Some(Answer::None), "nor after a crash");
    record.ask(with(w(), c("3")).stamp(), at(9));
    assert_eq!(seen(record.clone(), live()), Some(Answer::None), "nor while another one is under way");
    assert_eq!(seen(record, live().after_a_restart()), Some(Answer::None));
}

#[test]
fn a_stamp_that_another_process_puts_on_while_we_look_answers_nothing() {
    // A leader that slept past its lease sent it, for 2; meanwhile 3 was seen, and 2 again.
    let mut record = with(w(), c("1")).adopt();
    with(w(), c("3").at_version(9)).observe(&mut record);
    let (_, stamped) = stamped();
    let seen = with(stamped, c("2").at_version(10));
    seen.observe(&mut record);
    assert_eq!(change(&record).map(|change| change.answer), Some(Answer::None));
    record.close();
    record.stamp = None;
    assert_eq!(seen.observe(&mut record), []);
    assert_eq!(change(&record), None, "nor does it open what is closed");
}

#[rstest]
#[case::anything("yes".to_owned())]
#[case::of_a_generation_to_come("hmac-sha256:k1:abc:7".to_owned())]
fn a_stamp_that_cannot_be_ours_is_no_stamp(#[case] text: String) {
    let mut record = with(w(), c("1")).adopt();
    let foreign = with(w().stamp(&text), c("1")).after_a_restart();
    assert_eq!(foreign.observe(&mut record), []);
    assert_eq!(change(&record), None);
}

#[test]
fn a_stamp_that_came_with_a_manifest_does_not_hide_our_own() {
    // Made again from an export, with a stamp of high generation; then stamped, a crash, and set back.
    let exported = format!("{}7", with(w(), c("1")).stamp());
    let mut record = with(w().stamp(&exported), c("1")).adopt();
    assert_eq!(record.stamp, Some(LastStamp::found(exported, at(0))));
    let ours = with(w(), c("2")).stamp();
    with(w().generation(2).stamp(&ours), c("1").at_version(9)).after_a_restart().observe(&mut record);
    assert!(change(&record).is_some());
}

#[test]
fn the_order_of_configs_and_pods_does_not_matter() {
    let configs = || [c("1").value("B", "2"), config_map("d").value("X", "1"), config_map("e")];
    let workload = || w().env("ConfigMap/d", "X").optional().env_from("ConfigMap/e");
    let forth = configs().into_iter().fold(scene(workload()), Scene::config).keyring(keyring());
    let back = configs().into_iter().rev().fold(scene(workload()), Scene::config);
    assert_eq!(forth.adopt(), back.adopt());
    assert_eq!(then(&forth, &back), []);
}

#[test]
fn an_optional_config_that_appears_opens_nothing_if_so_chosen() {
    let policy = Policy { on_create: Edge::Ignore, ..Policy::default() };
    let appeared = || with(optional(), c("1").at_version(5).born(5)).pod(running_since(1));
    assert_eq!(then(&scene(optional()), &appeared()), news(&["A"]));
    assert_eq!(then(&scene(optional()), &appeared().policy(policy)), []);
}

#[rstest]
#[case::by_itself_it_does_not(optional(), Edge::Ignore, &[])]
#[case::if_so_chosen(optional(), Edge::Roll, &["A"])]
#[case::new_pods_could_not_start(w(), Edge::Roll, &[])]
fn a_deletion_opens_where_pods_start_without_the_config(
    #[case] workload: WorkloadBuilder,
    #[case] on_delete: Edge,
    #[case] keys: &[&str],
) {
    let mut record = with(workload.clone(), c("1")).adopt();
    let gone = || scene(workload.clone()).policy(Policy { on_delete, ..Policy::default() });
    let expected = if keys.is_empty() { Vec::new() } else { news(keys) };
    assert_eq!(gone().observe(&mut record), expected);
    assert_eq!(gone().second(1).observe(&mut record), [], "once");
}

#[rstest]
#[case::as_is(Adopt::AsIs, -1, None)]
#[case::started_before_it_was_written(Adopt::CatchUp, -1, Some(at(0)))]
#[case::started_after_it(Adopt::CatchUp, 1, None)]
fn first_sight_catches_up_with_what_was_written_since_containers_started(
    #[case] adopt: Adopt,
    #[case] started: i64,
    #[case] expected: Option<Timestamp>,
) {
    let policy = Policy { adopt, ..Policy::default() };
    let record = with(w(), c("1").made(0)).pod(running_since(started)).second(100).policy(policy).adopt();
    assert_eq!(change(&record).map(|change| change.last_seen), expected);
}

#[test]
fn a_config_that_asks_to_be_ignored_opens_nothing_and_is_current_once_it_no_longer_does() {
    let ignored = |value: &str| c(value).annotated("restamp.dev/ignore", "reload");
    let mut record = with(w(), c("1")).adopt();
    assert_eq!(with(w(), ignored("2").at_version(2)).observe(&mut record), []);
    assert_eq!(with(w(), c("2").at_version(3)).observe(&mut record), []);
    assert_eq!(with(w(), c("3").at_version(4)).observe(&mut record), news(&["A"]));
}

#[test]
fn what_is_excluded_opens_nothing_and_what_is_named_opens_though_nobody_reads_it() {
    let workload = || {
        let excluded = w().excluding("configmap/c:A");
        excluded.on("configmap/named-*")
    };
    let seen = |a: &str, b: &str, named_value: &str| {
        let named = config_map("named-1").value("K", named_value);
        with(workload(), config_map("c").value("A", a).value("B", b)).config(named)
    };
    let mut record = seen("1", "1", "1").adopt();
    assert_eq!(seen("2", "1", "1").observe(&mut record), []);
    assert_eq!(seen("2", "2", "1").observe(&mut record), news(&["B"]));
    let changed = News::Changed { config: named("ConfigMap/named-1"), keys: ["K".into()].into() };
    assert_eq!(seen("2", "2", "2").observe(&mut record), [changed]);
}
