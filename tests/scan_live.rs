//! `restamp scan` against an API server that answers as it is told.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, reason = "a test may panic")]

mod api_server;

use std::io::Write as _;
use std::process::Output;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use api_server::{ApiServer, list};

/// A config with one stale key.
fn stale(kind: &str, name: &str) -> Value {
    let manifest = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "ns"}});
    json!({
        "data": {"K": "MQ=="},
        "metadata": {
            "name": name, "namespace": "ns", "uid": "u", "resourceVersion": "1",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": manifest.to_string()},
            "managedFields": [{"manager": "kubectl-client-side-apply", "operation": "Update",
                "fieldsV1": {"f:data": {"f:K": {}}}}],
        },
    })
}

const CONFIG_MAPS: &str = "/api/v1/configmaps?&limit=500";
const PODS: &str = "/api/v1/pods?&limit=500";
const SECRETS: &str = "/api/v1/secrets?&fieldSelector=type%21%3Dhelm.sh%2Frelease.v1&limit=500";

fn subjects(scan: &Output) -> Vec<String> {
    let list: Value = serde_json::from_slice(&scan.stdout).unwrap();
    let name = |item: &Value| item["spec"]["subject"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_cluster_is_listed_page_by_page() {
    let pod = json!({"metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [{"name": "app", "envFrom": [{"configMapRef": {"name": "b"}}]}]}});
    let scan = ApiServer::default()
        .answer(CONFIG_MAPS, 200, list(&[stale("ConfigMap", "a")], Some("next")))
        .answer(&format!("{CONFIG_MAPS}&continue=next"), 200, list(&[stale("ConfigMap", "b")], None))
        .answer(SECRETS, 200, list(&[stale("Secret", "s")], None))
        .answer(PODS, 200, list(&[pod], None))
        .run(&["scan", "-o", "json", "--exit-code"]);
    assert_eq!((scan.status.code(), text(&scan.stderr)), (Some(3), ""));
    assert_eq!(subjects(&scan), ["a", "b", "s"]);
    assert!(text(&scan.stdout).contains("Pod/p"));
}

#[test]
fn a_list_whose_next_page_came_too_late_is_listed_at_once() {
    let scan = ApiServer::default()
        .answer(CONFIG_MAPS, 200, list(&[stale("ConfigMap", "a")], Some("old")))
        .refuse(&format!("{CONFIG_MAPS}&continue=old"), 410, "Expired")
        .answer("/api/v1/configmaps?", 200, list(&[stale("ConfigMap", "a"), stale("ConfigMap", "b")], None))
        .run(&["scan", "-o", "json"]);
    assert_eq!(text(&scan.stderr), "");
    assert_eq!(subjects(&scan), ["a", "b"]);
}

#[test]
fn one_namespace_is_asked_for_alone() {
    let scan = ApiServer::default()
        .answer("/api/v1/namespaces/ns/configmaps?&limit=500", 200, list(&[stale("ConfigMap", "a")], None))
        .run(&["scan", "-o", "json", "-n", "ns"]);
    assert_eq!(subjects(&scan), ["a"]);
}

#[test]
fn a_forbidden_kind_is_left_out_and_named() {
    let scan = ApiServer::default()
        .answer(CONFIG_MAPS, 200, list(&[stale("ConfigMap", "a")], None))
        .refuse(SECRETS, 403, "Forbidden")
        .refuse("/apis/batch/v1/jobs?&limit=500", 403, "Forbidden")
        .run(&["scan", "-o", "json"]);
    let warnings = "warning: listing Secret objects is forbidden, so their keys are not looked at; grant list on them \
                    to change that\n\
                    warning: listing Job objects is forbidden, so the consumers of keys are not complete; grant list on \
                    them to change that\n";
    assert_eq!((scan.status.code(), text(&scan.stderr)), (Some(0), warnings));
    assert_eq!(subjects(&scan), ["a"]);
}

#[test]
fn where_no_config_may_be_listed_there_is_nothing_to_scan() {
    let server = ApiServer::default().refuse(CONFIG_MAPS, 403, "Forbidden").refuse(SECRETS, 403, "Forbidden");
    let scan = server.run(&["scan", "-o", "json"]);
    assert_eq!(scan.status.code(), Some(1));
    let expected = "error: listing ConfigMaps and Secrets in all namespaces is forbidden; grant list on one of them there, or \
                    try one namespace with --namespace\n";
    assert_eq!(text(&scan.stderr), expected);
}

#[test]
fn where_none_may_be_listed_in_the_namespace_it_is_named() {
    let server = ApiServer::default().refuse("/api/v1/namespaces/a/configmaps?&limit=500", 403, "Forbidden").refuse(
        &SECRETS.replace("/v1/", "/v1/namespaces/a/"),
        403,
        "Forbidden",
    );
    let scan = server.run(&["scan", "-n", "a"]);
    let expected = "error: listing ConfigMaps and Secrets in namespace a is forbidden; grant list on one of them there, or \
                    try another namespace with --namespace\n";
    assert_eq!((scan.status.code(), text(&scan.stderr)), (Some(1), expected));
}

#[test]
fn credentials_that_are_not_accepted_are_said_so() {
    let scan = ApiServer::default().refuse(CONFIG_MAPS, 401, "Unauthorized").run(&["scan", "-o", "json"]);
    assert_eq!(scan.status.code(), Some(1));
    assert!(text(&scan.stderr).contains("does not accept these credentials; log in again"), "{}", text(&scan.stderr));
}

#[test]
fn an_answer_that_cannot_be_read_is_not_quoted() {
    let broken = list(&[json!({"metadata": {"name": "s"}, "data": {"K": "hunter2!"}})], None);
    let scan = ApiServer::default().answer(SECRETS, 200, broken).run(&["scan", "-o", "json"]);
    assert_eq!(scan.status.code(), Some(1));
    let error = text(&scan.stderr);
    assert!(error.starts_with("error: cannot read the API server's list of Secret objects"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

/// A StatefulSet and two pods on one node that run two images under one tag.
fn mixed(server: ApiServer) -> ApiServer {
    let template = json!({"spec": {"containers": [{"name": "app", "image": "localhost/app:1"}]}});
    let set = json!({
        "metadata": {"name": "w", "namespace": "ns", "uid": "w", "generation": 1},
        "spec": {"serviceName": "w", "selector": {}, "replicas": 2, "template": template},
        "status": {"replicas": 2, "observedGeneration": 1, "currentRevision": "h", "updateRevision": "h"},
    });
    server.answer("/apis/apps/v1/statefulsets?&limit=500", 200, list(&[set], None))
}

fn running(name: &str, letter: &str) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "w", "uid": "w", "controller": true});
    let image_id = format!("localhost/app@sha256:{}", letter.repeat(64));
    let status = json!({"name": "app", "image": "localhost/app:1", "imageID": image_id, "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": "2026-11-30T12:00:00Z"}}});
    json!({
        "metadata": {"name": name, "namespace": "ns", "uid": name, "ownerReferences": [owner],
            "labels": {"controller-revision-hash": "h"}},
        "spec": {"nodeName": "n", "containers": [{"name": "app", "image": "localhost/app:1"}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    })
}

#[test]
fn what_pods_run_is_looked_at() {
    let pods = list(&[running("w-0", "a"), running("w-1", "b")], None);
    let scan = mixed(ApiServer::default()).answer(PODS, 200, pods).run(&["scan"]);
    let message = "MixedDigests: StatefulSet ns/w: different images run as localhost/app:1, since the tag moved";
    assert!(text(&scan.stdout).contains(message), "{}", text(&scan.stdout));
}

#[test]
fn where_pods_may_not_be_listed_what_they_run_is_not_looked_at() {
    let scan = mixed(ApiServer::default()).refuse(PODS, 403, "Forbidden").run(&["scan", "--exit-code"]);
    let warning = "warning: listing Pod objects is forbidden, so the consumers of keys are not complete, and what pods run \
                   is not looked at; grant list on them to change that\n";
    assert_eq!((scan.status.code(), text(&scan.stderr)), (Some(0), warning));
}

/// A Secret of a release, with a key that its chart has no longer.
fn of_release() -> Value {
    json!({
        "data": {"A": "MQ==", "OLD": "MQ=="},
        "metadata": {
            "name": "s", "namespace": "ns", "uid": "u", "resourceVersion": "1",
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "apps"},
            "managedFields": [{"manager": "helm", "operation": "Update", "fieldsV1": {"f:data": {"f:A": {}, "f:OLD": {}}}}],
        },
    })
}

/// One revision's Secret: what a list of metadata shows of it, and with what Helm keeps in it.
fn revision(number: u32, status: &str, version: &str) -> (Value, Value) {
    let metadata = json!({"name": format!("sh.helm.release.v1.web.v{number}"), "namespace": "apps", "resourceVersion": version,
        "labels": {"owner": "helm", "name": "web", "version": number.to_string(), "status": status}});
    let manifest = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\nstringData: {A: '1'}\n";
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(json!({"manifest": manifest}).to_string().as_bytes()).unwrap();
    let release = BASE64_STANDARD.encode(BASE64_STANDARD.encode(packed.finish().unwrap()));
    let whole = json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": metadata, "data": {"release": release}});
    (json!({"metadata": metadata}), whole)
}

const REVISIONS: &str = "/api/v1/namespaces/apps/secrets?&fieldSelector=type%3Dhelm.sh%2Frelease.v1&labelSelector=owner%3Dhelm%2Cname%3Dweb";
const REVISION: &str = "/api/v1/namespaces/apps/secrets/sh.helm.release.v1.web.v10";

#[test]
fn what_a_release_declares_is_read_from_its_newest_revision() {
    let ((old, _), (newest, whole)) = (revision(9, "superseded", "8"), revision(10, "deployed", "9"));
    let scan = ApiServer::default()
        .answer(SECRETS, 200, list(&[of_release()], None))
        .answer(REVISIONS, 200, list(&[newest, old], None))
        .answer(REVISION, 200, whole)
        .run(&["scan", "-o", "json"]);
    assert_eq!(text(&scan.stderr), "");
    let reports: Value = serde_json::from_slice(&scan.stdout).unwrap();
    let status = &reports["items"][0]["status"];
    assert_eq!((&status["baseline"], &status["staleKeys"]), (&json!("HelmRelease"), &json!(["OLD"])));
    assert_eq!(status["source"], json!({"kind": "Release", "namespace": "apps", "name": "web"}));
}

#[test]
fn a_release_that_may_not_be_read_is_named_and_declares_nothing() {
    let (newest, _) = revision(10, "deployed", "9");
    let server = || ApiServer::default().answer(SECRETS, 200, list(&[of_release()], None));
    let warning = "warning: reading the Secrets of Helm releases is forbidden, so what these declare is not known: apps/web; \
                   grant list and get on secrets in their namespaces to change that\n";
    let servers = [
        server().refuse(REVISIONS, 403, "Forbidden"),
        server().answer(REVISIONS, 200, list(&[newest], None)).refuse(REVISION, 403, "Forbidden"),
    ];
    for server in servers {
        let scan = server.run(&["scan", "-o", "json", "--exit-code"]);
        assert_eq!((scan.status.code(), text(&scan.stderr)), (Some(0), warning));
    }
}

#[test]
fn a_release_that_is_not_as_it_was_listed_declares_nothing() {
    // The revision was replaced between the list and its end: what was listed may be of either.
    let ((newest, _), (_, later)) = (revision(10, "deployed", "9"), revision(10, "deployed", "11"));
    let scan = ApiServer::default()
        .answer(SECRETS, 200, list(&[of_release()], None))
        .answer(REVISIONS, 200, list(&[newest], None))
        .answer(REVISION, 200, later)
        .run(&["scan", "-o", "json", "--exit-code"]);
    assert_eq!((scan.status.code(), text(&scan.stderr)), (Some(0), ""));
}
