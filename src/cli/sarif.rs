//! Findings as SARIF 2.1.0, which code hosts and editors show: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/>. A rule
//! for each type of finding, a result for each finding, and no value of anything.

use serde_json::{Value, json};

use crate::api::drift_report::{Certainty, DriftReport, FindingStatus, FindingType};
use crate::cli::inventory::{Inventory, Place};
use crate::cli::table::place;
use crate::model::names::Name;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The log of one scan.
pub fn of(reports: &[DriftReport], inventory: &Inventory) -> Value {
    let results = reports.iter().flat_map(|report| {
        let findings = report.status.iter().flat_map(|status| &status.findings);
        findings.map(move |finding| result(report, finding, inventory))
    });
    let driver = json!({
        "name": "restamp",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": FindingType::ALL.map(rule),
    });
    let run =
        json!({"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": Value::from_iter(results)});
    json!({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})
}

fn rule(r#type: FindingType) -> Value {
    json!({
        "id": r#type.to_string(),
        "name": r#type.to_string(),
        "shortDescription": {"text": r#type.count(1).trim_start_matches("1 ")},
        "fullDescription": {"text": r#type.meaning()},
        "help": {"text": r#type.meaning()},
        "defaultConfiguration": {"level": "warning"},
    })
}

fn result(report: &DriftReport, finding: &FindingStatus, inventory: &Inventory) -> Value {
    let subject = &report.spec.subject;
    let namespace = report.metadata.namespace.as_deref().unwrap_or_default();
    let name = format!("{namespace}/{}/{}", subject.kind, subject.name);
    let mut logical = json!({"name": subject.name, "kind": "object", "fullyQualifiedName": name});
    // Without both values of a field.
    let at = place(&FindingStatus { declared: None, live: None, ..finding.clone() });
    if at != "-" {
        logical = json!({"name": at, "kind": "member", "fullyQualifiedName": format!("{name}:{at}")});
    }
    let key = (Name::from(namespace), report.metadata.name.clone().unwrap_or_default());
    let location = match inventory.place_of(&key) {
        Some(Place { file, line }) => json!({
            "logicalLocations": [logical],
            "physicalLocation": {"artifactLocation": {"uri": uri(file)}, "region": {"startLine": line}},
        }),
        None => json!({"logicalLocations": [logical]}),
    };
    let level = if finding.certainty == Some(Certainty::Likely) { "note" } else { "warning" };
    let index = FindingType::ALL.iter().position(|r#type| *r#type == finding.r#type);
    json!({
        "ruleId": finding.r#type.to_string(),
        "ruleIndex": index,
        "level": level,
        "message": {"text": message(&name, &at, finding)},
        "locations": [location],
        "partialFingerprints": {"subjectAndPlace/v1": format!("{}:{name}:{at}", finding.r#type)},
    })
}

fn message(name: &str, at: &str, finding: &FindingStatus) -> String {
    let by = finding.manager.as_ref().map(|manager| format!(", written by {manager}")).unwrap_or_default();
    let more = finding.message.as_ref().map(|message| format!(" ({message})")).unwrap_or_default();
    format!("{name}: {at}{by}: {}{more}", finding.r#type.meaning())
}

/// A file's name as a relative or absolute reference.
fn uri(file: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let path: String = file.bytes().map(letter).collect();
    if file.starts_with('/') { format!("file://{path}") } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("all.yaml", "all.yaml")]
    #[case("./my files/a.yaml", "./my%20files/a.yaml")]
    #[case("/srv/a.yaml", "file:///srv/a.yaml")]
    fn a_file_is_named_by_a_reference(#[case] file: &str, #[case] expected: &str) {
        assert_eq!(uri(file), expected);
    }
}
