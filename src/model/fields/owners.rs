//! Who owns which field of a workload, followed through `metadata.managedFields` along a walk through the object.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde_json::{Map, Value};

use super::path::Path;
use crate::model::last_applied::ANNOTATION;
use crate::model::managed_fields::Operation;
use crate::model::names::Manager;

/// One manager's entry, without the fields that it owns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldOwner {
    /// The manager's name.
    pub manager: Manager,
    /// How it wrote.
    pub operation: Operation,
    /// What it wrote to.
    pub through: Through,
    /// Its last write to any of the fields that it owns.
    pub time: Option<Timestamp>,
    /// Whether it wrote the last-applied annotation, or is Helm where its release is what counts: then what it wrote beside
    /// came with the manifest.
    pub wrote_manifest: bool,
}

/// What a manager wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Through {
    /// The object itself.
    Object,
    /// Its subresource `scale`, as `kubectl scale` and the HorizontalPodAutoscaler do.
    Scale,
}

/// All entries of an object that are about its manifest: none about its status.
pub struct Owners<'a> {
    all: Vec<FieldOwner>,
    fields: Vec<&'a Map<String, Value>>,
}

impl<'a> Owners<'a> {
    /// Reads what an object shows. A malformed entry owns nothing.
    pub fn of(metadata: &'a ObjectMeta) -> Self {
        let entries = metadata.managed_fields.iter().flatten().filter_map(read);
        let (all, fields) = entries.unzip();
        Self { all, fields }
    }

    /// The same where these managers, and no others, write the manifest.
    pub fn with_manifest_by(mut self, is_applier: impl Fn(&Manager) -> bool) -> Self {
        for owner in &mut self.all {
            owner.wrote_manifest = owner.through == Through::Object && is_applier(&owner.manager);
        }
        self
    }

    /// Whether the object shows any.
    pub fn are_shown(&self) -> bool {
        !self.all.is_empty()
    }

    /// What is owned of this field of the object.
    pub fn of_field(&self, name: &str) -> Owned<'_> {
        let whole = self.fields.iter().map(|fields| Reach::Part(fields));
        Owned { all: &self.all, reached: whole.enumerate().collect() }.field(name)
    }
}

fn read(entry: &ManagedFieldsEntry) -> Option<(FieldOwner, &Map<String, Value>)> {
    let through = match entry.subresource.as_deref() {
        None | Some("") => Through::Object,
        Some("scale") => Through::Scale,
        Some(_) => return None,
    };
    let operation = match entry.operation.as_deref() {
        Some("Apply") => Operation::Apply,
        Some("Update") => Operation::Update,
        _ => return None,
    };
    let fields = entry.fields_v1.as_ref()?.0.as_object()?;
    let annotations = fields.get("f:metadata").and_then(|metadata| metadata.get("f:annotations"));
    let wrote_manifest = operation == Operation::Update
        && annotations.is_some_and(|annotations| annotations.get(format!("f:{ANNOTATION}")).is_some());
    let time = entry.time.as_ref().map(|time| time.0);
    let manager = entry.manager.as_deref()?.into();
    Some((FieldOwner { manager, operation, through, time, wrote_manifest }, fields))
}

/// What is owned of one field, and by whom.
#[derive(Clone)]
pub struct Owned<'a> {
    all: &'a [FieldOwner],
    reached: Vec<(usize, Reach<'a>)>,
}

/// How much of a field an entry owns.
#[derive(Clone, Copy)]
enum Reach<'a> {
    /// All of it: it is a leaf. Where others own parts of it, it is none, and this one owns nothing below.
    Whole,
    /// These parts; and the field itself where one of them is `.`.
    Part(&'a Map<String, Value>),
}

impl<'a> Owned<'a> {
    /// What is owned of a field that is not there.
    pub fn nothing(&self) -> Self {
        Self { all: self.all, reached: Vec::new() }
    }

    /// What is owned of a field below.
    pub fn field(&self, name: &str) -> Self {
        self.step(&format!("f:{name}"))
    }

    /// What is owned of a member of the list that this is.
    pub fn member(&self, keys: &Map<String, Value>) -> Self {
        let keys = serde_json::to_string(keys).unwrap_or_default();
        self.step(&format!("k:{keys}"))
    }

    fn step(&self, name: &str) -> Self {
        // Others own parts of it, so it is no leaf: this one wrote it while there was nothing in it, as `resources: {}`.
        let has_parts = self.reached.iter().any(|(_, reach)| reach.has_parts());
        let below = |(owner, reach): &(usize, Reach<'a>)| {
            let below = match reach {
                Reach::Whole if has_parts => return None,
                Reach::Whole => Reach::Whole,
                Reach::Part(parts) => match parts.get(name)? {
                    Value::Object(parts) if parts.is_empty() => Reach::Whole,
                    Value::Object(parts) => Reach::Part(parts),
                    _ => return None,
                },
            };
            Some((*owner, below))
        };
        Self { all: self.all, reached: self.reached.iter().filter_map(below).collect() }
    }

    /// Who owns this field itself.
    pub fn owners(&self) -> Vec<FieldOwner> {
        self.named_where(Reach::has_itself)
    }

    /// Who owns something of it.
    pub fn owners_within(&self) -> Vec<FieldOwner> {
        self.named_where(|_| true)
    }

    /// Tells of each leaf that more than one entry owns, with its owners.
    pub fn in_common(&self, path: &Path<'_>, tell: &mut dyn FnMut(&Path<'_>, Vec<FieldOwner>)) {
        if self.reached.len() < 2 {
            return;
        }
        let parts = self.reached.iter().filter_map(|(_, reach)| match reach {
            Reach::Whole => None,
            Reach::Part(parts) => Some(*parts),
        });
        let steps: BTreeSet<&String> = parts.flat_map(Map::keys).filter(|step| *step != ".").collect();
        if steps.is_empty() {
            return tell(path, self.owners());
        }
        for step in steps {
            let below = self.step(step);
            match StepName::of(step) {
                Some(StepName::Field(field)) => below.in_common(&path.field(field), tell),
                Some(StepName::Member(member)) => below.in_common(&path.member(&member), tell),
                None => {}
            }
        }
    }

    /// Who owns something of it that is not below this field.
    pub fn owners_beside(&self, field: &[&str]) -> Vec<FieldOwner> {
        self.named_where(|reach| reach.has_beside(field))
    }

    fn named_where(&self, counts: impl Fn(&Reach<'a>) -> bool) -> Vec<FieldOwner> {
        let reached = self.reached.iter().filter(|(_, reach)| counts(reach));
        reached.filter_map(|(owner, _)| self.all.get(*owner)).cloned().collect()
    }
}

impl Reach<'_> {
    fn has_itself(&self) -> bool {
        match self {
            Self::Whole => true,
            Self::Part(parts) => parts.contains_key("."),
        }
    }

    fn has_parts(&self) -> bool {
        match self {
            Self::Whole => false,
            Self::Part(parts) => parts.keys().any(|step| step != "."),
        }
    }

    fn has_beside(&self, field: &[&str]) -> bool {
        let (Self::Part(parts), Some((first, rest))) = (self, field.split_first()) else {
            return matches!(self, Self::Whole);
        };
        parts.iter().filter(|(name, _)| *name != ".").any(|(name, below)| match below.as_object() {
            Some(below) if name.strip_prefix("f:") == Some(first) => Self::Part(below).has_beside(rest),
            _ => true,
        })
    }
}

/// A step of managedFields, as a path has it.
enum StepName<'a> {
    Field(&'a str),
    Member(String),
}

impl<'a> StepName<'a> {
    /// `None` for the members of sets: they are known by their values, which are not told.
    fn of(step: &'a str) -> Option<Self> {
        if let Some(field) = step.strip_prefix("f:") {
            return Some(Self::Field(field));
        }
        let keys: Map<String, Value> = serde_json::from_str(step.strip_prefix("k:")?).ok()?;
        Some(Self::Member(member_name(&keys)))
    }
}

/// How a member is called by its keys: `app`, or `8080/TCP`.
pub fn member_name(keys: &Map<String, Value>) -> String {
    let texts = keys.values().map(|value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    texts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn metadata(entries: &Value) -> ObjectMeta {
        serde_json::from_value(json!({"managedFields": entries})).unwrap()
    }

    fn entry(manager: &str, spec: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": spec}})
    }

    fn names(owners: Vec<FieldOwner>) -> Vec<String> {
        owners.into_iter().map(|owner| owner.manager.to_string()).collect()
    }

    #[rstest]
    #[case::a_leaf(json!({"f:list": {}}), true)]
    #[case::the_member_itself(json!({"f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:x": {}}}}), true)]
    #[case::a_part_of_it(json!({"f:list": {"k:{\"name\":\"a\"}": {"f:x": {}}}}), false)]
    #[case::another_member(json!({"f:list": {"k:{\"name\":\"b\"}": {}}}), false)]
    #[case::no_fields(json!(["f:list"]), false)]
    #[case::a_leaf_that_is_none(json!({"f:list": true}), false)]
    fn a_member_belongs_to_who_owns_it_or_all_around_it(#[case] spec: Value, #[case] owns: bool) {
        let metadata = metadata(&json!([entry("m", spec)]));
        let keys = json!({"name": "a"});
        let owned = Owners::of(&metadata).of_field("spec").field("list").member(keys.as_object().unwrap()).owners();
        assert_eq!(names(owned).len(), usize::from(owns));
    }

    #[test]
    fn entries_about_the_status_and_malformed_ones_own_nothing() {
        let with = |field: &str, value: &str| {
            let mut entry = entry("m", json!({"f:a": {}}));
            entry[field] = json!(value);
            entry
        };
        let metadata =
            metadata(&json!([with("subresource", "status"), with("operation", "Steal"), {"operation": "Update"}]));
        assert!(!Owners::of(&metadata).are_shown());
    }

    #[test]
    fn who_owns_nothing_but_annotations_of_the_template_is_left_out() {
        let annotation = json!({"f:template": {"f:metadata": {"f:annotations": {"f:x": {}}}}});
        let both = json!({"f:replicas": {}, "f:template": {"f:metadata": {"f:annotations": {"f:x": {}}}}});
        let metadata =
            metadata(&json!([entry("restarts", annotation), entry("writes", both), entry("all", json!({}))]));
        let beside = Owners::of(&metadata).of_field("spec").owners_beside(&["template", "metadata", "annotations"]);
        assert_eq!(names(beside), ["writes", "all"]);
    }

    #[test]
    fn what_several_own_is_told_leaf_by_leaf() {
        let app = |field: &str| json!({"f:list": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, (field): {}, "f:x": {}}}});
        let metadata = metadata(&json!([entry("a", app("f:y")), entry("b", app("f:z"))]));
        let mut told = Vec::new();
        let owners = Owners::of(&metadata);
        owners
            .of_field("spec")
            .in_common(&Path::root("spec"), &mut |path, owners| told.push((path.to_string(), names(owners))));
        assert_eq!(told, [("spec.list[80/TCP].x".to_owned(), vec!["a".to_owned(), "b".to_owned()])]);
    }

    #[test]
    fn who_wrote_it_while_it_was_empty_owns_nothing_that_others_put_in() {
        let limits = json!({"f:resources": {"f:limits": {".": {}, "f:memory": {}}}});
        let metadata = metadata(&json!([entry("a", json!({"f:resources": {}})), entry("b", limits)]));
        let owners = Owners::of(&metadata);
        let spec = owners.of_field("spec");
        let memory = spec.field("resources").field("limits").field("memory");
        assert_eq!(names(memory.owners()), ["b"]);
        spec.in_common(&Path::root("spec"), &mut |path, _| panic!("{path} has one owner"));
    }
}
