//! `restamp scan` as a user meets it: what it reads, what it says, and how it exits.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, reason = "a test may panic")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn restamp(args: &[&str]) -> Output {
    fed(args, b"")
}

fn fed(args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restamp"));
    // No test may find a cluster by chance.
    command.args(args).env("HOME", "/nonexistent").env("KUBECONFIG", "/nonexistent/kubeconfig");
    command.env_remove("KUBERNETES_SERVICE_HOST").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that gives up before it reads is fine.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn file(folder: &TempDir, name: &str, content: &[u8]) -> String {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path.display().to_string()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A Secret with a stale key for each name.
fn secret(name: &str, stale: &[&str]) -> Value {
    let manifest = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "ns"}});
    let owned: Value = stale.iter().map(|key| (format!("f:{key}"), json!({}))).collect();
    let data: Value = stale.iter().map(|key| ((*key).to_owned(), json!("MQ=="))).collect();
    json!({
        "apiVersion": "v1", "kind": "Secret", "data": data,
        "metadata": {
            "name": name, "namespace": "ns", "annotations": {(ANNOTATION): manifest.to_string()},
            "managedFields": [{"manager": "kubectl-client-side-apply", "operation": "Update",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": owned}}],
        },
    })
}

/// `Kind/name[KEY]` of each finding in a JSON list.
fn found(scan: &Output) -> Vec<String> {
    assert!(scan.status.success(), "{}", text(&scan.stderr));
    let list: Value = serde_json::from_slice(&scan.stdout).unwrap();
    let of = |report: &Value| {
        let subject = report["spec"]["subject"].clone();
        let findings = report["status"]["findings"].as_array().cloned().unwrap_or_default();
        let line = move |finding: Value| format!("{}/{}[{}]", subject["kind"], subject["name"], finding["key"]);
        findings.into_iter().map(line).collect::<Vec<_>>()
    };
    list["items"].as_array().unwrap().iter().flat_map(of).map(|line| line.replace('"', "")).collect()
}

#[rstest]
#[case::one_object(secret("a", &["K"]).to_string())]
#[case::a_list(json!({"apiVersion": "v1", "kind": "List", "items": [secret("a", &["K"])]}).to_string())]
#[case::a_list_in_a_list(json!({"apiVersion": "v1", "kind": "List", "items": [
    {"apiVersion": "v1", "kind": "SecretList", "items": [secret("a", &["K"])]}]}).to_string())]
#[case::yaml(serde_saphyr::to_string(&secret("a", &["K"])).unwrap())]
#[case::documents(format!("# all\n---\n{}---\n{}", serde_saphyr::to_string(&secret("a", &["K"])).unwrap(),
    serde_saphyr::to_string(&secret("b", &[])).unwrap()))]
#[case::json_documents(format!("{}\n{}", secret("b", &[]), secret("a", &["K"])))]
#[case::a_byte_order_mark(format!("\u{feff}{}", secret("a", &["K"])))]
fn objects_come_in_many_forms(#[case] input: String) {
    assert_eq!(found(&fed(&["scan", "-f", "-", "-o", "json"], input.as_bytes())), ["Secret/a[K]"]);
}

#[test]
fn the_items_of_a_typed_list_need_no_kind() {
    let mut item = secret("a", &["K"]);
    item.as_object_mut().unwrap().retain(|field, _| field == "metadata" || field == "data");
    let list = json!({"apiVersion": "v1", "kind": "SecretList", "metadata": {"resourceVersion": "1"}, "items": [item]});
    assert_eq!(found(&fed(&["scan", "-f", "-", "-o", "json"], list.to_string().as_bytes())), ["Secret/a[K]"]);
}

#[test]
fn files_are_looked_at_together_and_other_kinds_are_counted() {
    let folder = TempDir::new().unwrap();
    let one = file(&folder, "one.json", secret("a", &["K"]).to_string().as_bytes());
    let two = file(&folder, "two.yaml", b"apiVersion: example.org/v1\nkind: Secret\nmetadata: {name: x}\nspec: [1]\n");
    let workload = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [{"name": "app", "envFrom": [{"secretRef": {"name": "a"}}]}]}});
    let args = ["scan", "-o", "json", "-f", &one, "--filename", &two, "-f", "-"];
    let scan = fed(&args, workload.to_string().as_bytes());
    let list: Value = serde_json::from_slice(&scan.stdout).unwrap();
    assert_eq!(list["items"][0]["status"]["findings"][0]["consumers"][0]["workload"], "Pod/p");
    let warning = "warning: objects passed over, since their kinds say nothing about configs: 1\n";
    assert_eq!(text(&scan.stderr), warning);
}

#[test]
fn a_manifest_with_string_data_is_named_unless_the_live_object_is_there_too() {
    let manifest = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "ns"},
        "stringData": {"K": "hunter2"}});
    let other = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b", "namespace": "ns"}, "stringData": {"K": "1"}});
    let warned = |input: String| {
        let scan = fed(&["scan", "-f", "-"], input.as_bytes());
        (text(&scan.stdout), text(&scan.stderr))
    };
    let warning = |names: &str| {
        format!(
            "warning: Secrets passed over, since they are manifests with stringData, which no live object has: {names}; \
             give what kubectl get -o yaml --show-managed-fields prints\n"
        )
    };
    let none = "0 configs and 0 workloads looked at: no drift, 0 without a baseline\n".to_owned();
    assert_eq!(warned(format!("{manifest}\n{other}")), (none, warning("ns/a, ns/b")));
    let one = "1 configs and 0 workloads looked at: no drift, 0 without a baseline\n".to_owned();
    assert_eq!(warned(format!("{manifest}\n{}", secret("a", &[]))), (one, String::new()));
}

#[test]
fn texts_that_look_like_something_else_stay_as_they_are() {
    let values = ["1e3", "0777", "0x1F", "1_000", "yes", "1.10", ".nan", "2026-11-30", "~x", "1:30"];
    let keys: Vec<_> = values.iter().map(|value| format!("    {value}: {value}\n")).collect();
    let declared: Value = values.iter().map(|value| ((*value).to_owned(), json!(value))).collect();
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "1e3"},
        "data": declared});
    let input = format!(
        "apiVersion: v1\nkind: ConfigMap\ndata:\n{}metadata:\n  name: c\n  namespace: 1e3\n  annotations:\n    \
         {ANNOTATION}: '{manifest}'\n  managedFields:\n  - {{manager: kubectl-edit, operation: Update, \
         fieldsV1: {{'f:data': {{'f:1e3': {{}}}}}}}}\n",
        keys.join("").replace("    ", "  ")
    );
    let scan = fed(&["scan", "-f", "-", "-o", "json"], input.as_bytes());
    assert_eq!((found(&scan), text(&scan.stderr)), (vec![], String::new()));
}

#[test]
fn one_namespace_can_be_looked_at_alone() {
    let input = secret("a", &["K"]).to_string();
    let scan = |namespace| found(&fed(&["scan", "-f", "-", "-o", "json", "-n", namespace], input.as_bytes()));
    assert_eq!((scan("ns"), scan("other")), (vec!["Secret/a[K]".to_owned()], vec![]));
}

#[test]
fn a_large_config_is_read_and_reported() {
    let keys: Vec<_> = (0..5_000).map(|number| format!("KEY_{number:04}_{}", "x".repeat(40))).collect();
    let secret = secret("a", &keys.iter().map(String::as_str).collect::<Vec<_>>());
    let yaml = serde_saphyr::to_string(&secret).unwrap();
    assert_eq!(found(&fed(&["scan", "-f", "-", "-o", "json"], yaml.as_bytes())).len(), 5_000);
}

#[rstest]
#[case::drift(&["K"], 3)]
#[case::no_drift(&[], 0)]
fn with_exit_code_drift_exits_with_3(#[case] stale: &[&str], #[case] expected: i32) {
    let input = secret("a", stale).to_string();
    let code = |args: &[&str]| fed(args, input.as_bytes()).status.code();
    assert_eq!(code(&["scan", "-f", "-", "--exit-code"]), Some(expected));
    assert_eq!(code(&["scan", "-f", "-"]), Some(0));
}

#[test]
fn where_there_is_no_drift_the_table_says_what_was_looked_at() {
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "managedFields": [
        {"manager": "kubectl-create", "operation": "Update", "fieldsV1": {"f:data": {"f:A": {}}}}]}, "data": {"A": "1"}});
    let input = format!("{}\n{other}", secret("a", &[]));
    let scan = fed(&["scan", "-f", "-"], input.as_bytes());
    let said = (text(&scan.stdout), text(&scan.stderr));
    assert_eq!(
        said,
        ("2 configs and 0 workloads looked at: no drift, 1 without a baseline\n".to_owned(), String::new())
    );
}

#[rstest]
#[case::not_yaml(b"kind: Secret\ndata: [1, 2\nmetadata: }\n", "document 1, line 3 is not valid YAML")]
#[case::cut_json(b"{\"kind\": \"Secret\",\n\"data\": {\"A\": ", "document 1, line 2 is not valid JSON")]
#[case::second_document(b"kind: A\n---\nkind: B\nx: [\n", "document 2, line 4 is not valid YAML")]
#[case::prose(b"these are not the objects that you look for\n", "document 1, line 1 is no Kubernetes object")]
#[case::no_kind(b"a: 1\n", "document 1, line 1 is no Kubernetes object, since it has no kind")]
#[case::an_array(b"[]", "document 1, line 1 is no Kubernetes object, since it has no kind")]
#[case::an_array_of_texts(b"[\"v1\", \"Widget\"]", "document 1, line 1 is no Kubernetes object")]
#[case::an_array_behind_an_object(b"{\"kind\": \"A\"}\n[\"v1\", \"B\"]", "document 2, line 2 is no Kubernetes object")]
#[case::an_array_in_a_list(
    b"{\"kind\": \"List\", \"items\": [[\"v1\", \"Widget\"]]}",
    "document 1, line 1 is no Kubernetes object"
)]
#[case::not_text(b"\xff\xfe\x00k", "cannot read")]
#[case::item_without_kind(b"kind: List\nitems:\n- kind: A\n- {}\n", "item 2 of the list is malformed: it has no kind")]
#[case::not_base64(
    b"apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\ndata:\n  A: '!'\n",
    "Secret ns/s is malformed: a value is not in base64"
)]
#[case::no_name(
    b"apiVersion: v1\nkind: Secret\nmetadata: {}\n",
    "Secret without a name is malformed: missing field `name`"
)]
#[case::malformed_workload(
    b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {replicas: many}\n",
    "line 4: Deployment w is malformed: expected i32"
)]
fn a_bad_file_is_named_in_one_sentence(#[case] content: &[u8], #[case] expected: &str) {
    let folder = TempDir::new().unwrap();
    let path = file(&folder, "objects", content);
    assert_one_sentence(&restamp(&["scan", "--filename", &path]), &["objects", expected]);
}

#[test]
fn an_absent_file_is_named() {
    assert_one_sentence(
        &restamp(&["scan", "-f", "/nonexistent/x.yaml"]),
        &["cannot read /nonexistent/x.yaml: No such file"],
    );
}

#[rstest]
#[case::malformed("clusters: [\nusers: }", &["cannot read the kubeconfig /", "/kubeconfig: it does not parse, line 1"])]
#[case::of_another_form("clusters: 5\n", &["cannot read the kubeconfig"])]
#[case::empty("", &["cannot use the kubeconfig", "--kubeconfig"])]
#[case::unreachable(
    "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n\
     clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n",
    &["cannot reach the API server at https://127.0.0.1:1/: Connection refused", "--context"])]
fn a_cluster_that_cannot_be_scanned_is_said_so(#[case] kubeconfig: &str, #[case] expected: &[&str]) {
    let folder = TempDir::new().unwrap();
    let path = file(&folder, "kubeconfig", kubeconfig.as_bytes());
    assert_one_sentence(&restamp(&["scan", "--kubeconfig", &path]), expected);
}

#[test]
fn without_any_kubeconfig_the_next_step_is_said() {
    let expected = ["cannot use the kubeconfig /nonexistent/kubeconfig: No such file", "--filename"];
    assert_one_sentence(&restamp(&["scan"]), &expected);
}

fn assert_one_sentence(scan: &Output, expected: &[&str]) {
    let error = text(&scan.stderr);
    assert_eq!(scan.status.code(), Some(1), "{error}");
    assert!(error.starts_with("error: ") && error.lines().count() == 1, "{error}");
    for part in expected {
        assert!(error.contains(part), "{error} does not say: {part}");
    }
}

#[rstest]
#[case(&[])]
#[case(&["scna"])]
#[case(&["scan", "--filename"])]
#[case(&["scan", "-o", "xml"])]
#[case(&["scan", "-n", "a", "-A"])]
#[case(&["scan", "-f", "-", "--context", "c"])]
fn wrong_usage_exits_with_2(#[case] args: &[&str]) {
    assert_eq!(restamp(args).status.code(), Some(2));
}

#[test]
fn whoever_stops_reading_gets_no_error() {
    let folder = TempDir::new().unwrap();
    let keys: Vec<_> = (0..5_000).map(|number| format!("KEY_{number}")).collect();
    let many = secret("a", &keys.iter().map(String::as_str).collect::<Vec<_>>());
    let path = file(&folder, "many.json", many.to_string().as_bytes());
    let mut scan = Command::new(env!("CARGO_BIN_EXE_restamp"))
        .args(["scan", "-f", &path])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(scan.stdout.take());
    let scan = scan.wait_with_output().unwrap();
    assert_eq!((scan.status.code(), text(&scan.stderr)), (Some(0), String::new()));
}

#[test]
fn the_version_is_printed() {
    assert_eq!(text(&restamp(&["--version"]).stdout), concat!("restamp ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn the_example_of_the_readme_shows_six_stale_keys() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/build-service.yaml");
    let scan = restamp(&["scan", "-o", "json", "--filename", example.to_str().unwrap()]);
    assert_eq!(found(&scan).len(), 6);
}

/// Every property of these parts of a SARIF log must be one that the schema of SARIF 2.1.0 has.
const SARIF: [(&str, &[&str]); 11] = [
    ("", &["$schema", "version", "runs"]),
    ("/runs/0", &["tool", "columnKind", "results"]),
    ("/runs/0/tool", &["driver"]),
    ("/runs/0/tool/driver", &["name", "version", "rules"]),
    (
        "/runs/0/tool/driver/rules/0",
        &["id", "name", "shortDescription", "fullDescription", "help", "defaultConfiguration"],
    ),
    ("/runs/0/results/0", &["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"]),
    ("/runs/0/results/0/message", &["text"]),
    ("/runs/0/results/0/locations/0", &["logicalLocations", "physicalLocation"]),
    ("/runs/0/results/0/locations/0/logicalLocations/0", &["name", "kind", "fullyQualifiedName"]),
    ("/runs/0/results/0/locations/0/physicalLocation", &["artifactLocation", "region"]),
    ("/runs/0/results/0/locations/0/physicalLocation/region", &["startLine"]),
];

#[test]
fn sarif_has_a_rule_for_each_type_and_a_result_for_each_finding_and_no_value() {
    let folder = TempDir::new().unwrap();
    let first = serde_saphyr::to_string(&secret("a", &[])).unwrap();
    let yaml = format!("{first}---\n{}", serde_saphyr::to_string(&secret("b", &["K", "L"])).unwrap());
    let path = file(&folder, "my objects.yaml", yaml.as_bytes());
    let scan = restamp(&["scan", "-f", &path, "-o", "sarif"]);
    assert!(scan.status.success() && !text(&scan.stdout).contains("MQ=="), "{}", text(&scan.stdout));
    let log: Value = serde_json::from_slice(&scan.stdout).unwrap();
    for (part, names) in SARIF {
        let part = log.pointer(part).unwrap().as_object().unwrap();
        assert!(part.keys().all(|name| names.contains(&name.as_str())), "{part:?}");
    }
    assert_eq!((&log["version"], &log["runs"][0]["tool"]["driver"]["name"]), (&json!("2.1.0"), &json!("restamp")));
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    assert!(rules.iter().all(|rule| rule["fullDescription"]["text"].is_string()), "{rules:?}");
    assert_eq!(
        rules.iter().map(|rule| rule["id"].as_str().unwrap()).collect::<std::collections::BTreeSet<_>>().len(),
        12
    );

    let results = log["runs"][0]["results"].as_array().unwrap();
    for result in results {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!((&result["ruleId"], &result["level"]), (&rule["id"], &json!("warning")));
        assert!(result["message"]["text"].is_string());
        let physical = &result["locations"][0]["physicalLocation"];
        assert!(physical["artifactLocation"]["uri"].as_str().unwrap().ends_with("/my%20objects.yaml"), "{physical}");
        assert_eq!(physical["region"]["startLine"], json!(first.lines().count() + 1));
    }
    let names =
        results.iter().map(|result| result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["ns/Secret/b:K", "ns/Secret/b:L"]);
}

#[test]
fn each_finding_is_explained_with_the_command_that_mends_it() {
    let input = secret("it's", &["K", "L"]).to_string();
    let said = text(&fed(&["scan", "-f", "-", "--explain"], input.as_bytes()).stdout);
    let told = "\nStaleKey: Secret ns/it's\n  \
                the key is live, yet no manifest declares it any more, and no apply removes it: remove it\n  \
                kubectl patch 'secret/it'\\''s' --namespace=ns --type=json \
                '--patch=[{\"op\":\"remove\",\"path\":\"/data/K\"},{\"op\":\"remove\",\"path\":\"/data/L\"}]'\n\n";
    assert!(said.contains(told), "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
}

#[test]
fn the_wide_table_shows_keys_by_manager() {
    let said = text(&fed(&["scan", "-f", "-", "-o", "wide"], secret("a", &["K", "L"]).to_string().as_bytes()).stdout);
    let table = "\
NAMESPACE   SUBJECT    MANAGER                     OPERATION   LAST WRITE   KEYS
ns          Secret/a   kubectl-client-side-apply   Update      unknown      K
                                                                            L
";
    assert!(said.contains(table), "{said}");
}
