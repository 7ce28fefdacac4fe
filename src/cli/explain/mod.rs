//! `restamp explain`: why a workload rolls, or does not; who declares, owns and reads the keys of a config.

mod files;
mod kinds;
mod live;
mod object;
mod table;

use std::io::{self, Write};
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;

use crate::api::drift_report::DriftReport;
use crate::cli::Failure;
use crate::cli::appliers::Appliers;
use crate::connect::Target;
use crate::model::config::Config;
use crate::model::consumers::Consumers;
use crate::model::custom::object::NoTemplate;
use crate::model::explain::{
    ConfigExplanation, Known, NoDrift, Operator, Sought, WorkloadExplanation, WorkloadSight, hear, of_config,
    of_workload,
};
use crate::model::namespace::Namespace;
use crate::model::workload::Workload;
use object::{ObjectName, Place};

/// Say what a workload reads, and whether a change of it rolls the workload; or who declares, owns and reads the keys of a
/// ConfigMap or Secret.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The object, as kubectl names it: deployment/web, sts/db, secret/web-env; or rollout.argoproj.io/web, and any
    /// other kind with a pod template.
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
    /// The namespace that the operator is installed in [default: the one that the object's report names, or restamp-system]
    #[arg(long, value_name = "NAMESPACE")]
    operator_namespace: Option<String>,
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
    /// There is no such kind.
    #[error(
        "{kind:?} is no kind that can be explained; it can be {known}, or another kind with a pod template that is \
         installed, such as rollout.argoproj.io",
        kind = .0.kind.as_str(), known = object::kinds()
    )]
    NoSuchKind(ObjectName),
    /// It is named with its group, and not there.
    #[error(
        "kind {kind} is not installed in this cluster, so {object} can't be explained; install its custom resource \
         definition, or see kubectl api-resources",
        kind = .0.kind.as_str(), object = .0
    )]
    NotInstalled(ObjectName),
    /// It is there, and holds what can't be read.
    #[error(
        "cannot read {0}: it does not have the form of an object with a pod template; compare kubectl get {plural} {name} \
         --namespace {namespace} -o yaml with what its kind asks for",
        plural = .0.object.kind.plural(), name = .0.object.name, namespace = .0.namespace
    )]
    Odd(Place),
    /// There are several.
    #[error("{kind:?} is the name of several kinds; choose one: {kinds}", kind = .object.kind.as_str())]
    SeveralKinds {
        /// The object.
        object: ObjectName,
        /// The kinds.
        kinds: String,
    },
    /// It can't be said which kinds there are.
    #[error("you may not see which kinds there are; bind the ClusterRole system:discovery")]
    KindsForbidden,
    /// It is of a kind without a pod template.
    #[error("{0} has no pod template at spec.template, so it reads no configs and nothing rolls it")]
    NoTemplate(Place),
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

impl ExplainError {
    fn without_template(why: NoTemplate, place: Place) -> Self {
        match why {
            NoTemplate::Absent => Self::NoTemplate(place),
            NoTemplate::Odd => Self::Odd(place),
        }
    }
}

/// What there is to explain an object by.
enum Facts {
    Workload(Box<WorkloadFacts>),
    Config(Box<ConfigFacts>),
}

struct WorkloadFacts {
    /// What is stamped.
    workload: Workload,
    /// The one that takes its pod template from it.
    referrer: Option<Workload>,
    namespace: Sought<Namespace>,
    known: Known,
    report: Sought<DriftReport>,
    operator: Operator,
    /// The kinds that may not be listed, so that a referrer may be missing.
    forbidden: Vec<&'static str>,
}

impl WorkloadFacts {
    /// Reads the annotations in the vocabulary that counts.
    fn hear(&mut self) {
        let Self { workload, referrer, namespace, operator, report, .. } = self;
        hear(workload, namespace, operator, report);
        if let Some(referrer) = referrer {
            hear(referrer, namespace, operator, report);
            workload.opt_in = workload.opt_in_with(Some(referrer)).clone();
        }
    }
}

struct ConfigFacts {
    config: Config,
    consumers: Consumers,
    /// Why the operator reports no drift of it.
    no_drift: Option<NoDrift>,
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
        let (forbidden, effect) = match self {
            Self::Workload(facts) => (&facts.forbidden, "annotations of one with its pod template here are not seen"),
            Self::Config(facts) => (&facts.forbidden, "the consumers of keys are not complete"),
        };
        forbidden.iter().try_for_each(|kind| {
            writeln!(
                log,
                "warning: listing {kind} objects is forbidden, so {effect}; grant list on them to change that"
            )
        })
    }

    fn explain(&self, args: &Args) -> Explanation {
        match self {
            Self::Workload(facts) => {
                let WorkloadFacts { workload, referrer, namespace, known, report, operator, .. } = &**facts;
                let referrer = referrer.as_ref().map(|referrer| &referrer.id);
                let sight = WorkloadSight { workload, referrer, namespace, known, report, operator };
                Explanation::Workload(Box::new(of_workload(&sight)))
            }
            Self::Config(facts) => {
                let managers = args.appliers.managers();
                Explanation::Config(Box::new(of_config(
                    &facts.config,
                    &managers,
                    &facts.consumers,
                    facts.no_drift.clone(),
                )))
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
