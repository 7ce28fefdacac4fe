//! In which vocabulary workloads are heard, and which of them name configs that none of their containers does.

use std::collections::BTreeSet;

use crate::api::vocabulary::Vocabulary;
use crate::model::index::{Index, Tracked, remove_from};
use crate::model::names::{ConfigId, Name, WorkloadId};
use crate::model::participation::Stakater;
use crate::model::workload::Workload;

impl Index {
    /// Reads a workload's annotations in the vocabulary that counts for it. What they said before, they still say.
    pub(super) fn hear(&self, workload: &mut Workload, before: Option<&Tracked>) {
        let vocabulary = self.vocabulary_in(&workload.id.namespace).unwrap_or_default();
        let is_the_same = |before: &&Workload| {
            before.annotations.is_some()
                && before.annotations == workload.annotations
                && before.opt_in.vocabulary == vocabulary
        };
        match before.map(|before| &before.workload).filter(is_the_same) {
            Some(before) => workload.heard(before.opt_in.clone(), before.lever),
            None => workload.hear(vocabulary),
        }
    }

    /// Its namespace may have got, or lost, the labels.
    pub(super) fn hear_again(&mut self, id: &WorkloadId) {
        let Some(mut tracked) = self.workloads.remove(id) else { return };
        let vocabulary = self.vocabulary_in(&id.namespace).unwrap_or_default();
        if tracked.workload.opt_in.vocabulary != vocabulary {
            tracked.workload.hear(vocabulary);
            self.note_names(&tracked.workload);
        }
        self.workloads.insert(id.clone(), tracked);
    }

    /// Whether it depends on the namespace what its annotations say, and that one was not seen yet.
    pub(super) fn is_unheard(&self, workload: &Workload) -> bool {
        self.vocabulary_in(&workload.id.namespace).is_none()
    }

    /// Whose annotations count in this namespace; `None` if that is not known yet.
    fn vocabulary_in(&self, namespace: &Name) -> Option<Vocabulary> {
        let counts = match &self.participation.stakater {
            Stakater::Nowhere => false,
            Stakater::Everywhere => true,
            Stakater::Labelled(labels) => labels.match_all(&self.namespaces.get(namespace)?.labels),
        };
        Some(if counts { Vocabulary::WithStakater } else { Vocabulary::Own })
    }

    /// Keeps the map of the workloads for which configs count that no container names.
    pub(super) fn note_names(&mut self, workload: &Workload) {
        if workload.opt_in.reload_on.is_empty() {
            self.forget_names(&workload.id);
        } else {
            self.naming.entry(workload.id.namespace.clone()).or_default().insert(workload.id.clone());
        }
    }

    pub(super) fn forget_names(&mut self, id: &WorkloadId) {
        remove_from(&mut self.naming, &id.namespace, id);
    }

    /// The workloads that a change of this config concerns.
    pub(super) fn concerned(&self, config: &ConfigId) -> BTreeSet<WorkloadId> {
        let consumers = self.consumers.get(config).into_iter().flatten();
        let naming = self.naming.get(&config.namespace).into_iter().flatten().filter(|id| self.names(id, config));
        consumers.chain(naming).cloned().collect()
    }

    fn names(&self, workload: &WorkloadId, config: &ConfigId) -> bool {
        let patterns = self.workloads.get(workload).map(|tracked| tracked.workload.opt_in.reload_on.iter());
        patterns.into_iter().flatten().any(|pattern| pattern.matches(config))
    }
}

#[cfg(test)]
mod tests;
