//! The annotation `restamp.dev/ignore-findings` of a workload or a config: findings that its owner knows of, and that are
//! not reported.

use std::collections::BTreeMap;
use std::str::FromStr;

use wildmatch::WildMatch;

use crate::api::annotations::IGNORE_FINDINGS;
use crate::api::auto_reload::InvalidAnnotation;
use crate::api::drift_report::{FindingStatus, FindingType};
use crate::api::opt_in::list;

const EXPECTED: &str = "a list such as \"RevertsOnApply:spec.replicas, StaleKey:CACHE_*\"";

/// Findings that are not reported.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IgnoredFindings(Vec<IgnoredFinding>);

/// One item of the list: a type, or some of its findings.
#[derive(Debug, Clone, PartialEq)]
struct IgnoredFinding {
    r#type: FindingType,
    /// Their key, their field, their object or their container.
    at: Option<WildMatch>,
}

/// A text that names no findings.
#[derive(Debug)]
struct NoFinding;

impl IgnoredFindings {
    /// What an annotation's text says. What is wrong in it is noted, and ignores nothing.
    pub fn read(text: Option<&String>, problems: &mut Vec<InvalidAnnotation>) -> Self {
        Self(list(IGNORE_FINDINGS, text, EXPECTED, problems, str::parse))
    }

    /// What these annotations say.
    pub fn of(annotations: &BTreeMap<String, String>) -> (Self, Vec<InvalidAnnotation>) {
        let mut problems = Vec::new();
        let ignored = Self::read(annotations.get(IGNORE_FINDINGS), &mut problems);
        (ignored, problems)
    }

    /// Whether this finding is one of them.
    pub fn has(&self, finding: &FindingStatus) -> bool {
        self.0.iter().any(|ignored| ignored.has(finding))
    }
}

impl IgnoredFinding {
    fn has(&self, finding: &FindingStatus) -> bool {
        let Some(pattern) = &self.at else { return self.r#type == finding.r#type };
        let key = finding.key.as_ref().map(|key| key.as_str());
        let container = finding.container.as_ref().map(|container| container.as_str());
        // As the other annotations name it: `secret/s`.
        let object = finding.object.as_deref();
        let lowercase = object.and_then(|object| object.split_once('/'));
        let lowercase = lowercase.map(|(kind, name)| format!("{}/{name}", kind.to_lowercase()));
        let places = [key, finding.path.as_deref(), object, lowercase.as_deref(), container];
        self.r#type == finding.r#type && places.into_iter().flatten().any(|place| pattern.matches(place))
    }
}

impl FromStr for IgnoredFinding {
    type Err = NoFinding;

    fn from_str(text: &str) -> Result<Self, NoFinding> {
        let (name, at) = match text.split_once(':') {
            Some((name, at)) => (name.trim(), Some(at.trim())),
            None => (text, None),
        };
        let r#type = FindingType::ALL.into_iter().find(|known| known.to_string() == name).ok_or(NoFinding)?;
        match at {
            Some("") => Err(NoFinding),
            at => Ok(Self { r#type, at: at.map(WildMatch::new) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn read(text: &str) -> (IgnoredFindings, Vec<InvalidAnnotation>) {
        IgnoredFindings::of(&[(IGNORE_FINDINGS.to_owned(), text.to_owned())].into())
    }

    fn field(path: &str) -> FindingStatus {
        FindingStatus { path: Some(path.to_owned()), ..FindingStatus::new(FindingType::RevertsOnApply) }
    }

    #[rstest]
    #[case::a_type("RevertsOnApply", true)]
    #[case::one_of_a_list("StaleKey:A, RevertsOnApply:spec.replicas", true)]
    #[case::a_pattern("RevertsOnApply:spec.rep*", true)]
    #[case::another_field("RevertsOnApply:spec.template*", false)]
    #[case::another_type("UndeclaredField:spec.replicas", false)]
    #[case::nothing("", false)]
    fn findings_are_ignored_by_type_and_place(#[case] text: &str, #[case] expected: bool) {
        let (ignored, problems) = read(text);
        assert_eq!((ignored.has(&field("spec.replicas")), problems.len()), (expected, 0));
    }

    #[test]
    fn a_key_and_an_object_are_places_too() {
        let (ignored, _) = read("StaleKey:CACHE_*, MissingReference:Secret/absent, OutdatedPods:configmap/Old*");
        let key = FindingStatus { key: Some("CACHE_1".into()), ..FindingStatus::new(FindingType::StaleKey) };
        let of = |r#type, object: &str| FindingStatus { object: Some(object.to_owned()), ..FindingStatus::new(r#type) };
        let missing = ignored.has(&of(FindingType::MissingReference, "Secret/absent"));
        let outdated =
            ["ConfigMap/Older", "ConfigMap/older"].map(|object| ignored.has(&of(FindingType::OutdatedPods, object)));
        assert_eq!((ignored.has(&key), missing, outdated), (true, true, [true, false]));
    }

    #[rstest]
    #[case::no_type("spec.replicas")]
    #[case::a_typo("RevertOnApply")]
    #[case::no_place("RevertsOnApply:")]
    fn what_does_not_parse_is_named_and_the_rest_counts(#[case] text: &str) {
        let (ignored, problems) = read(&format!("{text}, RevertsOnApply:spec.replicas"));
        assert!(ignored.has(&field("spec.replicas")) && !ignored.has(&field("spec.paused")));
        let expected = format!("annotation restamp.dev/ignore-findings has the value \"{text}\"; write {EXPECTED}");
        assert_eq!(problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
}
