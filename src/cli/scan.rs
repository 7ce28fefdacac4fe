//! `restamp scan`: the reports that the operator would write, for a cluster or for files.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;

use crate::api::drift_report::{Baseline, DriftReport};
use crate::cli::appliers::Appliers;
use crate::cli::inventory::Inventory;
use crate::cli::live::{self, Live};
use crate::cli::table::{Colours, printable};
use crate::cli::{Failure, input, sarif, table};
use crate::connect::Target;
use crate::model::config::Config;
use crate::model::drift::{Note, Patient, WorkloadSight, drift_of, drift_of_workload, remedy};
use crate::model::explain::OwnedKeys;
use crate::model::managers::Managers;
use crate::model::names::{ConfigId, ConfigKind};
use crate::model::report;
use crate::model::workload::Workload;

/// What `--exit-code` exits with if there is drift; 1 is for errors, and 2 for wrong usage.
const DRIFT: u8 = 3;

/// Print the DriftReports that the operator would write, of every ConfigMap, Secret and workload.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Scan this file instead of a cluster: YAML or JSON, as `kubectl get -o yaml --show-managed-fields` prints it;
    /// - is standard input. May be given several times.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    filename: Vec<PathBuf>,
    /// Look at this namespace alone.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Look at all namespaces, which is the default.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Say of each finding what it means, and the command that mends it.
    #[arg(long)]
    explain: bool,
    /// Exit with 3 if there is drift.
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    appliers: Appliers,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// For a person.
    #[default]
    Table,
    /// The same, with causes, baselines, and the keys of configs by manager.
    Wide,
    /// A list object.
    Json,
    /// A list object.
    Yaml,
    /// For code hosts and editors: SARIF 2.1.0.
    Sarif,
}

/// Scans, and prints what it finds on `out`; what else there is to say goes to `log`.
pub fn run(args: &Args, out: &mut impl Write, log: &mut impl Write) -> Result<ExitCode, Failure> {
    let now = Timestamp::now();
    let inventory = args.inventory(log)?;
    let found = Found::of(&inventory, args, now);
    found.say(args, &inventory, now, out, log).map_err(Failure::Output)?;
    Ok(if args.exit_code && found.drifts() { ExitCode::from(DRIFT) } else { ExitCode::SUCCESS })
}

impl Args {
    fn inventory(&self, log: &mut impl Write) -> Result<Inventory, Failure> {
        if !self.filename.is_empty() {
            let inventory = input::read(&self.filename, &|_, _| None)?;
            if inventory.passed_over > 0 {
                let count = inventory.passed_over;
                warn(log, &format!("objects passed over, since their kinds say nothing about configs: {count}"))?;
            }
            self.warn_of_manifests(&inventory, log)?;
            return Ok(inventory);
        }
        let Live { inventory, forbidden, unread_releases, unreadable, .. } =
            live::read(&self.target, self.namespace.as_deref())?;
        if !unreadable.is_empty() {
            let names = unreadable.join(", ");
            warn(
                log,
                &format!(
                    "objects passed over, since they hold what can't be read: {names}; see their YAML for odd values"
                ),
            )?;
        }
        for kind in forbidden {
            let effect = match kind.parse::<ConfigKind>() {
                Ok(_) => "their keys are not looked at",
                Err(_) if matches!(kind, "Pod" | "ReplicaSet") => {
                    "the consumers of keys are not complete, and what pods run is not looked at"
                }
                Err(_) if kind == live::AUTOSCALER => "nothing is claimed of how many pods workloads should have",
                Err(_) => "the consumers of keys are not complete",
            };
            warn(log, &format!("listing {kind} objects is forbidden, so {effect}; grant list on them to change that"))?;
        }
        if !unread_releases.is_empty() {
            let names: Vec<String> = unread_releases.iter().map(ToString::to_string).collect();
            let text = format!(
                "reading the Secrets of Helm releases is forbidden, so what these declare is not known: {}; grant list and \
                 get on secrets in their namespaces to change that",
                names.join(", ")
            );
            warn(log, &text)?;
        }
        Ok(inventory)
    }

    /// What has `stringData` was never live as it stands there: its keys must not look as if there were none.
    fn warn_of_manifests(&self, inventory: &Inventory, log: &mut impl Write) -> Result<(), Failure> {
        let only = inventory.only_manifests().filter(|id| self.looks_at(id.namespace.as_str()));
        let names: Vec<String> = only.map(|id| format!("{}/{}", id.namespace, id.name)).collect();
        if names.is_empty() {
            return Ok(());
        }
        let text = format!(
            "Secrets passed over, since they are manifests with stringData, which no live object has: {}; give what \
             kubectl get -o yaml --show-managed-fields prints",
            printable(&names.join(", "))
        );
        warn(log, &text)
    }

    fn looks_at(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|only| only == namespace)
    }
}

fn warn(log: &mut impl Write, text: &str) -> Result<(), Failure> {
    writeln!(log, "warning: {text}").map_err(Failure::Output)
}

/// What a scan found.
#[derive(Debug, Default)]
struct Found {
    reports: Vec<DriftReport>,
    configs: usize,
    workloads: usize,
    without_baseline: usize,
    /// Configs that show no managedFields, where these could tell more.
    owners_hidden: usize,
}

impl Found {
    fn of(inventory: &Inventory, args: &Args, now: Timestamp) -> Self {
        let managers = args.appliers.managers();
        let consumers = inventory.consumers();
        let mut found = Self::default();
        found.look_at_workloads(inventory, &managers, args, now);
        for config in inventory.configs().iter() {
            if !args.looks_at(config.id.namespace.as_str()) {
                continue;
            }
            let Some(drift) = drift_of(config, &managers, &consumers) else {
                continue;
            };
            found.configs += 1;
            found.without_baseline += usize::from(drift.baseline == Baseline::None);
            found.owners_hidden += usize::from(drift.notes.contains(&Note::OwnersHidden));
            // Of a config about which nothing is declared, hidden owners are not worth a report.
            let says_more = |note: &Note| *note != Note::OwnersHidden || drift.baseline != Baseline::None;
            if !drift.findings.is_empty() || drift.notes.iter().any(says_more) {
                found.reports.push(report::of_config(config, report::status_of(drift, now)));
            }
        }
        found
    }

    fn look_at_workloads(&mut self, inventory: &Inventory, managers: &Managers, args: &Args, now: Timestamp) {
        let configs = inventory.configs();
        // Files tell of an earlier time: what had not lasted for long by then is not late.
        let at = if args.filename.is_empty() { now } else { inventory.latest().unwrap_or(now) };
        let its_own = inventory.workloads().values().filter(|workload| workload.is_its_own());
        for workload in its_own.filter(|workload| args.looks_at(workload.id.namespace.as_str())) {
            self.workloads += 1;
            let autoscaling = inventory.autoscaling(&workload.id);
            let drift = inventory.with_pods(workload, |own_pods| {
                let sight =
                    WorkloadSight { workload, configs, managers, autoscaling, own_pods, reloading: None, now: at };
                drift_of_workload(&sight)
            });
            self.without_baseline += usize::from(drift.baseline == Baseline::None);
            if !drift.findings.is_empty() || !drift.notes.is_empty() {
                self.reports.push(report::of_workload(workload, report::status_of(drift, now)));
            }
        }
    }

    fn drifts(&self) -> bool {
        self.reports.iter().any(has_findings)
    }

    fn say(
        &self,
        args: &Args,
        inventory: &Inventory,
        now: Timestamp,
        out: &mut impl Write,
        log: &mut impl Write,
    ) -> io::Result<()> {
        if self.owners_hidden > 0 {
            let count = self.owners_hidden;
            writeln!(
                log,
                "warning: configs without managedFields, so that it is not known who left which key: {count}; use \
                 --show-managed-fields with kubectl get"
            )?;
        }
        match args.output {
            Output::Table => self.as_table(table::of, args, inventory, now, out).and_then(|()| self.in_words(out)),
            Output::Wide => self.as_table(table::wide, args, inventory, now, out).and_then(|()| self.in_words(out)),
            Output::Sarif => {
                serde_json::to_writer_pretty(&mut *out, &sarif::of(&self.reports, inventory))?;
                writeln!(out)
            }
            Output::Json => {
                serde_json::to_writer_pretty(&mut *out, &List::of(&self.reports))?;
                writeln!(out)
            }
            Output::Yaml => {
                let yaml = serde_saphyr::to_string(&List::of(&self.reports)).map_err(io::Error::other)?;
                out.write_all(yaml.as_bytes())
            }
        }
    }

    /// Who owns which keys of the configs that there is something to say about.
    fn owned_keys(&self, inventory: &Inventory) -> Vec<(ConfigId, OwnedKeys)> {
        let configs = self.reports.iter().filter_map(|report| config_of(report, inventory));
        let owned = configs.flat_map(|config| {
            let owners = config.managed_fields.iter().flatten().filter_map(OwnedKeys::of);
            owners.map(|owned| (config.id.clone(), owned))
        });
        owned.collect()
    }

    /// What each finding means and the command that mends it, once for all that one command mends.
    fn explain(&self, connection: &[String], inventory: &Inventory, out: &mut impl Write) -> io::Result<()> {
        for report in &self.reports {
            let (config, workload) = (config_of(report, inventory), workload_of(report, inventory));
            let patient = Patient { report, config, workload, connection };
            let mut told = BTreeSet::new();
            for finding in report.status.iter().flat_map(|status| &status.findings) {
                let command = remedy(&patient, finding);
                if told.insert((finding.r#type, command.clone())) {
                    let subject = &report.spec.subject;
                    let namespace = report.metadata.namespace.as_deref().unwrap_or_default();
                    let title = format!("{}: {} {namespace}/{}", finding.r#type, subject.kind, subject.name);
                    writeln!(out, "\n{}", table::printable(&title))?;
                    writeln!(out, "  {}", finding.r#type.meaning())?;
                    writeln!(out, "  {}", table::printable(&command))?;
                }
            }
        }
        Ok(())
    }

    fn as_table(
        &self,
        table: fn(&[DriftReport], Colours, Timestamp) -> String,
        args: &Args,
        inventory: &Inventory,
        now: Timestamp,
        out: &mut impl Write,
    ) -> io::Result<()> {
        if self.drifts() {
            let colours = Colours::of(io::stdout().is_terminal(), std::env::var_os("NO_COLOR").as_deref());
            write!(out, "{}", table(&self.reports, colours, now))?;
        }
        if args.output == Output::Wide {
            let owned = self.owned_keys(inventory);
            if !owned.is_empty() {
                write!(out, "\n{}", table::owned_keys(&owned, now))?;
            }
        }
        if args.explain {
            self.explain(&args.target.as_flags(), inventory, out)?;
        }
        let has_more = args.explain || args.output == Output::Wide;
        if has_more && !self.reports.is_empty() { writeln!(out) } else { Ok(()) }
    }

    /// What there is to say in sentences, and how much was looked at.
    fn in_words(&self, out: &mut impl Write) -> io::Result<()> {
        for report in &self.reports {
            let subject = &report.spec.subject;
            let namespace = report.metadata.namespace.as_deref().unwrap_or_default();
            let findings = report.status.iter().flat_map(|status| &status.findings);
            for (finding, message) in findings.filter_map(|finding| Some((finding, finding.message.as_ref()?))) {
                let message = table::printable(message);
                writeln!(out, "{}: {} {namespace}/{}: {message}", finding.r#type, subject.kind, subject.name)?;
            }
            for note in report.status.iter().flat_map(|status| &status.notes) {
                writeln!(out, "note: {} {namespace}/{}: {note}", subject.kind, subject.name)?;
            }
        }
        let drifting = self.reports.iter().filter(|report| has_findings(report)).count();
        let verdict = if drifting == 0 { "no drift".to_owned() } else { format!("{drifting} drift") };
        let Self { configs, workloads, without_baseline, .. } = self;
        writeln!(
            out,
            "{configs} configs and {workloads} workloads looked at: {verdict}, {without_baseline} without a baseline"
        )
    }
}

/// The config that a report is about, if it is one.
fn config_of<'a>(report: &DriftReport, inventory: &'a Inventory) -> Option<&'a Config> {
    let kind = report.spec.subject.kind.parse().ok()?;
    let namespace = report.metadata.namespace.as_deref()?.into();
    inventory.configs().get(&ConfigId { kind, namespace, name: report.spec.subject.name.clone() })
}

/// The workload that a report is about, if it is one.
fn workload_of<'a>(report: &DriftReport, inventory: &'a Inventory) -> Option<&'a Workload> {
    let subject = &report.spec.subject;
    let namespace = report.metadata.namespace.as_deref()?;
    let mut workloads = inventory.workloads().values();
    workloads.find(|Workload { id, .. }| {
        id.kind.as_str() == subject.kind && id.namespace.as_str() == namespace && id.name == subject.name
    })
}

fn has_findings(report: &DriftReport) -> bool {
    report.status.as_ref().is_some_and(|status| !status.findings.is_empty())
}

/// A list object, as kubectl prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: serde_json::Map<String, serde_json::Value>,
    items: &'a [DriftReport],
}

impl<'a> List<'a> {
    fn of(items: &'a [DriftReport]) -> Self {
        Self { api_version: "v1", kind: "List", metadata: serde_json::Map::new(), items }
    }
}
