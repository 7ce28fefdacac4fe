//! Explanations for a person.

use std::io::{self, Write};

use jiff::Timestamp;

use crate::api::drift_report::Source;
use crate::cli::table::{age, laid_out, printable, reading};
use crate::model::explain::{
    ConfigExplanation, KeyExplanation, NoDrift, OperatorExplanation, OwnedKeys, Reading, Reload, ReloadOfConfig,
    Subject, Verdict, WorkloadExplanation,
};
use crate::model::names::{KeyName, Name};

/// Prints what there is to say about a workload.
pub(super) fn of_workload(workload: &WorkloadExplanation, now: Timestamp, out: &mut impl Write) -> io::Result<()> {
    let WorkloadExplanation { verdict, problems, missing, readings, reload, no_reload, .. } = workload;
    writeln!(out, "{}", title(&workload.subject))?;
    if let Some(referrer) = &workload.template_of {
        writeln!(out, "Stamped in place of {}, which takes its pod template from here", title(referrer))?;
    }
    writeln!(out, "Rolls when its config changes: {}; {}", verdict.rolls, printable(&verdict.message))?;
    if let Some(why) = &workload.pods_stay {
        writeln!(out, "Pods stay when it rolls: {}", printable(why))?;
    }
    of_source(workload.source.as_ref(), out)?;
    for problem in problems {
        writeln!(out, "Problem: {}", printable(problem))?;
    }
    for missing in missing {
        writeln!(out, "Missing: {}", printable(missing))?;
    }
    writeln!(out)?;
    if readings.is_empty() {
        writeln!(out, "It reads no ConfigMap and no Secret.")?;
    } else {
        let header = ["CONTAINER", "CONFIG", "KEY", "VIA", "REFRESH", "AS", "ROLLS", "WHY"];
        write!(out, "{}", laid_out(header, readings.iter().map(|reading| row(reading, verdict))))?;
    }
    writeln!(out)?;
    match (reload, no_reload) {
        (Some(reload), _) => of_reload(reload, now, out)?,
        (None, Some(no_reload)) => writeln!(out, "Reload: {}", printable(&no_reload.message))?,
        (None, None) => {}
    }
    if let Some(why) = &workload.not_compared {
        writeln!(out, "Fields: not compared; {}", printable(why))?;
    }
    of_no_drift(workload.no_drift.as_ref(), out)?;
    match &workload.operator {
        Some(operator) => of_operator(operator, out),
        None => Ok(()),
    }
}

fn of_source(source: Option<&Source>, out: &mut impl Write) -> io::Result<()> {
    source.map_or(Ok(()), |source| writeln!(out, "Source: {}", printable(&source.to_string())))
}

fn of_no_drift(no_drift: Option<&NoDrift>, out: &mut impl Write) -> io::Result<()> {
    no_drift.map_or(Ok(()), |why| writeln!(out, "Drift: not reported; {}", printable(&why.message)))
}

fn of_operator(operator: &OperatorExplanation, out: &mut impl Write) -> io::Result<()> {
    let OperatorExplanation { namespace, version, running, remarks } = operator;
    let version = version.as_ref().map(|version| format!(", version {version}")).unwrap_or_default();
    let line = format!("Operator: {} in namespace {namespace}{version}", running.as_str());
    writeln!(out, "\n{}", printable(&line))?;
    remarks.iter().try_for_each(|remark| writeln!(out, "Operator: {}", printable(&remark.message)))
}

fn title(subject: &Subject) -> String {
    let Subject { kind, namespace, name } = subject;
    printable(&format!("{kind} {namespace}/{name}"))
}

/// A row of the table; the reason that stands above it is not repeated.
fn row(reading: &Reading, above: &Verdict) -> [String; 8] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let own = if reading.verdict == *above { "as above" } else { &reading.verdict.message };
    let why = [Some(own), reading.existence.remark(reading.verdict.rolls)];
    [
        or_dash(reading.container.as_ref().map(Name::to_string)),
        reading.config.to_string(),
        or_dash(reading.key.as_ref().map(KeyName::to_string)),
        or_dash(reading.via.map(|via| via.to_string())),
        or_dash(reading.refresh.map(|refresh| refresh.to_string())),
        or_dash(reading.r#as.clone()),
        reading.verdict.rolls.to_string(),
        why.into_iter().flatten().collect::<Vec<_>>().join("; "),
    ]
}

fn of_reload(reload: &Reload, now: Timestamp, out: &mut impl Write) -> io::Result<()> {
    let Reload { state, message, instance, last_reload, configs } = reload;
    let why = if message.is_empty() { String::new() } else { format!(": {}", printable(message)) };
    writeln!(out, "Reload: {state}{why}")?;
    writeln!(out, "Record kept by the restamp in namespace {}", printable(instance))?;
    match last_reload {
        Some(last) => {
            writeln!(out, "Last reload: {} ago; {}", age(last.time, now), printable(&last.cause))?;
        }
        None => writeln!(out, "Last reload: none")?,
    }
    if configs.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let rows = configs.iter().map(|config| of_record(config, now));
    write!(out, "{}", laid_out(["CONFIG", "LAST CHANGE", "NOT YET READ"], rows))
}

fn of_record(record: &ReloadOfConfig, now: Timestamp) -> [String; 3] {
    let changed = match (record.last_changed, record.absent_since) {
        (_, Some(since)) => format!("missing for {}", age(since, now)),
        (Some(changed), None) => format!("{} ago", age(changed, now)),
        (None, None) => "none seen".to_owned(),
    };
    let open = match &record.open {
        None => "-".to_owned(),
        Some(open) if open.keys.is_empty() => format!("for {}", age(open.since, now)),
        Some(open) => format!("{} for {}", list(&open.keys), age(open.since, now)),
    };
    [record.config.to_string(), changed, open]
}

/// Prints what there is to say about a config.
pub(super) fn of_config(config: &ConfigExplanation, now: Timestamp, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", title(&config.subject))?;
    writeln!(out, "Baseline: {}; {}", config.baseline, printable(&config.baseline_message))?;
    of_source(config.source.as_ref(), out)?;
    if let Some(why) = &config.not_looked_at {
        writeln!(out, "Drift: not looked at; {}", printable(why))?;
    }
    of_no_drift(config.no_drift.as_ref(), out)?;
    if let Some(why) = &config.rolls_nobody {
        writeln!(out, "Rolls nobody: {}", printable(why))?;
    }
    for note in &config.notes {
        writeln!(out, "Note: {}", printable(note))?;
    }
    writeln!(out)?;
    if config.managers.is_empty() {
        writeln!(out, "It shows no owner of any key.")?;
    } else {
        let rows = config.managers.iter().map(|manager| owned(manager, now));
        write!(out, "{}", laid_out(["MANAGER", "OPERATION", "LAST WRITE", "KEYS"], rows))?;
    }
    writeln!(out)?;
    if config.keys.is_empty() {
        return writeln!(out, "It has no keys.");
    }
    let header = ["KEY", "LIVE", "DECLARED", "OWNED BY", "DRIFT", "WHY", "CONSUMERS"];
    write!(out, "{}", laid_out(header, config.keys.iter().map(|key| of_key(key, config))))
}

fn owned(owned: &OwnedKeys, now: Timestamp) -> [String; 4] {
    let since = owned.since.map_or_else(|| "unknown".to_owned(), |since| format!("{} ago", age(since, now)));
    [owned.manager.to_string(), owned.operation.to_string(), since, list(&owned.keys)]
}

fn of_key(key: &KeyExplanation, config: &ConfigExplanation) -> [String; 7] {
    let yes_or_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let (drift, why) = match &key.drift {
        Some(drift) if drift.is_finding => (drift.reason.clone(), drift.message.clone()),
        Some(drift) => ("-".to_owned(), drift.message.clone()),
        None => ("-".to_owned(), "not looked at".to_owned()),
    };
    let consumers = key.consumers.iter().map(|consumer| reading(consumer, key.key.as_str()));
    let consumers: Vec<_> = consumers.collect();
    let managers: Vec<_> = key.managers.iter().map(ToString::to_string).collect();
    [
        key.key.to_string(),
        yes_or_no(key.live),
        key.declared.map_or_else(|| "unknown".to_owned(), yes_or_no),
        match managers.as_slice() {
            [] if config.managers.is_empty() => "unknown".to_owned(),
            [] => "nobody".to_owned(),
            managers => managers.join(", "),
        },
        drift,
        why,
        if consumers.is_empty() { "none".to_owned() } else { consumers.join("\n") },
    ]
}

fn list<'a>(keys: impl IntoIterator<Item = &'a KeyName>) -> String {
    keys.into_iter().map(KeyName::as_str).collect::<Vec<_>>().join(", ")
}
