//! Tables for a person; and the reports as one.

use std::ffi::OsStr;

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, Color, ContentArrangement, Table};
use jiff::Timestamp;

use crate::api::drift_report::{Cause, Certainty, Consumer, DriftReport, FindingStatus};
use crate::model::explain::OwnedKeys;
use crate::model::names::ConfigId;

/// Whether a table is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// It is: a person reads it on a terminal.
    On,
    /// It is plain text.
    Off,
}

impl Colours {
    /// On a terminal, unless `NO_COLOR` says something: <https://no-color.org>.
    pub fn of(is_terminal: bool, no_color: Option<&OsStr>) -> Self {
        if is_terminal && no_color.is_none_or(OsStr::is_empty) { Self::On } else { Self::Off }
    }
}

/// One row for each finding.
pub fn of(reports: &[DriftReport], colours: Colours, now: Timestamp) -> String {
    let rows = findings(reports).map(|(report, finding)| coloured(row(report, finding, now), finding, colours));
    cells_laid_out(["NAMESPACE", "SUBJECT", "FINDING", "KEY OR FIELD", "WRITTEN BY", "AGE", "CONSUMERS"], rows)
}

/// The same, with each finding's cause, what says which keys are declared, and who must mend it.
pub fn wide(reports: &[DriftReport], colours: Colours, now: Timestamp) -> String {
    let rows = findings(reports).map(|(report, finding)| {
        let [namespace, subject, r#type, key, manager, age, consumers] = row(report, finding, now);
        let cause = finding.cause.map_or_else(|| "-".to_owned(), |cause| cause.to_string());
        let baseline = report.status.as_ref().and_then(|status| status.baseline);
        let baseline = baseline.map_or_else(|| "-".to_owned(), |baseline| baseline.to_string());
        let source = report.status.as_ref().and_then(|status| status.source.as_ref());
        let source = source.map_or_else(|| "-".to_owned(), ToString::to_string);
        let row = [namespace, subject, r#type, key, manager, age, cause, baseline, source, consumers];
        coloured(row, finding, colours)
    });
    let header = [
        "NAMESPACE",
        "SUBJECT",
        "FINDING",
        "KEY OR FIELD",
        "WRITTEN BY",
        "AGE",
        "CAUSE",
        "BASELINE",
        "SOURCE",
        "CONSUMERS",
    ];
    cells_laid_out(header, rows)
}

/// Who owns which keys of these configs.
pub fn owned_keys(owned: &[(ConfigId, OwnedKeys)], now: Timestamp) -> String {
    let rows = owned.iter().map(|(id, OwnedKeys { manager, operation, since, keys })| {
        let since = since.map_or_else(|| "unknown".to_owned(), |since| age(since, now));
        let keys: Vec<&str> = keys.iter().map(|key| key.as_str()).collect();
        let subject = format!("{}/{}", id.kind, id.name);
        [id.namespace.to_string(), subject, manager.to_string(), operation.to_string(), since, keys.join("\n")]
    });
    laid_out(["NAMESPACE", "SUBJECT", "MANAGER", "OPERATION", "LAST WRITE", "KEYS"], rows)
}

/// The type stands out: what is certain more than what is likely.
fn coloured<const N: usize>(row: [String; N], finding: &FindingStatus, colours: Colours) -> [Cell; N] {
    let r#type = finding.r#type.to_string();
    let colour = if finding.certainty == Some(Certainty::Likely) { Color::Yellow } else { Color::Red };
    row.map(|text| {
        let cell = Cell::new(printable(&text));
        if colours == Colours::On && text == r#type { cell.fg(colour) } else { cell }
    })
}

fn findings(reports: &[DriftReport]) -> impl Iterator<Item = (&DriftReport, &FindingStatus)> {
    reports.iter().flat_map(|report| {
        let findings = report.status.iter().flat_map(|status| &status.findings);
        findings.map(move |finding| (report, finding))
    })
}

/// Rows below a header, in columns.
pub fn laid_out<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    cells_laid_out(header, rows.into_iter().map(|row| row.map(|text| Cell::new(printable(&text)))))
}

fn cells_laid_out<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [Cell; N]>) -> String {
    let mut table = Table::new();
    // Whether it is a terminal is known to whoever made the cells.
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled).enforce_styling();
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    table.trim_fmt() + "\n"
}

fn row(report: &DriftReport, finding: &FindingStatus, now: Timestamp) -> [String; 7] {
    // Who wrote what, and who reads it, is asked of the subject's own keys and fields alone.
    let is_of_its_own = finding.object.is_none() && (finding.key.is_some() || finding.path.is_some());
    let unknown = if is_of_its_own { "unknown" } else { "-" };
    let manager = match (&finding.manager, finding.cause) {
        (Some(manager), _) => manager.to_string(),
        (None, Some(Cause::Unowned)) => "nobody owns it".to_owned(),
        (None, _) => unknown.to_owned(),
    };
    let key = finding.key.as_ref().map(|key| key.as_str()).unwrap_or_default();
    let consumers = finding.consumers.iter().map(|consumer| reading(consumer, key)).collect::<Vec<_>>();
    [
        report.metadata.namespace.clone().unwrap_or_default(),
        format!("{}/{}", report.spec.subject.kind, report.spec.subject.name),
        finding.r#type.to_string(),
        place(finding),
        manager,
        finding.since.as_ref().map_or_else(|| unknown.to_owned(), |since| age(since.0, now)),
        match consumers.as_slice() {
            [] if is_of_its_own && finding.key.is_some() => "none".to_owned(),
            [] => "-".to_owned(),
            consumers => consumers.join("\n"),
        },
    ]
}

/// What a finding is about: the key, the field and both its values, the object that is not there, or the container.
pub fn place(finding: &FindingStatus) -> String {
    let FindingStatus { object, key, path, container, declared, live, .. } = finding;
    match (object, key, path, container) {
        (Some(object), Some(key), ..) => format!("{object}[{key}]"),
        (Some(object), None, ..) => object.clone(),
        (None, Some(key), ..) => key.to_string(),
        (None, None, Some(path), _) => match (declared, live) {
            (Some(declared), Some(live)) => format!("{}: {declared} -> {live}", short(path)),
            _ => short(path).to_owned(),
        },
        (None, None, None, Some(container)) => container.to_string(),
        (None, None, None, None) => "-".to_owned(),
    }
}

/// A path without the way to the pod's own spec, which is the same for all.
fn short(path: &str) -> &str {
    let ways = ["spec.jobTemplate.spec.template.spec.", "spec.template.spec."];
    ways.iter().find_map(|way| path.strip_prefix(way)).unwrap_or(path)
}

/// Who reads a key, how, and as what where it has another name there.
pub fn reading(consumer: &Consumer, key: &str) -> String {
    let Consumer { workload, container, via, r#as, .. } = consumer;
    if r#as == key {
        return format!("{workload} {container} ({via})");
    }
    format!("{workload} {container} ({via} {})", r#as)
}

/// How long ago, in the largest unit, as kubectl has it. The time of a last write says "at least so old".
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Names in a file may be anything; a terminal should not obey them.
pub fn printable(text: &str) -> String {
    let shown = text.chars().map(|letter| match letter {
        '\n' => letter,
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::api::drift_report::{Baseline, Source, SourceKind};
    use crate::model::builders::{deployment, secret};
    use crate::model::config::Config;
    use crate::model::consumption::{Missing, Refresh, Via};
    use crate::model::drift::{Drift, Finding, StaleCause, Stall, Writer};
    use crate::model::fields::Shown;
    use crate::model::report;
    use crate::model::source::Origin;
    use rstest::rstest;

    #[test]
    fn each_finding_has_a_row_with_all_its_consumers() {
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        let consumer = |container: &str, seen_as: &str| Consumer {
            workload: "Deployment/w".to_owned(),
            container: container.into(),
            via: Via::EnvFrom,
            r#as: seen_as.to_owned(),
            refresh: Refresh::AtStart,
        };
        let by = Writer { manager: "kubectl-edit".into(), since: Some("2026-11-27T12:00:00Z".parse().unwrap()) };
        let consumers = vec![consumer("app", "K"), consumer("init", "P_K")];
        let findings = vec![
            Finding::StaleKey { key: "OLD".into(), cause: StaleCause::Unowned, consumers: vec![] },
            Finding::UndeclaredKey { key: "K".into(), by, consumers },
        ];
        let drift = Drift { baseline: Baseline::LastApplied, findings, notes: vec![] };
        let expected = "\
NAMESPACE   SUBJECT    FINDING         KEY OR FIELD   WRITTEN BY       AGE       CONSUMERS
ns          Secret/s   StaleKey        OLD            nobody owns it   unknown   none
ns          Secret/s   UndeclaredKey   K              kubectl-edit     3d        Deployment/w app (envFrom)
                                                                                 Deployment/w init (envFrom P_K)
";
        let source = Source { kind: SourceKind::Application, namespace: None, name: "shop".into() };
        let origin = Some(Origin { source: Some(source), release: None }.into());
        let config = Config { origin, ..secret("s").build() };
        let reports = [report::of_config(&config, report::status_of(drift, now))];
        assert_eq!(of(&reports, Colours::Off, now), expected);
        let expected = "\
NAMESPACE   SUBJECT    FINDING         KEY OR FIELD   WRITTEN BY       AGE       CAUSE     BASELINE      SOURCE             CONSUMERS
ns          Secret/s   StaleKey        OLD            nobody owns it   unknown   Unowned   LastApplied   Application shop   none
ns          Secret/s   UndeclaredKey   K              kubectl-edit     3d        -         LastApplied   Application shop   Deployment/w app (envFrom)
                                                                                                                            Deployment/w init (envFrom P_K)
";
        assert_eq!(wide(&reports, Colours::Off, now), expected);
    }

    #[test]
    fn what_runs_has_neither_a_writer_nor_consumers() {
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        let findings = vec![
            Finding::MixedDigests { container: "app".into(), image: "app:1".into(), digests: BTreeMap::new() },
            Finding::RolloutStalled(Stall { pod: None, our_cause: None }),
        ];
        let drift = Drift { baseline: Baseline::LastApplied, findings, notes: vec![] };
        let expected = "\
NAMESPACE   SUBJECT        FINDING          KEY OR FIELD   WRITTEN BY   AGE   CONSUMERS
ns          Deployment/w   MixedDigests     app            -            -     -
ns          Deployment/w   RolloutStalled   -              -            -     -
";
        let reports = [report::of_workload(&deployment("w").build(), report::status_of(drift, now))];
        assert_eq!(of(&reports, Colours::Off, now), expected);
    }

    #[test]
    fn a_field_is_shown_by_where_it_is_in_the_pod_and_what_changed() {
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        let by = Writer { manager: "kubectl-set".into(), since: Some("2026-11-30T11:00:00Z".parse().unwrap()) };
        let shown = Some(Shown { declared: "app:1.4.0".to_owned(), live: "app:1.5.0".to_owned() });
        let path = "spec.template.spec.containers[app].image".to_owned();
        let env = "spec.template.spec.containers[app].env[A]".to_owned();
        let missing = Missing { config: secret("absent").build().id, key: Some("K".into()) };
        let findings = vec![
            Finding::RevertsOnApply { path, shown, by: Some(by.clone()) },
            Finding::UndeclaredField { path: env, by },
            Finding::MissingReference(missing),
        ];
        let drift = Drift { baseline: Baseline::LastApplied, findings, notes: vec![] };
        let expected = "\
NAMESPACE   SUBJECT        FINDING            KEY OR FIELD                                    WRITTEN BY    AGE   CONSUMERS
ns          Deployment/w   RevertsOnApply     containers[app].image: app:1.4.0 -> app:1.5.0   kubectl-set   60m   -
ns          Deployment/w   UndeclaredField    containers[app].env[A]                          kubectl-set   60m   -
ns          Deployment/w   MissingReference   Secret/absent[K]                                -             -     -
";
        let reports = [report::of_workload(&deployment("w").build(), report::status_of(drift, now))];
        assert_eq!(of(&reports, Colours::Off, now), expected);
    }

    #[rstest]
    #[case::a_terminal(true, None, Colours::On)]
    #[case::no_terminal(false, None, Colours::Off)]
    #[case::unwanted(true, Some("1"), Colours::Off)]
    #[case::an_empty_wish_is_none(true, Some(""), Colours::On)]
    fn a_table_is_coloured_on(#[case] is_terminal: bool, #[case] no_color: Option<&str>, #[case] expected: Colours) {
        assert_eq!(Colours::of(is_terminal, no_color.map(OsStr::new)), expected);
    }

    #[test]
    fn colours_change_nothing_but_the_type_of_what_was_found() {
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        let findings = vec![Finding::StaleKey { key: "OLD".into(), cause: StaleCause::Unowned, consumers: vec![] }];
        let drift = Drift { baseline: Baseline::LastApplied, findings, notes: vec![] };
        let reports = [report::of_config(&secret("s").build(), report::status_of(drift, now))];
        let (plain, coloured) = (of(&reports, Colours::Off, now), of(&reports, Colours::On, now));
        assert!(!plain.contains('\u{1b}'), "{plain}");
        assert!(coloured.contains("StaleKey") && coloured.contains('\u{1b}'), "{coloured}");
        let letters = |text: &str| text.replace("\u{1b}[38;5;9m", "").replace("\u{1b}[39m", "");
        assert_eq!(letters(&coloured), plain);
    }

    #[rstest]
    #[case("2026-11-30T11:59:15Z", "45s")]
    #[case("2026-11-30T11:00:00Z", "60m")]
    #[case("2026-11-29T11:00:00Z", "25h")]
    #[case("2026-11-01T12:00:00Z", "29d")]
    #[case("2026-11-30T12:00:09Z", "0s")]
    fn an_age_is_in_the_largest_unit(#[case] since: &str, #[case] expected: &str) {
        assert_eq!(age(since.parse().unwrap(), "2026-11-30T12:00:00Z".parse().unwrap()), expected);
    }

    #[test]
    fn a_terminal_obeys_no_name() {
        assert_eq!(printable("a\u{1b}[2Jb\nc"), "a\u{fffd}[2Jb\nc");
    }
}
