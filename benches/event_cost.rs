//! What one event costs, with few workloads and with many: it must not rise with their number.
//!
//! It prints a line of JSON with the microseconds for each number of workloads; `bench/limits.py` compares them.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a benchmark may panic, and prints")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use restamp::model::config::ConfigMapObject;
use restamp::model::digest::{HashKey, Keyring};
use restamp::model::index::{Event, Index, Object};
use restamp::model::names::{ConfigKind, WorkloadKind};
use restamp::model::policy::Policy;
use restamp::model::scope::{Extent, Scope};
use restamp::model::watched::Watched;
use restamp::model::workload::Workload;
use serde_json::json;

const EVENTS: usize = 2_000;
const ROUNDS: usize = 5;

fn main() {
    let costs = [100, 1_000, 10_000].map(|workloads| {
        let mut index = filled(workloads);
        let best = (0..ROUNDS).map(|round| round_of_events(&mut index, workloads, round)).min();
        (workloads.to_string(), json!(best.unwrap()))
    });
    let figures: serde_json::Map<_, _> = costs.into_iter().collect();
    println!("{}", json!({"name": "event_cost", "ns_per_event": figures}));
}

/// Changes one config after another, each read by one workload; nanoseconds for each event and what follows from it.
fn round_of_events(index: &mut Index, workloads: usize, round: usize) -> u128 {
    let objects: Vec<Object> = (0..EVENTS).map(|event| config(event * 7919 % workloads, round + 2, event)).collect();
    let kind = Watched::Config(ConfigKind::ConfigMap);
    let begin = Instant::now();
    for object in objects {
        let work = index.apply(Event::Applied(kind, object), Timestamp::now());
        for id in &work.workloads {
            black_box(index.decide(id, Timestamp::now()));
        }
    }
    begin.elapsed().as_nanos() / EVENTS as u128
}

/// An index that has had its first lists, with a config for each workload.
fn filled(workloads: usize) -> Index {
    let keyring = Arc::new(Keyring::new(HashKey::new("k1", [7; 32].into()), Vec::new()));
    let mut index = Index::new(keyring, Policy::default(), "restamp-system");
    for kind in Scope::default().watched() {
        index.apply(Event::ListBegins(kind, Extent::Cluster), Timestamp::now());
        for number in 0..workloads {
            let object = match kind {
                Watched::Config(ConfigKind::ConfigMap) => config(number, 1, 0),
                Watched::Workload(WorkloadKind::Deployment) => deployment(number),
                _ => continue,
            };
            index.apply(Event::Listed(kind, Extent::Cluster, object), Timestamp::now());
        }
        index.apply(Event::ListEnds(kind, Extent::Cluster), Timestamp::now());
    }
    assert_eq!(index.workloads().filter(|tracked| tracked.record.is_some()).count(), workloads);
    index
}

fn config(number: usize, value: usize, version: usize) -> Object {
    let object = json!({"metadata": {"name": format!("settings-{number}"), "namespace": format!("team-{}", number % 20),
        "uid": format!("5f0f3c2e-0000-4000-8000-{number:012}"), "resourceVersion": format!("{}", value * 100_000 + version)},
        "data": {"VALUE": value.to_string(), "OTHER": "x"}});
    Object::Config(serde_json::from_value::<ConfigMapObject>(object).unwrap().config)
}

fn deployment(number: usize) -> Object {
    let name = format!("service-{number}");
    let object = json!({
        "metadata": {"name": name, "namespace": format!("team-{}", number % 20), "generation": 1, "resourceVersion": "1",
            "uid": format!("7a1d3c2e-0000-4000-8000-{number:012}"), "annotations": {"restamp.dev/auto-reload": "true"}},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "app", "image": "registry.example.com/team/service:1.2.3",
                "envFrom": [{"configMapRef": {"name": format!("settings-{number}")}}]}]}}}});
    let object: Deployment = serde_json::from_value(object).unwrap();
    Object::Workload(Box::new(Workload::of_deployment(&object).unwrap()))
}
