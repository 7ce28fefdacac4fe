//! What a workload's manifest declares and how the live object differs from it: the few facts that the rules of
//! [`crate::model::drift`] need. No other part of the manifest or of the object stays in memory.

pub mod merge_keys;
pub mod owners;
pub mod quantity;

mod additions;
mod compare;
mod kept;
mod manifest;
mod path;
mod unions;

pub use manifest::{CustomSpec, declared_spec};

use serde_json::{Map, Value};

use additions::Declared;
use compare::Findings;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use owners::{FieldOwner, Owned, Owners};
use path::Path;
use serde::Serialize;

use crate::model::last_applied::ANNOTATION;
use crate::model::managed_fields::Operation;
use crate::model::managers::{is_helm, is_kubectl_apply_of_fields};
use crate::model::names::{WorkloadId, WorkloadKind};

/// The facts about the declared fields of one workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields {
    /// What its last-applied annotation is good for.
    pub manifest: Manifest,
    /// Whether the object shows who owns its fields.
    pub ownership: Ownership,
    /// Who owns fields of its spec, but for annotations of its pod template, which restart and declare nothing.
    pub writers: Vec<FieldOwner>,
    /// Declared fields that are not live as they are declared.
    pub differences: Vec<Difference>,
    /// What is live in its lists and not declared.
    pub additions: Vec<Addition>,
    /// Fields that more than one manager writes.
    pub shared: Vec<Shared>,
    /// How many differences and additions are left out: a workload has room for so many.
    pub left_out: usize,
}

/// What a last-applied annotation is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Manifest {
    /// There is none.
    #[default]
    Absent,
    /// It does not parse, so it says nothing.
    Broken,
    /// It is about another object: controllers copy their parent's annotations onto children.
    Foreign,
    /// Somebody applies fields server-side since, so it may be a leftover.
    Overtaken,
    /// It says what is declared.
    Current {
        /// Where it stands.
        origin: ManifestOrigin,
        /// Whether the number of pods is.
        replicas: Replicas,
    },
}

/// Where a manifest stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestOrigin {
    /// In the annotation of `kubectl apply`.
    LastApplied,
    /// In its Helm release.
    HelmRelease,
}

/// Whether a manifest says how many pods there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replicas {
    /// It does.
    Declared,
    /// It leaves that to somebody else.
    Undeclared,
}

/// Whether an object shows who owns its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ownership {
    /// It does.
    Shown,
    /// It has no managedFields, as in the output of `kubectl get -o yaml`.
    #[default]
    Hidden,
}

/// A declared field that is not live as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where it is.
    pub path: String,
    /// What it is.
    pub kind: FieldKind,
    /// How it differs.
    pub change: Change,
    /// Both values, for the kinds of field that may be shown.
    pub shown: Option<Shown>,
    /// Who owns what is live there.
    pub owners: Vec<FieldOwner>,
}

/// What a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// A container's image.
    Image,
    /// The number of pods.
    Replicas,
    /// What a container may use.
    Resources,
    /// A variable, or something of it: its value may be a secret.
    Variable,
    /// Anything else: its value may be a secret.
    Other,
}

/// How a field differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// It has another value.
    Changed,
    /// It was taken out. Nobody owns what is not there.
    TakenOut,
}

/// A declared value and the live one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The declared one.
    pub declared: String,
    /// The live one.
    pub live: String,
}

/// A member of a list that is live and not declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    /// Where it is.
    pub path: String,
    /// Who owns it.
    pub owners: Vec<FieldOwner>,
}

/// Fields that the same managers write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// The first of them.
    pub path: String,
    /// How many there are beside.
    pub more: usize,
    /// The managers.
    pub writers: Vec<FieldOwner>,
}

/// A workload has room for so many differences and additions each, and for so many groups of writers.
const ROOM: usize = 100;

impl ManifestOrigin {
    /// Whether this server-side apply was of the very manifest, which it keeps up to date.
    fn is_applied_by(self, applier: &FieldOwner) -> bool {
        match self {
            Self::LastApplied => is_kubectl_apply_of_fields(applier),
            Self::HelmRelease => is_helm(&applier.manager),
        }
    }
}

impl Fields {
    /// Whether a declared field of this kind is not live as it is declared.
    pub fn differs_in(&self, kind: FieldKind) -> bool {
        self.differences.iter().any(|difference| difference.kind == kind)
    }

    /// The facts about an object with this spec, by its annotation of `kubectl apply`.
    pub fn of(id: &WorkloadId, metadata: &ObjectMeta, spec: &impl Serialize) -> Self {
        let annotation = metadata.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION));
        let declared = manifest::spec_of(id, annotation.map(String::as_str));
        let declared = declared.as_ref().map(Option::as_ref).map_err(|manifest| *manifest);
        Self::compared(id.kind, &Owners::of(metadata), declared, ManifestOrigin::LastApplied, spec)
    }

    /// The facts about an object with this spec, by what its Helm release declares.
    pub fn of_release(
        kind: WorkloadKind,
        metadata: &ObjectMeta,
        declared: &Map<String, Value>,
        spec: &impl Serialize,
    ) -> Self {
        let owners = Owners::of(metadata).with_manifest_by(is_helm);
        Self::compared(kind, &owners, Ok(Some(declared)), ManifestOrigin::HelmRelease, spec)
    }

    fn compared(
        kind: WorkloadKind,
        owners: &Owners<'_>,
        declared: Result<Option<&Map<String, Value>>, Manifest>,
        origin: ManifestOrigin,
        spec: &impl Serialize,
    ) -> Self {
        let owned = owners.of_field("spec");
        let template = template_of(kind);
        let writers = owned.owners_beside(&[template, &["metadata", "annotations"]].concat());
        let ownership = if owners.are_shown() { Ownership::Shown } else { Ownership::Hidden };
        let mut facts = Self { ownership, writers, ..Self::default() };
        let overtaken = facts.appliers().any(|applier| !origin.is_applied_by(applier));
        facts.manifest = match declared {
            Ok(Some(_)) if overtaken => Manifest::Overtaken,
            Ok(Some(spec)) => Manifest::Current { origin, replicas: replicas_in(spec) },
            Ok(None) => Manifest::Absent,
            Err(manifest) => manifest,
        };
        let declared = match declared {
            Ok(Some(spec)) if !overtaken => Declared::Manifest(Some(spec)),
            _ if facts.appliers().next().is_some() => Declared::Appliers,
            _ => return facts,
        };
        if let Ok(Value::Object(live)) = serde_json::to_value(spec) {
            facts.look(declared, template, &live, &owned);
        }
        if let WorkloadKind::Custom(_) = kind {
            facts.leave_out_members();
        }
        facts
    }

    /// The schemas of custom kinds rarely say how members are told apart. The API server then takes a list for one
    /// value, and whoever wrote to it last owns all of it.
    fn leave_out_members(&mut self) {
        self.additions.clear();
        self.differences.retain(|difference| difference.change == Change::Changed);
    }

    /// Who applies fields of the spec server-side.
    pub fn appliers(&self) -> impl Iterator<Item = &FieldOwner> {
        self.writers.iter().filter(|owner| owner.operation == Operation::Apply)
    }

    fn look(&mut self, declared: Declared<'_>, template: &[&str], live: &Map<String, Value>, owned: &Owned<'_>) {
        let path = Path::root("spec");
        if let Declared::Manifest(Some(spec)) = declared {
            compare::object(&path, spec, live, owned, self);
        }
        owned.in_common(&path, &mut |path, owners| self.share(path, owners));
        additions_below(&path, template, declared, live, owned, &mut |addition| self.add(addition));
    }

    fn add(&mut self, addition: Addition) {
        // What came with the manifest and is not in it was put there by an admission webhook.
        if addition.owners.iter().all(|owner| owner.wrote_manifest) && self.ownership == Ownership::Shown {
            return;
        }
        if self.additions.len() < ROOM {
            self.additions.push(addition);
        } else {
            self.left_out += 1;
        }
    }

    fn share(&mut self, path: &Path<'_>, mut writers: Vec<FieldOwner>) {
        writers.sort();
        if let Some(known) = self.shared.iter_mut().find(|shared| shared.writers == writers) {
            known.more += 1;
        } else if self.shared.len() < ROOM {
            self.shared.push(Shared { path: path.to_string(), more: 0, writers });
        }
    }
}

/// The walk to the pod template, and through it.
fn additions_below(
    path: &Path<'_>,
    template: &[&str],
    declared: Declared<'_>,
    live: &Map<String, Value>,
    owned: &Owned<'_>,
    tell: &mut dyn FnMut(Addition),
) {
    let Some((field, rest)) = template.split_first() else {
        return additions::of_template(path, declared, live, owned, tell);
    };
    if let Some(live) = live.get(*field).and_then(Value::as_object) {
        additions_below(&path.field(field), rest, declared.below(field), live, &owned.field(field), tell);
    }
}

impl Findings for Fields {
    fn differs(&mut self, difference: Difference) {
        // The applier sent another value, and the API server or an admission webhook changed it.
        let on_the_way = !difference.owners.is_empty() && difference.owners.iter().all(|owner| owner.wrote_manifest);
        if on_the_way {
            return;
        }
        if self.differences.len() < ROOM {
            self.differences.push(difference);
        } else {
            self.left_out += 1;
        }
    }

    fn agrees(&mut self, path: &Path<'_>, mut owners: Vec<FieldOwner>) {
        if owners.is_empty() || owners.iter().any(|owner| owner.wrote_manifest) {
            return;
        }
        owners.extend(self.writers.iter().find(|writer| writer.wrote_manifest).cloned());
        if owners.len() > 1 {
            self.share(path, owners);
        }
    }
}

fn replicas_in(spec: &Map<String, Value>) -> Replicas {
    match spec.get("replicas") {
        None | Some(Value::Null) => Replicas::Undeclared,
        Some(_) => Replicas::Declared,
    }
}

/// Where the pod template is in a spec.
fn template_of(kind: WorkloadKind) -> &'static [&'static str] {
    match kind {
        WorkloadKind::CronJob => &["jobTemplate", "spec", "template"],
        WorkloadKind::Deployment
        | WorkloadKind::StatefulSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::ReplicaSet
        | WorkloadKind::Job
        | WorkloadKind::Custom(_) => &["template"],
        WorkloadKind::Pod => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::custom::{KindName, kinds};
    use crate::model::workload::Workload;
    use k8s_openapi::api::batch::v1::CronJob;
    use serde_json::json;

    fn id(kind: WorkloadKind) -> WorkloadId {
        WorkloadId { kind, namespace: "ns".into(), name: "w".into() }
    }

    /// An object's metadata: its manifest declares this spec, and a hand owns all of the live one.
    fn metadata(id: &WorkloadId, spec: &Value) -> Value {
        let manifest = json!({"apiVersion": id.kind.api_version(), "kind": id.kind.as_str(),
            "metadata": {"name": "w", "namespace": "ns"}, "spec": spec});
        json!({"name": "w", "namespace": "ns", "annotations": {(ANNOTATION): manifest.to_string()},
            "managedFields": [{"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": {}}}]})
    }

    fn fields(kind: WorkloadKind, declared: &Value, live: &Value) -> Fields {
        let id = id(kind);
        Fields::of(&id, &serde_json::from_value(metadata(&id, declared)).unwrap(), live)
    }

    fn paths(fields: &Fields) -> Vec<&str> {
        let differences = fields.differences.iter().map(|difference| difference.path.as_str());
        differences.chain(fields.additions.iter().map(|addition| addition.path.as_str())).collect()
    }

    fn template(containers: Value) -> Value {
        json!({"template": {"spec": {"containers": containers}}})
    }

    #[test]
    fn a_cron_jobs_template_is_in_its_jobs() {
        let id = id(WorkloadKind::CronJob);
        let spec = |image: &str, more: &[&str]| {
            let more = more.iter().map(|name| json!({"name": name}));
            let containers: Vec<Value> = std::iter::once(json!({"name": "app", "image": image})).chain(more).collect();
            json!({"schedule": "@daily", "jobTemplate": {"spec": template(containers.into())}})
        };
        let object = json!({"metadata": metadata(&id, &spec("a:1", &[])), "spec": spec("a:2", &["more"])});
        let workload = Workload::of_cron_job(&serde_json::from_value::<CronJob>(object).unwrap()).unwrap();
        let pod = "spec.jobTemplate.spec.template.spec";
        assert_eq!(
            paths(&workload.fields),
            [format!("{pod}.containers[app].image"), format!("{pod}.containers[more]")]
        );
    }

    #[test]
    fn of_a_custom_kind_only_what_is_sure_is_said() {
        let names: [KindName; 1] = ["argoproj.io/v1alpha1/Rollout".parse().unwrap()];
        let kind = WorkloadKind::Custom(&kinds(&names)[0]);
        let declared = template(json!([{"name": "app", "image": "a:1", "env": [{"name": "GONE", "value": "1"}]}]));
        let live = template(json!([{"name": "app", "image": "a:2"}, {"name": "more"}]));
        assert_eq!(paths(&fields(kind, &declared, &live)), ["spec.template.spec.containers[app].image"]);
        let strategy = json!({"strategy": {"canary": {}}, "template": {}});
        assert_eq!(paths(&fields(kind, &strategy, &json!({"template": {}}))), [""; 0]);
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let many = |value: &str| {
            let variables: Vec<Value> =
                (0..300).map(|number| json!({"name": format!("A{number}"), "value": value})).collect();
            template(json!([{"name": "app", "env": variables}]))
        };
        let fields = fields(WorkloadKind::Deployment, &many("1"), &many("2"));
        assert_eq!((fields.differences.len(), fields.left_out), (ROOM, 200));
    }

    #[test]
    fn a_manifest_that_lacks_the_form_of_its_kind_says_nothing() {
        let fields = fields(WorkloadKind::Deployment, &json!({"replicas": "many"}), &json!({"replicas": 1}));
        assert_eq!((fields.manifest, paths(&fields)), (Manifest::Broken, vec![]));
    }
}
