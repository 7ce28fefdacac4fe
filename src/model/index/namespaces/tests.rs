//! What the index makes of namespaces.

use std::sync::Arc;

use super::*;
use crate::model::builders::{WorkloadBuilder, at, config_map, deployment, keyring, policy};
use crate::model::decide::{Decision, Hold};
use crate::model::index::{Event, Object};
use crate::model::names::{ConfigKind, WorkloadKind};
use crate::model::scope::Scope;
use crate::model::workload::Workload;
use rstest::rstest;

const DEPLOYMENT: Watched = Watched::Workload(WorkloadKind::Deployment);
const CONFIG_MAP: Watched = Watched::Config(ConfigKind::ConfigMap);

/// A Deployment that reads a ConfigMap, and says nothing of reloading.
fn silent() -> WorkloadBuilder {
    deployment("w").env_from("ConfigMap/c").silent()
}

fn namespace(annotation: &str) -> Namespace {
    let (name, labels) = ("ns".into(), [].into());
    Namespace {
        name,
        uid: None,
        labels,
        auto_reload: annotation.parse().map(Some),
        timing: crate::model::namespace::Timing::default(),
        deleting: false,
    }
}

fn applied(index: &mut Index, namespace: Namespace) -> Work {
    index.apply(Event::Applied(Watched::Namespace, Object::Namespace(namespace)), at(0))
}

/// An index that has seen these in a first list of each kind but namespaces.
fn index(workload: Workload) -> Index {
    let mut index = Index::new(Arc::new(keyring()), policy(), "restamp-system");
    for kind in Scope::default().watched().filter(|kind| *kind != Watched::Namespace) {
        index.apply(Event::ListBegins(kind, Extent::Cluster), at(0));
        if kind == CONFIG_MAP {
            let config = config_map("c").value("A", "1").at_version(1).build();
            index.apply(Event::Listed(kind, Extent::Cluster, Object::Config(config)), at(0));
        } else if kind == DEPLOYMENT {
            index.apply(Event::Listed(kind, Extent::Cluster, Object::from(workload.clone())), at(0));
        }
        index.apply(Event::ListEnds(kind, Extent::Cluster), at(0));
    }
    index
}

fn list_namespaces(index: &mut Index, all: &[Namespace]) {
    index.apply(Event::ListBegins(Watched::Namespace, Extent::Cluster), at(0));
    for namespace in all {
        index.apply(Event::Listed(Watched::Namespace, Extent::Cluster, Object::Namespace(namespace.clone())), at(0));
    }
    index.apply(Event::ListEnds(Watched::Namespace, Extent::Cluster), at(0));
}

fn is_adopted(index: &Index) -> bool {
    index.workload(&silent().build().id).is_some_and(|tracked| tracked.record.is_some())
}

fn is_opted_out(index: &Index) -> bool {
    index.is_opted_out(index.workload(&silent().build().id).unwrap())
}

fn change(index: &mut Index) -> Option<Decision> {
    let config = config_map("c").value("A", "2").at_version(5).build();
    index.apply(Event::Applied(CONFIG_MAP, Object::Config(config)), at(1));
    index.decide_alone(&silent().build().id, at(60))
}

#[rstest]
#[case::on("true", silent(), true)]
#[case::off("false", silent(), false)]
#[case::the_workload_says_no("true", deployment("w").auto_reload(AutoReload::Off), false)]
#[case::the_workload_says_yes("false", deployment("w"), true)]
#[case::a_controller_owns_it("true", silent().owned_by_a_controller(), false)]
#[case::the_cluster_s_own("true", silent().within("kube-system"), false)]
#[case::what_does_not_parse_adopts_nobody("yes", silent(), false)]
fn a_namespace_s_annotation_is_the_default_for_its_workloads(
    #[case] annotation: &str,
    #[case] workload: WorkloadBuilder,
    #[case] expected: bool,
) {
    let workload = workload.build();
    let mut index = index(workload.clone());
    let namespace = Namespace { name: workload.id.namespace.clone(), ..namespace(annotation) };
    list_namespaces(&mut index, &[namespace]);
    assert_eq!(index.workload(&workload.id).unwrap().record.is_some(), expected);
}

#[test]
fn while_the_namespace_was_not_seen_nobody_is_called_opted_out() {
    let mut index = index(silent().build());
    assert!(!is_opted_out(&index) && !is_adopted(&index));
    list_namespaces(&mut index, &[]);
    assert!(!is_opted_out(&index), "its watch may be behind the one of workloads");
    applied(&mut index, namespace("false"));
    assert!(is_opted_out(&index));
}

#[test]
fn a_workload_that_says_itself_what_it_wants_waits_for_no_namespace() {
    let mut index = index(deployment("w").env_from("ConfigMap/c").build());
    assert!(is_adopted(&index));
    assert_eq!(change(&mut index), Some(Decision::Stamp));
}

#[test]
fn a_namespace_that_gains_the_annotation_has_its_workloads_adopted_at_once_with_closed_entries() {
    let mut index = index(silent().build());
    list_namespaces(&mut index, &[namespace("false")]);
    let work = applied(&mut index, namespace("true"));
    assert_eq!(work.workloads.into_iter().collect::<Vec<_>>(), [silent().build().id]);
    assert!(is_adopted(&index));
    assert_eq!(index.decide_alone(&silent().build().id, at(60)), Some(Decision::Nothing));
    assert_eq!(change(&mut index), Some(Decision::Stamp));
}

#[test]
fn a_namespace_that_loses_the_annotation_lets_its_workloads_go() {
    let mut index = index(silent().build());
    list_namespaces(&mut index, &[namespace("true")]);
    applied(&mut index, namespace("false"));
    assert!(is_opted_out(&index) && !is_adopted(&index));
    assert_eq!(change(&mut index), None);
}

#[test]
fn a_value_that_does_not_parse_leaves_what_counted_before() {
    let mut index = index(silent().build());
    list_namespaces(&mut index, &[namespace("true")]);
    let work = applied(&mut index, namespace("yes"));
    assert_eq!(work.namespaces.into_iter().collect::<Vec<_>>(), ["ns".into()]);
    let (_, problems) = index.problems_of_namespace(&"ns".into()).unwrap();
    let expected = "annotation restamp.dev/auto-reload has the value \"yes\"; write \"true\", \"at-start\", \"notify\" or \"false\"";
    assert_eq!(problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    assert!(is_adopted(&index) && !is_opted_out(&index));
    assert_eq!(change(&mut index), Some(Decision::Stamp));
}

#[rstest]
#[case::by_the_default("true", Some(Decision::Stamp))]
#[case::by_nobody("false", None)]
fn a_config_that_is_newer_than_a_workload_is_a_change_if_it_was_opted_in_when_it_was_made(
    #[case] annotation: &str,
    #[case] expected: Option<Decision>,
) {
    let mut index = index(deployment("other").build());
    list_namespaces(&mut index, &[]);
    // The workload and its namespace are made together, and their watches are not in order.
    let made = silent().at_version(3).build();
    index.apply(Event::Applied(DEPLOYMENT, Object::from(made)), at(0));
    let config = config_map("c").value("A", "2").at_version(4).build();
    index.apply(Event::Applied(CONFIG_MAP, Object::Config(config)), at(0));
    applied(&mut index, namespace(annotation));
    assert_eq!(index.decide_alone(&silent().build().id, at(60)), expected);
    // Whoever is opted in later is seen for the first time.
    applied(&mut index, namespace("false"));
    applied(&mut index, namespace("true"));
    assert_eq!(index.decide_alone(&silent().build().id, at(60)), Some(Decision::Nothing));
}

#[test]
fn in_a_namespace_that_is_being_deleted_nothing_rolls() {
    let mut index = index(silent().build());
    list_namespaces(&mut index, &[namespace("true")]);
    let work = applied(&mut index, Namespace { deleting: true, ..namespace("true") });
    assert_eq!(work.workloads.len(), 1);
    assert_eq!(change(&mut index), Some(Decision::Hold(Hold::NamespaceBeingDeleted)));
}
