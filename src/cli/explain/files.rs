//! What there is to explain an object by, in files.

use std::collections::BTreeMap;

use super::object::{Kind, Place};
use super::{Args, ConfigFacts, ExplainError, Facts, WorkloadFacts};
use crate::api::drift_report::DriftReport;
use crate::cli::inventory::Inventory;
use crate::cli::{Failure, input};
use crate::model::explain::{Known, Operator, Sought, Unknown, hear_as_reported};
use crate::model::names::{ConfigId, ConfigKind, Name, WorkloadId};
use crate::model::workload::Workload;

/// Reads the files.
pub(super) fn gather(args: &Args) -> Result<Facts, Failure> {
    let inventory = input::read(&args.filename)?;
    let name = args.object.name.clone();
    match args.object.kind {
        Kind::Config(kind) => {
            let ids = inventory.configs().iter().map(|config| &config.id);
            let namespace =
                namespace(args, ids.filter(|id| id.kind == kind && id.name == name).map(|id| &id.namespace))?;
            let config = inventory.configs().get(&ConfigId { kind, namespace: namespace.clone(), name });
            let config = config.cloned().ok_or_else(|| args.not_in_files(Some(namespace)))?;
            let facts = ConfigFacts { config, consumers: inventory.consumers(), forbidden: Vec::new() };
            Ok(Facts::Config(Box::new(facts)))
        }
        Kind::Workload(kind) => {
            let ids = inventory.workloads().keys();
            let namespace =
                namespace(args, ids.filter(|id| id.kind == kind && id.name == name).map(|id| &id.namespace))?;
            let workload = inventory.workloads().get(&WorkloadId { kind, namespace: namespace.clone(), name });
            let workload = workload.cloned().ok_or_else(|| args.not_in_files(Some(namespace)))?;
            Ok(Facts::Workload(Box::new(of_workload(workload, &inventory))))
        }
    }
}

fn of_workload(mut workload: Workload, inventory: &Inventory) -> WorkloadFacts {
    let operator = Operator { namespace: String::new(), published: Sought::Unknown(Unknown::NotInFiles) };
    let report = report(&workload.id, &inventory.reports);
    hear_as_reported(&mut workload, &report);
    let known = Known { unknown: unknown(&workload, inventory), configs: inventory.configs().clone() };
    // Where the files have other namespaces, this one may still have been left out.
    let namespace = inventory.namespaces.get(&workload.id.namespace).cloned();
    let namespace = namespace.map_or(Sought::Unknown(Unknown::NotInFiles), Sought::Found);
    WorkloadFacts { workload, namespace, known, report, operator }
}

/// The namespace that is asked for, or else the only one with such an object.
fn namespace<'a>(args: &Args, found: impl Iterator<Item = &'a Name>) -> Result<Name, ExplainError> {
    if let Some(namespace) = &args.namespace {
        return Ok(namespace.as_str().into());
    }
    let found: Vec<&str> = found.map(Name::as_str).collect();
    match found.as_slice() {
        [] => Err(args.not_in_files(None)),
        [one] => Ok((*one).into()),
        several => Err(ExplainError::Ambiguous { object: args.object.clone(), namespaces: several.join(", ") }),
    }
}

/// The report on this workload. Where the files have none at all, they may have been left out.
fn report(id: &WorkloadId, reports: &[DriftReport]) -> Sought<DriftReport> {
    let is_about = |report: &&DriftReport| {
        let subject = &report.spec.subject;
        let namespace = report.metadata.namespace.as_deref().unwrap_or("default");
        (subject.kind.as_str(), namespace, &subject.name) == (id.kind.as_str(), id.namespace.as_str(), &id.name)
    };
    match reports.iter().find(is_about) {
        Some(report) => Sought::Found(report.clone()),
        None if reports.is_empty() => Sought::Unknown(Unknown::NotInFiles),
        None => Sought::Absent,
    }
}

/// The configs that the workload names and that are not in the files, with no other of their kind.
fn unknown(workload: &Workload, inventory: &Inventory) -> BTreeMap<ConfigId, Unknown> {
    let has = |kind: ConfigKind| inventory.configs().iter().any(|config| config.id.kind == kind);
    let literal = workload.opt_in.reload_on.iter().filter_map(|pattern| pattern.literal(&workload.id.namespace));
    let named = workload.consumption.configs().into_iter().cloned().chain(literal);
    let is_read = |id: &ConfigId| ConfigKind::WITH_KEYS.contains(&id.kind);
    named.filter(|id| is_read(id) && !has(id.kind)).map(|id| (id, Unknown::NotInFiles)).collect()
}

impl Args {
    fn not_in_files(&self, namespace: Option<Name>) -> ExplainError {
        let object = self.object.clone();
        ExplainError::NotInFiles(match namespace {
            Some(namespace) => Place { object, namespace }.to_string(),
            None => object.to_string(),
        })
    }
}
