//! Who stands behind a field manager: several names of kubectl are one hand at one manifest.

use std::collections::BTreeMap;

use super::Writer;
use crate::model::managers::Standing;

/// Who stands behind a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Person<'a> {
    /// Whoever applies with kubectl, on the client's side or on the server's, today or with an old version.
    Kubectl,
    /// Whoever has this name.
    Other(&'a str),
}

impl<'a> Person<'a> {
    /// Who writes under this name with this standing, and declares what it owns or not; `None` for controllers.
    pub(super) fn behind(name: &'a str, standing: Standing, declares: bool) -> Option<Self> {
        match standing {
            Standing::Leaver if name.contains("kubectl") || name == "before-first-apply" => Some(Self::Kubectl),
            Standing::Leaver | Standing::Hand => Some(Self::Other(name)),
            Standing::Somebody if declares && name == "kubectl" => Some(Self::Kubectl),
            Standing::Somebody if declares => Some(Self::Other(name)),
            Standing::Somebody => None,
        }
    }
}

/// The last write of each person; who wrote last comes last.
pub(super) fn last_writes<'a>(writes: impl Iterator<Item = (Person<'a>, Writer)>) -> Vec<Writer> {
    let mut by_person: BTreeMap<Person<'_>, Writer> = BTreeMap::new();
    for (person, writer) in writes {
        let last = by_person.entry(person).or_insert_with(|| writer.clone());
        if last.since < writer.since {
            *last = writer;
        }
    }
    let mut writers: Vec<Writer> = by_person.into_values().collect();
    writers.sort_by_key(|writer| writer.since);
    writers
}
