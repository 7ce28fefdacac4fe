//! `deploy/`: the chart has a value for each flag, and what is made from the chart is as it would be made now.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use clap::CommandFactory as _;
use restamp::cli::Cli;
use serde_json::Value;

const CHART: &str = "deploy/helm/restamp";

/// Flags that a pod has no use for: it gets its namespace by POD_NAMESPACE, and its cluster from its ServiceAccount.
const NOT_IN_A_POD: [&str; 3] = ["own-namespace", "kubeconfig", "context"];

fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(Path::new(CHART).join(file)).unwrap()).unwrap()
}

fn names(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().map(|name| kebab(name)).collect()
}

/// As the chart's templates make a flag of a value's name.
fn kebab(name: &str) -> String {
    let split = |c: char| if c.is_ascii_uppercase() { format!("-{}", c.to_ascii_lowercase()) } else { c.to_string() };
    name.chars().map(split).collect()
}

#[test]
fn the_chart_has_a_value_for_each_flag_and_no_other() {
    let mut cli = Cli::command();
    cli.build();
    let run = cli.find_subcommand("run").unwrap();
    let flags = run.get_arguments().filter_map(clap::Arg::get_long).map(str::to_owned);
    let is_set =
        |flag: &String| !["help", "version"].contains(&flag.as_str()) && !NOT_IN_A_POD.contains(&flag.as_str());
    let flags: BTreeSet<String> = flags.filter(is_set).collect();
    assert_eq!(names(&yaml("values.yaml")["run"]), flags);
}

/// Proves that the brackets in values.yaml tell the program's own defaults.
#[test]
fn the_chart_tells_each_flags_default() {
    let text = std::fs::read_to_string(Path::new(CHART).join("values.yaml")).unwrap();
    let mut cli = Cli::command();
    cli.build();
    for flag in cli.find_subcommand("run").unwrap().get_arguments() {
        let (Some(name), [default]) = (flag.get_long(), flag.get_default_values()) else { continue };
        let mut lines = text.lines().zip(text.lines().skip(1));
        let is_it =
            |line: &str| line.starts_with("  ") && line.split(':').next().is_some_and(|key| kebab(key.trim()) == name);
        let comment = lines.find(|(_, line)| is_it(line)).map(|(comment, _)| comment);
        let told = format!("[{}]", default.to_str().unwrap());
        if flag.get_action().takes_values() {
            assert!(comment.unwrap().ends_with(&told), "--{name}: {comment:?} does not tell {told}");
        }
    }
}

#[test]
fn the_schema_knows_each_value_and_no_other() {
    fn check(values: &Value, schema: &Value, path: &str) {
        // Where anything may be given, nothing is known.
        let (Some(_), Some(known)) = (values.as_object(), schema.get("properties")) else { return };
        let mut known: Value = known.clone();
        // Helm gives it to every chart.
        known.as_object_mut().unwrap().remove("global");
        assert_eq!(names(values), names(&known), "{path}");
        assert_eq!(schema["additionalProperties"], false, "{path}");
        for (name, value) in values.as_object().unwrap() {
            check(value, &known[name], &format!("{path}/{name}"));
        }
    }
    check(&yaml("values.yaml"), &yaml("values.schema.json"), "");
}

#[test]
fn the_chart_is_of_the_programs_version() {
    let chart = yaml("Chart.yaml");
    assert_eq!(
        (&chart["version"], &chart["appVersion"]),
        (&env!("CARGO_PKG_VERSION").into(), &env!("CARGO_PKG_VERSION").into())
    );
}

#[test]
fn what_is_made_from_the_chart_is_current() {
    let made = tempfile::tempdir().unwrap();
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}\nrun make deploy, and commit it", String::from_utf8_lossy(&said));
    };
    run(Command::new("cp").arg("--recursive").arg("deploy/.").arg(made.path()));
    run(Command::new("deploy/render").arg(made.path()));
    run(Command::new("diff").args(["--recursive", "--unified", "deploy"]).arg(made.path()));
}
