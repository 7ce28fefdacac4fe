//! What the flags and Reloader's annotations make of workloads.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::api::auto_reload::AutoReload;
use crate::api::opt_in::{Annotations, OptIn};
use crate::model::builders::{ConfigBuilder, WorkloadBuilder, at, config_map, deployment, keyring, policy, secret};
use crate::model::decide::Decision;
use crate::model::index::{Event, Object};
use crate::model::names::{ConfigKind, ResourceVersion, WorkloadKind};
use crate::model::namespace::Namespace;
use crate::model::participation::{Participation, Reloading, Stakater};
use crate::model::scope::{Extent, Namespaces, Scope};
use crate::model::watched::Watched;
use rstest::rstest;

const DEPLOYMENT: Watched = Watched::Workload(WorkloadKind::Deployment);

type Said<'a> = &'a [(&'a str, &'a str)];

fn texts(all: Said<'_>) -> BTreeMap<String, String> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn annotated(workload: WorkloadBuilder, all: Said<'_>) -> Workload {
    let own = texts(all);
    let annotations = Annotations::with_stakater(Some(&own), None).map(Box::new);
    Workload { opt_in: OptIn::read(Some(&own), None), annotations, ..workload.build() }
}

fn namespace(name: &Name, labels: Said<'_>) -> Namespace {
    Namespace { name: name.clone(), uid: None, labels: texts(labels), auto_reload: Ok(None), deleting: false }
}

fn stakater(stakater: Stakater) -> Participation {
    Participation { stakater, ..Participation::default() }
}

fn everybody() -> Participation {
    Participation { unsaid: AutoReload::Everything, ..Participation::default() }
}

/// An index that has seen every kind, and holds these.
fn index(participation: Participation, scope: Scope, workload: Workload, configs: Vec<ConfigBuilder>) -> Index {
    let scope = Arc::new(scope);
    let index = Index::new(Arc::new(keyring()), policy(), "restamp-system");
    let mut index = index.within(scope.clone()).with_participation(participation);
    let namespace = namespace(&workload.id.namespace, &[]);
    let configs = configs.into_iter().map(|config| Object::Config(config.build()));
    for object in configs.chain([Object::from(workload), Object::Namespace(namespace)]) {
        let kind = match &object {
            Object::Config(config) => Watched::Config(config.id.kind),
            Object::Namespace(_) => Watched::Namespace,
            _ => DEPLOYMENT,
        };
        index.apply(Event::Listed(kind, Extent::Cluster, object), at(0));
    }
    for kind in scope.watched() {
        index.apply(Event::ListEnds(kind, Extent::Cluster), at(0));
    }
    index
}

fn everywhere(workload: Workload, configs: Vec<ConfigBuilder>) -> Index {
    index(stakater(Stakater::Everywhere), Scope::default(), workload, configs)
}

fn change(index: &mut Index, config: ConfigBuilder) -> BTreeSet<WorkloadId> {
    let config = config.at_version(9).build();
    index.apply(Event::Applied(Watched::Config(config.id.kind), Object::Config(config)), at(100)).workloads
}

fn decision(index: &Index) -> Option<Decision> {
    index.decide(&deployment("w").build().id, at(200))
}

fn is_adopted(index: &Index, id: &WorkloadId) -> bool {
    index.workload(id).is_some_and(|tracked| tracked.record.is_some())
}

const AUTO: Said<'_> = &[("reloader.stakater.com/auto", "true")];
const NAMES: Said<'_> = &[("secret.reloader.stakater.com/reload", "s.*")];

#[rstest]
#[case::auto(AUTO, Decision::Stamp)]
#[case::named(NAMES, Decision::Stamp)]
#[case::search_without_a_match(&[("reloader.stakater.com/search", "true")], Decision::Nothing)]
fn reloaders_annotations_roll_a_workload_where_they_count(#[case] all: Said<'_>, #[case] expected: Decision) {
    let workload = || annotated(deployment("w").env_from("Secret/s1"), all);
    let configs = || vec![secret("s1").value("A", "1")];
    let mut heard = everywhere(workload(), configs());
    change(&mut heard, secret("s1").value("A", "2"));
    assert_eq!(decision(&heard), Some(expected));
    assert_eq!(decision(&index(Participation::default(), Scope::default(), workload(), configs())), None);
}

#[test]
fn a_config_that_no_container_names_rolls_a_workload_that_names_it() {
    let mut index = everywhere(annotated(deployment("w"), NAMES), vec![secret("s1").value("A", "1")]);
    assert_eq!(change(&mut index, secret("other").value("A", "2")), BTreeSet::new());
    assert_eq!(change(&mut index, secret("s1").value("A", "2")), [deployment("w").build().id].into());
    assert_eq!(decision(&index), Some(Decision::Stamp));
}

#[test]
fn a_workload_that_names_no_more_is_woken_no_more() {
    let mut index = everywhere(annotated(deployment("w"), NAMES), vec![secret("s1").value("A", "1")]);
    let now = Workload { version: Some(ResourceVersion(5)), ..annotated(deployment("w"), &[]) };
    index.apply(Event::Applied(DEPLOYMENT, Object::from(now)), at(50));
    assert_eq!(change(&mut index, secret("s1").value("A", "2")), BTreeSet::new());
}

#[test]
fn a_namespace_moves_when_it_gets_the_label_and_back_when_it_loses_it() {
    let participation = stakater(Stakater::Labelled("restamp=yes".parse().unwrap()));
    let workload = annotated(deployment("w"), NAMES);
    let id = workload.id.clone();
    let mut index = index(participation, Scope::default(), workload, vec![secret("s1").value("A", "1")]);
    let mut relabel = |labels: Said<'_>| {
        let namespace = namespace(&id.namespace, labels);
        index.apply(Event::Applied(Watched::Namespace, Object::Namespace(namespace)), at(10));
        is_adopted(&index, &id)
    };
    assert_eq!([relabel(&[]), relabel(&[("restamp", "yes")]), relabel(&[("restamp", "no")])], [false, true, false]);
    assert_eq!(change(&mut index, secret("s1").value("A", "2")), BTreeSet::new());
}

#[test]
fn what_a_workload_says_is_unknown_until_its_namespace_was_seen() {
    let participation = stakater(Stakater::Labelled("restamp=yes".parse().unwrap()));
    let workload = annotated(deployment("w").env_from("Secret/s1"), AUTO);
    let id = workload.id.clone();
    let mut index = Index::new(Arc::new(keyring()), policy(), "restamp-system").with_participation(participation);
    index.apply(Event::Listed(DEPLOYMENT, Extent::Cluster, Object::from(workload)), at(0));
    for kind in Scope::default().watched().filter(|kind| *kind != Watched::Namespace) {
        index.apply(Event::ListEnds(kind, Extent::Cluster), at(0));
    }
    assert!(!index.is_opted_out(index.workload(&id).unwrap()) && !is_adopted(&index, &id));
    let namespace = namespace(&id.namespace, &[("restamp", "yes")]);
    index.apply(Event::Listed(Watched::Namespace, Extent::Cluster, Object::Namespace(namespace)), at(1));
    index.apply(Event::ListEnds(Watched::Namespace, Extent::Cluster), at(1));
    assert!(is_adopted(&index, &id));
}

#[rstest]
#[case::any(deployment("w").silent(), true)]
#[case::one_that_says_false(deployment("w").auto_reload(AutoReload::Off), false)]
#[case::one_that_a_controller_owns(deployment("w").silent().owned_by_a_controller(), false)]
#[case::such_a_one_that_says_true(deployment("w").owned_by_a_controller(), true)]
#[case::the_cluster_s_own(deployment("w").silent().within("kube-system"), false)]
fn every_workload_takes_part_unless_it_says_false(#[case] workload: WorkloadBuilder, #[case] expected: bool) {
    let workload = workload.build();
    let id = workload.id.clone();
    assert_eq!(is_adopted(&index(everybody(), Scope::default(), workload, vec![]), &id), expected);
}

#[rstest]
#[case::any(deployment("w").silent(), true)]
#[case::one_that_a_controller_owns(deployment("w").silent().owned_by_a_controller(), false)]
fn so_it_does_in_namespaces_that_are_watched_by_name(#[case] workload: WorkloadBuilder, #[case] expected: bool) {
    let workload = workload.build();
    let (id, name) = (workload.id.clone(), workload.id.namespace.clone());
    let scope = Arc::new(Scope { namespaces: Namespaces::Only([name.clone()].into()), ..Scope::default() });
    let index = Index::new(Arc::new(keyring()), policy(), "restamp-system").within(scope.clone());
    let mut index = index.with_participation(everybody());
    let extent = || Extent::Namespace(name.clone());
    index.apply(Event::Listed(DEPLOYMENT, extent(), Object::from(workload)), at(0));
    for kind in scope.watched() {
        index.apply(Event::ListEnds(kind, extent()), at(0));
    }
    assert_eq!(is_adopted(&index, &id), expected);
}

#[test]
fn a_namespace_that_says_false_is_left_out_where_every_workload_takes_part() {
    let workload = deployment("w").silent().build();
    let id = workload.id.clone();
    let mut index = index(everybody(), Scope::default(), workload, vec![]);
    let says_false = Namespace { auto_reload: Ok(Some(AutoReload::Off)), ..namespace(&id.namespace, &[]) };
    index.apply(Event::Applied(Watched::Namespace, Object::Namespace(says_false)), at(1));
    assert!(!is_adopted(&index, &id));
}

#[test]
fn a_kind_of_workload_that_is_ignored_is_off_whatever_it_says() {
    let participation = Participation { ignored: [WorkloadKind::Deployment].into(), ..everybody() };
    let workload = deployment("w").build();
    let id = workload.id.clone();
    assert!(!is_adopted(&index(participation, Scope::default(), workload, vec![]), &id));
}

#[test]
fn where_nothing_is_rolled_every_workload_is_off_whatever_it_says() {
    let participation = Participation { reload: Reloading::Off, ..everybody() };
    let workload = deployment("w").build();
    let id = workload.id.clone();
    assert!(!is_adopted(&index(participation, Scope::default(), workload, vec![]), &id));
}

#[test]
fn a_config_of_a_kind_that_is_ignored_is_not_missed() {
    let scope = Scope { ignored: [ConfigKind::Secret].into(), ..Scope::default() };
    let workload = deployment("w").env_from("Secret/s").env_from("ConfigMap/c").build();
    let mut index = index(Participation::default(), scope, workload, vec![config_map("c").value("A", "1")]);
    change(&mut index, config_map("c").value("A", "2"));
    assert_eq!(decision(&index), Some(Decision::Stamp));
}
