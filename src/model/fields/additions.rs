//! What is live in a pod template and that no manifest declares: containers, variables and volumes.

use serde_json::{Map, Value};

use super::Addition;
use super::compare::{by_key, covers};
use super::owners::{FieldOwner, Owned};
use super::path::Path;
use crate::model::managed_fields::Operation;

/// What says which members are declared.
#[derive(Clone, Copy)]
pub(super) enum Declared<'a> {
    /// This object of a manifest; `None` where it has none.
    Manifest(Option<&'a Map<String, Value>>),
    /// Whoever owns a member by Apply.
    Appliers,
}

impl<'a> Declared<'a> {
    /// The same of a field below.
    pub(super) fn below(self, field: &str) -> Self {
        match self {
            Self::Manifest(object) => Self::Manifest(object.and_then(|object| object.get(field)?.as_object())),
            Self::Appliers => Self::Appliers,
        }
    }

    fn list(self, field: &str) -> Option<&'a [Value]> {
        match self {
            Self::Manifest(object) => {
                Some(object.and_then(|object| object.get(field)?.as_array()).map_or(&[], Vec::as_slice))
            }
            Self::Appliers => None,
        }
    }
}

/// Tells of every undeclared member of a pod template's lists.
pub(super) fn of_template(
    path: &Path<'_>,
    declared: Declared<'_>,
    live: &Map<String, Value>,
    owned: &Owned<'_>,
    tell: &mut dyn FnMut(Addition),
) {
    let Some(live) = live.get("spec").and_then(Value::as_object) else { return };
    let (path, declared, owned) = (path.field("spec"), declared.below("spec"), owned.field("spec"));
    for list in ["initContainers", "containers"] {
        members(
            &path.field(list),
            declared.list(list),
            live.get(list),
            &owned.field(list),
            &mut |member| match member {
                Member::Declared { path, declared, live, owned } => of_container(&path, declared, live, &owned, tell),
                Member::Undeclared(addition) => tell(addition),
            },
        );
    }
    undeclared(&path.field("volumes"), declared, live, &owned, tell);
}

fn of_container(
    path: &Path<'_>,
    declared: Declared<'_>,
    live: &Map<String, Value>,
    owned: &Owned<'_>,
    tell: &mut dyn FnMut(Addition),
) {
    undeclared(&path.field("env"), declared, live, owned, tell);
    // Written as a whole: without a manifest, nothing tells which of its entries are declared.
    let (Some(declared), Some(live)) = (declared.list("envFrom"), live.get("envFrom").and_then(Value::as_array)) else {
        return;
    };
    for entry in added(declared, live).into_iter().flatten() {
        let (path, owned) = (path.field("envFrom"), owned.field("envFrom"));
        tell(Addition { path: path.member(&source_name(entry)).to_string(), owners: owned.owners() });
    }
}

fn undeclared(
    path: &Path<'_>,
    declared: Declared<'_>,
    live: &Map<String, Value>,
    owned: &Owned<'_>,
    tell: &mut dyn FnMut(Addition),
) {
    let Some(list) = path.name() else { return };
    members(path, declared.list(list), live.get(list), &owned.field(list), &mut |member| {
        if let Member::Undeclared(addition) = member {
            tell(addition);
        }
    });
}

/// A live member of a list.
enum Member<'a> {
    Declared { path: Path<'a>, declared: Declared<'a>, live: &'a Map<String, Value>, owned: Owned<'a> },
    Undeclared(Addition),
}

/// Takes each live member by its keys; none where these don't tell the members apart.
fn members(
    path: &Path<'_>,
    declared: Option<&[Value]>,
    live: Option<&Value>,
    owned: &Owned<'_>,
    take: &mut dyn FnMut(Member<'_>),
) {
    let declared = match declared.map(|declared| by_key(path, declared)) {
        Some(None) => return,
        Some(Some(members)) => Some(members),
        None => None,
    };
    let live = live.and_then(Value::as_array).map_or(&[] as &[Value], Vec::as_slice);
    for (name, (keys, live)) in by_key(path, live).into_iter().flatten() {
        let (path, owned) = (path.member(&name), owned.member(&keys));
        let owners = owned.owners();
        let declared = match &declared {
            Some(members) => members.get(&name).map(|(_, declared)| Declared::Manifest(Some(declared))),
            None => is_applied(&owners).then_some(Declared::Appliers),
        };
        take(match declared {
            Some(declared) => Member::Declared { path, declared, live, owned },
            None => Member::Undeclared(Addition { path: path.to_string(), owners }),
        });
    }
}

fn is_applied(owners: &[FieldOwner]) -> bool {
    owners.iter().any(|owner| owner.operation == Operation::Apply)
}

/// The live entries of an `envFrom` that stand between the declared ones; `None` if the declared ones are not all there,
/// in their order.
pub(super) fn added<'a>(declared: &[Value], live: &'a [Value]) -> Option<Vec<&'a Value>> {
    let mut missing = declared.iter().peekable();
    let mut added = Vec::new();
    for entry in live {
        match missing.peek() {
            Some(next) if covers(&Path::root("envFrom"), next, entry) => {
                missing.next();
            }
            _ => added.push(entry),
        }
    }
    missing.next().is_none().then_some(added)
}

/// How an entry of an `envFrom` is called: by its source, and by its prefix where it has one.
fn source_name(entry: &Value) -> String {
    let named = |field: &str, kind: &str| Some(format!("{kind}/{}", entry.get(field)?.get("name")?.as_str()?));
    let source = named("configMapRef", "ConfigMap").or_else(|| named("secretRef", "Secret")).unwrap_or_default();
    match entry.get("prefix").and_then(Value::as_str) {
        Some(prefix) if !prefix.is_empty() => format!("{source}:{prefix}"),
        _ => source,
    }
}
