//! `restamp explain` of files, as a user meets it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, reason = "a test may panic")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rstest::rstest;
use serde_json::{Value, json};

fn restamp(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restamp"));
    // No test may find a cluster by chance.
    command.args(args).env("HOME", "/nonexistent").env("KUBECONFIG", "/nonexistent/kubeconfig");
    command.env_remove("KUBERNETES_SERVICE_HOST").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that gives up before it reads is fine.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn explained(object: &str, input: &str) -> Value {
    let explain = restamp(&["explain", object, "-f", "-", "-o", "json"], input);
    assert!(explain.status.success(), "{}", text(&explain.stderr));
    serde_json::from_slice(&explain.stdout).unwrap()
}

const OBJECTS: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: shop, annotations: {restamp.dev/auto-reload: at-start}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
data: {COLOUR: red, page.html: <p>}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations: {restamp.dev/reload-exclude: 'configmap/web:COLOUR', restamp.dev/min-interval: soon}
spec:
  selector: {}
  template:
    spec:
      containers:
      - name: app
        env: [{name: COLOUR, valueFrom: {configMapKeyRef: {name: web, key: COLOUR}}}]
        envFrom: [{secretRef: {name: web-env}}]
        volumeMounts:
        - {name: pages, mountPath: /pages}
        - {name: pages, mountPath: /page.html, subPath: page.html}
      volumes: [{name: pages, configMap: {name: web}}]
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  namespace: shop
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u, controller: true}]
spec: {selector: {}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: shop, annotations: {restamp.dev/auto-reload: 'true'}}
spec:
  schedule: '@daily'
  jobTemplate:
    spec:
      template: {spec: {containers: [{name: app, envFrom: [{configMapRef: {name: web}}]}]}}
";

#[test]
fn each_reading_has_a_row_with_its_reason() {
    let explain = restamp(&["explain", "deploy/web", "-f", "-"], OBJECTS);
    let expected = "\
Deployment shop/web
Rolls when its config changes: yes; restamp.dev/auto-reload of its namespace is \"at-start\"
Problem: annotation restamp.dev/min-interval has the value \"soon\"; write a duration such as \"10m\"

CONTAINER   CONFIG           KEY         VIA       REFRESH   AS                 ROLLS     WHY
app         ConfigMap/web    COLOUR      env       AtStart   COLOUR             no        restamp.dev/reload-exclude excludes it
app         ConfigMap/web    COLOUR      volume    InPlace   /pages/COLOUR      no        restamp.dev/reload-exclude excludes it
app         ConfigMap/web    page.html   volume    InPlace   /pages/page.html   no        restamp.dev/auto-reload is \"at-start\", and these files change in place
app         ConfigMap/web    page.html   subPath   AtStart   /page.html         yes       as above
app         Secret/web-env   -           envFrom   AtStart   -                  unknown   the config is not known: the files have no object of its kind

Reload: not known, since its DriftReport is not in the files
";
    assert_eq!((text(&explain.stdout), text(&explain.stderr)), (expected.to_owned(), String::new()));
}

#[rstest]
#[case("rs/web-1", "CountsAsItsOwner", "Deployment/web owns it and counts in its place; explain that one")]
#[case(
    "cronjobs/nightly",
    "KindDoesNotRoll",
    "the next run of a CronJob reads anew by itself; with --rerun-jobs, it runs once at a change"
)]
fn what_does_not_roll_says_why(#[case] object: &str, #[case] reason: &str, #[case] message: &str) {
    let explained = explained(object, OBJECTS);
    assert_eq!((&explained["rolls"], &explained["reason"]), (&json!("No"), &json!(reason)));
    assert_eq!(explained["message"], message);
    assert_eq!(explained["noReload"]["reason"], "NotWatched");
}

#[test]
fn a_report_in_the_files_is_told() {
    let report = "---\napiVersion: restamp.dev/v1alpha1\nkind: DriftReport\nmetadata: {name: deployment-web, namespace: shop}\n\
        spec: {subject: {apiVersion: apps/v1, kind: Deployment, name: web}}\n\
        status: {reload: {state: Held, message: it waits, instance: restamp-system, record: {entries: [{config: ConfigMap/web, \
        digest: 'v1:k1:AAAA', change: {firstSeen: '2026-11-30T12:00:00Z', lastSeen: '2026-11-30T12:00:01Z', keys: [page.html]}}]}}}\n";
    let explained = explained("deploy/web", &format!("{OBJECTS}{report}"));
    let open = json!({"since": "2026-11-30T12:00:00Z", "keys": ["page.html"], "answer": "None"});
    let config = json!({"config": "ConfigMap/web", "lastChanged": null, "absentSince": null, "open": open});
    let expected = json!({"state": "Held", "message": "it waits", "instance": "restamp-system", "lastReload": null,
        "configs": [config]});
    assert_eq!(explained["reload"], expected);
}

#[test]
fn a_report_of_another_version_is_left_alone() {
    let report = "---\napiVersion: restamp.dev/v1alpha1\nkind: DriftReport\nmetadata: {name: x, namespace: shop}\nspec: {new: 1}\n";
    let input = format!("{OBJECTS}{report}");
    assert_eq!(explained("deploy/web", &input)["noReload"]["reason"], "NotInFiles");
    assert!(restamp(&["scan", "-f", "-"], &input).status.success());
}

#[test]
fn the_example_of_the_readme_tells_of_each_key() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/build-service.yaml");
    let example = std::fs::read_to_string(example).unwrap();
    let secret = explained("Secret/build-service-secrets", &example);
    let keys = secret["keys"].as_array().unwrap();
    let stale = keys.iter().filter(|key| key["drift"]["reason"] == "StaleKey").count();
    let consumed = keys.iter().filter(|key| key["consumers"][0]["workload"] == "Deployment/build-service").count();
    assert_eq!((stale, keys.len(), consumed), (6, 12, 12));
    assert_eq!(secret["managers"][0]["since"], "2026-03-02T14:05:40Z");
    let rolling = explained("deployment/build-service", &example);
    assert_eq!(rolling["readings"].as_array().unwrap().iter().filter(|row| row["rolls"] == "Yes").count(), 12);
}

#[rstest]
#[case::another_name("cm/nope", &[], "there is no ConfigMap/nope in the files")]
#[case::another_namespace("deploy/web", &["-n", "x"], "there is no Deployment x/web in the files")]
#[case::several("deploy/twice", &[], "the files have Deployment/twice in several namespaces: a, b; choose one with --namespace")]
fn what_is_not_in_the_files_is_one_sentence(#[case] object: &str, #[case] args: &[&str], #[case] says: &str) {
    let twice = |namespace| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: twice, namespace: {namespace}}}\n\
        spec: {{selector: {{}}, template: {{}}}}\n"
        )
    };
    let input = format!("{OBJECTS}{}{}", twice("a"), twice("b"));
    let explain = restamp(&[&["explain", object, "-f", "-"], args].concat(), &input);
    let error = text(&explain.stderr);
    assert_eq!(explain.status.code(), Some(1), "{error}");
    assert!(error.starts_with("error: ") && error.lines().count() == 1 && error.contains(says), "{error}");
}

#[rstest]
#[case(&["explain"])]
#[case(&["explain", "web"])]
#[case(&["explain", "service/web"])]
#[case(&["explain", "deploy/web", "-o", "yaml"])]
#[case(&["explain", "deploy/web", "-f", "-", "--context", "c"])]
fn wrong_usage_exits_with_2(#[case] args: &[&str]) {
    assert_eq!(restamp(args, "").status.code(), Some(2));
}
