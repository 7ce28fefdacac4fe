//! Why the operator reports no drift of an object, whatever there is: by its flags, as far as they are known.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sought::{Sought, Unknown};
use crate::api::published::Published;
use crate::model::drift_scope::{CLUSTERS_OWN, DriftSubjects};
use crate::model::names::Name;
use crate::model::namespace::Namespace;
use crate::model::scope::Membership;
use crate::model::selector::LabelSelector;

/// Why the operator reports no drift of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoDrift {
    /// In one word.
    pub reason: NoDriftReason,
    /// In words.
    pub message: String,
}

/// The reasons why the operator reports no drift of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum NoDriftReason {
    /// It reports none at all.
    Off,
    /// The namespace is the cluster's own.
    ClustersOwn,
    /// It does not watch the namespace.
    NamespaceNotWatched,
    /// The namespace lacks the labels.
    NamespaceNotSelected,
    /// Whether the namespace has the labels is not known.
    NamespaceUnknown,
}

impl NoDrift {
    /// Why there are no reports on drift in this namespace; `None` where there are, or where the flags are not known.
    pub fn of(published: &Sought<Published>, name: &Name, namespace: &Sought<Namespace>) -> Option<Self> {
        let Sought::Found(Published { scope, drift, .. }) = published else { return None };
        let labels = match namespace {
            Sought::Found(namespace) => Ok(&namespace.labels),
            Sought::Unknown(unknown) => Err(*unknown),
            Sought::Absent | Sought::NoSuchKind => Err(Unknown::Forbidden),
        };
        if drift.subjects == DriftSubjects::Off {
            return Some(no(NoDriftReason::Off, "the operator runs with --drift=off".to_owned()));
        }
        if name.as_str() == CLUSTERS_OWN {
            let message =
                format!("what is in {CLUSTERS_OWN} is the cluster's own, and `restamp scan` alone looks at it");
            return Some(no(NoDriftReason::ClustersOwn, message));
        }
        if scope.watches(name, labels.ok()) == Membership::Out {
            let message = "the operator does not watch this namespace; see its flags for namespaces";
            return Some(no(NoDriftReason::NamespaceNotWatched, message.to_owned()));
        }
        let selected = drift.namespaces.as_ref().or(scope.namespace_labels())?;
        of_labels(selected, labels)
    }
}

fn of_labels(selected: &LabelSelector, labels: Result<&BTreeMap<String, String>, Unknown>) -> Option<NoDrift> {
    match labels {
        Ok(labels) if selected.match_all(labels) => None,
        Ok(_) => {
            let message = format!(
                "the operator runs with --drift-namespace-selector={selected}, and this namespace has other labels"
            );
            Some(no(NoDriftReason::NamespaceNotSelected, message))
        }
        Err(unknown) => {
            let message = format!(
                "whether the operator reports drift here is not known: it does in namespaces that are labelled {selected}, and \
                 of this one's labels, {unknown}"
            );
            Some(no(NoDriftReason::NamespaceUnknown, message))
        }
    }
}

fn no(reason: NoDriftReason, message: String) -> NoDrift {
    NoDrift { reason, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::published::Mode;
    use crate::model::drift_scope::DriftScope;
    use crate::model::participation::Participation;
    use crate::model::scope::{Namespaces, Scope};
    use rstest::rstest;
    use std::collections::BTreeSet;

    fn published(subjects: &str, selector: Option<&str>, namespaces: Namespaces) -> Sought<Published> {
        let namespaces_of_drift = selector.map(|text| text.parse().unwrap());
        Sought::Found(Published {
            version: "0.1.0".to_owned(),
            scope: Scope { namespaces, ..Scope::default() },
            participation: Participation::default(),
            drift: DriftScope { subjects: subjects.parse().unwrap(), namespaces: namespaces_of_drift },
            mode: Mode::Live,
            unread: BTreeSet::new(),
        })
    }

    fn flags(subjects: &str, selector: Option<&str>) -> Sought<Published> {
        published(subjects, selector, Namespaces::default())
    }

    fn labelled(team: &str) -> Sought<Namespace> {
        let labels = [("team".to_owned(), team.to_owned())].into();
        Sought::Found(Namespace { name: "ns".into(), uid: None, labels, deleting: false, auto_reload: Ok(None) })
    }

    const FORBIDDEN: Sought<Namespace> = Sought::Unknown(Unknown::Forbidden);

    #[rstest]
    #[case::by_default(flags("consumed", None), "ns", FORBIDDEN, None)]
    #[case::of_all_configs(flags("all", None), "ns", FORBIDDEN, None)]
    #[case::off(flags("off", Some("team=x")), "ns", labelled("x"), Some(NoDriftReason::Off))]
    #[case::the_clusters_own(flags("all", None), "kube-system", labelled("x"), Some(NoDriftReason::ClustersOwn))]
    #[case::selected(flags("consumed", Some("team=x")), "ns", labelled("x"), None)]
    #[case::not_selected(
        flags("consumed", Some("team=x")),
        "ns",
        labelled("y"),
        Some(NoDriftReason::NamespaceNotSelected)
    )]
    #[case::of_hidden_labels(flags("consumed", Some("team=x")), "ns", FORBIDDEN, Some(NoDriftReason::NamespaceUnknown))]
    #[case::not_watched(published("consumed", None, Namespaces::Only(["other".into()].into())), "ns", FORBIDDEN,
        Some(NoDriftReason::NamespaceNotWatched))]
    #[case::watched_by_labels_that_are_hidden(
        published("consumed", None, Namespaces::Labelled { labels: "team=x".parse().unwrap(), but: [].into() }), "ns",
        FORBIDDEN, Some(NoDriftReason::NamespaceUnknown))]
    #[case::watched_by_labels(
        published("consumed", None, Namespaces::Labelled { labels: "team=x".parse().unwrap(), but: [].into() }), "ns",
        labelled("x"), None)]
    #[case::of_unknown_flags(Sought::Unknown(Unknown::Forbidden), "kube-system", labelled("y"), None)]
    fn there_are_no_reports_where_the_flags_say_so(
        #[case] published: Sought<Published>,
        #[case] name: &str,
        #[case] namespace: Sought<Namespace>,
        #[case] expected: Option<NoDriftReason>,
    ) {
        let no_drift = NoDrift::of(&published, &name.into(), &namespace);
        assert_eq!(no_drift.map(|no_drift| no_drift.reason), expected);
    }
}
