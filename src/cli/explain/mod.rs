//! `restamp explain`: why a workload rolls, or does not; who declares, owns and reads the keys of a config.

mod files;
mod live;
mod object;
mod table;

use std::io::{self, Write};
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;

use crate::api::drift_report::DriftReport;
use crate::api::published::USUAL_NAMESPACE;
use crate::cli::Failure;
use crate::cli::appliers::Appliers;
use crate::connect::Target;
use crate::model::config::Config;
use crate::model::consumers::Consumers;
use crate::model::explain::{
    ConfigExplanation, Known, Operator, Sought, WorkloadExplanation, WorkloadSight, of_config, of_workload,
};
use crate::model::namespace::Namespace;
use crate::model::workload::Workload;
use object::{ObjectName, Place};

/// Say what a workload reads, and whether a change of it rolls the workload; or who declares, owns and reads the keys of a
/// ConfigMap or Secret.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The object, as kubectl names it: deployment/web, sts/db, secret/web-env.
    #[arg(value_name = "KIND/NAME")]
    object: ObjectName,
    /// Look into this file instead of a cluster: YAML or JSON, as `kubectl get -o yaml --show-managed-fields` prints it;
    /// - is standard input. May be given several times.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    filename: Vec<PathBuf>,
    /// The object's namespace [default: the kubeconfig's, or the only one in the files that has such an object]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    appliers: Appliers,
    /// The namespace that the operator is installed in.
    #[arg(long, value_name = "NAMESPACE", default_value = USUAL_NAMESPACE)]
    operator_namespace: String,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Output {
    /// For a person.
    #[default]
    Table,
    /// All there is to say, as one object.
    Json,
}

/// Why an object can't be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// It does not exist.
    #[error("{0} does not exist; see kubectl get {plural} --namespace {namespace}",
        plural = .0.object.kind.plural(), namespace = .0.namespace)]
    Absent(Place),
    /// Whoever asks may not read it.
    #[error("you may not read {0}; grant get on {plural} in namespace {namespace}",
        plural = .0.object.kind.plural(), namespace = .0.namespace)]
    Forbidden(Place),
    /// It is not in the files.
    #[error("there is no {0} in the files; give the file that has it with --filename")]
    NotInFiles(String),
    /// The files don't have it as it is live.
    #[error(
        "the files have only a manifest of {0} with stringData, which no live object has; give what kubectl get \
         {plural} {name} --namespace {namespace} -o yaml --show-managed-fields prints",
        plural = .0.object.kind.plural(), name = .0.object.name, namespace = .0.namespace
    )]
    OnlyManifest(Place),
    /// The files have several.
    #[error("the files have {object} in several namespaces: {namespaces}; choose one with --namespace")]
    Ambiguous {
        /// The object.
        object: ObjectName,
        /// The namespaces.
        namespaces: String,
    },
}

/// What there is to explain an object by.
enum Facts {
    Workload(Box<WorkloadFacts>),
    Config(Box<ConfigFacts>),
}

struct WorkloadFacts {
    workload: Workload,
    namespace: Sought<Namespace>,
    known: Known,
    report: Sought<DriftReport>,
    operator: Operator,
}

struct ConfigFacts {
    config: Config,
    consumers: Consumers,
    /// The kinds that may not be listed, so that consumers may be missing.
    forbidden: Vec<&'static str>,
}

/// An explanation, of either kind of object.
#[derive(Serialize)]
#[serde(untagged)]
enum Explanation {
    Workload(Box<WorkloadExplanation>),
    Config(Box<ConfigExplanation>),
}

/// Explains, on `out`; what else there is to say goes to `log`.
pub fn run(args: &Args, out: &mut impl Write, log: &mut impl Write) -> Result<(), Failure> {
    let now = Timestamp::now();
    let facts = if args.filename.is_empty() { live::gather(args)? } else { files::gather(args)? };
    facts.warn(log).map_err(Failure::Output)?;
    print(&facts.explain(args), args.output, now, out).map_err(Failure::Output)
}

impl Facts {
    fn warn(&self, log: &mut impl Write) -> io::Result<()> {
        let forbidden = match self {
            Self::Workload(_) => &[],
            Self::Config(facts) => facts.forbidden.as_slice(),
        };
        forbidden.iter().try_for_each(|kind| {
            let effect = "so the consumers of keys are not complete; grant list on them to change that";
            writeln!(log, "warning: listing {kind} objects is forbidden, {effect}")
        })
    }

    fn explain(&self, args: &Args) -> Explanation {
        match self {
            Self::Workload(facts) => {
                let WorkloadFacts { workload, namespace, known, report, operator } = &**facts;
                let sight = WorkloadSight { workload, namespace, known, report, operator };
                Explanation::Workload(Box::new(of_workload(&sight)))
            }
            Self::Config(facts) => {
                let managers = args.appliers.managers();
                Explanation::Config(Box::new(of_config(&facts.config, &managers, &facts.consumers)))
            }
        }
    }
}

fn print(explanation: &Explanation, output: Output, now: Timestamp, out: &mut impl Write) -> io::Result<()> {
    match (output, explanation) {
        (Output::Json, _) => {
            serde_json::to_writer_pretty(&mut *out, explanation)?;
            writeln!(out)
        }
        (Output::Table, Explanation::Workload(workload)) => table::of_workload(workload, now, out),
        (Output::Table, Explanation::Config(config)) => table::of_config(config, now, out),
    }
}
