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

const ROLLOUTS: &str = "---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop, annotations: {restamp.dev/auto-reload: 'true'}}
spec: {template: {spec: {containers: [{name: app, envFrom: [{configMapRef: {name: web}}]}]}}}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: canary, namespace: shop, annotations: {restamp.dev/auto-reload: 'true'}}
spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: silent}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: silent, namespace: shop}
spec: {selector: {}, template: {spec: {containers: [{name: app, envFrom: [{configMapRef: {name: web}}]}]}}}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: bare, namespace: shop}
spec: {replicas: 1}
";

#[rstest]
#[case::by_name("rollout/web")]
#[case::by_plural_and_group("Rollouts.argoproj.io/web")]
fn a_custom_kind_is_explained_from_files(#[case] object: &str) {
    let explained = explained(object, &format!("{OBJECTS}{ROLLOUTS}"));
    assert_eq!(explained["subject"], json!({"kind": "Rollout", "namespace": "shop", "name": "web"}));
    assert_eq!((&explained["rolls"], &explained["reason"]), (&json!("Unknown"), &json!("KindUnheard")));
    assert_eq!(explained["readings"].as_array().unwrap().len(), 2);
    assert_eq!(explained["operator"], Value::Null);
}

#[rstest]
#[case::the_rollout("rollout/canary")]
#[case::the_deployment("deploy/silent")]
fn a_rollout_and_the_deployment_with_its_template_are_explained_as_one(#[case] object: &str) {
    let explained = explained(object, &format!("{OBJECTS}{ROLLOUTS}"));
    assert_eq!(explained["subject"], json!({"kind": "Deployment", "namespace": "shop", "name": "silent"}));
    assert_eq!(explained["templateOf"], json!({"kind": "Rollout", "namespace": "shop", "name": "canary"}));
    assert_eq!((&explained["rolls"], &explained["reason"]), (&json!("Yes"), &json!("OptedIn")));
}

const MANIFEST: &str = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: web-env, namespace: shop}\n\
    stringData: {TOKEN: hunter2}\n";

#[test]
fn a_manifest_with_string_data_is_not_taken_for_what_is_live() {
    let input = format!("{OBJECTS}{MANIFEST}");
    let secret = restamp(&["explain", "secret/web-env", "-f", "-"], &input);
    let expected = "error: the files have only a manifest of Secret shop/web-env with stringData, which no live object \
        has; give what kubectl get secrets web-env --namespace shop -o yaml --show-managed-fields prints\n";
    assert_eq!((secret.status.code(), text(&secret.stderr)), (Some(1), expected.to_owned()));
    let rows = explained("deploy/web", &input)["readings"].clone();
    let row = rows.as_array().unwrap().iter().find(|row| row["config"] == "Secret/web-env").unwrap();
    assert_eq!((&row["existence"], &row["rolls"]), (&json!("Unknown"), &json!("Unknown")));
    assert_eq!(
        row["message"],
        "the config is not known: the files have only a manifest of it with stringData, which no live object has"
    );
}

#[rstest]
#[case::another_name("cm/nope", &[], "there is no ConfigMap/nope in the files")]
#[case::another_kind("gadget/web", &[], "there is no gadget/web in the files")]
#[case::no_template("rollout/bare", &[], "rollout shop/bare has no pod template at spec.template")]
#[case::another_namespace("deploy/web", &["-n", "x"], "there is no Deployment x/web in the files")]
#[case::several("deploy/twice", &[], "the files have Deployment/twice in several namespaces: a, b; choose one with --namespace")]
fn what_is_not_in_the_files_is_one_sentence(#[case] object: &str, #[case] args: &[&str], #[case] says: &str) {
    let twice = |namespace| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: twice, namespace: {namespace}}}\n\
        spec: {{selector: {{}}, template: {{}}}}\n"
        )
    };
    let input = format!("{OBJECTS}{ROLLOUTS}{}{}", twice("a"), twice("b"));
    let explain = restamp(&[&["explain", object, "-f", "-"], args].concat(), &input);
    let error = text(&explain.stderr);
    assert_eq!(explain.status.code(), Some(1), "{error}");
    assert!(error.starts_with("error: ") && error.lines().count() == 1 && error.contains(says), "{error}");
}

#[rstest]
#[case(&["explain"])]
#[case(&["explain", "web"])]
#[case(&["explain", "my service/web"])]
#[case(&["explain", "deploy/web", "-o", "yaml"])]
#[case(&["explain", "deploy/web", "-f", "-", "--context", "c"])]
fn wrong_usage_exits_with_2(#[case] args: &[&str]) {
    assert_eq!(restamp(args, "").status.code(), Some(2));
}
