//! What is in `deploy/monitoring/`: it holds together, and Prometheus's own tool finds it right. Needs promtool, which is
//! in Debian's package `prometheus`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::collections::BTreeSet;
use std::process::Command;

use restamp::operator::metrics::Metrics;
use rstest::rstest;
use serde_json::Value;

const RULES: &str = "deploy/monitoring/rules.yaml";
const TESTS: &str = "deploy/monitoring/rules.test.yaml";
const DASHBOARD: &str = "deploy/monitoring/dashboard.json";
const PAGES: &str = "docs/alerts";

fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn alerts() -> Vec<Value> {
    items(&yaml(RULES)["groups"]).flat_map(|group| items(&group["rules"]).cloned()).collect()
}

fn names(alerts: &[Value]) -> BTreeSet<String> {
    alerts.iter().map(|alert| alert["alert"].as_str().unwrap().to_owned()).collect()
}

#[rstest]
#[case("check", RULES)]
#[case("test", TESTS)]
fn promtool_finds_nothing_wrong(#[case] command: &str, #[case] file: &str) {
    let output = Command::new("promtool").args([command, "rules", file]).output();
    let output =
        output.unwrap_or_else(|error| panic!("cannot run promtool: {error}; install Debian's package prometheus"));
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn every_alert_is_shown_to_fire_and_not_to() {
    let tests = yaml(TESTS);
    let checks = || items(&tests["tests"]).flat_map(|test| items(&test["alert_rule_test"]));
    let checked = |fires: bool| -> BTreeSet<String> {
        let checks = checks().filter(|check| (items(&check["exp_alerts"]).count() > 0) == fires);
        checks.map(|check| check["alertname"].as_str().unwrap().to_owned()).collect()
    };
    let alerts = names(&alerts());
    assert_eq!((checked(true), checked(false)), (alerts.clone(), alerts));
}

#[test]
fn every_alert_says_how_bad_it_is_and_has_a_page() {
    let alerts = alerts();
    for alert in &alerts {
        let severity = alert["labels"]["severity"].as_str().unwrap();
        assert!(["critical", "warning", "info"].contains(&severity), "{alert}");
        let page = format!("https://restamp.dev/{PAGES}/{}.md", alert["alert"].as_str().unwrap());
        assert_eq!(alert["annotations"]["runbook_url"], *page);
        assert!(alert["annotations"]["summary"].is_string() && alert["annotations"]["description"].is_string());
    }
    let pages = std::fs::read_dir(PAGES).unwrap().map(|entry| entry.unwrap().path());
    let pages: BTreeSet<String> = pages.map(|page| page.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(pages, names(&alerts));
}

#[test]
fn only_metrics_that_there_are_are_asked_for() {
    let descriptions = Metrics::new().unwrap().descriptions();
    let known = |name: &str| descriptions.iter().any(|(known, ..)| name == known || name == format!("{known}_bucket"));
    for file in [RULES, TESTS, DASHBOARD] {
        let text = std::fs::read_to_string(file).unwrap();
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let unknown: BTreeSet<&str> = words.filter(|word| word.starts_with("restamp_") && !known(word)).collect();
        assert_eq!(unknown, BTreeSet::new(), "in {file}");
    }
}
