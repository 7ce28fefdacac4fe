//! What is declared, compared with what is live, as the API server does it: members of lists by their keys, quantities by
//! value, and only what is declared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::owners::{FieldOwner, Owned, member_name};
use super::path::{Path, Step};
use super::{Change, Difference, FieldKind, Shown, kept, merge_keys, quantity, unions};
use crate::api::annotations::CONFIG_HASH;

/// What `kubectl rollout restart` writes into a pod template.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// What a comparison finds.
pub(super) trait Findings {
    /// This differs.
    fn differs(&mut self, difference: Difference);
    /// This is as declared, and these own it.
    fn agrees(&mut self, path: &Path<'_>, owners: Vec<FieldOwner>);
}

/// Compares a declared object with the live one.
pub(super) fn object(
    path: &Path<'_>,
    declared: &Map<String, Value>,
    live: &Map<String, Value>,
    owned: &Owned<'_>,
    found: &mut dyn Findings,
) {
    for (name, declared) in declared.iter().filter(|(name, _)| !is_a_restart(path, name)) {
        let (path, owned_below) = (path.field(name), owned.field(name));
        match live.get(name) {
            Some(live) => field(&path, declared, live, &owned_below, found),
            None => absent(&path, declared, (live, owned), found),
        }
    }
}

/// Our own stamp and `kubectl rollout restart` are never drift, not even of a manifest that was made of a live object.
pub(super) fn is_a_restart(path: &Path<'_>, name: &str) -> bool {
    path.ends_with(&["metadata", "annotations"]) && [CONFIG_HASH, RESTARTED_AT].contains(&name)
}

fn field(path: &Path<'_>, declared: &Value, live: &Value, owned: &Owned<'_>, found: &mut dyn Findings) {
    match (declared, live) {
        // A null asks for the default.
        (Value::Null, _) => {}
        // For whoever fills it in, such as OpenShift's image triggers.
        (Value::String(image), _) if path.kind() == FieldKind::Image && image.trim().is_empty() => {}
        (Value::Object(declared), Value::Object(live)) => object(path, declared, live, owned, found),
        (Value::Array(declared), Value::Array(live)) if path.merge_keys().is_some() => {
            members(path, declared, live, owned, found);
        }
        (Value::Array(declared), Value::Array(live)) if path.name() == Some("envFrom") => {
            let added = super::additions::added(declared, live);
            whole(path, added.is_some(), (None, owned), found);
        }
        _ => whole(path, covers(path, declared, live), (shown(path, declared, live), owned), found),
    }
}

/// Compares what is written as a whole.
fn whole(path: &Path<'_>, same: bool, (shown, owned): (Option<Shown>, &Owned<'_>), found: &mut dyn Findings) {
    if same {
        return found.agrees(path, owned.owners());
    }
    let (path, kind) = (path.to_string(), path.kind());
    found.differs(Difference { path, kind, change: Change::Changed, shown, owners: owned.owners() });
}

/// A declared field that the live parent does not have.
fn absent(
    path: &Path<'_>,
    declared: &Value,
    (live, parent): (&Map<String, Value>, &Owned<'_>),
    found: &mut dyn Findings,
) {
    let instead = unions::instead(path, declared, live);
    if !instead.is_empty() {
        let owners: BTreeSet<FieldOwner> = instead.iter().flat_map(|other| parent.field(other).owners()).collect();
        let (path, kind, owners) = (path.to_string(), path.kind(), owners.into_iter().collect());
        return found.differs(Difference { path, kind, change: Change::Changed, shown: None, owners });
    }
    match declared {
        Value::Array(declared) if path.merge_keys().is_some() => {
            members(path, declared, &[], &parent.nothing(), found);
        }
        declared if kept::field(path, declared) => taken_out(path, found),
        _ => {}
    }
}

fn taken_out(path: &Path<'_>, found: &mut dyn Findings) {
    let (path, kind) = (path.to_string(), path.kind());
    found.differs(Difference { path, kind, change: Change::TakenOut, shown: None, owners: Vec::new() });
}

/// Compares a list by the keys of its members; not at all where these don't tell them apart.
fn members(path: &Path<'_>, declared: &[Value], live: &[Value], owned: &Owned<'_>, found: &mut dyn Findings) {
    let (Some(declared), Some(live)) = (by_key(path, declared), by_key(path, live)) else { return };
    for (name, (keys, declared)) in &declared {
        let (path, owned) = (path.member(name), owned.member(keys));
        match live.get(name) {
            Some((_, live)) => object(&path, declared, live, &owned, found),
            None if kept::member(&path) => taken_out(&path, found),
            None => {}
        }
    }
}

/// The members of a list: their keys and themselves, by the name that the keys make.
pub(super) type Members<'a> = BTreeMap<String, (Map<String, Value>, &'a Map<String, Value>)>;

/// The members by their keys; `None` if one lacks a key, or two have the same.
pub(super) fn by_key<'a>(list: &Path<'_>, members: &'a [Value]) -> Option<Members<'a>> {
    let names = list.merge_keys()?;
    let mut all = Members::new();
    for member in members {
        let member = member.as_object()?;
        let key = |name: &&str| {
            let default = || merge_keys::default_of(name).map(Value::from);
            Some(((*name).to_owned(), member.get(*name).cloned().or_else(default)?))
        };
        let keys: Map<String, Value> = names.iter().map(key).collect::<Option<_>>()?;
        if all.insert(member_name(&keys), (keys, member)).is_some() {
            return None;
        }
    }
    Some(all)
}

/// Whether the live value has all that is declared; defaults may stand beside it.
pub(super) fn covers(path: &Path<'_>, declared: &Value, live: &Value) -> bool {
    match (declared, live) {
        (Value::Null, _) => true,
        (Value::Object(declared), Value::Object(live)) => declared.iter().all(|(name, declared)| {
            let path = path.field(name);
            live.get(name).map_or_else(|| is_empty(declared), |live| covers(&path, declared, live))
        }),
        (Value::Array(declared), Value::Array(live)) => {
            declared.len() == live.len()
                && declared.iter().zip(live).all(|(declared, live)| covers(path, declared, live))
        }
        (Value::String(declared), Value::String(live)) => {
            declared == live || (path.is_quantity() && quantity::same(declared, live))
        }
        // A port may be a number or a text of one, and so may a quantity.
        (declared, live) => match (text(declared), text(live)) {
            (Some(declared), Some(live)) => {
                declared == live || (path.is_quantity() && quantity::same(&declared, &live))
            }
            _ => declared == live,
        },
    }
}

/// What the API doesn't tell from nothing.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Both values, where values may be shown at all.
fn shown(path: &Path<'_>, declared: &Value, live: &Value) -> Option<Shown> {
    let may_be_shown = match path.kind() {
        FieldKind::Image | FieldKind::Replicas | FieldKind::Resources => true,
        FieldKind::Variable | FieldKind::Other => false,
    };
    may_be_shown.then(|| Some(Shown { declared: text(declared)?, live: text(live)? })).flatten()
}

impl Path<'_> {
    /// The name of this field.
    pub(super) fn name(&self) -> Option<&str> {
        match self.upwards().next()? {
            Step::Field(name) => Some(name),
            Step::Member(_) => None,
        }
    }

    fn merge_keys(&self) -> Option<&'static [&'static str]> {
        match self.upwards().next()? {
            Step::Field(name) => merge_keys::of(name),
            Step::Member(_) => None,
        }
    }

    fn ends_with(&self, fields: &[&str]) -> bool {
        let mut upwards = self.upwards();
        fields.iter().rev().all(|field| upwards.next() == Some(Step::Field(field)))
    }

    /// Whether this is a member of this list, or in one.
    fn is_in_list(&self, list: &str) -> bool {
        let steps: Vec<Step<'_>> = self.upwards().collect();
        steps.windows(2).any(|steps| matches!(steps, [Step::Member(_), Step::Field(name)] if *name == list))
    }

    fn is_quantity(&self) -> bool {
        self.upwards().take(2).any(|step| matches!(step, Step::Field(field) if quantity::holds_quantities(field)))
    }

    fn kind(&self) -> FieldKind {
        let steps: Vec<Step<'_>> = self.upwards().take(4).collect();
        match steps.as_slice() {
            [Step::Field("image"), Step::Member(_), Step::Field("containers" | "initContainers"), ..] => {
                FieldKind::Image
            }
            [Step::Field("replicas"), Step::Field("spec")] => FieldKind::Replicas,
            [_, Step::Field("limits" | "requests"), Step::Field("resources"), ..] => FieldKind::Resources,
            _ if self.is_in_list("env") => FieldKind::Variable,
            _ => FieldKind::Other,
        }
    }
}
