//! What the index keeps, by scope: of all namespaces, of some, and of those with certain labels.

use std::sync::Arc;

use super::*;
use crate::model::builders::{at, config_map, deployment, keyring, policy};
use crate::model::config::Config;
use crate::model::decide::{Decision, Hold};
use crate::model::index::{Event, Index, Object, StoredRecord, Work};
use crate::model::names::{ConfigKind, WorkloadId, WorkloadKind};
use crate::model::namespace::Namespace;
use crate::model::record::Record;
use crate::model::scope::Namespaces;
use crate::model::workload::Workload;

const DEPLOYMENT: Watched = Watched::Workload(WorkloadKind::Deployment);
const CONFIG_MAP: Watched = Watched::Config(ConfigKind::ConfigMap);

fn index(namespaces: Namespaces) -> Index {
    let scope = Scope { namespaces, ..Scope::default() };
    Index::new(Arc::new(keyring()), policy(), "restamp-system").within(Arc::new(scope))
}

fn labelled() -> Index {
    index(Namespaces::Labelled { labels: "team=x".parse().unwrap(), but: BTreeSet::new() })
}

fn workload(namespace: &str) -> Workload {
    deployment("w").within(namespace).env_from("ConfigMap/c").build()
}

fn config(namespace: &str, value: &str, version: u64) -> Config {
    let mut config = config_map("c").value("A", value).at_version(version).build();
    config.id.namespace = namespace.into();
    config
}

/// What there is in a namespace: a workload and its config.
fn objects(namespace: &str, value: &str, version: u64) -> [(Watched, Object); 2] {
    [(CONFIG_MAP, Object::Config(config(namespace, value, version))), (DEPLOYMENT, Object::from(workload(namespace)))]
}

fn list(index: &mut Index, extent: &Extent, objects: &[(Watched, Object)]) -> Work {
    let kinds: Vec<Watched> = index.scope.watched().filter(|kind| *kind != Watched::Namespace).collect();
    let mut last = Work::default();
    for kind in kinds {
        index.apply(Event::ListBegins(kind, extent.clone()), at(0));
        for (_, object) in objects.iter().filter(|(of, _)| *of == kind) {
            index.apply(Event::Listed(kind, extent.clone(), object.clone()), at(0));
        }
        last = index.apply(Event::ListEnds(kind, extent.clone()), at(0));
    }
    last
}

fn list_namespaces(index: &mut Index, names: &[&str]) {
    index.apply(Event::ListBegins(Watched::Namespace, Extent::Cluster), at(0));
    for name in names {
        index.apply(Event::Listed(Watched::Namespace, Extent::Cluster, namespace(name)), at(0));
    }
    index.apply(Event::ListEnds(Watched::Namespace, Extent::Cluster), at(0));
}

fn namespace(name: &str) -> Object {
    let labels = [].into();
    Object::Namespace(Namespace {
        name: name.into(),
        uid: None,
        labels,
        auto_reload: Ok(None),
        timing: crate::model::namespace::Timing::default(),
        deleting: false,
    })
}

fn within(name: &str) -> Extent {
    Extent::Namespace(name.into())
}

fn kept(index: &Index) -> Vec<String> {
    let workloads = index.workloads().map(|tracked| tracked.workload.id.to_string());
    let mut kept: Vec<String> = workloads.chain(index.configs().iter().map(|config| config.id.to_string())).collect();
    kept.sort();
    kept
}

fn decide(index: &Index, id: &WorkloadId) -> Option<Decision> {
    index.decide_alone(id, at(60))
}

#[test]
fn without_the_labels_nothing_is_kept_of_a_namespace() {
    let mut index = labelled();
    list_namespaces(&mut index, &["in"]);
    list(&mut index, &Extent::Cluster, &[objects("in", "1", 1), objects("out", "1", 1)].concat());
    for (kind, object) in objects("out", "2", 2) {
        assert_eq!(index.apply(Event::Applied(kind, object), at(0)), Work::default());
    }
    assert_eq!(kept(&index), ["ConfigMap in/c", "Deployment in/w"]);
}

#[test]
fn a_namespace_that_gains_the_labels_is_listed_and_decided_once_that_is_complete() {
    let mut index = labelled();
    list_namespaces(&mut index, &[]);
    list(&mut index, &Extent::Cluster, &[]);
    let work = index.apply(Event::Applied(Watched::Namespace, namespace("ns")), at(0));
    assert_eq!(work.gained, ["ns".into()]);
    assert!(index.is_synced(DEPLOYMENT), "what is in other namespaces waits for nothing");

    let [config, workload] = objects("ns", "1", 1);
    index.apply(Event::Applied(workload.0, workload.1.clone()), at(0));
    let id = workload.1.identity();
    let Identity::Workload(id) = id else { panic!("{id:?}") };
    assert!(index.workload(&id).unwrap().record.is_none(), "its configs are not listed yet");
    assert!(!index.is_opted_out(index.workload(&id).unwrap()));
    assert!(!index.is_synced_within(&"ns".into()));

    let work = list(&mut index, &within("ns"), &[config, workload]);
    assert_eq!(work.configs.len(), 1);
    assert!(index.is_synced_within(&"ns".into()));
    assert_eq!(decide(&index, &id), Some(Decision::Nothing));
}

#[test]
fn a_namespace_that_loses_the_labels_is_dropped_and_a_change_meanwhile_is_caught_when_it_gains_them() {
    let mut index = labelled();
    list_namespaces(&mut index, &["ns"]);
    list(&mut index, &Extent::Cluster, &objects("ns", "1", 1));
    let id = workload("ns").id;
    let record: Record = index.workload(&id).unwrap().record.clone().unwrap();
    let work = index.apply(Event::Deleted(Watched::Namespace, namespace("ns")), at(0));
    assert_eq!((work.workloads.len(), work.configs.len()), (1, 1));
    assert!(work.news.is_empty(), "a config that is out of scope is not deleted");
    assert_eq!(kept(&index), Vec::<String>::new());

    index.apply(Event::Applied(Watched::Namespace, namespace("ns")), at(0));
    let uid = workload("ns").uid.unwrap();
    let stored =
        StoredRecord { workload: id.clone(), uid, instance: "restamp-system".to_owned(), record: Some(record) };
    let report = [(Watched::Report, Object::Report(stored))];
    list(&mut index, &within("ns"), &[&report[..], &objects("ns", "2", 2)].concat());
    assert_eq!(decide(&index, &id), Some(Decision::Stamp));
}

#[test]
fn of_named_namespaces_each_is_decided_once_it_is_listed() {
    let mut index = index(Namespaces::Only(["a".into(), "b".into()].into()));
    let ids = ["a", "b"].map(|name| workload(name).id);
    list(&mut index, &within("a"), &objects("a", "1", 1));
    assert!(!index.is_synced(DEPLOYMENT) && index.is_synced_within(&"a".into()));
    index.apply(Event::Applied(CONFIG_MAP, Object::Config(config("a", "2", 2))), at(1));
    assert_eq!(decide(&index, &ids[0]), Some(Decision::Stamp));

    list(&mut index, &within("b"), &objects("b", "1", 1));
    assert!(index.is_synced(DEPLOYMENT));
    // A list of one tells nothing of the other.
    list(&mut index, &within("a"), &[]);
    assert_eq!(kept(&index), ["ConfigMap b/c", "Deployment b/w"]);
    assert_eq!(decide(&index, &ids[1]), Some(Decision::Nothing));
}

#[test]
fn a_workload_that_waits_for_a_list_says_for_which() {
    let mut index = labelled();
    list_namespaces(&mut index, &[]);
    list(&mut index, &Extent::Cluster, &[]);
    index.apply(Event::Applied(Watched::Namespace, namespace("ns")), at(0));
    let id = workload("ns").id;
    let adopted = Record::default();
    let uid = workload("ns").uid.unwrap();
    let stored =
        StoredRecord { workload: id.clone(), uid, instance: "restamp-system".to_owned(), record: Some(adopted) };
    index.apply(Event::Applied(Watched::Report, Object::Report(stored)), at(0));
    index.apply(Event::Applied(DEPLOYMENT, Object::from(workload("ns"))), at(0));
    assert!(matches!(decide(&index, &id), Some(Decision::Hold(Hold::NotSynced { .. }))));
}

/// An index that looks at some configs only, and has seen a workload with these of its configs.
fn filtered(configs: &[Config]) -> Index {
    let scope = Scope { configs: Some("team=x".parse().unwrap()), ..Scope::default() };
    let mut index = Index::new(Arc::new(keyring()), policy(), "restamp-system").within(Arc::new(scope));
    list_namespaces(&mut index, &["ns"]);
    let configs = configs.iter().map(|config| (CONFIG_MAP, Object::Config(config.clone())));
    let workload = Object::from(workload("ns"));
    list(&mut index, &Extent::Cluster, &configs.chain([(DEPLOYMENT, workload)]).collect::<Vec<_>>());
    index
}

#[test]
fn a_config_that_is_filtered_out_is_neither_missing_nor_deleted_and_a_change_meanwhile_is_caught() {
    let mut index = filtered(&[config("ns", "1", 1)]);
    let id = workload("ns").id;
    let before = index.workload(&id).unwrap().record.clone();
    // It loses its label.
    index.apply(Event::Deleted(CONFIG_MAP, Object::Config(config("ns", "1", 2))), at(1));
    assert_eq!(index.workload(&id).unwrap().record, before);
    assert_eq!(decide(&index, &id), Some(Decision::Nothing));
    // It gains the label again, with another value.
    index.apply(Event::Applied(CONFIG_MAP, Object::Config(config("ns", "2", 3))), at(2));
    assert_eq!(decide(&index, &id), Some(Decision::Stamp));
}

#[test]
fn a_config_that_was_filtered_out_from_the_start_is_seen_for_the_first_time() {
    let mut index = filtered(&[]);
    let id = workload("ns").id;
    assert_eq!(decide(&index, &id), Some(Decision::Nothing));
    index.apply(Event::Applied(CONFIG_MAP, Object::Config(config("ns", "1", 3))), at(1));
    assert_eq!(decide(&index, &id), Some(Decision::Nothing));
    index.apply(Event::Applied(CONFIG_MAP, Object::Config(config("ns", "2", 4))), at(2));
    assert_eq!(decide(&index, &id), Some(Decision::Stamp));
}
