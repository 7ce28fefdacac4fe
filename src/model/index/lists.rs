//! Which lists are complete: of whole kinds, and of single namespaces.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::model::index::Identity;
use crate::model::names::{Name, ResourceVersion};
use crate::model::scope::{Extent, Scope};
use crate::model::watched::Watched;

/// Which lists there were, and what a list in progress has shown so far.
#[derive(Debug)]
pub(super) struct Lists {
    by: By,
    /// The kinds of which all has been listed.
    synced: BTreeSet<Watched>,
    /// The namespaces that were not listed yet, by kind.
    due: HashSet<(Watched, Name)>,
    listed: HashMap<(Watched, Extent), HashSet<Identity>>,
    /// The latest version that each watch of pods has shown.
    pods_seen_to: HashMap<Extent, ResourceVersion>,
}

/// How kinds are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// At once; a namespace that comes into scope later, on its own.
    Kind,
    /// Each namespace on its own.
    Namespace,
}

/// Whether a list was the first of what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    First,
    Again,
}

impl Lists {
    pub(super) fn of(scope: &Scope) -> Self {
        let by = if scope.watches_namespaces() { By::Kind } else { By::Namespace };
        let all = scope.watched().flat_map(|kind| scope.named().map(move |name| (kind, name.clone())));
        Self { by, synced: BTreeSet::new(), due: all.collect(), listed: HashMap::new(), pods_seen_to: HashMap::new() }
    }

    pub(super) fn begin(&mut self, kind: Watched, extent: Extent) {
        self.listed.insert((kind, extent), HashSet::new());
    }

    pub(super) fn note(&mut self, kind: Watched, extent: Extent, identity: Identity) {
        self.listed.entry((kind, extent)).or_default().insert(identity);
    }

    /// What the list has shown, and whether it was the first.
    pub(super) fn end(&mut self, kind: Watched, extent: &Extent) -> (HashSet<Identity>, Ended) {
        let listed = self.listed.remove(&(kind, extent.clone())).unwrap_or_default();
        let first = match extent {
            Extent::Cluster => self.synced.insert(kind),
            Extent::Namespace(name) => self.due.remove(&(kind, name.clone())),
        };
        (listed, if first { Ended::First } else { Ended::Again })
    }

    /// A pod was seen at this version, in this list or as it happened. The list of one namespace tells nothing of how
    /// far the watch of all is.
    pub(super) fn saw_pod(&mut self, namespace: &Name, version: Option<ResourceVersion>, list: Option<&Extent>) {
        let watch = self.watch_of(namespace);
        if let Some(version) = version.filter(|_| list.is_none_or(|list| *list == watch)) {
            let seen = self.pods_seen_to.entry(watch).or_insert(version);
            *seen = version.max(*seen);
        }
    }

    /// The latest version that the watch of this namespace's pods has shown.
    pub(super) fn pods_seen_to(&self, namespace: &Name) -> Option<ResourceVersion> {
        self.pods_seen_to.get(&self.watch_of(namespace)).copied()
    }

    fn watch_of(&self, namespace: &Name) -> Extent {
        match self.by {
            By::Kind => Extent::Cluster,
            By::Namespace => Extent::Namespace(namespace.clone()),
        }
    }

    /// A namespace came into scope: these kinds have to be listed in it.
    pub(super) fn expect(&mut self, name: &Name, kinds: impl Iterator<Item = Watched>) {
        self.due.extend(kinds.map(|kind| (kind, name.clone())));
    }

    /// A namespace is out of scope.
    pub(super) fn forget(&mut self, name: &Name) {
        self.due.retain(|(_, due)| due != name);
    }

    /// Whether all of this kind has been listed once.
    pub(super) fn is_synced(&self, kind: Watched) -> bool {
        match self.by {
            By::Kind => self.synced.contains(&kind),
            By::Namespace => self.due.iter().all(|(due, _)| *due != kind),
        }
    }

    /// Whether all of this kind in this namespace has been listed once.
    pub(super) fn is_synced_in(&self, kind: Watched, name: &Name) -> bool {
        let listed = self.by == By::Namespace || self.synced.contains(&kind);
        listed && (self.due.is_empty() || !self.due.contains(&(kind, name.clone())))
    }
}

#[cfg(test)]
mod tests;
