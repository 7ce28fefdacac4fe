//! The annotation `restamp.dev/auto-reload` of a workload or of its pod template.

use std::collections::BTreeMap;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::annotations::AUTO_RELOAD;
use crate::model::consumption::Refresh;

/// The value of [`AUTO_RELOAD`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum AutoReload {
    /// `"false"`, or no annotation.
    #[default]
    Off,
    /// `"true"`: any change of what it consumes counts.
    Everything,
    /// `"at-start"`: files that the kubelet swaps in place don't count.
    AtStart,
}

impl AutoReload {
    /// Reads a workload's annotations; those of its pod template count where the workload itself has none.
    pub fn of(
        workload: Option<&BTreeMap<String, String>>,
        template: Option<&BTreeMap<String, String>>,
    ) -> Result<Self, InvalidAnnotation> {
        let value = [workload, template].into_iter().flatten().find_map(|annotations| annotations.get(AUTO_RELOAD));
        value.map_or(Ok(Self::Off), |value| value.parse())
    }

    /// Whether a key that is consumed like this counts.
    pub fn counts(self, refresh: Refresh) -> bool {
        match self {
            Self::Off => false,
            Self::Everything => true,
            Self::AtStart => refresh == Refresh::AtStart,
        }
    }
}

impl FromStr for AutoReload {
    type Err = InvalidAnnotation;

    fn from_str(value: &str) -> Result<Self, Self::Err> {
        match value {
            "true" => Ok(Self::Everything),
            "at-start" => Ok(Self::AtStart),
            "false" => Ok(Self::Off),
            _ => Err(InvalidAnnotation {
                name: AUTO_RELOAD,
                value: value.to_owned(),
                expected: "\"true\", \"at-start\" or \"false\"",
            }),
        }
    }
}

/// An annotation whose value does not parse. It never silently means "off": it is said in an Event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("annotation {name} has the value {value:?}; write {expected}")]
pub struct InvalidAnnotation {
    /// The annotation.
    pub name: &'static str,
    value: String,
    expected: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn annotations(value: Option<&str>) -> BTreeMap<String, String> {
        value.map(|value| (AUTO_RELOAD.to_owned(), value.to_owned())).into_iter().collect()
    }

    #[rstest]
    #[case::none(None, None, AutoReload::Off)]
    #[case::on_the_workload(Some("true"), None, AutoReload::Everything)]
    #[case::on_the_template(None, Some("at-start"), AutoReload::AtStart)]
    #[case::the_workload_wins(Some("false"), Some("true"), AutoReload::Off)]
    fn the_workloads_own_annotation_wins_over_its_templates(
        #[case] workload: Option<&str>,
        #[case] template: Option<&str>,
        #[case] expected: AutoReload,
    ) {
        assert_eq!(AutoReload::of(Some(&annotations(workload)), Some(&annotations(template))), Ok(expected));
    }

    #[test]
    fn a_value_that_does_not_parse_is_an_error_that_says_what_to_write() {
        let error = "yes".parse::<AutoReload>().unwrap_err();
        let expected =
            "annotation restamp.dev/auto-reload has the value \"yes\"; write \"true\", \"at-start\" or \"false\"";
        assert_eq!(error.to_string(), expected);
    }
}
