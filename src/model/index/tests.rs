//! What the index makes of events.

use std::sync::Arc;

use proptest::prelude::*;
use rstest::rstest;

use super::{Event, Index, Object, StampOrder, StoredRecord, Work};
use crate::api::auto_reload::AutoReload;
use crate::api::opt_in::OptIn;
use crate::model::autoscaler::{AutoscalerObject, Autoscaling};
use crate::model::builders::{
    ConfigBuilder, PodBuilder, WorkloadBuilder, at, config_map, deployment, keyring, policy, running_since, secret,
};
use crate::model::decide::{Decision, Hold, WaitReason};
use crate::model::names::{ConfigKind, ResourceVersion, WorkloadId, WorkloadKind};
use crate::model::namespace::Namespace;
use crate::model::observe::News;
use crate::model::record::{Answer, Record};
use crate::model::scope::Extent;
use crate::model::watched::Watched;
use crate::model::workload::OwnedReplicaSet;

const CONFIG_MAP: Watched = Watched::Config(ConfigKind::ConfigMap);
const SECRET: Watched = Watched::Config(ConfigKind::Secret);
const DEPLOYMENT: Watched = Watched::Workload(WorkloadKind::Deployment);
const REPLICA_SET: Watched = Watched::Workload(WorkloadKind::ReplicaSet);
const POD: Watched = Watched::Workload(WorkloadKind::Pod);
const NEEDED: [Watched; 6] = [Watched::Report, Watched::Namespace, CONFIG_MAP, DEPLOYMENT, REPLICA_SET, POD];

fn w() -> WorkloadBuilder {
    deployment("w").env_from("ConfigMap/c")
}

fn id() -> WorkloadId {
    w().build().id
}

fn c(value: &str) -> ConfigBuilder {
    config_map("c").value("A", value)
}

fn config(config: ConfigBuilder) -> Object {
    Object::Config(config.build())
}

fn workload(workload: WorkloadBuilder) -> Object {
    Object::from(workload.build())
}

fn pod(pod: PodBuilder) -> Object {
    Object::Pod(pod.build())
}

/// `rs-1`, of the Deployment `w`.
fn replica_set(uid: &str) -> Object {
    let deployment = w().build().uid.unwrap();
    let revision = Some("1".to_owned());
    Object::ReplicaSet(OwnedReplicaSet { uid: uid.into(), namespace: "ns".into(), deployment, revision })
}

fn report(instance: &str) -> Object {
    let uid = w().build().uid.unwrap();
    Object::Report(StoredRecord { workload: id(), uid, instance: instance.to_owned(), record: Some(Record::default()) })
}

fn empty() -> Index {
    Index::new(Arc::new(keyring()), policy(), "restamp")
}

/// An index that has listed these, in this order; each object's kind at its end.
fn listed(objects: Vec<(Watched, Object)>) -> Index {
    let mut index = empty();
    for kind in NEEDED {
        index.apply(Event::ListBegins(kind, Extent::Cluster), at(0));
        for (_, object) in objects.iter().filter(|(other, _)| *other == kind) {
            index.apply(Event::Listed(kind, Extent::Cluster, object.clone()), at(0));
        }
        index.apply(Event::ListEnds(kind, Extent::Cluster), at(0));
    }
    index
}

fn usual() -> Index {
    listed(vec![
        (CONFIG_MAP, config(c("1"))),
        (DEPLOYMENT, workload(w())),
        (REPLICA_SET, replica_set("uid-of-rs-1")),
        (POD, pod(running_since(-100))),
    ])
}

impl Index {
    fn saw(&mut self, kind: Watched, object: Object, second: i64) -> Work {
        self.apply(Event::Applied(kind, object), at(second))
    }

    fn gone(&mut self, kind: Watched, object: Object, second: i64) -> Work {
        self.apply(Event::Deleted(kind, object), at(second))
    }

    fn record(&self) -> Option<&Record> {
        self.workload(&id())?.record.as_ref()
    }

    fn open(&self) -> usize {
        self.record().map_or(0, |record| record.open_entries().count())
    }

    fn decision(&self, second: i64) -> Option<Decision> {
        self.decide(&id(), at(second))
    }
}

/// The config changed, and the stamp for it was sent.
fn stamping() -> (Index, StampOrder) {
    let mut index = usual();
    index.saw(CONFIG_MAP, config(c("2").at_version(10)), 1);
    assert_eq!(index.decision(6), Some(Decision::Stamp));
    let order = index.begin_stamp(&id(), at(6)).unwrap();
    (index, order)
}

#[test]
fn a_workload_is_adopted_once_the_watches_that_it_needs_are_synced() {
    let mut index = empty();
    index.saw(DEPLOYMENT, workload(w()), 0);
    for kind in NEEDED {
        assert_eq!(index.record(), None);
        index.apply(Event::ListBegins(kind, Extent::Cluster), at(0));
        let listed = (kind == DEPLOYMENT).then(|| workload(w()));
        listed.into_iter().for_each(|it| drop(index.apply(Event::Listed(kind, Extent::Cluster, it), at(0))));
        index.apply(Event::ListEnds(kind, Extent::Cluster), at(0));
    }
    assert!(index.record().is_some());
    assert!(!index.is_synced(SECRET), "nor does it wait for others");
}

#[test]
fn a_workload_that_comes_to_need_a_watch_waits_for_it() {
    let mut index = usual();
    index.saw(DEPLOYMENT, workload(w().env_from("Secret/s").at_version(2)), 1);
    assert_eq!(index.decision(1), Some(Decision::Hold(Hold::NotSynced { kind: "Secret" })));
}

#[test]
fn a_change_is_told_and_its_workloads_are_looked_at() {
    let mut index = usual();
    let work = index.saw(CONFIG_MAP, config(c("2").at_version(10)), 1);
    let c = c("1").build().id;
    let news = News::Changed { config: c.local(), keys: ["A".into()].into() };
    let expected = Work { workloads: [id()].into(), configs: [c].into(), news: vec![(id(), news)], ..Work::default() };
    assert_eq!(work, expected);
    assert_eq!(index.open(), 1);
}

#[rstest]
#[case::the_same_again(c("1"))]
#[case::an_older_one(c("2").at_version(0))]
#[case::a_label(c("1").at_version(10))]
fn a_config_without_a_change_opens_nothing(#[case] again: ConfigBuilder) {
    let mut index = usual();
    assert_eq!(index.saw(CONFIG_MAP, config(again), 1).news, []);
    assert_eq!(index.open(), 0);
}

#[test]
fn a_list_shows_what_is_gone() {
    let mut index = usual();
    index.apply(Event::ListBegins(DEPLOYMENT, Extent::Cluster), at(1));
    let work = index.apply(Event::ListEnds(DEPLOYMENT, Extent::Cluster), at(1));
    assert_eq!(work.workloads, [id()].into());
    assert!(index.workload(&id()).is_none());
    assert_eq!(index.consumers(&c("1").build().id).count(), 0);
}

#[test]
fn a_list_shows_what_changed() {
    let mut index = usual();
    index.apply(Event::ListBegins(CONFIG_MAP, Extent::Cluster), at(1));
    index.apply(Event::Listed(CONFIG_MAP, Extent::Cluster, config(c("2").at_version(10))), at(1));
    index.apply(Event::ListEnds(CONFIG_MAP, Extent::Cluster), at(1));
    assert_eq!(index.open(), 1);
}

#[test]
fn a_workload_that_was_made_again_is_another_one() {
    let (mut index, order) = stamping();
    index.saw(DEPLOYMENT, workload(w().uid("again").at_version(11)), 7);
    index.stamped(&order, ResourceVersion(12), 2);
    assert_eq!(index.decision(7), Some(Decision::Nothing));
    assert_eq!(index.record().and_then(|record| record.stamp.clone()), None);
}

#[test]
fn opting_out_ends_it_and_opting_in_again_goes_on_with_the_stored_record() {
    let mut index = usual();
    index.saw(Watched::Report, stored(&index), 1);
    index.saw(DEPLOYMENT, workload(w().auto_reload(AutoReload::Off).at_version(2)), 2);
    assert_eq!(index.decision(2), None);
    index.saw(CONFIG_MAP, config(c("2").at_version(10)), 3);
    index.saw(DEPLOYMENT, workload(w().at_version(11)), 4);
    assert_eq!(index.open(), 1);
}

fn stored(index: &Index) -> Object {
    let record = index.record().cloned().unwrap();
    let uid = w().build().uid.unwrap();
    Object::Report(StoredRecord { workload: id(), uid, instance: "restamp".to_owned(), record: Some(record) })
}

#[test]
fn an_annotation_that_does_not_parse_leaves_things_as_they_are() {
    let mut index = usual();
    let namespace =
        Namespace { name: "ns".into(), uid: None, labels: [].into(), auto_reload: Ok(None), deleting: false };
    index.saw(Watched::Namespace, Object::Namespace(namespace), 0);
    let mut invalid = w().at_version(2).build();
    invalid.opt_in = OptIn { problems: "yes".parse::<AutoReload>().err().into_iter().collect(), ..OptIn::default() };
    index.saw(DEPLOYMENT, Object::from(invalid), 1);
    index.saw(CONFIG_MAP, config(c("2").at_version(10)), 2);
    assert_eq!(index.open(), 1);
}

fn other_instance() -> Option<Decision> {
    Some(Decision::Hold(Hold::OtherInstance { instance: "other".to_owned() }))
}

#[test]
fn a_workload_whose_report_another_installation_keeps_is_left_alone() {
    let mut index = listed(vec![(Watched::Report, report("other")), (DEPLOYMENT, workload(w()))]);
    assert_eq!(index.decision(0), other_instance());
    index.gone(Watched::Report, report("other"), 1);
    assert_eq!(index.decision(1), Some(Decision::Nothing), "until it lets it go");
}

#[test]
fn of_two_installations_that_adopt_at_once_the_one_whose_report_stands_goes_on() {
    let mut index = usual();
    index.saw(Watched::Report, report("other"), 1);
    assert_eq!(index.decision(1), other_instance());
}

#[test]
fn a_deleted_report_loses_nothing() {
    let (mut index, _) = stamping();
    index.gone(Watched::Report, report("restamp"), 7);
    assert_eq!(index.open(), 1);
}

#[test]
fn a_stamp_is_for_the_version_that_was_decided_on() {
    let (_, order) = stamping();
    assert_eq!((order.uid.as_str(), order.version), ("uid-of-w", ResourceVersion(1)));
    assert!(order.text.starts_with("hmac-sha256:k1:") && order.text.ends_with(":1"), "{}", order.text);
}

#[test]
fn a_stamp_that_was_put_on_rolls_out_until_its_pods_are_there() {
    let (mut index, order) = stamping();
    index.stamped(&order, ResourceVersion(11), 2);
    assert_eq!(index.decision(6), Some(Decision::RollingOut));
    index.saw(DEPLOYMENT, workload(w().at_version(1)), 6);
    assert_eq!(index.decision(6), Some(Decision::RollingOut), "an earlier state may still arrive");
    index.gone(POD, pod(running_since(-100)), 8);
    index.saw(POD, pod(running_since(7).named("new").stamp(&order.text)), 8);
    assert_eq!(index.decision(8), Some(Decision::Close));
    index.close(&id());
    assert_eq!((index.open(), index.decision(8)), (0, Some(Decision::Nothing)));
}

#[test]
fn a_stamp_is_answered_by_the_watch_too() {
    let (mut index, order) = stamping();
    index.saw(DEPLOYMENT, workload(w().at_version(11).generation(2).stamp(&order.text)), 7);
    assert_eq!(index.decision(7), Some(Decision::RollingOut));
}

#[test]
fn a_change_while_a_stamp_is_under_way_is_not_answered_by_it() {
    let (mut index, order) = stamping();
    index.saw(CONFIG_MAP, config(c("3").at_version(11)), 6);
    index.stamped(&order, ResourceVersion(12), 2);
    let once_observed = Decision::Wait { until: at(601), reason: WaitReason::OthersRollout };
    assert_eq!(index.decision(11), Some(once_observed), "the stamp's own rollout may not have begun");
    index.saw(DEPLOYMENT, workload(w().at_version(13).generation(2).stamp(&order.text)), 12);
    assert_eq!(index.decision(12), Some(Decision::Stamp));
}

#[test]
fn a_refused_stamp_is_as_if_it_was_not_sent() {
    let (mut index, order) = stamping();
    let before = index.record().cloned().unwrap();
    index.refused(&order);
    let after = index.record().cloned().unwrap();
    assert_eq!(before.open_entries().next().unwrap().1.answer, Answer::Asked);
    assert_eq!(after.open_entries().next().unwrap().1.answer, Answer::None);
    assert_eq!(after.attempt, None);
    assert_eq!(index.decision(6), Some(Decision::Stamp));
}

#[test]
fn a_pod_of_a_replica_set_that_was_not_seen_yet_keeps_an_entry_open() {
    let mut index = usual();
    index.saw(CONFIG_MAP, config(c("2").at_version(10)), 1);
    index.saw(POD, pod(running_since(40)), 41);
    assert_eq!(index.decision(41), Some(Decision::Close));
    index.saw(POD, pod(running_since(-100).named("unplaced").owner("rs-2")), 41);
    assert_eq!(index.decision(41), Some(Decision::Stamp));
    index.saw(REPLICA_SET, replica_set("uid-of-rs-2"), 42);
    let until_it_is_gone = Decision::Wait { until: at(601), reason: WaitReason::OthersRollout };
    assert_eq!(index.decision(42), Some(until_it_is_gone), "it is one of its pods, of an earlier revision");
    index.gone(POD, pod(running_since(-100).named("unplaced").owner("rs-2")), 43);
    assert_eq!(index.decision(43), Some(Decision::Close));
}

#[test]
fn a_pod_that_another_replica_set_adopts_is_there_once() {
    let mut index = usual();
    index.saw(REPLICA_SET, replica_set("uid-of-rs-2"), 1);
    index.saw(POD, pod(running_since(-100).owner("rs-2")), 1);
    index.gone(POD, pod(running_since(-100).owner("rs-2")), 2);
    assert!(index.pods_of_workload(&id(), &w().build().uid.unwrap()).is_empty());
    assert!(index.pods_of.is_empty());
}

#[test]
fn a_pod_has_no_age_from_the_event_that_shows_it_first() {
    // Another controller let it go; it ran before the config changed.
    let mut index = usual();
    index.saw(CONFIG_MAP, config(c("2").at_version(10)), 1);
    index.saw(POD, pod(running_since(0).at_version(11)), 1);
    assert_eq!(index.decision(6), Some(Decision::Stamp));
}

fn everything() -> Vec<(Watched, Object)> {
    let second = || running_since(-50).named("second").owner("rs-2");
    vec![
        (CONFIG_MAP, config(c("2").at_version(10))),
        (CONFIG_MAP, config(config_map("unread"))),
        (DEPLOYMENT, workload(w())),
        (DEPLOYMENT, workload(deployment("other"))),
        (REPLICA_SET, replica_set("uid-of-rs-1")),
        (REPLICA_SET, replica_set("uid-of-rs-2")),
        (POD, pod(running_since(-100))),
        (POD, pod(second())),
        (Watched::Report, stored(&usual())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_a_list_does_not_matter(shuffled in Just(everything()).prop_shuffle()) {
        let (index, other) = (listed(everything()), listed(shuffled));
        prop_assert_eq!(index.record(), other.record());
        prop_assert_eq!(index.decision(60), Some(Decision::Stamp));
        prop_assert_eq!(index.decision(60), other.decision(60));
    }

    #[test]
    fn a_list_again_changes_nothing(times in 1..4usize, second in 0..100i64) {
        let mut index = listed(everything());
        let before = index.record().cloned();
        for kind in NEEDED.into_iter().cycle().take(times * NEEDED.len()) {
            index.apply(Event::ListBegins(kind, Extent::Cluster), at(second));
            for (_, object) in everything().into_iter().filter(|(other, _)| *other == kind) {
                let work = index.apply(Event::Listed(kind, Extent::Cluster, object), at(second));
                prop_assert_eq!(work.news, vec![]);
            }
            index.apply(Event::ListEnds(kind, Extent::Cluster), at(second));
        }
        prop_assert_eq!(index.record(), before.as_ref());
    }
}

#[test]
fn a_secret_is_watched_apart_from_config_maps() {
    let mut index = usual();
    index.apply(Event::ListBegins(SECRET, Extent::Cluster), at(1));
    index.apply(Event::Listed(SECRET, Extent::Cluster, config(secret("c"))), at(1));
    index.apply(Event::ListEnds(SECRET, Extent::Cluster), at(1));
    assert!(index.configs().get(&c("1").build().id).is_some());
}

fn autoscaler(target: &str) -> Object {
    let object = serde_json::json!({"metadata": {"name": "h", "namespace": "ns"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}, "maxReplicas": 3}});
    Object::Autoscaler(serde_json::from_value::<AutoscalerObject>(object).unwrap().read().unwrap())
}

#[test]
fn an_autoscaler_says_something_of_what_it_scales_and_its_status_says_nothing() {
    let mut index = listed(vec![(DEPLOYMENT, workload(w()))]);
    assert_eq!(index.autoscaling(&id()), Autoscaling::Unknown);
    assert_eq!(index.decide(&id(), at(0)), Some(Decision::Nothing), "reloading waits for it");
    index.apply(Event::ListBegins(Watched::Autoscaler, Extent::Cluster), at(0));
    let ended = index.apply(Event::ListEnds(Watched::Autoscaler, Extent::Cluster), at(0));
    assert_eq!((index.autoscaling(&id()), ended.workloads), (Autoscaling::Off, [id()].into()));

    let mut looked_at = |event| index.apply(event, at(1)).workloads.len();
    let applied = |target| Event::Applied(Watched::Autoscaler, autoscaler(target));
    assert_eq!([looked_at(applied("w")), looked_at(applied("w"))], [1, 0]);
    assert_eq!(index.autoscaling(&id()), Autoscaling::By(&"h".into()));
    let mut looked_at = |event| index.apply(event, at(1)).workloads.len();
    assert_eq!([looked_at(applied("v")), looked_at(applied("v"))], [1, 0]);
    assert_eq!(index.autoscaling(&id()), Autoscaling::Off);
    index.apply(applied("w"), at(1));
    let gone = index.apply(Event::Deleted(Watched::Autoscaler, autoscaler("w")), at(2));
    assert_eq!((index.autoscaling(&id()), gone.workloads), (Autoscaling::Off, [id()].into()));
}
