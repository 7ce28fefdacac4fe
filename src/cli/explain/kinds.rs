//! Which kind is meant, of those that are not built in.

use std::cell::RefCell;

use kube::core::ApiResource;

use super::object::OtherKind;
use super::{ExplainError, ObjectName};
use crate::cli::live::Served;
use crate::model::custom::{self, CustomKind, KindName, group_of};

/// A custom kind, as it is kept; none if it is no kind that could be rolled.
fn kept(group: &str, version: &str, kind: &str) -> Option<&'static CustomKind> {
    let name: KindName = format!("{group}/{version}/{kind}").parse().ok()?;
    custom::kinds(&[name]).first()
}

/// A kind that the API server has.
pub(super) struct Resolved {
    pub(super) kind: &'static CustomKind,
    pub(super) resource: ApiResource,
}

/// The kind that is meant, of those that the API server has, and by what it is called there where the operator knows it.
pub(super) fn resolve(
    object: &ObjectName,
    other: &OtherKind,
    served: &[Served],
    watched: &'static [CustomKind],
) -> Result<Resolved, ExplainError> {
    let is_meant = |kind: &&Served| {
        let ApiResource { group, version, kind: name, plural, .. } = &kind.resource;
        let names = kind.names.iter().map(String::as_str).chain([name.as_str(), plural.as_str()]);
        other.is(group, version, names)
    };
    let meant: Vec<&Served> = served.iter().filter(is_meant).collect();
    let groups = || meant.iter().map(|kind| format!("{}.{}", kind.resource.plural, kind.resource.group));
    match meant.as_slice() {
        [] if other.has_group() => Err(ExplainError::NotInstalled(object.clone())),
        [] => Err(ExplainError::NoSuchKind(object.clone())),
        [one] => {
            let resource = one.resource.clone();
            let known = watched.iter().find(|kind| kind.is(&resource.api_version, &resource.kind));
            let kind = known.or_else(|| kept(&resource.group, &resource.version, &resource.kind));
            let kind = kind.ok_or_else(|| ExplainError::NoSuchKind(object.clone()))?;
            Ok(Resolved { kind, resource })
        }
        _ => {
            let kinds = groups().collect::<Vec<_>>().join(", ");
            Err(ExplainError::SeveralKinds { object: object.clone(), kinds })
        }
    }
}

/// The kinds that are met in files and meant.
#[derive(Default)]
pub(super) struct Met(RefCell<Vec<&'static CustomKind>>);

impl Met {
    /// The kind, if it is meant.
    pub(super) fn meet(&self, other: &OtherKind, api_version: &str, kind: &str) -> Option<&'static CustomKind> {
        let group = group_of(api_version);
        let version = api_version.strip_prefix(group).unwrap_or_default().trim_start_matches('/');
        if !other.is(group, version, [kind, &format!("{kind}s")]) {
            return None;
        }
        let mut met = self.0.borrow_mut();
        if let Some(known) = met.iter().find(|known| known.is(api_version, kind)) {
            return Some(known);
        }
        let kind = kept(group, version, kind)?;
        met.push(kind);
        Some(kind)
    }

    /// The only one that was met.
    pub(super) fn only(&self, object: &ObjectName) -> Result<&'static CustomKind, ExplainError> {
        match self.0.borrow().as_slice() {
            [] => Err(ExplainError::NotInFiles(object.to_string())),
            [one] => Ok(one),
            several => {
                let kinds = several.iter().map(|kind| format!("{}.{}", kind.kind.to_lowercase(), kind.group()));
                let kinds = kinds.collect::<Vec<_>>().join(", ");
                Err(ExplainError::SeveralKinds { object: object.clone(), kinds })
            }
        }
    }
}
