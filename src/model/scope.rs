//! The scope: which part of the cluster is watched. What is out of it is not kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::custom::{CustomKind, group_of};
use crate::model::names::{ConfigKind, Name, WorkloadKind};
use crate::model::selector::LabelSelector;
use crate::model::watched::Watched;

/// Which part of the cluster is watched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Which namespaces.
    pub namespaces: Namespaces,
    /// Which configs in them. Of the others it is not known whether they exist.
    pub configs: Option<LabelSelector>,
    /// Kinds of config that are not looked at at all.
    pub ignored: BTreeSet<ConfigKind>,
    /// Which kinds of workload beside those that are built in.
    pub kinds: &'static [CustomKind],
    /// Kinds that nobody here asks about.
    pub unasked: BTreeSet<Watched>,
}

/// The watched namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespaces {
    /// All but these.
    AllBut(BTreeSet<Name>),
    /// Those with these labels, but for some.
    Labelled {
        /// The labels.
        labels: LabelSelector,
        /// Those that are left out.
        but: BTreeSet<Name>,
    },
    /// These, each with watches of its own: nothing of the cluster as a whole is read.
    Only(BTreeSet<Name>),
}

impl Default for Namespaces {
    fn default() -> Self {
        Self::AllBut(BTreeSet::new())
    }
}

/// Whether something is in scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// It is.
    In,
    /// It is not.
    Out,
    /// That depends on what is not known.
    Unknown,
}

/// What one list is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extent {
    /// All that is in scope.
    Cluster,
    /// What is in one namespace.
    Namespace(Name),
}

impl Extent {
    /// Whether an object of this namespace would be in the list.
    pub fn covers(&self, namespace: &Name) -> bool {
        match self {
            Self::Cluster => true,
            Self::Namespace(name) => name == namespace,
        }
    }
}

impl Scope {
    /// The kinds that are watched.
    pub fn watched(&self) -> impl Iterator<Item = Watched> + use<> {
        let ignored = self.ignored.clone();
        let configs = ConfigKind::ALL.into_iter().filter(move |kind| !ignored.contains(kind)).map(Watched::Config);
        let custom = self.kinds.iter().map(WorkloadKind::Custom);
        let workloads = WorkloadKind::ALL.into_iter().chain(custom).map(Watched::Workload);
        let namespaces = self.watches_namespaces().then_some(Watched::Namespace);
        let all = configs.chain(workloads).chain([Watched::Report, Watched::Autoscaler]).chain(namespaces);
        let unasked = self.unasked.clone();
        all.filter(move |kind| !unasked.contains(kind))
    }

    /// The watched kind of workload that has this type, in whatever version.
    pub fn workload_kind(&self, api_version: &str, kind: &str) -> Option<WorkloadKind> {
        let is =
            |known: &WorkloadKind| known.as_str() == kind && group_of(known.api_version()) == group_of(api_version);
        let custom = self.kinds.iter().map(WorkloadKind::Custom);
        WorkloadKind::ALL.into_iter().chain(custom).find(is)
    }

    /// The lists by which a kind is watched.
    pub fn extents(&self, kind: Watched) -> Vec<Extent> {
        match &self.namespaces {
            Namespaces::Only(names) if kind != Watched::Namespace => {
                names.iter().cloned().map(Extent::Namespace).collect()
            }
            _ => vec![Extent::Cluster],
        }
    }

    /// Whether namespaces are watched: their annotations count, and whether they are being deleted.
    pub fn watches_namespaces(&self) -> bool {
        !matches!(self.namespaces, Namespaces::Only(_))
    }

    /// Whether a namespace with these labels, as far as they are known, is watched.
    pub fn watches(&self, namespace: &Name, labels: Option<&BTreeMap<String, String>>) -> Membership {
        let is = |is: bool| if is { Membership::In } else { Membership::Out };
        match (&self.namespaces, labels) {
            (Namespaces::Only(names), _) => is(names.contains(namespace)),
            (Namespaces::AllBut(names), _) => is(!names.contains(namespace)),
            (Namespaces::Labelled { but, .. }, _) if but.contains(namespace) => Membership::Out,
            (Namespaces::Labelled { labels: selector, .. }, Some(labels)) => is(selector.match_all(labels)),
            (Namespaces::Labelled { .. }, None) => Membership::Unknown,
        }
    }

    /// The kinds of config of which not all that are there are seen.
    pub fn partly_seen(&self) -> BTreeSet<ConfigKind> {
        let some = self.configs.as_ref().map(|_| ConfigKind::ALL).into_iter().flatten();
        some.chain(self.ignored.iter().copied()).collect()
    }

    /// The labels that a namespace must have.
    pub fn namespace_labels(&self) -> Option<&LabelSelector> {
        match &self.namespaces {
            Namespaces::Labelled { labels, .. } => Some(labels),
            Namespaces::AllBut(_) | Namespaces::Only(_) => None,
        }
    }

    /// The namespaces that are named to be watched; none for all.
    pub fn named(&self) -> impl Iterator<Item = &Name> {
        match &self.namespaces {
            Namespaces::Only(names) => Some(names),
            Namespaces::AllBut(_) | Namespaces::Labelled { .. } => None,
        }
        .into_iter()
        .flatten()
    }

    /// The namespaces that are left out.
    pub fn excluded(&self) -> impl Iterator<Item = &Name> {
        match &self.namespaces {
            Namespaces::AllBut(names) | Namespaces::Labelled { but: names, .. } => Some(names),
            Namespaces::Only(_) => None,
        }
        .into_iter()
        .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::everything(Namespaces::default(), vec![Extent::Cluster], true)]
    #[case::named(
        Namespaces::Only(["a".into(), "b".into()].into()),
        vec![Extent::Namespace("a".into()), Extent::Namespace("b".into())],
        false
    )]
    fn named_namespaces_are_watched_one_by_one_and_without_a_look_at_the_cluster(
        #[case] namespaces: Namespaces,
        #[case] extents: Vec<Extent>,
        #[case] watches_namespaces: bool,
    ) {
        let scope = Scope { namespaces, ..Scope::default() };
        assert_eq!(scope.extents(Watched::Report), extents);
        assert_eq!(scope.watched().any(|kind| kind == Watched::Namespace), watches_namespaces);
    }

    #[rstest]
    #[case::everything(Namespaces::default(), None, Membership::In)]
    #[case::left_out(Namespaces::AllBut(["ns".into()].into()), None, Membership::Out)]
    #[case::named(Namespaces::Only(["ns".into()].into()), None, Membership::In)]
    #[case::others_named(Namespaces::Only(["a".into()].into()), Some("x"), Membership::Out)]
    #[case::labelled(labelled(&[]), Some("x"), Membership::In)]
    #[case::labelled_otherwise(labelled(&[]), Some("y"), Membership::Out)]
    #[case::of_unknown_labels(labelled(&[]), None, Membership::Unknown)]
    #[case::labelled_and_left_out(labelled(&["ns"]), None, Membership::Out)]
    fn a_namespace_is_watched_by_name_or_by_label(
        #[case] namespaces: Namespaces,
        #[case] team: Option<&str>,
        #[case] expected: Membership,
    ) {
        let scope = Scope { namespaces, ..Scope::default() };
        let labels = team.map(|team| BTreeMap::from([("team".to_owned(), team.to_owned())]));
        assert_eq!(scope.watches(&"ns".into(), labels.as_ref()), expected);
    }

    fn labelled(but: &[&str]) -> Namespaces {
        Namespaces::Labelled {
            labels: "team=x".parse().unwrap(),
            but: but.iter().map(|name| Name::from(*name)).collect(),
        }
    }

    #[test]
    fn a_kind_of_config_that_is_ignored_is_not_watched_and_unknown() {
        let scope = Scope { ignored: [ConfigKind::Secret].into(), ..Scope::default() };
        assert!(!scope.watched().any(|kind| kind == Watched::Config(ConfigKind::Secret)));
        assert!(scope.watched().any(|kind| kind == Watched::Config(ConfigKind::ConfigMap)));
        assert_eq!(scope.partly_seen(), [ConfigKind::Secret].into());
    }
}
