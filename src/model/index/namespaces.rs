//! What namespaces say about their workloads: the default for reloading, and that they go away.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::api::auto_reload::{AutoReload, InvalidAnnotation};
use crate::model::counting::Counting;
use crate::model::index::{Index, Work};
use crate::model::names::{Name, WorkloadId};
use crate::model::namespace::{Barred, Namespace, NamespaceDefault, Timing};
use crate::model::scope::Extent;
use crate::model::watched::Watched;
use crate::model::workload::Workload;

impl Index {
    /// This namespace, and what its annotations have wrong.
    pub fn problems_of_namespace(&self, name: &Name) -> Option<(&Namespace, Vec<InvalidAnnotation>)> {
        let namespace = self.namespaces.get(name)?;
        Some((namespace, namespace.problems().cloned().collect()))
    }

    /// What this namespace says of when its workloads roll, if it was seen.
    pub(super) fn timing_in(&self, name: &Name) -> Option<&Timing> {
        self.namespaces.get(name).map(|namespace| &namespace.timing)
    }

    pub(super) fn insert_namespace(&mut self, namespace: Namespace, now: Timestamp, work: &mut Work) {
        let name = namespace.name.clone();
        work.namespaces.insert(name.clone());
        let before = self.namespaces.insert(name.clone(), namespace.clone());
        if before.is_none() {
            self.gain(&name, work);
        }
        if before.is_none_or(|before| !before.says_what(&namespace)) {
            self.look_within(&name, now, work);
        }
    }

    pub(super) fn remove_namespace(&mut self, name: &Name, now: Timestamp, work: &mut Work) {
        work.namespaces.insert(name.clone());
        if self.namespaces.remove(name).is_none() {
            return;
        }
        match self.scope.namespace_labels() {
            Some(_) => self.lose(name, now, work),
            None => self.look_within(name, now, work),
        }
    }

    /// The labels of this namespace, if it was seen.
    pub fn labels_of(&self, name: &Name) -> Option<&BTreeMap<String, String>> {
        self.namespaces.get(name).map(|namespace| &namespace.labels)
    }

    /// Whether what is in this namespace is kept.
    pub fn is_in_scope(&self, namespace: &Name) -> bool {
        self.scope.namespace_labels().is_none() || self.namespaces.contains_key(namespace)
    }

    /// A namespace that got the labels, after all others were listed: what is in it was not kept so far.
    fn gain(&mut self, name: &Name, work: &mut Work) {
        if self.scope.namespace_labels().is_some() && self.is_synced(Watched::Namespace) {
            self.lists.expect(name, self.scope.watched().filter(|kind| *kind != Watched::Namespace));
            work.gained.push(name.clone());
        }
    }

    /// A namespace that lost the labels. Workloads first: their configs do not count as deleted.
    fn lose(&mut self, name: &Name, now: Timestamp, work: &mut Work) {
        self.lists.forget(name);
        let extent = Extent::Namespace(name.clone());
        let (configs, others): (Vec<Watched>, Vec<Watched>) =
            self.scope.watched().partition(|kind| matches!(kind, Watched::Config(_)));
        for kind in others.into_iter().chain(configs).filter(|kind| *kind != Watched::Namespace) {
            for identity in self.identities(kind, &extent).collect::<Vec<_>>() {
                self.remove(kind, &identity, now, work);
            }
        }
    }

    /// Looks at the workloads of a namespace; at the end of the first list all of them are looked at anyway.
    fn look_within(&mut self, namespace: &Name, now: Timestamp, work: &mut Work) {
        if !self.is_synced(Watched::Namespace) {
            return;
        }
        let ids = self.workloads.keys().filter(|id| id.namespace == *namespace);
        for id in ids.cloned().collect::<Vec<WorkloadId>>() {
            self.hear_again(&id);
            self.forget_birth_of_the_opted_out(&id);
            self.look(&id, now, work);
        }
    }

    /// One that was made while it was not known what its namespace wants, and that turns out not to be opted in.
    pub(super) fn forget_birth_of_the_opted_out(&mut self, id: &WorkloadId) {
        let opted_out = self.workloads.get(id).is_some_and(|tracked| !self.may_count(&tracked.workload));
        if let Some(tracked) = self.workloads.get_mut(id).filter(|_| opted_out) {
            tracked.workload.born = None;
        }
    }

    /// What counts for this workload. While its namespace says nothing that can be read, what counted before does.
    pub(super) fn counting(&self, workload: &Workload, before: Option<&Counting>) -> Counting {
        let default = self.default_for(workload).or(self.participation.unsaid, before);
        self.counting_with(workload, default, before)
    }

    fn counting_with(&self, workload: &Workload, default: AutoReload, before: Option<&Counting>) -> Counting {
        self.participation.counting(workload, self.opt_in_of(workload), default, before)
    }

    /// Whether anything counts for this workload, or would if it were known what its namespace wants.
    pub(super) fn may_count(&self, workload: &Workload) -> bool {
        let most = match self.default_for(workload) {
            NamespaceDefault::Unreadable | NamespaceDefault::Unknown => AutoReload::Everything,
            known => known.or(self.participation.unsaid, None),
        };
        self.is_unheard(workload) || !self.counting_with(workload, most, None).is_off()
    }

    /// Whether it depends on the namespace what counts, and that one was not seen yet.
    pub(super) fn lacks_namespace(&self, workload: &Workload) -> bool {
        let with = |default| self.counting_with(workload, default, None);
        let depends = || {
            self.default_for(workload) == NamespaceDefault::Unknown
                && with(AutoReload::Off) != with(AutoReload::Everything)
        };
        self.is_unheard(workload) || depends()
    }

    pub(super) fn is_namespace_deleting(&self, name: &Name) -> bool {
        self.namespaces.get(name).is_some_and(|namespace| namespace.deleting)
    }

    fn default_for(&self, workload: &Workload) -> NamespaceDefault {
        match NamespaceDefault::of(workload, self.namespaces.get(&workload.id.namespace)) {
            NamespaceDefault::Unknown if !self.scope.watches_namespaces() => {
                NamespaceDefault::Barred(Barred::NamedNamespaces)
            }
            default => default,
        }
    }
}

#[cfg(test)]
mod tests;
