//! No value of a config is in anything that `restamp scan` and `restamp explain` print, whatever they are given.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, reason = "a test may panic")]

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

/// A text that stands nowhere else.
fn marker() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    format!("Marker{:x}x{:x}", now.as_nanos(), std::process::id())
}

/// What restamp prints on both streams, given this input.
fn printed(input: &str, args: &[&str]) -> String {
    let mut restamp = Command::new(env!("CARGO_BIN_EXE_restamp"))
        .args(args)
        .args(["--filename", "-"])
        .env("RUST_LOG", "trace")
        .env("RUST_BACKTRACE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    restamp.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = restamp.wait_with_output().unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!printed.contains("panicked"), "{printed}");
    printed
}

const COMMANDS: [&[&str]; 10] = [
    &["scan", "-o", "table"],
    &["scan", "-o", "wide"],
    &["scan", "-o", "sarif"],
    &["scan", "--explain"],
    &["scan", "-o", "json"],
    &["scan", "-o", "yaml"],
    &["explain", "secret/s"],
    &["explain", "secret/s", "-o", "json"],
    &["explain", "pod/p"],
    &["explain", "pod/p", "-o", "json"],
];

fn assert_no_marker(input: &str, marker: &str) {
    for command in COMMANDS {
        let printed = printed(input, command);
        assert!(!printed.is_empty());
        for form in [marker.to_owned(), BASE64_STANDARD.encode(marker), marker.to_lowercase()] {
            assert!(!printed.contains(&form), "{form} of\n{input}\nis in\n{printed}");
        }
    }
}

/// A Secret that has every finding, with the marker in each of its values.
fn secret(marker: &str) -> Value {
    let value = BASE64_STANDARD.encode(marker);
    let manifest = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"},
        "data": {"CHANGED": BASE64_STANDARD.encode("another")}, "stringData": {"GONE": marker, "KEPT": marker},
    });
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {
            "name": "s", "namespace": "ns",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": manifest.to_string()},
            "managedFields": [
                {"manager": "kubectl-client-side-apply", "operation": "Update",
                    "fieldsV1": {"f:data": {"f:OLD": {}, "f:KEPT": {}}}},
                {"manager": "kubectl-edit", "operation": "Update",
                    "fieldsV1": {"f:data": {"f:HAND": {}, "f:CHANGED": {}}}},
            ],
        },
        "data": {"OLD": value, "KEPT": value, "HAND": value, "CHANGED": value},
    })
}

#[test]
fn no_report_shows_a_value() {
    let marker = marker();
    let secret = secret(&marker);
    let found = printed(&secret.to_string(), &["scan", "-o", "json"]);
    for finding in ["StaleKey", "UndeclaredKey", "MissingKey", "ValueDiffers"] {
        assert!(found.contains(finding), "{found}");
    }
    let reader = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [{"name": "app", "envFrom": [{"secretRef": {"name": "s"}}]}]}});
    let all = json!({"apiVersion": "v1", "kind": "List", "items": [secret, reader]});
    assert!(printed(&all.to_string(), &["explain", "pod/p"]).contains("HAND"));
    assert_no_marker(&all.to_string(), &marker);
    assert_no_marker(&serde_saphyr::to_string(&all).unwrap(), &marker);
}

/// A Deployment whose variables, arguments and probes have the marker in them, declared and live, with every finding.
fn workload(marker: &str) -> Value {
    let spec = |image: &str, suffix: &str, env: Value| {
        let value = format!("{marker}{suffix}");
        json!({"selector": {}, "template": {"spec": {"containers": [{"name": "app", "image": image, "args": [value], "env": env,
            "livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "A", "value": value}]}}}]}}})
    };
    let declared = json!([{"name": "A", "value": marker}, {"name": "GONE", "value": marker}]);
    let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "ns"},
        "spec": spec("app:1", "", declared)});
    let live = json!([{"name": "A", "value": format!("{marker}-live")}, {"name": "HAND", "value": marker}]);
    let edited = json!({"f:args": {}, "f:image": {}, "f:livenessProbe": {"f:httpGet": {"f:httpHeaders": {}}},
        "f:env": {r#"k:{"name":"A"}"#: {"f:value": {}}, r#"k:{"name":"HAND"}"#: {".": {}, "f:name": {}, "f:value": {}}}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "ns",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": manifest.to_string()},
            "managedFields": [
                {"manager": "kubectl-client-side-apply", "operation": "Update", "time": "2026-11-30T11:00:00Z",
                    "fieldsV1": {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {}}},
                        "f:spec": {"f:selector": {}}}},
                {"manager": "kubectl-edit", "operation": "Update", "time": "2026-11-30T12:00:00Z", "fieldsV1": {"f:spec":
                    {"f:template": {"f:spec": {"f:containers": {r#"k:{"name":"app"}"#: edited}}}}}}]},
        "spec": spec("app:2", "-live", live)})
}

#[test]
fn no_report_on_a_workload_shows_a_value() {
    let marker = marker();
    let workload = workload(&marker);
    let found = printed(&workload.to_string(), &["scan", "-o", "wide"]);
    for field in ["args", "env[A].value", "env[GONE]", "env[HAND]", "httpHeaders", "app:1 -> app:2"] {
        assert!(found.contains(field), "{field} is not in\n{found}");
    }
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}, "spec": {"containers": []}});
    let all = json!({"apiVersion": "v1", "kind": "List", "items": [workload, secret(&marker), pod]});
    assert_no_marker(&all.to_string(), &marker);
}

#[test]
fn no_error_shows_a_value() {
    let marker = marker();
    let yaml = |data: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\ndata:\n  {data}\n");
    let annotation = |text: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": text}}})
        .to_string()
    };
    let mut inputs: Vec<String> = [
        "A: '{marker}!'",
        "A: {marker}!",
        "A: [{marker}]",
        "A: {{marker}: 1}",
        "A: *{marker}",
        "A: !!int {marker}",
        "A: !!binary {marker}!",
        "A: !{marker} x",
        "A: \"{marker}",
        "A: '{marker}' x",
        "A: \"\\{marker}\"",
        "A: |\n {marker}",
        "A: >9\n {marker}",
        "A: {marker}: {marker}",
        "A: @{marker}",
        "A: {marker}\n  A: {marker}",
        "? [{marker}]\n  : x",
        "- {marker}",
        "{marker}",
        "\t{marker}",
    ]
    .iter()
    .map(|data| yaml(&data.replace("{marker}", &marker)))
    .collect();
    let json = secret(&marker).to_string();
    let cuts = [json.len() / 3, json.len() / 2, json.len() - 40, json.len() - 1];
    inputs.extend(cuts.iter().map(|cut| json[..*cut].to_owned()));
    inputs.push(json.replacen(&BASE64_STANDARD.encode(&marker), &format!("{marker}!"), 1));
    inputs.push(json.replacen(&format!("\"{}\"", BASE64_STANDARD.encode(&marker)), &format!("[\"{marker}\"]"), 1));
    inputs.push(annotation(&format!("{{\"stringData\":{{\"A\":\"{marker}\"")));
    inputs.push(annotation(&marker));
    inputs.push(marker.clone());
    inputs.push(format!("kind: {marker}: x"));
    for input in inputs {
        assert_no_marker(&input, &marker);
    }
}
