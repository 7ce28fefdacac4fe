//! A namespace, reduced to what it says about its workloads.

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
    /// The default for its workloads; an annotation that does not parse is no default, and never silently means "off".
    pub auto_reload: Result<AutoReload, InvalidAnnotation>,
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
            auto_reload: annotation.map_or(Ok(AutoReload::Off), |value| value.parse()),
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }

    /// Whether it says the same about its workloads.
    pub fn says_what(&self, other: &Self) -> bool {
        self.auto_reload == other.auto_reload && self.deleting == other.deleting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case::no_annotation(json!({}), Ok(AutoReload::Off))]
    #[case::on(json!({"restamp.dev/auto-reload": "true"}), Ok(AutoReload::Everything))]
    #[case::at_start(json!({"restamp.dev/auto-reload": "at-start"}), Ok(AutoReload::AtStart))]
    #[case::not_to_be_read(json!({"restamp.dev/auto-reload": "yes"}), "yes".parse())]
    fn its_annotation_is_the_default(
        #[case] annotations: Value,
        #[case] expected: Result<AutoReload, InvalidAnnotation>,
    ) {
        let metadata = json!({"name": "n", "uid": "u", "annotations": annotations});
        let namespace = Namespace::of(&serde_json::from_value(metadata).unwrap());
        let expected = Namespace { name: "n".into(), uid: Some("u".into()), auto_reload: expected, deleting: false };
        assert_eq!(namespace, Some(expected));
    }
}
