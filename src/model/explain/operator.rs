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
