//! How a change gets to many workloads: within a budget, in an order, and no further once it fails.

use serde_json::{Value, json};

use crate::support::kind::{CONFIG_MAP, DEPLOYMENT, DRIFT_REPORT, Kind, POD};
use crate::support::manifests::{config_map, deployment};
use crate::support::namespace::{Namespace, stamp, state};
use crate::support::{Flag, turn};

const LIMIT_RANGE: Kind = Kind { group: "", version: "v1", name: "LimitRange", plural: "limitranges" };
const MANY: usize = 200;
const BUDGET: usize = 25;
const FLAGS: [Flag<'static>; 2] =
    [("--max-concurrent-rollouts", "25"), ("--max-concurrent-rollouts-per-namespace", "0")];

/// One pod, reading `c`.
fn workload(name: &str) -> Value {
    let mut workload = deployment(name).env_from_config_map("c").build();
    workload["spec"]["replicas"] = json!(1);
    workload
}

fn with_annotation(mut workload: Value, name: &str, value: &str) -> Value {
    workload["metadata"]["annotations"][name] = json!(value);
    workload
}

/// Whatever starts from now on crashes.
async fn break_new_pods(ns: &Namespace) {
    ns.apply(&[json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "crash"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "7"}, "defaultRequest": {"cpu": "1m"}}]},
    })]);
    ns.until(LIMIT_RANGE, "crash", "to exist", |_| true).await;
    // The admission plugin may not know of it yet.
    let probe = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
        "spec": {"containers": [{"name": "app", "image": "localhost/app:1"}], "terminationGracePeriodSeconds": 0}});
    let limited = |pods: &[Value]| {
        pods.iter().any(|pod| {
            pod["metadata"]["name"] == "probe" && pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "7"
        })
    };
    loop {
        ns.apply(std::slice::from_ref(&probe));
        let is_limited = limited(&ns.list(POD).await);
        ns.kubectl(&["delete", "pod", "probe", "--wait=true"]);
        if is_limited {
            return;
        }
    }
}

async fn mend_new_pods(ns: &Namespace) {
    ns.kubectl(&["delete", "limitrange", "crash"]);
}

async fn all_are(ns: &Namespace, many: usize, what: &str) {
    let is = |reports: &[Value]| reports.iter().filter(|report| state(report) == what).count() >= many;
    ns.until_all(DRIFT_REPORT, &format!("to say of {many} workloads that they are {what}"), is).await;
}

fn name_of_subject(report: &Value) -> String {
    report["spec"]["subject"]["name"].as_str().unwrap().to_owned()
}

async fn stamped(ns: &Namespace) -> Vec<String> {
    let name = |workload: &Value| workload["metadata"]["name"].as_str().unwrap().to_owned();
    ns.list(DEPLOYMENT).await.iter().filter(|workload| !stamp(workload).is_empty()).map(name).collect()
}

#[tokio::test]
async fn a_bad_change_stops_within_the_budget_and_the_fix_reaches_all() {
    let turn = turn().await;
    let ns = turn.namespace("many").await;
    let operator = turn.operator(&FLAGS).await;
    ns.apply(&[config_map("c", &[("K", "good")])]);
    let names: Vec<String> = (0..MANY).map(|number| format!("w{number}")).collect();
    ns.create_as_applied(DEPLOYMENT, names.iter().map(|name| workload(name))).await;
    all_are(&ns, MANY, "Current").await;
    ns.until_all(DEPLOYMENT, "to be ready", |all| all.iter().all(|it| it["status"]["readyReplicas"] == 1)).await;

    break_new_pods(&ns).await;
    ns.apply(&[config_map("c", &[("K", "bad")])]);
    // A container that crashes has failed after 30 s.
    all_are(&ns, BUDGET, "RollingOut").await;
    let halted = |report: &Value| report["status"]["findings"][0]["type"] == "ChangeHalted";
    let report = ns.until(DRIFT_REPORT, "configmap-c", "to say that the change is halted", halted).await;
    let message = report["status"]["findings"][0]["message"].as_str().unwrap();
    assert!(message.contains(" of K, seen at ") && message.contains("failed in Deployment/w"), "{message}");
    assert_eq!(report["status"]["findings"][0]["manager"], "kubectl-client-side-apply");
    all_are(&ns, MANY - BUDGET - 2, "Held").await;
    let touched = stamped(&ns).await;
    assert!(touched.len() <= BUDGET + 2, "{} were touched", touched.len());
    let spared = names.iter().find(|name| !touched.contains(name)).unwrap();
    let held = ns.events(DEPLOYMENT, spared, "ReloadHeld").await;
    assert!(held.len() == 1 && held[0].contains("of ConfigMap c failed in other workloads"), "{held:?}");
    assert_eq!(ns.events(CONFIG_MAP, "c", "ChangeHalted").await.len(), 1);
    let (_, metrics) = operator.get("/metrics").unwrap();
    let held = format!("restamp_held_workloads{{reason=\"ChangeHalted\"}} {}", MANY - touched.len());
    assert!(metrics.contains(&held), "{metrics}");

    // Another leader knows as much.
    operator.kill();
    let _operator = turn.operator(&FLAGS).await;
    mend_new_pods(&ns).await;
    ns.operator_has_caught_up().await;
    let is_ours = |name: &String| name.starts_with('w') && !name.starts_with("witness");
    assert_eq!(stamped(&ns).await.into_iter().filter(is_ours).collect::<Vec<_>>(), touched);

    ns.apply(&[config_map("c", &[("K", "fixed")])]);
    // A kubelet starts what crashed again, which reads the fix then; here, another pod does.
    let crashes =
        |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff";
    for pod in ns.list(POD).await.iter().filter(|pod| crashes(pod)) {
        ns.kubectl(&["delete", "pod", pod["metadata"]["name"].as_str().unwrap(), "--wait=false", "--ignore-not-found"]);
    }
    // Step by step: a slow machine is not what this is about.
    let of_outcome = |report: &Value| {
        is_ours(&name_of_subject(report)) && report["status"]["reload"]["record"]["stamp"]["outcome"] == "Complete"
    };
    for many in (0..=MANY - touched.len()).step_by(10) {
        let are = |reports: &[Value]| reports.iter().filter(|report| of_outcome(report)).count() >= many;
        ns.until_all(DRIFT_REPORT, &format!("to say of {many} workloads that they were rolled"), are).await;
    }
    for many in (0..=MANY).step_by(10) {
        let are = |reports: &[Value]| {
            let are = |report: &&Value| is_ours(&name_of_subject(report)) && state(report) == "Current";
            reports.iter().filter(are).count() >= many
        };
        ns.until_all(DRIFT_REPORT, &format!("to say of {many} workloads that they have read the fix"), are).await;
    }
    ns.until(DRIFT_REPORT, "configmap-c", "to have no findings", |report| report["status"]["findings"].is_null()).await;
}

#[tokio::test]
async fn a_canary_that_fails_keeps_the_change_from_all_others_until_it_is_resumed() {
    let turn = turn().await;
    let ns = turn.namespace("canary").await;
    let _operator = turn.operator(&FLAGS).await;
    let canary = with_annotation(workload("canary"), "restamp.dev/canary", "true");
    let late = with_annotation(workload("late"), "restamp.dev/wave", "1");
    ns.apply(&[config_map("c", &[("K", "good")]), canary, workload("w"), late]);
    all_are(&ns, 3, "Current").await;
    ns.until_all(DEPLOYMENT, "to be ready", |all| all.iter().all(|it| it["status"]["readyReplicas"] == 1)).await;

    break_new_pods(&ns).await;
    ns.apply(&[config_map("c", &[("K", "bad")])]);
    let waits = |report: &Value| report["status"]["reload"]["message"].as_str().unwrap_or_default().contains("canary");
    ns.until(DRIFT_REPORT, "deployment-w", "to wait for the canary", waits).await;
    all_are(&ns, 2, "Held").await;
    assert_eq!(stamped(&ns).await, ["canary"]);

    let report = ns.get(DRIFT_REPORT, "deployment-w").await.unwrap();
    let message = report["status"]["reload"]["message"].as_str().unwrap();
    let change = message.strip_prefix("change ").unwrap().split(' ').next().unwrap();
    mend_new_pods(&ns).await;
    ns.kubectl(&["annotate", "configmap", "c", &format!("restamp.dev/resume={change}")]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    ns.reloaded(DEPLOYMENT, "late", "").await;
}

#[tokio::test]
async fn waves_follow_one_another() {
    let turn = turn().await;
    let ns = turn.namespace("waves").await;
    let _operator = turn.operator(&FLAGS).await;
    let late = |name| with_annotation(workload(name), "restamp.dev/wave", "1");
    ns.apply(&[config_map("c", &[("K", "1")]), workload("first"), late("a"), late("b")]);
    all_are(&ns, 3, "Current").await;

    // No pod more than these three, so that the first wave does not end.
    ns.kubectl(&["create", "quota", "three", "--hard=pods=3"]);
    let quota = Kind { group: "", version: "v1", name: "ResourceQuota", plural: "resourcequotas" };
    ns.until(quota, "three", "to count", |quota| quota["status"]["used"]["pods"] == "3").await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    let waits = |report: &Value| {
        let message = report["status"]["reload"]["message"].as_str().unwrap_or_default();
        message.contains("until the change has ended for Deployment first")
    };
    ns.until(DRIFT_REPORT, "deployment-a", "to wait for the wave before", waits).await;
    ns.until(DRIFT_REPORT, "deployment-b", "to wait for the wave before", waits).await;
    ns.until(DRIFT_REPORT, "deployment-first", "to roll out", |report| state(report) == "RollingOut").await;
    assert_eq!(stamped(&ns).await, ["first"]);

    ns.kubectl(&["delete", "quota", "three"]);
    for name in ["first", "a", "b"] {
        ns.reloaded(DEPLOYMENT, name, "").await;
    }
}

#[tokio::test]
async fn what_is_due_rolls_once_it_is_approved_and_nothing_more() {
    let turn = turn().await;
    let ns = turn.namespace("approve").await;
    let _operator = turn.operator(&FLAGS).await;
    ns.apply(&[config_map("c", &[("K", "1")]), with_annotation(workload("w"), "restamp.dev/auto-reload", "notify")]);
    ns.adopted(DEPLOYMENT, "w").await;

    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.until(DRIFT_REPORT, "deployment-w", "to be held", |report| state(report) == "Held").await;
    let held = ns.events(DEPLOYMENT, "w", "ReloadHeld").await;
    assert!(held.len() == 1 && held[0].contains("it waits for approval"), "{held:?}");
    let table = ns.restamp(&["changes"]);
    assert!(table.contains("ConfigMap/c") && table.contains("HELD"), "{table}");

    let said = ns.restamp(&["approve", "deployment/w"]);
    assert!(said.starts_with("Deployment/w in namespace ") && said.contains(": approved "), "{said}");
    let first = ns.reloaded(DEPLOYMENT, "w", "").await;
    // The approval is of one state, and not of the next.
    ns.apply(&[config_map("c", &[("K", "3")])]);
    ns.until(DRIFT_REPORT, "deployment-w", "to be held again", |report| state(report) == "Held").await;
    ns.operator_has_caught_up().await;
    assert_eq!(stamp(&ns.get(DEPLOYMENT, "w").await.unwrap()), stamp(&first));
}

#[tokio::test]
async fn a_suspension_of_the_workload_the_namespace_or_the_cluster_holds_until_it_is_gone() {
    let turn = turn().await;
    let ns = turn.namespace("suspend").await;
    let _operator = turn.operator(&FLAGS).await;
    ns.apply(&[config_map("c", &[("K", "1")]), workload("w")]);
    ns.adopted(DEPLOYMENT, "w").await;
    let name = ns.name().to_owned();
    let places: [&[&str]; 3] = [
        &["annotate", "deployment", "w"],
        &["annotate", "namespace", &name],
        &["annotate", "configmap", "restamp-scope", "--namespace=restamp-system"],
    ];
    let mut before = String::new();
    for (number, place) in places.into_iter().enumerate() {
        ns.kubectl(&[place, &["restamp.dev/suspend=true"]].concat());
        ns.apply(&[config_map("c", &[("K", &format!("changed-{number}"))])]);
        let suspended = |report: &Value| {
            report["status"]["reload"]["message"].as_str().unwrap_or_default().starts_with("suspended")
        };
        ns.until(DRIFT_REPORT, "deployment-w", "to be suspended", suspended).await;
        assert_eq!(stamp(&ns.get(DEPLOYMENT, "w").await.unwrap()), before);
        ns.kubectl(&[place, &["restamp.dev/suspend-"]].concat());
        before = stamp(&ns.reloaded(DEPLOYMENT, "w", &before).await).to_owned();
    }
}

#[tokio::test]
async fn a_window_that_is_shut_is_waited_for_and_one_that_does_not_parse_holds_nothing() {
    let turn = turn().await;
    let ns = turn.namespace("window").await;
    let operator = turn.operator(&FLAGS).await;
    let with_window = |name, window| with_annotation(workload(name), "restamp.dev/window", window);
    // One of the two is shut now, whatever the time is: their days are apart.
    let (one, other) = ("Mon,Wed,Fri,Sun 00:00-24:00", "Tue,Thu,Sat 00:00-24:00");
    ns.apply(&[
        config_map("c", &[("K", "1")]),
        with_window("a", one),
        with_window("b", other),
        with_window("x", "at night"),
    ]);
    all_are(&ns, 3, "Current").await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "x", "").await;
    let problems = ns.events(DEPLOYMENT, "x", "InvalidAnnotation").await;
    assert!(problems.len() == 1 && problems[0].contains("restamp.dev/window"), "{problems:?}");
    let waits = |reports: &[Value]| {
        let waits = |report: &&Value| {
            report["status"]["reload"]["message"].as_str().unwrap_or_default().starts_with("waits for its window")
        };
        reports.iter().filter(waits).count() == 1
    };
    ns.until_all(DRIFT_REPORT, "to say of one workload that it waits for its window", waits).await;
    let (_, metrics) = operator.get("/metrics").unwrap();
    assert!(metrics.contains("restamp_window_opens_timestamp_seconds{kind=\"Deployment\""), "{metrics}");
}
