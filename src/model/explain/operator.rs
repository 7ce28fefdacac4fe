//! What the operator publishes of itself, and whether it watches a namespace.

use super::sought::Sought;
use crate::api::published::{CONFIG_MAP, Mode, Published};
use crate::model::names::Name;

/// What is known of the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// The namespace that it was looked for in.
    pub namespace: String,
    /// What it says of itself there.
    pub published: Sought<Published>,
}

impl Operator {
    /// Whether it reads nothing of the cluster as a whole, namespaces' annotations neither.
    pub(super) fn watches_named_namespaces(&self) -> bool {
        matches!(&self.published, Sought::Found(published) if !published.namespaces.is_empty())
    }

    /// Why a workload of this namespace may have no report.
    pub(super) fn why_no_report(&self, namespace: &Name) -> String {
        let own = &self.namespace;
        match &self.published {
            Sought::Found(published) if !published.may_watch(namespace) => {
                format!("the operator in namespace {own} does not watch namespace {namespace}")
            }
            Sought::Found(Published { namespace_selector: Some(selector), .. }) => {
                format!("the operator in namespace {own} watches namespaces that are labelled {selector}: is this one?")
            }
            Sought::Found(Published { mode: Mode::DryRun, .. }) => {
                format!("the operator in namespace {own} runs with --dry-run, and keeps no records")
            }
            Sought::Found(_) => "no report yet: is the operator running?".to_owned(),
            Sought::Absent | Sought::NoSuchKind => format!(
                "no report yet: is the operator running? There is no ConfigMap {own}/{CONFIG_MAP}, in which it says \
                 what it watches; name its namespace with --operator-namespace if it is another one"
            ),
            Sought::Unknown(unknown) => {
                format!("no report yet: is the operator running? As to ConfigMap {own}/{CONFIG_MAP}, {unknown}")
            }
        }
    }
}

impl Published {
    fn may_watch(&self, namespace: &Name) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == namespace.as_str());
        !named(&self.excluded) && (self.namespaces.is_empty() || named(&self.namespaces))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::explain::Unknown;
    use rstest::rstest;

    pub(in crate::model::explain) fn published(namespaces: Vec<String>) -> Published {
        let version = "0.1.0".to_owned();
        Published { version, namespaces, excluded: vec!["out".to_owned()], namespace_selector: None, mode: Mode::Live }
    }

    #[rstest]
    #[case::another_namespace(Sought::Found(published(vec!["a".to_owned()])), "ns", "does not watch namespace ns")]
    #[case::one_that_is_left_out(Sought::Found(published(vec![])), "out", "does not watch namespace out")]
    #[case::it_should_be_there(Sought::Found(published(vec![])), "ns", "no report yet: is the operator running?")]
    #[case::by_labels(
        Sought::Found(Published { namespace_selector: Some("team=x".to_owned()), ..published(vec![]) }), "ns", "labelled team=x")]
    #[case::dry_run(Sought::Found(Published { mode: Mode::DryRun, ..published(vec![]) }), "ns", "--dry-run")]
    #[case::none(
        Sought::Absent,
        "ns",
        "no report yet: is the operator running? There is no ConfigMap restamp-system/restamp-scope"
    )]
    #[case::hidden(
        Sought::Unknown(Unknown::Forbidden),
        "ns",
        "no report yet: is the operator running? As to ConfigMap"
    )]
    fn it_says_why_there_may_be_no_report(
        #[case] published: Sought<Published>,
        #[case] namespace: &str,
        #[case] expected: &str,
    ) {
        let operator = Operator { namespace: "restamp-system".to_owned(), published };
        let said = operator.why_no_report(&namespace.into());
        assert!(said.contains(expected), "{said}");
    }
}
