//! docs/reference.md is made from the program: it fails here when it differs. `UPDATE=1 cargo test --test reference`
//! writes it anew.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fmt::Write as _;

use clap::CommandFactory as _;
use restamp::api::annotations;
use restamp::cli::Cli;
use restamp::model::managers::KNOWN;
use restamp::operator::metrics::Metrics;

const FILE: &str = "docs/reference.md";

#[test]
fn the_committed_reference_is_what_the_program_says() {
    let made = format!(
        "# Reference\n\nMade from the program by `tests/reference.rs`; don't edit it.\n\n{}\n{}\n{}\n{}",
        annotation_table(),
        manager_table(),
        flags(),
        metrics()
    );
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(FILE, &made).unwrap();
    }
    let committed = std::fs::read_to_string(FILE).unwrap();
    assert_eq!(committed, made, "run UPDATE=1 cargo test --test reference, and commit {FILE}");
}

fn annotation_table() -> String {
    let mut text = "## Annotations\n\n| annotation | on | value | what it does |\n|---|---|---|---|\n".to_owned();
    for meaning in annotations::ALL {
        writeln!(text, "| `{}` | {} | {} | {} |", meaning.name, meaning.on, meaning.values, meaning.does).unwrap();
    }
    text
}

fn manager_table() -> String {
    let mut text = "## Field managers\n\nMore are named by `--applier` and `--hand`. Whoever is not known keeps its own keys: \
                    so do reflector and replicator.\n\n| manager | operation | who | what it does with keys |\n|---|---|---|---|\n"
        .to_owned();
    for known in KNOWN {
        let meaning = known.role.meaning();
        writeln!(text, "| `{}` | {} | {} | {meaning} |", known.name, known.operation, known.who).unwrap();
    }
    text
}

fn flags() -> String {
    let mut text = "## Commands\n".to_owned();
    let mut cli = Cli::command();
    cli.build();
    for command in cli.get_subcommands().filter(|command| command.get_name() != "help") {
        writeln!(text, "\n### `restamp {}`\n", command.get_name()).unwrap();
        let help = command.clone().term_width(100).render_long_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        writeln!(text, "```text\n{}\n```", lines.join("\n").trim_end()).unwrap();
    }
    text
}

fn metrics() -> String {
    let mut text = "## Metrics\n\n| metric | labels | what it tells |\n|---|---|---|\n".to_owned();
    for (name, labels, help) in Metrics::new().unwrap().descriptions() {
        writeln!(text, "| `{name}` | {} | {help} |", labels.join(", ")).unwrap();
    }
    text
}
