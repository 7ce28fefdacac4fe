//! A namespace, reduced to what it says about its workloads.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::annotations::AUTO_RELOAD;
use crate::api::auto_reload::{AutoReload, InvalidAnnotation};
use crate::model::names::{Name, Uid};

/// What restamp keeps of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: Name,
    /// Its uid.
    pub uid: Option<Uid>,
    /// Its labels: they may say whose annotations count in it.
    pub labels: BTreeMap<String, String>,
    /// The default for its workloads, if there is one; an annotation that does not parse is no default, and never
    /// silently means "off".
    pub auto_reload: Result<Option<AutoReload>, InvalidAnnotation>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl Namespace {
    /// Reads a namespace; `None` without a name.
    pub fn of(metadata: &ObjectMeta) -> Option<Self> {
        let annotation = metadata.annotations.as_ref().and_then(|annotations| annotations.get(AUTO_RELOAD));
        Some(Self {
            name: metadata.name.as_deref()?.into(),
            uid: metadata.uid.as_deref().map(Uid::from),
            labels: metadata.labels.clone().unwrap_or_default(),
            auto_reload: annotation.map(|value| value.parse()).transpose(),
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }

    /// Whether it says the same about its workloads.
    pub fn says_what(&self, other: &Self) -> bool {
        self.auto_reload == other.auto_reload && self.labels == other.labels && self.deleting == other.deleting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case::no_annotation(json!({}), Ok(None))]
    #[case::on(json!({"restamp.dev/auto-reload": "true"}), Ok(Some(AutoReload::Everything)))]
    #[case::off(json!({"restamp.dev/auto-reload": "false"}), Ok(Some(AutoReload::Off)))]
    #[case::at_start(json!({"restamp.dev/auto-reload": "at-start"}), Ok(Some(AutoReload::AtStart)))]
    #[case::not_to_be_read(json!({"restamp.dev/auto-reload": "yes"}), "yes".parse().map(Some))]
    fn its_annotation_is_the_default(
        #[case] annotations: Value,
        #[case] expected: Result<Option<AutoReload>, InvalidAnnotation>,
    ) {
        let metadata = json!({"name": "n", "uid": "u", "labels": {"team": "x"}, "annotations": annotations});
        let namespace = Namespace::of(&serde_json::from_value(metadata).unwrap());
        let labels = [("team".to_owned(), "x".to_owned())].into();
        let (name, uid) = ("n".into(), Some("u".into()));
        let expected = Namespace { name, uid, labels, auto_reload: expected, deleting: false };
        assert_eq!(namespace, Some(expected));
    }
}
