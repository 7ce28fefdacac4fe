//! `restamp explain` against an API server that answers as it is told.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, reason = "a test may panic")]

mod api_server;

use std::process::Output;

use rstest::rstest;
use serde_json::{Value, json};

use api_server::{ApiServer, list};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/ns/deployments/w";
const REPORT: &str = "/apis/restamp.dev/v1alpha1/namespaces/ns/driftreports/deployment-w";
const SECRETS: &str = "/api/v1/namespaces/ns/secrets?&fieldSelector=type%21%3Dhelm.sh%2Frelease.v1&limit=500";
const SECRET: &str = "/api/v1/namespaces/ns/secrets/s";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/restamp-system/leases/restamp-leader";
const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/driftreports.restamp.dev";
const SCOPE: &str = "/api/v1/namespaces/restamp-system/configmaps/restamp-scope";

fn deployment(annotation: &str) -> Value {
    let container = json!({"name": "app", "envFrom": [{"secretRef": {"name": "s"}}]});
    json!({"metadata": {"name": "w", "namespace": "ns", "uid": "u", "annotations": {"restamp.dev/auto-reload": annotation}},
        "spec": {"selector": {}, "template": {"spec": {"containers": [container]}}}})
}

fn secret() -> Value {
    json!({"metadata": {"name": "s", "namespace": "ns"}, "data": {"K": "aHVudGVyMg=="}})
}

fn report() -> Value {
    json!({"metadata": {"name": "deployment-w", "namespace": "ns", "ownerReferences":
            [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "u"}]},
        "spec": {"subject": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}},
        "status": {"reload": {"state": "Current", "instance": "restamp-system",
            "lastReload": {"time": "2026-11-30T12:00:00Z", "cause": "key K of Secret s changed"},
            "record": {"entries": [{"config": "Secret/s", "lastChanged": "2026-11-30T11:59:50Z"}]}}}})
}

fn scope(namespaces: &str) -> Value {
    json!({"metadata": {"name": "restamp-scope"}, "data": {"version": "0.1.0", "namespaces": namespaces,
        "excludedNamespaces": "", "namespaceSelector": "", "mode": "live"}})
}

fn lease(holder: Value) -> Value {
    json!({"metadata": {"name": "restamp-leader"}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15,
        "renewTime": "2126-11-30T12:00:00.000000Z"}})
}

fn crd(version: &str) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name":
        "driftreports.restamp.dev", "annotations": {"restamp.dev/version": version}}})
}

/// A cluster with an opted-in workload and what it reads, and an operator that keeps no record of it.
fn cluster() -> ApiServer {
    let server =
        ApiServer::default().answer(DEPLOYMENT, 200, deployment("true")).answer(SECRETS, 200, list(&[secret()], None));
    let server = server.answer(SCOPE, 200, scope("")).answer(LEASE, 200, lease(json!("pod")));
    server.answer(CRD, 200, crd("0.1.0"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn explained(server: ApiServer) -> Value {
    let explain = server.run(&["explain", "deploy/w", "-n", "ns", "-o", "json"]);
    assert_eq!((explain.status.code(), text(&explain.stderr)), (Some(0), ""));
    serde_json::from_slice(&explain.stdout).unwrap()
}

#[test]
fn a_workload_is_explained_with_its_record() {
    let explained = explained(cluster().answer(REPORT, 200, report()));
    let reading = json!({"container": "app", "config": "Secret/s", "key": "K", "via": "envFrom", "refresh": "AtStart",
        "as": "K", "existence": "Live", "rolls": "Yes", "reason": "OptedIn",
        "message": "restamp.dev/auto-reload is \"true\""});
    let expected = json!({
        "subject": {"kind": "Deployment", "namespace": "ns", "name": "w"},
        "rolls": "Yes", "reason": "OptedIn", "message": "restamp.dev/auto-reload is \"true\"",
        "problems": [], "missing": [], "readings": [reading],
        "reload": {"state": "Current", "message": "", "instance": "restamp-system",
            "lastReload": {"time": "2026-11-30T12:00:00Z", "cause": "key K of Secret s changed"},
            "configs": [{"config": "Secret/s", "lastChanged": "2026-11-30T11:59:50Z", "absentSince": null, "open": null}]},
        "noReload": null, "noDrift": null, "notCompared": null, "podsStay": null, "templateOf": null, "source": null,
        "operator": {"namespace": "restamp-system", "version": "0.1.0", "running": "Yes", "remarks": []},
    });
    assert_eq!(explained, expected);
}

#[test]
fn in_a_table_it_is_told_what_was_asked() {
    let explain = cluster().answer(REPORT, 200, report()).run(&["explain", "deploy/w", "-n", "ns"]);
    let table = "\
Deployment ns/w
Rolls when its config changes: yes; restamp.dev/auto-reload is \"true\"

CONTAINER   CONFIG     KEY   VIA       REFRESH   AS   ROLLS   WHY
app         Secret/s   K     envFrom   AtStart   K    yes     as above

Reload: Current
Record kept by the restamp in namespace restamp-system
Last reload: ";
    assert!(text(&explain.stdout).starts_with(table), "{}", text(&explain.stdout));
}

#[rstest]
#[case::no_report(cluster(), "NoReport", "no report yet: the operator runs and watches it")]
#[case::no_operator(cluster().refuse(SCOPE, 404, "NotFound").refuse(LEASE, 404, "NotFound"), "NoReport",
    "no report yet: no operator was ever started in namespace restamp-system")]
#[case::stopped(cluster().answer(LEASE, 200, lease(Value::Null)), "NoReport", "no report yet: it was stopped: nobody holds")]
#[case::out_of_scope(cluster().answer(SCOPE, 200, scope("a,b")), "NotWatched", "nothing rolls it")]
#[case::in_scope(cluster().answer(SCOPE, 200, scope("ns")), "NoReport", "no report yet: the operator runs")]
#[case::hidden(cluster().refuse(REPORT, 403, "Forbidden"), "Forbidden", "grant get on driftreports.restamp.dev")]
#[case::not_installed(
    cluster().answer(REPORT, 404, json!("404 page not found")), "NotInstalled", "is restamp installed?")]
#[case::opted_out(
    cluster().answer(DEPLOYMENT, 200, deployment("false")), "NotWatched", "nothing rolls it")]
fn where_there_is_no_record_it_is_said_why(#[case] server: ApiServer, #[case] reason: &str, #[case] says: &str) {
    let no_reload = explained(server)["noReload"].clone();
    assert_eq!(no_reload["reason"], reason);
    assert!(no_reload["message"].as_str().unwrap().contains(says), "{no_reload}");
}

#[test]
fn the_namespaces_annotation_counts_where_the_workload_says_nothing() {
    let mut silent = deployment("");
    silent["metadata"]["annotations"] = json!({});
    let namespace = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {"name": "ns", "annotations": {"restamp.dev/auto-reload": "true"}}});
    let server = || cluster().answer(DEPLOYMENT, 200, silent.clone());
    let reason = |server| explained(server)["reason"].clone();
    assert_eq!(reason(server().answer("/api/v1/namespaces/ns", 200, namespace)), "ByNamespace");
    assert_eq!(reason(server().refuse("/api/v1/namespaces/ns", 403, "Forbidden")), "NamespaceUnknown");
}

#[test]
fn what_may_not_be_listed_is_read_by_itself() {
    let forbidden = || cluster().refuse(SECRETS, 403, "Forbidden");
    let readings = |server| explained(server)["readings"].clone();
    assert_eq!(readings(forbidden().answer(SECRET, 200, secret()))[0]["key"], "K");
    let unknown = readings(forbidden().refuse(SECRET, 403, "Forbidden"));
    assert_eq!((&unknown[0]["existence"], &unknown[0]["rolls"]), (&json!("Unknown"), &json!("Unknown")));
}

#[test]
fn a_config_is_explained_with_its_consumers() {
    let workloads = "/apis/apps/v1/namespaces/ns/deployments?&limit=500";
    let explain = cluster()
        .answer(SECRET, 200, secret())
        .answer(workloads, 200, list(&[deployment("true")], None))
        .refuse("/apis/batch/v1/namespaces/ns/jobs?&limit=500", 403, "Forbidden")
        .run(&["explain", "secret/s", "-n", "ns", "-o", "json"]);
    let warning = "warning: listing Job objects is forbidden, so the consumers of keys are not complete; grant list on \
                   them to change that\n";
    assert_eq!(text(&explain.stderr), warning);
    let explained: Value = serde_json::from_slice(&explain.stdout).unwrap();
    assert_eq!(explained["keys"][0]["consumers"][0]["workload"], "Deployment/w");
    assert_eq!((&explained["baseline"], &explained["managers"]), (&json!("None"), &json!([])));
}

#[rstest]
#[case::not_there(ApiServer::default(), "deploy/w", "Deployment ns/w does not exist; see kubectl get deployments")]
#[case::hidden(ApiServer::default().refuse(DEPLOYMENT, 403, "Forbidden"), "deploy/w",
    "you may not read Deployment ns/w; grant get on deployments in namespace ns")]
#[case::a_config_that_is_not_there(
    ApiServer::default(),
    "secret/s",
    "Secret ns/s does not exist; see kubectl get secrets"
)]
#[case::nobody(ApiServer::default().refuse(DEPLOYMENT, 401, "Unauthorized"), "deploy/w", "log in again")]
#[case::nonsense(ApiServer::default().answer(SECRET, 200, json!({"metadata": {"name": "s"}, "data": {"K": "hunter2!"}})),
    "secret/s", "cannot read the API server's Secret ns/s")]
fn what_cannot_be_explained_is_one_sentence(#[case] server: ApiServer, #[case] object: &str, #[case] says: &str) {
    let explain: Output = server.run(&["explain", object, "-n", "ns"]);
    let error = text(&explain.stderr);
    assert_eq!((explain.status.code(), text(&explain.stdout)), (Some(1), ""), "{error}");
    assert!(error.starts_with("error: ") && error.lines().count() == 1, "{error}");
    assert!(error.contains(says) && !error.contains("hunter2"), "{error}");
}

/// An API server with two kinds beside the built-in ones; one name is that of both.
fn with_kinds() -> ApiServer {
    let resource = |plural: &str, kind: &str, short: &str, scope: &str| {
        json!({"resource": plural, "responseKind": {"kind": kind}, "scope": scope, "singularResource": kind.to_lowercase(),
            "verbs": ["get"], "shortNames": [short]})
    };
    let group = |name: &str, resources: Vec<Value>| json!({"metadata": {"name": name}, "versions": [{"version": "v1", "resources": resources}]});
    let groups = [
        group("argoproj.io", vec![resource("rollouts", "Rollout", "ro", "Namespaced")]),
        group("a.example", vec![resource("thingies", "Thing", "th", "Namespaced")]),
        group(
            "b.example",
            vec![resource("things", "Thing", "bth", "Namespaced"), resource("zones", "Zone", "z", "Cluster")],
        ),
    ];
    let discovery = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": groups});
    let container = json!({"name": "app", "envFrom": [{"secretRef": {"name": "s"}}]});
    let thing = json!({"metadata": {"name": "w", "namespace": "ns", "uid": "u", "annotations":
        {"restamp.dev/auto-reload": "true"}}, "spec": {"template": {"spec": {"containers": [container]}}}});
    let bare = json!({"metadata": {"name": "bare", "namespace": "ns"}, "spec": {"replicas": 1}});
    let server =
        cluster().answer("/apis", 200, discovery).answer("/apis/a.example/v1/namespaces/ns/thingies/w", 200, thing);
    let odd = json!({"metadata": {"name": "odd", "namespace": "ns"}, "spec": {"template": {"spec": {"containers": "hunter2"}}}});
    let server = server.answer("/apis/a.example/v1/namespaces/ns/thingies/odd", 200, odd);
    server.answer("/apis/a.example/v1/namespaces/ns/thingies/bare", 200, bare)
}

#[rstest]
#[case::by_its_short_name("th/w")]
#[case::by_its_plural("THINGIES/w")]
#[case::by_its_group("thing.a.example/w")]
#[case::by_its_version("thingies.v1.a.example/w")]
fn a_custom_kind_is_found_by_any_of_its_names(#[case] object: &str) {
    let explain = with_kinds().run(&["explain", object, "-n", "ns", "-o", "json"]);
    let explained: Value = serde_json::from_slice(&explain.stdout).unwrap();
    assert_eq!(explained["subject"], json!({"kind": "Thing", "namespace": "ns", "name": "w"}));
    assert_eq!((&explained["reason"], &explained["readings"][0]["key"]), (&json!("KindNotWatched"), &json!("K")));
    assert_eq!(explained["message"], "the operator runs without --workload-kind a.example/v1/Thing");
}

#[test]
fn whether_a_custom_kind_rolls_is_unknown_where_the_flags_are_hidden() {
    let explain = with_kinds().refuse(SCOPE, 403, "Forbidden").run(&["explain", "th/w", "-n", "ns", "-o", "json"]);
    let explained: Value = serde_json::from_slice(&explain.stdout).unwrap();
    assert_eq!((&explained["rolls"], &explained["reason"]), (&json!("Unknown"), &json!("KindUnheard")));
    assert_eq!(explained["readings"][0]["rolls"], "Unknown");
}

#[rstest]
#[case::no_such_kind("gadget/w", "\"gadget\" is no kind that can be explained; it can be configmap, secret")]
#[case::of_the_cluster("zone/w", "\"zone\" is no kind that can be explained")]
#[case::two_of_one_name(
    "thing/w",
    "\"thing\" is the name of several kinds; choose one: thingies.a.example, things.b.example"
)]
#[case::no_template("th/bare", "Thing ns/bare has no pod template at spec.template")]
#[case::not_installed(
    "gadget.c.example/w",
    "kind gadget.c.example is not installed in this cluster, so gadget.c.example/w can't be explained; install its custom \
     resource definition"
)]
#[case::malformed(
    "th/odd",
    "cannot read Thing ns/odd: it does not have the form of an object with a pod template; compare"
)]
#[case::not_there("ro/w", "Rollout ns/w does not exist; see kubectl get rollout.argoproj.io --namespace ns")]
fn a_custom_kind_that_cannot_be_explained_is_one_sentence(#[case] object: &str, #[case] says: &str) {
    let explain: Output = with_kinds().run(&["explain", object, "-n", "ns"]);
    let error = text(&explain.stderr);
    assert_eq!((explain.status.code(), text(&explain.stdout)), (Some(1), ""), "{error}");
    assert!(error.starts_with("error: ") && error.lines().count() == 1 && error.contains(says), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn where_kinds_are_hidden_it_is_said_so() {
    let explain: Output = cluster().refuse("/apis", 403, "Forbidden").run(&["explain", "rollout/w", "-n", "ns"]);
    let expected = "error: you may not see which kinds there are; bind the ClusterRole system:discovery\n";
    assert_eq!((explain.status.code(), text(&explain.stderr)), (Some(1), expected));
}

#[test]
fn the_operator_that_keeps_the_report_is_the_one_that_is_looked_at() {
    let mut report = report();
    report["status"]["reload"]["instance"] = json!("tools");
    let server = || cluster().answer(REPORT, 200, report.clone());
    assert_eq!(explained(server())["operator"]["namespace"], "tools");
    let explain = server().run(&["explain", "deploy/w", "-n", "ns", "--operator-namespace", "restamp-system"]);
    let table = text(&explain.stdout);
    assert!(table.ends_with("\nOperator: running in namespace restamp-system, version 0.1.0\n"), "{table}");
}

#[test]
fn in_a_table_it_is_told_why_nothing_happens() {
    let explain = cluster()
        .answer(LEASE, 200, lease(Value::Null))
        .answer(CRD, 200, crd("0.2.0"))
        .run(&["explain", "deploy/w", "-n", "ns"]);
    let expected = "
Reload: no report yet: it was stopped: nobody holds Lease restamp-system/restamp-leader; see kubectl get pods \
--namespace restamp-system

Operator: not running in namespace restamp-system, version 0.1.0
Operator: it was stopped: nobody holds Lease restamp-system/restamp-leader; see kubectl get pods --namespace restamp-system
Operator: its version 0.1.0 is older than the custom resource definition's, 0.2.0: it doesn't know all that reports may \
say; upgrade it
";
    assert!(text(&explain.stdout).ends_with(expected), "{}", text(&explain.stdout));
}

/// What an operator says that reports no drift.
fn without_drift() -> Value {
    let mut scope = scope("");
    scope["data"]["drift"] = json!("off");
    scope
}

#[test]
fn that_the_operator_reports_no_drift_is_said_of_workloads_and_configs() {
    let server = || cluster().answer(SCOPE, 200, without_drift()).answer(SECRET, 200, secret());
    let expected = json!({"reason": "Off", "message": "the operator runs with --drift=off"});
    for object in ["deploy/w", "secret/s"] {
        let explain = server().run(&["explain", object, "-n", "ns", "-o", "json"]);
        let explained: Value = serde_json::from_slice(&explain.stdout).unwrap();
        assert_eq!(explained["noDrift"], expected, "{object}");
        let table = server().run(&["explain", object, "-n", "ns"]);
        let line = "Drift: not reported; the operator runs with --drift=off\n";
        assert!(text(&table.stdout).contains(line), "{}", text(&table.stdout));
    }
}

#[test]
fn that_a_workload_is_paused_is_said() {
    let mut paused = deployment("true");
    paused["spec"]["paused"] = json!(true);
    let explain = cluster().answer(DEPLOYMENT, 200, paused).run(&["explain", "deploy/w", "-n", "ns"]);
    let line = "Pods stay when it rolls: it is paused: resume it, and its pods are replaced\n";
    assert!(text(&explain.stdout).contains(line), "{}", text(&explain.stdout));
}

#[test]
fn a_scope_that_cannot_be_read_is_not_taken_for_none() {
    let explained = explained(cluster().answer(SCOPE, 200, json!({"metadata": {"name": "restamp-scope"}, "data": {}})));
    let remark = &explained["operator"]["remarks"][0];
    assert_eq!(remark["reason"], "ScopeUnknown");
    assert!(remark["message"].as_str().unwrap().ends_with("this version of restamp can't read it"), "{remark}");
}
