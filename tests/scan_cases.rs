//! What `restamp scan` finds in each case, against what a truthful report has: `tests/cases/check.py`, in Rust.
//!
//! A field that expect.yaml does not name is free; a finding that it does not name is a failure.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Findings that were found, expected, or both.
#[derive(Debug, Default)]
struct Tally {
    right: usize,
    wrong: usize,
    missed: usize,
}

/// The baseline and the findings of each subject.
type Reports = BTreeMap<(String, String), (Value, Vec<Value>)>;

#[test]
fn every_case_has_the_findings_of_a_truthful_report() {
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    for case in cases() {
        compare(&case, expected(&case), scanned(&case), &mut tally, &mut failures);
    }
    let share = |part: usize, other: usize| if part == 0 { 0.0 } else { part as f64 / (part + other) as f64 };
    println!("precision {:.3}", share(tally.right, tally.wrong));
    println!("recall {:.3}", share(tally.right, tally.missed));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(tally.right > 0, "no case was found");
}

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let folders = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = folders.filter(|folder| folder.join("expect.yaml").exists()).collect();
    cases.sort();
    cases
}

fn expected(case: &Path) -> Reports {
    let text = fs::read_to_string(case.join("expect.yaml")).unwrap();
    let expected: Value = serde_saphyr::from_str(&text).unwrap();
    reports(expected["reports"].as_array().unwrap(), |report| &report["subject"], |report| report)
}

fn scanned(case: &Path) -> Reports {
    let scan = Command::new(env!("CARGO_BIN_EXE_restamp"))
        .args(["scan", "-o", "json", "--filename"])
        .arg(case.join("objects.yaml"))
        .output()
        .unwrap();
    assert!(scan.status.success(), "{}: {}", case.display(), String::from_utf8_lossy(&scan.stderr));
    let list: Value = serde_json::from_slice(&scan.stdout).unwrap();
    reports(list["items"].as_array().unwrap(), |report| &report["spec"]["subject"], |report| &report["status"])
}

fn reports(items: &[Value], subject: fn(&Value) -> &Value, status: fn(&Value) -> &Value) -> Reports {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = items.iter().map(|item| {
        let findings = status(item)["findings"].as_array().cloned().unwrap_or_default();
        let subject = subject(item);
        ((text(&subject["kind"]), text(&subject["name"])), (status(item)["baseline"].clone(), findings))
    });
    all.filter(|(_, (_, findings))| !findings.is_empty()).collect()
}

fn compare(case: &Path, expected: Reports, mut found: Reports, tally: &mut Tally, failures: &mut Vec<String>) {
    let mut fail = |subject: &(String, String), what: String| {
        failures.push(format!("{}: {}/{}: {what}", case.display(), subject.0, subject.1));
    };
    for (subject, (baseline, findings)) in expected {
        let (actual_baseline, mut rest) = found.remove(&subject).unwrap_or((Value::Null, Vec::new()));
        if actual_baseline != baseline {
            fail(&subject, format!("baseline {actual_baseline}, not {baseline}"));
        }
        for want in findings {
            match rest.iter().position(|got| is_as(&want, got)) {
                Some(position) => {
                    rest.remove(position);
                    tally.right += 1;
                }
                None => {
                    tally.missed += 1;
                    fail(&subject, format!("missing {want}"));
                }
            }
        }
        found.insert(subject, (baseline, rest));
    }
    for (subject, (_, rest)) in found {
        for finding in rest {
            tally.wrong += 1;
            fail(&subject, format!("unexpected {finding}"));
        }
    }
}

/// Whether a finding has all that is wanted; consumers are compared as sets.
fn is_as(want: &Value, got: &Value) -> bool {
    want.as_object().unwrap().iter().all(|(field, value)| match field.as_str() {
        "consumers" => consumers(value) == consumers(&got["consumers"]),
        _ => got.get(field) == Some(value),
    })
}

fn consumers(list: &Value) -> Vec<String> {
    let fields = ["workload", "container", "via", "as", "refresh"];
    let one = |consumer: &Value| fields.map(|field| consumer[field].to_string()).join(" ");
    let mut all: Vec<_> = list.as_array().into_iter().flatten().map(one).collect();
    all.sort();
    all
}
