//! When a pod is behind its class, and what that opens.

use rstest::rstest;
use serde_json::json;

use super::object::StatusObject;
use super::*;
use crate::model::builders::{PodBuilder, Scene, WorkloadBuilder, at, deployment, named, pod_of, policy, scene};
use crate::model::decide::Decision;
use crate::model::observe::News;
use crate::model::policy::{Adopt, Policy};
use crate::model::record::{Answer, Record};

const CLASS: &str = "SecretProviderClass/vault";

/// A status that was made at this second for a pod that holds this version of the object `db`.
fn status(pod: &str, second: i64, value: &str) -> Status {
    Status {
        name: pod.to_owned(),
        pod: pod.to_owned(),
        made: second,
        written: second,
        version: 1,
        generation: 1,
        value: value.to_owned(),
    }
}

#[derive(Clone)]
struct Status {
    name: String,
    pod: String,
    made: i64,
    written: i64,
    version: u64,
    generation: i64,
    value: String,
}

impl Status {
    fn at_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    /// The driver puts another version into the volume.
    fn rotated(self, second: i64, version: u64, value: &str) -> Self {
        Self { written: second, version, generation: self.generation + 1, value: value.to_owned(), ..self }
    }

    /// Another pod of the same name takes it over.
    fn taken_over(self, pod: &str, second: i64, version: u64, value: &str) -> Self {
        Self { pod: pod.to_owned(), ..self.rotated(second, version, value) }
    }

    fn object(&self) -> StatusObject {
        serde_json::from_value(json!({
            "metadata": {
                "name": format!("{}-ns-vault", self.name), "namespace": "ns", "resourceVersion": self.version.to_string(),
                "generation": self.generation, "creationTimestamp": at(self.made).to_string(),
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": self.name,
                    "uid": format!("uid-of-{}", self.pod)}],
                "managedFields": [{"manager": "secrets-store-csi", "operation": "Update", "time": at(self.written).to_string()}],
            },
            "status": {"podName": self.name, "secretProviderClassName": "vault", "mounted": true,
                "targetPath": "/var/lib/kubelet/pods/x", "objects": [{"id": "db", "version": self.value}]},
        }))
        .unwrap()
    }

    fn read(&self) -> PodStatus {
        self.object().read().unwrap()
    }
}

fn w() -> WorkloadBuilder {
    deployment("w").volume(CLASS)
}

fn running(pod: &str, since: i64) -> PodBuilder {
    pod_of("rs-1", pod).started("app", since)
}

/// Seen with these pods, and what they hold, in the order in which the watch showed it.
fn seen(pods: &[PodBuilder], statuses: &[Status]) -> Scene {
    seen_of(w(), pods, statuses)
}

fn seen_of(workload: WorkloadBuilder, pods: &[PodBuilder], statuses: &[Status]) -> Scene {
    let scene = pods.iter().cloned().fold(scene(workload).second(1000), Scene::pod);
    scene.classes(statuses.iter().map(Status::read))
}

/// The same behind our stamp.
fn seen_behind(text: &str, pods: &[PodBuilder], statuses: &[Status]) -> Scene {
    seen_of(w().generation(2).stamp(text), pods, statuses)
}

/// Adopted with one pod that started at second 0 and holds version 1.
fn adopted() -> Record {
    seen(&[running("a", 0)], &[first()]).adopt()
}

fn first() -> Status {
    status("a", 0, "1")
}

fn changed(keys: &[&str]) -> Vec<News> {
    let keys = keys.iter().map(|key| (*key).into()).collect();
    vec![News::Changed { config: named(CLASS), keys }]
}

#[test]
fn a_status_is_read_and_no_version_stays_in_memory() {
    let object = status("a", 0, "hunter2").object();
    let read = object.read().unwrap();
    assert_eq!((read.class.local(), read.pod.as_str()), (named(CLASS), "uid-of-a"));
    let debug = format!("{object:?} {read:?}");
    assert!(!debug.contains("hunter2"), "{debug}");
}

#[rstest]
#[case::no_pod("/metadata/ownerReferences")]
#[case::no_class("/status/secretProviderClassName")]
#[case::no_status("/status")]
fn a_status_about_nothing_is_passed_over(#[case] missing: &str) {
    let mut object = json!({
        "metadata": {"name": "s", "namespace": "ns", "resourceVersion": "1", "creationTimestamp": "2026-11-30T12:00:00Z",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]},
        "status": {"secretProviderClassName": "vault", "objects": null},
    });
    assert!(serde_json::from_value::<StatusObject>(object.clone()).unwrap().read().is_some());
    *object.pointer_mut(missing).unwrap() = json!(null);
    assert_eq!(serde_json::from_value::<StatusObject>(object).unwrap().read(), None);
}

#[rstest]
#[case::with_the_same_version("1")]
#[case::with_another_one("2")]
fn a_pod_that_starts_opens_nothing(#[case] value: &str) {
    let pods = [running("a", 0), running("b", 500)];
    let both = seen(&pods, &[first(), status("b", 499, value).at_version(9)]);
    assert_eq!(both.observe(&mut adopted()), []);
}

#[test]
fn a_pod_with_a_version_of_its_own_opens_nothing_however_many_there_are() {
    let names = ["b", "c", "d", "e"];
    let pods: Vec<PodBuilder> = names.iter().zip([100, 200, 300, 400]).map(|(name, at)| running(name, at)).collect();
    let statuses: Vec<Status> =
        names.iter().zip([100, 200, 300, 400]).map(|(name, at)| status(name, at, name).at_version(9)).collect();
    assert_eq!(seen(&pods, &statuses).observe(&mut adopted()), []);
}

#[rstest]
#[case::started_before(0, &["db"])]
#[case::started_just_after_by_a_clock_that_may_differ(520, &["db"])]
#[case::started_after(530, &[])]
fn a_rotation_opens_where_containers_started_before_it(#[case] started: i64, #[case] keys: &[&str]) {
    let mut record = adopted();
    let rotated = seen(&[running("a", started)], &[first(), first().rotated(500, 9, "2")]);
    let expected = if keys.is_empty() { Vec::new() } else { changed(keys) };
    assert_eq!(rotated.observe(&mut record), expected);
    assert_eq!(rotated.observe(&mut record), [], "once");
}

#[rstest]
#[case::terminating(running("a", 0).over())]
#[case::waiting(pod_of("rs-1", "a").waits("app"))]
fn a_pod_that_goes_away_or_has_not_started_is_not_behind(#[case] pod: PodBuilder) {
    let rotated = seen(&[pod], &[first(), first().rotated(500, 9, "2")]);
    assert_eq!(rotated.observe(&mut adopted()), []);
}

#[test]
fn another_write_of_the_same_versions_is_no_rotation() {
    let relabelled = Status { version: 9, written: 500, ..first() };
    assert_eq!(seen(&[running("a", 0)], &[first(), relabelled]).observe(&mut adopted()), []);
}

#[rstest]
#[case::one_other_pod(&[("b", 500)], &[])]
#[case::two(&[("b", 500), ("c", 501)], &["db"])]
#[case::at_about_the_same_time(&[("b", 20), ("c", 25)], &[])]
fn a_newer_version_that_other_pods_share_opens(#[case] others: &[(&str, i64)], #[case] keys: &[&str]) {
    let pods = others.iter().map(|(name, started)| running(name, *started)).chain([running("a", 0)]);
    let held = others.iter().map(|(name, started)| status(name, *started, "2").at_version(9)).chain([first()]);
    let scene = seen(&pods.collect::<Vec<_>>(), &held.collect::<Vec<_>>());
    let expected = if keys.is_empty() { Vec::new() } else { changed(keys) };
    assert_eq!(scene.observe(&mut adopted()), expected);
}

/// Opened by a rotation of the pod `a`, and answered by a stamp.
fn stamped() -> (Record, String, [Status; 2]) {
    let mut record = adopted();
    let statuses = [first(), first().rotated(500, 9, "2")];
    let scene = seen(&[running("a", 0)], &statuses);
    assert_eq!(scene.observe(&mut record), changed(&["db"]));
    let text = scene.stamp();
    record.ask(text.clone(), at(505));
    record.confirm(&text);
    (record, text, statuses)
}

#[test]
fn behind_a_stamp_the_rotation_of_pods_that_go_away_opens_nothing_again() {
    let (mut record, text, statuses) = stamped();
    let other = status("b", 0, "1");
    let statuses = [statuses.to_vec(), vec![other.clone(), other.rotated(510, 10, "2")]].concat();
    let scene = seen_behind(&text, &[running("a", 0), running("b", 0)], &statuses);
    assert_eq!(scene.observe(&mut record), []);
    assert_eq!(scene.decide(&record), Decision::RollingOut);
}

#[test]
fn what_a_rollout_makes_is_delivered_and_opens_nothing() {
    let (mut record, text, _) = stamped();
    let pods = ["x", "y"].map(|name| running(name, 510).stamp(&text));
    let scene =
        seen_behind(&text, &pods, &[status("x", 508, "2").at_version(11), status("y", 509, "3").at_version(12)]);
    assert_eq!(scene.observe(&mut record), []);
    assert_eq!(scene.decide(&record), Decision::Close);
    record.close();
    assert_eq!(scene.observe(&mut record), []);
}

#[test]
fn a_rotation_of_a_pod_that_our_rollout_made_opens_again() {
    let (mut record, text, _) = stamped();
    let made = status("x", 508, "2").at_version(11);
    let scene = seen_behind(&text, &[running("x", 510).stamp(&text)], &[made.clone(), made.rotated(800, 20, "3")]);
    assert_eq!(scene.observe(&mut record), changed(&["db"]));
    assert_ne!(scene.decide(&record), Decision::Close);
    let open = record.entry(&named(CLASS)).and_then(|entry| entry.change.clone()).unwrap();
    assert_eq!(open.answer, Answer::None);
}

#[rstest]
#[case::as_is(Adopt::AsIs, false)]
#[case::catch_up(Adopt::CatchUp, true)]
fn what_was_rotated_before_first_sight_opens_if_so_chosen(#[case] adopt: Adopt, #[case] opens: bool) {
    let policy = Policy { adopt, ..policy() };
    let scene = seen(&[running("a", 0)], &[first().rotated(500, 9, "2")]).policy(policy);
    let mut record = scene.adopt();
    assert_eq!(!scene.observe(&mut record).is_empty(), opens);
}

#[rstest]
#[case::while_we_were_away(first().rotated(500, 9, "2"), true)]
#[case::nothing_happened(first(), false)]
fn after_a_restart_what_is_listed_tells(#[case] listed: Status, #[case] opens: bool) {
    let mut record = adopted();
    let scene = seen(&[running("a", 0)], &[listed]).after_a_restart();
    // The object is not named: what it was before was not seen.
    let expected = if opens { changed(&[]) } else { Vec::new() };
    assert_eq!(scene.observe(&mut record), expected);
    assert_eq!(scene.observe(&mut record), []);
}

#[test]
fn a_status_that_the_next_pod_of_its_name_takes_over_is_no_rotation() {
    let next = || running("next", 503).made(501, 8);
    let over = first().taken_over("next", 502, 9, "2");
    assert_eq!(seen(&[next()], &[first(), over.clone()]).observe(&mut adopted()), []);
    assert_eq!(seen(&[next()], &[over]).observe(&mut adopted()), [], "nor where only its end is seen");
}

#[test]
fn while_statuses_are_not_known_nothing_opens_and_later_they_are_taken_for_read() {
    let unknown = scene(w()).pod(running("a", 0));
    let mut record = unknown.adopt();
    assert_eq!(unknown.observe(&mut record), []);
    let known = seen(&[running("a", 0)], &[first().rotated(500, 9, "2")]);
    assert_eq!(known.observe(&mut record), []);
}

#[test]
fn a_class_that_is_only_named_opens_when_it_is_rotated_in_any_pod() {
    let naming = |pod: PodBuilder| scene(deployment("w").on("secretproviderclass/vault")).second(1000).pod(pod);
    let of_others = [first(), first().rotated(500, 9, "2")];
    let old = naming(pod_of("rs-1", "mine").started("app", 0)).classes([first().read()]);
    let mut record = old.adopt();
    let rotated = |pod| naming(pod).classes(of_others.iter().map(Status::read));
    assert_eq!(rotated(pod_of("rs-1", "mine").started("app", 0)).observe(&mut record), changed(&["db"]));
    record.close();
    let made_since = rotated(pod_of("rs-1", "new").made(501, 10).started("app", 502));
    assert_eq!(made_since.observe(&mut record), []);
    // The next one of the others' pods is rotated, to the same.
    let next = status("b", 0, "1");
    let statuses = [next.clone(), next.rotated(600, 11, "2")];
    let wave =
        rotated(pod_of("rs-1", "new").made(501, 10).started("app", 502)).classes(statuses.iter().map(Status::read));
    assert_eq!(wave.observe(&mut record), []);
    let further = [statuses[1].clone(), statuses[1].clone().rotated(700, 12, "3")];
    let further = wave.classes(further.iter().map(Status::read));
    assert_eq!(further.observe(&mut record), changed(&["db"]));
}

#[test]
fn a_pod_that_has_mounted_nothing_yet_will_mount_what_is_newest() {
    let (record, _, statuses) = stamped();
    let scene = seen(&[pod_of("rs-1", "x").waits("app")], &statuses);
    assert_eq!(scene.decide(&record), Decision::Close);
}
