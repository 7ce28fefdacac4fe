//! What there is to explain an object by, in files.

use std::collections::BTreeMap;

use super::kinds::Met;
use super::object::{Kind, OtherKind, Place};
use super::{Args, ConfigFacts, ExplainError, Facts, WorkloadFacts};
use crate::api::drift_report::DriftReport;
use crate::cli::inventory::Inventory;
use crate::cli::{Failure, input};
use crate::model::explain::{Known, Operator, Sought, Unknown};
use crate::model::names::{ConfigId, ConfigKind, Name, WorkloadId, WorkloadKind};
use crate::model::workload::Workload;

/// Reads the files.
pub(super) fn gather(args: &Args) -> Result<Facts, Failure> {
    let met = Met::default();
    // A Rollout may take its pod template from a Deployment.
    let rollout = OtherKind::rollout();
    let inventory = input::read(&args.filename, &|api_version, kind| match &args.object.kind {
        Kind::Other(other) => met.meet(other, api_version, kind),
        Kind::Workload(WorkloadKind::Deployment) => met.meet(&rollout, api_version, kind),
        Kind::Workload(_) | Kind::Config(_) => None,
    })?;
    match args.object.kind {
        Kind::Config(kind) => config(args, kind, &inventory),
        Kind::Workload(kind) => workload(args, kind, &inventory),
        Kind::Other(_) => workload(args, WorkloadKind::Custom(met.only(&args.object)?), &inventory),
    }
}

fn config(args: &Args, kind: ConfigKind, inventory: &Inventory) -> Result<Facts, Failure> {
    let name = args.object.name.clone();
    let ids = inventory.configs().iter().map(|config| &config.id).chain(inventory.only_manifests());
    let namespace = namespace(args, ids.filter(|id| id.kind == kind && id.name == name).map(|id| &id.namespace))?;
    let id = ConfigId { kind, namespace: namespace.clone(), name };
    if inventory.only_manifests().any(|manifest| *manifest == id) {
        return Err(ExplainError::OnlyManifest(Place { object: args.object.clone(), namespace }).into());
    }
    let config = inventory.configs().get(&id).cloned().ok_or_else(|| args.not_in_files(Some(namespace)))?;
    let facts = ConfigFacts { config, consumers: inventory.consumers(), no_drift: None, forbidden: Vec::new() };
    Ok(Facts::Config(Box::new(facts)))
}

fn workload(args: &Args, kind: WorkloadKind, inventory: &Inventory) -> Result<Facts, Failure> {
    let name = args.object.name.clone();
    let ids = inventory.workloads().keys().chain(inventory.without_template.keys());
    let namespace = namespace(args, ids.filter(|id| id.kind == kind && id.name == name).map(|id| &id.namespace))?;
    let all = inventory.workloads();
    let id = WorkloadId { kind, namespace: namespace.clone(), name };
    if let Some(why) = inventory.without_template.get(&id) {
        return Err(ExplainError::without_template(*why, Place { object: args.object.clone(), namespace }).into());
    }
    let asked = all.get(&id).cloned().ok_or_else(|| args.not_in_files(Some(namespace)))?;
    let (workload, referrer) = match &asked.template_in {
        None => {
            let referrer = all.values().find(|other| other.template_in.as_ref() == Some(&asked.id));
            (asked, referrer.cloned())
        }
        Some(holder) => {
            let found = all.get(holder).cloned();
            (found.ok_or_else(|| ExplainError::NotInFiles(holder.to_string()))?, Some(asked))
        }
    };
    Ok(Facts::Workload(Box::new(of_workload(workload, referrer, inventory))))
}

fn of_workload(workload: Workload, referrer: Option<Workload>, inventory: &Inventory) -> WorkloadFacts {
    let report = report(&workload.id, &inventory.reports);
    // Where the files have other namespaces, this one may still have been left out.
    let namespace = inventory.namespaces.get(&workload.id.namespace).cloned();
    let namespace = namespace.map_or(Sought::Unknown(Unknown::NotInFiles), Sought::Found);
    let operator = Operator::unknown(Unknown::NotInFiles);
    let known = Known { configs: inventory.configs().clone(), ..Known::default() };
    let forbidden = Vec::new();
    let mut facts = WorkloadFacts { workload, referrer, namespace, known, report, operator, forbidden };
    facts.hear();
    facts.known.unknown = unknown(&facts.workload, inventory);
    facts
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

/// The configs that the workload names and that are not in the files, with no other of their kind; and those of which
/// only a manifest is there.
fn unknown(workload: &Workload, inventory: &Inventory) -> BTreeMap<ConfigId, Unknown> {
    let has = |kind: ConfigKind| inventory.configs().iter().any(|config| config.id.kind == kind);
    let literal = workload.opt_in.reload_on.iter().filter_map(|pattern| pattern.literal(&workload.id.namespace));
    let named = workload.consumption.configs().into_iter().cloned().chain(literal);
    let manifests = inventory.only_manifests().filter(|id| id.namespace == workload.id.namespace);
    let is_read = |id: &ConfigId| ConfigKind::WITH_KEYS.contains(&id.kind);
    let absent = named.filter(|id| is_read(id) && !has(id.kind)).map(|id| (id, Unknown::NotInFiles));
    absent.chain(manifests.map(|id| (id.clone(), Unknown::OnlyManifest))).collect()
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
