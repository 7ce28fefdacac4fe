//! Many workloads whose configs change while something is wrong, and what must be true of them once it is over.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::kind::{CONFIG_MAP, DEPLOYMENT, DRIFT_REPORT, POD, SECRET};
use super::manifests::{config_map, deployment, secret};
use super::namespace::{Namespace, is_rolled_out, report_name, state};

const WORKLOADS: usize = 12;

/// The workloads, and what was done to their configs.
pub struct Load {
    pub ns: Namespace,
    dice: fastrand::Rng,
    workloads: Vec<Changed>,
    values: usize,
    /// The pods that started before the last change of what they read.
    outdated: BTreeSet<String>,
}

struct Changed {
    /// How often its config changed.
    times: i64,
    /// The workload's generation before that.
    generation: i64,
}

impl Load {
    /// Waits until a running operator has adopted them all, and tells of a stale key in what they all read.
    pub async fn prepare(ns: Namespace, seed: u64) -> Self {
        let mut manifests = vec![secret("s", &[("KEPT", "1"), ("REMOVED", "1")])];
        for number in 0..WORKLOADS {
            let (workload, config) = names(number);
            manifests.push(config_map(&config, &[("K", "0")]));
            manifests.push(deployment(&workload).env_from_secret("s").env_from_config_map(&config).into());
        }
        ns.apply(&manifests);
        ns.apply(&[secret("s", &[("KEPT", "1")])]);
        let mut load =
            Self { ns, dice: fastrand::Rng::with_seed(seed), workloads: vec![], values: 0, outdated: BTreeSet::new() };
        load.until_all_is_well().await;
        for number in 0..WORKLOADS {
            let generation = load.generation(number).await;
            load.workloads.push(Changed { times: 0, generation });
        }
        load
    }

    /// Changes configs at random for so long, and what is no change for anybody.
    pub async fn run(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let number = self.dice.usize(..WORKLOADS);
            self.change(number).await;
            let (workload, config) = names(self.dice.usize(..WORKLOADS));
            let note = format!("note-{}", self.values);
            // An annotation would count as a new generation, by which rollouts are counted.
            self.ns.patch(DEPLOYMENT, &workload, json!({"metadata": {"labels": {"note": note}}})).await;
            self.ns.annotate(CONFIG_MAP, &config, &note).await;
            self.ns.annotate(SECRET, "s", &note).await;
            let pause = Duration::from_millis(self.dice.u64(50..300));
            tokio::time::sleep(pause).await;
        }
    }

    /// Changes every config once more. From now on no pod that is there may stay.
    pub async fn change_all(&mut self) {
        let pods = self.ns.list(POD).await;
        self.outdated = pods.iter().filter(|pod| is_ours(pod)).map(|pod| uid(pod).to_owned()).collect();
        for number in 0..WORKLOADS {
            self.change(number).await;
        }
    }

    async fn change(&mut self, number: usize) {
        self.values += 1;
        self.workloads[number].times += 1;
        let patch = json!({"data": {"K": self.values.to_string()}});
        self.ns.patch(CONFIG_MAP, &names(number).1, patch).await;
    }

    /// Waits until no pod runs on an old value, whatever the reports say.
    pub async fn pods_are_replaced(&self) {
        let is_new = |pod: &Value| !self.outdated.contains(uid(pod));
        self.ns.until_all(POD, "to be none that read an old value", |pods| pods.iter().all(is_new)).await;
    }

    /// Waits until all is as it should be, and says how long that took.
    pub async fn converges(&mut self, fault: &str, settle: Duration) {
        /// Of an object, its jitter included; that of a watch is shorter.
        const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);
        let begin = Instant::now();
        self.until_all_is_well().await;
        let took = begin.elapsed();
        let multiple = took.as_secs_f64() / (settle + LONGEST_BACK_OFF).as_secs_f64();
        // Past what the test harness captures: a figure is for people.
        let line = format!("calm: {fault}: converged in {:.1} s, {multiple:.2} of its limit\n", took.as_secs_f64());
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }

    /// No workload may have rolled more often than its config changed, or not at all.
    pub async fn rolled_no_more_often_than_it_changed(&mut self) {
        self.ns.operator_has_caught_up().await;
        for number in 0..WORKLOADS {
            let Changed { times, generation } = self.workloads[number];
            let rolled = self.generation(number).await - generation;
            assert!(
                (i64::from(times > 0)..=times).contains(&rolled),
                "{} rolled {rolled} times for {times} changes",
                names(number).0
            );
        }
    }

    async fn until_all_is_well(&self) {
        let ns = &self.ns;
        self.pods_are_replaced().await;
        ns.until_all(DEPLOYMENT, "to be rolled out", |all| {
            let all: Vec<_> = all.iter().filter(|workload| is_ours(workload)).collect();
            all.len() == WORKLOADS && all.iter().all(|workload| is_rolled_out(workload))
        })
        .await;
        let expected: BTreeSet<String> =
            (0..WORKLOADS).map(|number| report_name(DEPLOYMENT, &names(number).0)).collect();
        ns.until_all(DRIFT_REPORT, "to be right", |reports| {
            let is_known = |report: &&Value| expected.contains(report["metadata"]["name"].as_str().unwrap());
            let known: Vec<_> = reports.iter().filter(is_known).collect();
            let about_secret = reports.iter().find(|report| report["metadata"]["name"] == "secret-s");
            known.len() == WORKLOADS
                && known.iter().all(|report| state(report) == "Current" && report["status"]["findings"].is_null())
                && about_secret.is_some_and(|report| report["status"]["staleKeys"] == json!(["REMOVED"]))
        })
        .await;
    }

    async fn generation(&self, number: usize) -> i64 {
        let workload = self.ns.get(DEPLOYMENT, &names(number).0).await.unwrap();
        workload["metadata"]["generation"].as_i64().unwrap()
    }
}

/// A workload and its config.
fn names(number: usize) -> (String, String) {
    (format!("w-{number}"), format!("c-{number}"))
}

/// Whether it is one of the workloads or a pod of one, not of a witness.
fn is_ours(object: &Value) -> bool {
    object["metadata"]["name"].as_str().unwrap().starts_with("w-")
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap()
}
