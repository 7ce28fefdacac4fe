//! What the index makes of a Rollout whose pod template is in a Deployment.

use std::sync::Arc;

use super::*;
use crate::api::auto_reload::AutoReload;
use crate::model::builders::{WorkloadBuilder, at, config_map, custom, deployment, keyring, pod_of, policy};
use crate::model::custom::{CustomKind, kinds};
use crate::model::decide::Decision;
use crate::model::index::{Event, Object};
use crate::model::names::ConfigKind;
use crate::model::scope::{Extent, Scope};
use crate::model::workload::{OwnedReplicaSet, Progress};

const DEPLOYMENT: Watched = Watched::Workload(WorkloadKind::Deployment);
const REPLICA_SET: Watched = Watched::Workload(WorkloadKind::ReplicaSet);
const POD: Watched = Watched::Workload(WorkloadKind::Pod);
const CONFIG_MAP: Watched = Watched::Config(ConfigKind::ConfigMap);

fn rollouts() -> &'static [CustomKind] {
    kinds(&["argoproj.io/v1alpha1/Rollout".parse().unwrap()])
}

/// A Deployment without pods that says nothing of reloading.
fn holder() -> WorkloadBuilder {
    deployment("d").env_from("ConfigMap/c").silent().progress(Progress::Complete { pods: 0 })
}

fn rollout(kind: &'static CustomKind, auto_reload: AutoReload) -> Workload {
    let mut rollout = custom(kind, "r").auto_reload(auto_reload).build();
    rollout.template_in = Some(holder().build().id);
    rollout
}

/// An index in which all is listed, but for custom kinds and namespaces.
fn index(kinds: &'static [CustomKind]) -> Index {
    let scope = Scope { kinds, ..Scope::default() };
    let listed: Vec<Watched> = scope.watched().collect();
    let mut index = Index::new(Arc::new(keyring()), policy(), "restamp-system").within(Arc::new(scope));
    let is_late = |kind: &Watched| matches!(kind, Watched::Workload(WorkloadKind::Custom(_)) | Watched::Namespace);
    for kind in listed.into_iter().filter(|kind| !is_late(kind)) {
        index.apply(Event::ListBegins(kind, Extent::Cluster), at(0));
        if kind == CONFIG_MAP {
            let config = Object::Config(config_map("c").value("A", "1").build());
            index.apply(Event::Listed(kind, Extent::Cluster, config), at(0));
        } else if kind == DEPLOYMENT {
            let workload = Object::from(holder().build());
            index.apply(Event::Listed(kind, Extent::Cluster, workload), at(0));
        }
        index.apply(Event::ListEnds(kind, Extent::Cluster), at(0));
    }
    index.apply(Event::Applied(Watched::Namespace, namespace()), at(0));
    index
}

fn namespace() -> Object {
    let metadata = serde_json::from_value(serde_json::json!({"name": "ns"})).unwrap();
    Object::Namespace(crate::model::namespace::Namespace::of(&metadata).unwrap())
}

fn list_rollouts(index: &mut Index, kind: &'static CustomKind, rollout: Option<Workload>) -> Work {
    let kind = Watched::Workload(WorkloadKind::Custom(kind));
    index.apply(Event::ListBegins(kind, Extent::Cluster), at(0));
    if let Some(rollout) = rollout {
        index.apply(Event::Listed(kind, Extent::Cluster, Object::from(rollout)), at(0));
    }
    index.apply(Event::ListEnds(kind, Extent::Cluster), at(0))
}

fn change(index: &mut Index) -> Option<Decision> {
    let config = config_map("c").value("A", "2").at_version(5).build();
    index.apply(Event::Applied(CONFIG_MAP, Object::Config(config)), at(1));
    index.decide_alone(&holder().build().id, at(60))
}

#[test]
fn what_the_rollout_says_counts_for_the_deployment_with_its_template() {
    let kind = &rollouts()[0];
    let mut index = index(rollouts());
    list_rollouts(&mut index, kind, Some(rollout(kind, AutoReload::Everything)));
    assert_eq!(change(&mut index), Some(Decision::Stamp));
    let rollout = rollout(kind, AutoReload::Everything);
    assert_eq!(index.decide_alone(&rollout.id, at(60)), None, "it has no template to be stamped");
}

#[test]
fn until_rollouts_are_listed_no_deployment_is_called_opted_out() {
    let kind = &rollouts()[0];
    let mut index = index(rollouts());
    let is_opted_out = |index: &Index| index.is_opted_out(index.workload(&holder().build().id).unwrap());
    assert!(!is_opted_out(&index));
    list_rollouts(&mut index, kind, None);
    assert!(is_opted_out(&index));
    assert_eq!(change(&mut index), None);
}

#[test]
fn the_rollouts_pods_prove_what_the_deployments_would() {
    let kind = &rollouts()[0];
    let mut index = index(rollouts());
    let rollout = rollout(kind, AutoReload::Everything);
    list_rollouts(&mut index, kind, Some(rollout.clone()));
    let owned = OwnedReplicaSet {
        uid: pod_of("rs-1", "p").build().owner,
        namespace: "ns".into(),
        deployment: rollout.uid.clone().unwrap(),
        revision: None,
    };
    index.apply(Event::Applied(REPLICA_SET, Object::ReplicaSet(owned)), at(0));
    assert_eq!(change(&mut index), Some(Decision::Stamp));
    let pod = pod_of("rs-1", "p").started("app", 100).build();
    let work = index.apply(Event::Applied(POD, Object::Pod(pod)), at(100));
    assert_eq!(work.workloads.into_iter().collect::<Vec<_>>(), [holder().build().id]);
    assert_eq!(index.decide_alone(&holder().build().id, at(101)), Some(Decision::Close));
}

#[test]
fn a_rollout_that_is_gone_says_nothing_any_more() {
    let kind = &rollouts()[0];
    let mut index = index(rollouts());
    let rollout = rollout(kind, AutoReload::Everything);
    list_rollouts(&mut index, kind, Some(rollout.clone()));
    let watched = Watched::Workload(WorkloadKind::Custom(kind));
    let work = index.apply(Event::Deleted(watched, Object::from(rollout)), at(0));
    assert!(work.workloads.contains(&holder().build().id));
    assert_eq!(change(&mut index), None);
}
