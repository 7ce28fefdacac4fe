//! Reports about drift: when they come and go, of what they are, and that there are none where nothing drifts.

use std::time::Instant;

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::cluster::{Cluster, Installed};
use crate::support::kind::{CONFIG_MAP, DEPLOYMENT, DRIFT_REPORT, EVENT};
use crate::support::manifests::{config_map, deployment, secret};
use crate::support::namespace::Namespace;
use crate::support::operator::Operator;
use crate::support::turn;
use crate::support::waiting::{PATIENCE, poll};

/// One that restamp does not roll.
fn silent(workload: impl Into<Value>) -> Value {
    let mut manifest = workload.into();
    manifest["metadata"].as_object_mut().unwrap().remove("annotations");
    manifest
}

fn types(report: &Value) -> Vec<&str> {
    let findings = report["status"]["findings"].as_array().into_iter().flatten();
    findings.map(|finding| finding["type"].as_str().unwrap()).collect()
}

/// Whether the operator counts this many, by this metric with these labels.
async fn counts(operator: &Operator, series: &str, many: usize) {
    let line = format!("{series} {many}");
    let counted = async || operator.get("/metrics").is_some_and(|(_, text)| text.lines().any(|it| it == line));
    let metrics = || operator.get("/metrics").unwrap().1;
    assert!(poll(PATIENCE, counted).await.is_ok(), "waited for {line}, and there is\n{}", metrics());
}

/// The same in a namespace, of configs in this state.
async fn configs_count(operator: &Operator, ns: &Namespace, state: &str, many: usize) {
    counts(operator, &format!("restamp_configs{{namespace=\"{}\",state=\"{state}\"}}", ns.name()), many).await;
}

#[tokio::test]
async fn findings_come_with_the_write_that_causes_them_and_go_with_the_one_that_mends_them() {
    let turn = turn().await;
    let ns = turn.namespace("comes").await;
    let operator = turn.operator(&[("--report-after", "0s")]).await;
    ns.apply(&[secret("s", &[("KEPT", "1"), ("OLD", "1")]), silent(deployment("w").env_from_secret("s"))]);
    ns.rolled_out(DEPLOYMENT, "w").await;
    let series = |r#type: &str, kind: &str, name: &str| {
        let ns = ns.name();
        format!(
            "restamp_findings{{certainty=\"certain\",kind=\"{kind}\",name=\"{name}\",namespace=\"{ns}\",type=\"{type}\"}}"
        )
    };

    ns.apply(&[secret("s", &[("KEPT", "1")])]);
    let written = Instant::now();
    ns.until(DRIFT_REPORT, "secret-s", "to tell of the stale key", |it| types(it) == ["StaleKey"]).await;
    eprintln!("a stale key is reported after {:?}", written.elapsed());
    counts(&operator, &series("StaleKey", "Secret", "s"), 1).await;
    configs_count(&operator, &ns, "drifted", 1).await;

    ns.kubectl(&["patch", "secret/s", "--type=json", r#"--patch=[{"op":"remove","path":"/data/OLD"}]"#]);
    let mended = Instant::now();
    ns.until(DRIFT_REPORT, "secret-s", "to be in sync", |it| types(it).is_empty()).await;
    eprintln!("it is gone after {:?}", mended.elapsed());
    configs_count(&operator, &ns, "in-sync", 1).await;

    ns.kubectl(&["set", "image", "deployment/w", "app=localhost/app:2"]);
    let written = Instant::now();
    let reverts = |it: &Value| types(it) == ["RevertsOnApply"];
    ns.until(DRIFT_REPORT, "deployment-w", "to tell of the image", reverts).await;
    eprintln!("an image is reported after {:?}", written.elapsed());
    counts(&operator, &series("RevertsOnApply", "Deployment", "w"), 1).await;
    ns.apply(&[silent(deployment("w").env_from_secret("s"))]);
    let mended = Instant::now();
    ns.until(DRIFT_REPORT, "deployment-w", "to be in sync", |it| types(it).is_empty()).await;
    eprintln!("it is gone after {:?}", mended.elapsed());

    ns.kubectl(&["delete", "secret/s"]);
    let gone =
        async || !operator.get("/metrics").unwrap().1.contains(&format!("namespace=\"{}\",state=\"in-", ns.name()));
    assert!(poll(PATIENCE, gone).await.is_ok(), "{}", operator.get("/metrics").unwrap().1);
}

#[rstest]
#[case::configs_first(false)]
#[case::workloads_first(true)]
#[tokio::test]
async fn a_deploy_of_a_folder_makes_no_report_in_whatever_order(#[case] reversed: bool) {
    let turn = turn().await;
    let ns = turn.namespace("folder").await;
    let _operator = turn.operator(&[("--report-after", "30s")]).await;
    for version in ["1", "2"] {
        let workloads = ["a", "b", "c"].map(|name| {
            let workload = deployment(name).image(&format!("localhost/app:{version}"));
            silent(workload.env_from_secret("s").env_of_config_map("c", "K"))
        });
        let configs =
            [secret("s", &[("K", version)]), config_map("c", &[("K", version), (&format!("K{version}"), "1")])];
        let mut folder: Vec<Value> = configs.into_iter().chain(workloads).collect();
        if reversed {
            folder.reverse();
        }
        // One by one, as a slow pipeline does it.
        folder.iter().for_each(|manifest| drop(ns.apply(std::slice::from_ref(manifest))));
    }
    for name in ["a", "b", "c"] {
        ns.rolled_out(DEPLOYMENT, name).await;
    }
    ns.operator_has_caught_up().await;
    // A report whose findings went would still be there.
    let about = |report: &Value| report["spec"]["subject"]["name"].as_str().unwrap().to_owned();
    let reports: Vec<String> = ns.list(DRIFT_REPORT).await.iter().map(about).collect();
    assert!(reports.iter().all(|name| name.starts_with("witness-")), "{reports:?}");
}

#[tokio::test]
async fn of_what_does_not_drift_nothing_is_written() {
    const CONFIGS: usize = 2_000;
    const WORKLOADS: usize = 500;
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start_without_nodes(Installed::Everything)));
    let ns = Namespace::create(cluster, "many").await;
    let operator = Operator::start(cluster, &["--report-after", "0s"]).await;
    let begun = Instant::now();
    let configs = (0..CONFIGS).map(|number| config_map(&format!("c-{number}"), &[("K", "1")]));
    ns.create_as_applied(CONFIG_MAP, configs).await;
    // No pods: it is about the operator, not about the machine.
    let asleep = |mut manifest: Value| {
        manifest["spec"]["replicas"] = json!(0);
        manifest
    };
    let workloads = (0..WORKLOADS).map(|number| {
        let names = (0..4).map(|nth| format!("c-{}", number * 4 + nth));
        let workload =
            names.fold(deployment(&format!("w-{number}")), |workload, name| workload.env_from_config_map(&name));
        asleep(silent(workload))
    });
    ns.create_as_applied(DEPLOYMENT, workloads).await;
    configs_count(&operator, &ns, "in-sync", CONFIGS).await;
    eprintln!("{CONFIGS} configs and {WORKLOADS} workloads were made and looked at in {:?}", begun.elapsed());
    // Whatever it does about them is done once it has told of what drifts later.
    let reader = asleep(silent(deployment("witness-w").env_from_secret("witness-s")));
    ns.apply(&[secret("witness-s", &[("KEPT", "1"), ("OLD", "1")]), reader]);
    ns.apply(&[secret("witness-s", &[("KEPT", "1")])]);
    ns.until(DRIFT_REPORT, "secret-witness-s", "to tell of the stale key", |it| types(it) == ["StaleKey"]).await;

    let of_witness = |object: &Value| object["metadata"]["name"].as_str().unwrap().contains("witness-");
    let reports = ns.list(DRIFT_REPORT).await;
    assert!(reports.iter().all(of_witness), "{} reports", reports.len());
    let told = ns.list(EVENT).await;
    let by_us = |event: &&Value| event["reportingController"].as_str().is_some_and(|by| by.contains("restamp"));
    let told: Vec<&Value> = told.iter().filter(by_us).filter(|event| !of_witness(event)).collect();
    assert!(told.is_empty(), "{told:?}");
    for kind in [CONFIG_MAP, DEPLOYMENT] {
        let objects = ns.list(kind).await;
        let by_us = |entry: &Value| entry["manager"].as_str().is_some_and(|manager| manager.starts_with("restamp"));
        let written = |object: &&Value| object["metadata"]["managedFields"].as_array().unwrap().iter().any(by_us);
        let written: Vec<&Value> = objects.iter().filter(|object| !of_witness(object)).filter(written).collect();
        assert!(objects.len() >= WORKLOADS && written.is_empty(), "{written:?}");
    }
}

#[tokio::test]
async fn drift_is_reported_where_the_flags_say_and_apart_from_reloading() {
    let turn = turn().await;
    let ns = turn.namespace("labelled").await;
    let operator = turn.operator(&[("--drift", "all"), ("--drift-namespace-selector", "drift=yes")]).await;
    ns.apply(&[
        secret("read", &[("KEPT", "1"), ("OLD", "1")]),
        secret("unread", &[("KEPT", "1"), ("OLD", "1")]),
        deployment("w").env_from_secret("read").into(),
    ]);
    ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&[secret("read", &[("KEPT", "2")]), secret("unread", &[("KEPT", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    // kube-root-ca.crt is the third one.
    configs_count(&operator, &ns, "out-of-scope", 3).await;
    assert_eq!(ns.list(DRIFT_REPORT).await.len(), 1);

    ns.kubectl(&["label", "namespace", ns.name(), "drift=yes"]);
    for name in ["secret-read", "secret-unread"] {
        ns.until(DRIFT_REPORT, name, "to tell of the stale key", |it| types(it) == ["StaleKey"]).await;
    }
    configs_count(&operator, &ns, "drifted", 2).await;
    ns.kubectl(&["label", "namespace", ns.name(), "drift-"]);
    ns.until_all(DRIFT_REPORT, "to be of the workload alone", |reports| reports.len() == 1).await;
    configs_count(&operator, &ns, "out-of-scope", 3).await;
}

#[tokio::test]
async fn without_drift_nothing_is_found_and_jobs_need_not_be_read() {
    let turn = turn().await;
    let ns = turn.namespace("off").await;
    let account = ns.name();
    let cluster = turn.cluster();
    let create = |args: &[&str]| cluster.kubectl(&[&["create", "--namespace=restamp-system"], args].concat());
    let mut role: Value =
        serde_json::from_str(&cluster.kubectl(&["get", "clusterrole", "restamp", "--output=json"])).unwrap();
    role["metadata"] = json!({"name": account});
    role["rules"].as_array_mut().unwrap().retain(|rule| rule["apiGroups"] != json!(["batch"]));
    cluster.kubectl_reading(&role.to_string(), &["create", "--filename=-"]);
    let subject = format!("--serviceaccount=restamp-system:{account}");
    create(&["serviceaccount", account]);
    create(&["clusterrolebinding", account, &format!("--clusterrole={account}"), &subject]);
    create(&["rolebinding", account, "--role=restamp", &subject]);

    let operator = turn.operator_as(account, &[("--drift", "off"), ("--report-after", "0s")]).await;
    ns.apply(&[secret("s", &[("KEPT", "1"), ("OLD", "1")]), deployment("w").env_from_secret("s").into()]);
    ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&[secret("s", &[("KEPT", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    ns.kubectl(&["set", "image", "deployment/w", "app=localhost/app:2"]);
    ns.operator_has_caught_up().await;
    let reports = ns.list(DRIFT_REPORT).await;
    let says_something = |report: &&Value| report["status"].as_object().unwrap().keys().any(|field| field != "reload");
    assert_eq!(reports.iter().filter(says_something).collect::<Vec<_>>(), [&Value::Null; 0]);
    assert!(!operator.log().contains("forbidden"), "{}", operator.log());
}
