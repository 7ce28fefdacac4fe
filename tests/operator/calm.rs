//! Faults: between the operator and its API server, of the API server, and of the operator itself. After each, all is as
//! if nothing had been.

use std::time::Duration;

use crate::support::cluster::Cluster;
use crate::support::load::Load;
use crate::support::operator::Operator;
use crate::support::proxy::{Fault, Proxy};
use crate::support::waiting::{PATIENCE, poll};
use crate::support::{Turn, breaking_turn};

const SETTLE: Duration = Duration::from_secs(1);
const FLAGS: [&str; 6] =
    ["--settle", "1s", "--report-after", "2s", "--log", "info,kube_client=off,kube_runtime=off,kube_lease_manager=off"];

fn spawn(cluster: &Cluster, proxy: &Proxy, flags: &[&str]) -> Operator {
    Operator::spawn_at(proxy.kubeconfig(), cluster, &[&FLAGS, flags].concat())
}

async fn load(turn: &Turn, word: &str, seed: u64) -> Load {
    Load::prepare(turn.namespace(word).await, seed).await
}

/// Waits until everything that was told to be wrong was told to be over.
async fn all_is_told_to_be_over(operator: &Operator, faults: usize) {
    let pairs = [
        ("watch fails", "watch works again"),
        ("writes fail", "writes work again"),
        ("the Lease can't be asked", "the Lease can be asked"),
    ];
    let count = |text: &str| operator.log().lines().filter(|line| line.contains(text)).count();
    // The client tells no end of trouble with a watch on which nothing happens; that it is over shows by its silence.
    let told = async || pairs.iter().all(|(begin, end)| count(begin) == count(end));
    assert!(poll(PATIENCE * 2, told).await.is_ok(), "{}", operator.log());
    let log = operator.log();
    assert!(!log.contains("panicked") && !log.contains("defect"), "{log}");
    for (begin, _) in &pairs[1..] {
        assert!(count(begin) <= faults, "{begin} is told more than once for each fault:\n{log}");
    }
    let kinds: std::collections::BTreeSet<&str> =
        log.lines().filter_map(|line| line.split_once("watch fails").map(|_| line)).filter_map(kind_of).collect();
    for kind in kinds {
        let told = log.lines().filter(|line| line.contains("watch fails") && kind_of(line) == Some(kind)).count();
        assert!(told <= faults, "{kind} is told more than once for each fault:\n{log}");
    }
}

fn kind_of(line: &str) -> Option<&str> {
    line.split_once("kind=").map(|(_, rest)| rest.split(' ').next().unwrap_or_default())
}

#[tokio::test]
async fn whatever_happens_between_the_operator_and_its_api_server_all_is_well_afterwards() {
    const FAULTS: [(Fault, u64); 5] = [
        (Fault::Cut, 6),
        (Fault::Errors, 8),
        (Fault::Forbid("secrets"), 5),
        (Fault::Delay(Duration::from_secs(5)), 12),
        // Longer than any call may take, and than the Lease lasts.
        (Fault::Hang, 20),
    ];
    let turn = breaking_turn().await;
    let proxy = Proxy::start(turn.cluster(), "restamp", 1);
    let operator = spawn(turn.cluster(), &proxy, &[]).ready().await;
    let mut load = load(&turn, "faults", 1).await;
    let before = operator.memory();
    for (fault, seconds) in FAULTS {
        proxy.fail(fault);
        load.run(Duration::from_secs(seconds)).await;
        load.change_all().await;
        proxy.fail(Fault::Nothing);
        load.converges(&format!("{fault:?}"), SETTLE).await;
    }
    load.rolled_no_more_often_than_it_changed().await;
    all_is_told_to_be_over(&operator, FAULTS.len()).await;
    let after = operator.memory();
    assert!(after < before * 3 / 2, "it keeps {after} KiB; before the faults it was {before}");
    operator.stop().await;
}

#[tokio::test]
async fn what_reads_nothing_that_is_forbidden_rolls() {
    let turn = breaking_turn().await;
    let proxy = Proxy::start(turn.cluster(), "restamp", 2);
    let operator = spawn(turn.cluster(), &proxy, &[]).ready().await;
    let ns = turn.namespace("forbidden").await;
    ns.operator_has_caught_up().await;
    operator.stop().await;
    // From the beginning on, and for ever.
    proxy.fail(Fault::Forbid("daemonsets"));
    let operator = spawn(turn.cluster(), &proxy, &[]);
    ns.operator_has_caught_up().await;
    let told = operator.log().lines().filter(|line| line.contains("watch fails")).count();
    assert_eq!(told, 1, "{}", operator.log());
    operator.stop().await;
}

#[tokio::test]
async fn an_api_server_that_comes_back_with_its_history_forgotten_is_listed_anew() {
    let turn = breaking_turn().await;
    let cluster = turn.cluster();
    let proxy = Proxy::start(cluster, "restamp", 3);
    let operator = spawn(cluster, &proxy, &[]).ready().await;
    let mut load = load(&turn, "restart", 3).await;

    cluster.kill("kube-apiserver");
    tokio::time::sleep(Duration::from_secs(3)).await;
    cluster.restart("kube-apiserver");
    load.run(Duration::from_secs(3)).await;
    load.change_all().await;
    load.converges("API server killed and restarted", SETTLE).await;

    // The watches stand still while everything changes, and what they have missed is compacted away.
    proxy.fail(Fault::Hang);
    load.run(Duration::from_secs(3)).await;
    load.change_all().await;
    cluster.compact();
    cluster.restart("kube-apiserver");
    proxy.fail(Fault::Nothing);
    load.converges("etcd compacted", SETTLE).await;

    load.rolled_no_more_often_than_it_changed().await;
    all_is_told_to_be_over(&operator, 2).await;
    operator.stop().await;
}

#[tokio::test]
async fn without_its_custom_resource_it_goes_on_reloading_and_writes_its_records_again() {
    let turn = breaking_turn().await;
    let cluster = turn.cluster();
    let proxy = Proxy::start(cluster, "restamp", 4);
    let operator = spawn(cluster, &proxy, &[]).ready().await;
    let mut load = load(&turn, "crd", 4).await;

    cluster.kubectl(&["delete", "crd", "driftreports.restamp.dev"]);
    load.run(Duration::from_secs(4)).await;
    load.change_all().await;
    load.pods_are_replaced().await;
    cluster.install_crd();
    load.converges("custom resource deleted", SETTLE).await;
    load.rolled_no_more_often_than_it_changed().await;

    // What was written again is a whole record: an operator that starts with it rolls nothing, and misses nothing.
    operator.stop().await;
    load.change_all().await;
    let operator = spawn(cluster, &proxy, &[]).ready().await;
    load.converges("operator away", SETTLE).await;
    load.rolled_no_more_often_than_it_changed().await;
    operator.stop().await;
}

#[tokio::test]
async fn an_operator_that_is_killed_again_and_again_misses_nothing_and_rolls_nothing_twice() {
    const KILLS: usize = 50;
    let turn = breaking_turn().await;
    let cluster = turn.cluster();
    let proxy = Proxy::start(cluster, "restamp", 5);
    let operator = spawn(cluster, &proxy, &["--lease-seconds", "3"]).ready().await;
    let mut load = load(&turn, "killed", 5).await;
    operator.kill();
    let mut dice = fastrand::Rng::with_seed(5);
    for _ in 0..KILLS {
        turn.drop_lease();
        let operator = spawn(cluster, &proxy, &["--lease-seconds", "3"]);
        load.run(Duration::from_millis(dice.u64(200..1_500))).await;
        operator.kill();
    }
    load.change_all().await;
    turn.drop_lease();
    let operator = spawn(cluster, &proxy, &["--lease-seconds", "3"]).ready().await;
    load.converges("operator killed 50 times", SETTLE).await;
    load.rolled_no_more_often_than_it_changed().await;
    operator.stop().await;
}

#[tokio::test]
async fn it_stops_at_once_whatever_it_is_at_and_the_next_one_goes_on() {
    // Nobody would wait for this lease to run out.
    const LEASE: [&str; 2] = ["--lease-seconds", "3600"];
    let turn = breaking_turn().await;
    let cluster = turn.cluster();
    let proxy = Proxy::start(cluster, "restamp", 6);
    let mut operator = spawn(cluster, &proxy, &LEASE).ready().await;
    let mut load = load(&turn, "stopped", 6).await;
    for milliseconds in [300, 900, 1_100, 1_500] {
        load.change_all().await;
        load.run(Duration::from_millis(milliseconds)).await;
        operator.stop().await;
        operator = spawn(cluster, &proxy, &LEASE).ready().await;
    }
    load.change_all().await;
    load.converges("operator stopped under load", SETTLE).await;
    load.rolled_no_more_often_than_it_changed().await;

    load.change_all().await;
    proxy.fail(Fault::Hang);
    load.run(Duration::from_secs(2)).await;
    operator.stop().await;
    let starting = spawn(cluster, &proxy, &LEASE);
    starting.listens().await;
    starting.stop().await;
    proxy.fail(Fault::Nothing);
    // The lease could not be given back.
    turn.drop_lease();
    let operator = spawn(cluster, &proxy, &LEASE).ready().await;
    load.converges("operator stopped while the API server hung", SETTLE).await;
    load.rolled_no_more_often_than_it_changed().await;
    operator.stop().await;
}
