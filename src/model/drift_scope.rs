//! Of what drift is reported, which is apart from what is rolled.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::model::names::Name;
use crate::model::policy::UnknownChoice;
use crate::model::selector::LabelSelector;

/// The namespace whose objects are the cluster's own.
pub const CLUSTERS_OWN: &str = "kube-system";

/// Of what drift is reported, as the flags say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriftScope {
    /// Of which objects.
    pub subjects: DriftSubjects,
    /// In which namespaces; in all of them, without labels.
    pub namespaces: Option<LabelSelector>,
}

/// Of which objects drift is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DriftSubjects {
    /// Of workloads, and of the configs that some workload names.
    #[default]
    Consumed,
    /// Of all configs too.
    All,
    /// Of none.
    Off,
}

impl DriftSubjects {
    const ALL: [Self; 3] = [Self::Consumed, Self::All, Self::Off];

    /// As the flag has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Consumed => "consumed",
            Self::All => "all",
            Self::Off => "off",
        }
    }
}

impl FromStr for DriftSubjects {
    type Err = UnknownChoice;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|subjects| subjects.as_str() == word);
        known.ok_or(UnknownChoice { expected: "consumed, all or off" })
    }
}

impl DriftScope {
    /// Whether drift is reported in this namespace, which has these labels; not while they are unknown and matter.
    pub fn covers(&self, namespace: &Name, labels: Option<&BTreeMap<String, String>>) -> bool {
        let has_labels = |selector: &LabelSelector| labels.is_some_and(|labels| selector.match_all(labels));
        self.subjects != DriftSubjects::Off
            && namespace.as_str() != CLUSTERS_OWN
            && self.namespaces.as_ref().is_none_or(has_labels)
    }

    /// Whether drift is reported of a config in such a namespace, which some workload names or none.
    pub fn covers_config(&self, is_consumed: bool) -> bool {
        match self.subjects {
            DriftSubjects::Consumed => is_consumed,
            DriftSubjects::All => true,
            DriftSubjects::Off => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn scope(subjects: &str, labels: Option<&str>) -> DriftScope {
        DriftScope { subjects: subjects.parse().unwrap(), namespaces: labels.map(|text| text.parse().unwrap()) }
    }

    #[rstest]
    #[case::by_default("consumed", None, "ns", None, true)]
    #[case::the_cluster_s_own("all", None, "kube-system", None, false)]
    #[case::off("off", None, "ns", None, false)]
    #[case::labelled("consumed", Some("team=x"), "ns", Some("x"), true)]
    #[case::labelled_otherwise("consumed", Some("team=x"), "ns", Some("y"), false)]
    #[case::of_unknown_labels("consumed", Some("team=x"), "ns", None, false)]
    fn a_namespace_is_looked_at_when(
        #[case] subjects: &str,
        #[case] selector: Option<&str>,
        #[case] namespace: &str,
        #[case] team: Option<&str>,
        #[case] expected: bool,
    ) {
        let labels = team.map(|team| BTreeMap::from([("team".to_owned(), team.to_owned())]));
        assert_eq!(scope(subjects, selector).covers(&namespace.into(), labels.as_ref()), expected);
    }

    #[rstest]
    #[case("consumed", true, false)]
    #[case("all", true, true)]
    #[case("off", false, false)]
    fn a_config_is_looked_at_when(#[case] subjects: &str, #[case] consumed: bool, #[case] read_by_nobody: bool) {
        let scope = scope(subjects, None);
        assert_eq!((scope.covers_config(true), scope.covers_config(false)), (consumed, read_by_nobody));
    }
}
