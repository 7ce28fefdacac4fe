//! When a finding is said: after it has been there for a while, since a deploy in progress is not drift. It goes at once.

use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};

use crate::api::drift_report::{FindingStatus, FindingType};
use crate::model::delivered::later;
use crate::model::drift::Finding;
use crate::model::names::{KeyName, Name};
use crate::model::report::ReportKey;

/// What tells one finding of a subject from its others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Topic {
    r#type: FindingType,
    object: Option<String>,
    key: Option<KeyName>,
    path: Option<String>,
    container: Option<Name>,
}

impl Topic {
    fn of(finding: &FindingStatus) -> Self {
        Self {
            r#type: finding.r#type,
            object: finding.object.clone(),
            key: finding.key.clone(),
            path: finding.path.clone(),
            container: finding.container.clone(),
        }
    }
}

/// Since when each subject's findings are there.
#[derive(Debug)]
pub struct ReportDelay {
    after: SignedDuration,
    since: HashMap<ReportKey, BTreeMap<Topic, Timestamp>>,
}

/// What to say of a subject's findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The findings that are said now.
    pub findings: Vec<Finding>,
    /// When to look again, if some are not said yet.
    pub next: Option<Timestamp>,
}

impl ReportDelay {
    /// Findings are said after this time.
    pub fn new(after: SignedDuration) -> Self {
        Self { after, since: HashMap::new() }
    }

    /// Which of these findings are due. Those that the stored report says already are, also after a restart.
    pub fn due(&mut self, subject: &ReportKey, findings: Vec<Finding>, said: &[FindingStatus], now: Timestamp) -> Due {
        let known = self.since.remove(subject).unwrap_or_default();
        let said: Vec<Topic> = said.iter().map(Topic::of).collect();
        let mut due = Due { findings: Vec::new(), next: None };
        let mut since = BTreeMap::new();
        for finding in findings {
            let topic = Topic::of(&FindingStatus::from(finding.clone()));
            let first = known.get(&topic).copied().unwrap_or(now);
            let from = later(first, self.after);
            if from <= now || said.contains(&topic) {
                due.findings.push(finding);
            } else {
                due.next = Some(due.next.map_or(from, |next: Timestamp| next.min(from)));
            }
            since.insert(topic, first);
        }
        if !since.is_empty() {
            self.since.insert(subject.clone(), since);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn id() -> ReportKey {
        ("ns".into(), "secret-s".to_owned())
    }

    fn missing(key: &str) -> Finding {
        Finding::MissingKey { key: key.into(), consumers: Vec::new() }
    }

    fn delay() -> ReportDelay {
        ReportDelay::new(SignedDuration::from_secs(30))
    }

    #[test]
    fn a_finding_may_be_said_never() {
        let mut never = ReportDelay::new(SignedDuration::MAX);
        assert_eq!(never.due(&id(), vec![missing("A")], &[], at(0)).next, Some(Timestamp::MAX));
    }

    #[test]
    fn a_finding_is_said_after_a_while() {
        let mut delay = delay();
        let early = delay.due(&id(), vec![missing("A")], &[], at(0));
        assert_eq!(early, Due { findings: Vec::new(), next: Some(at(30)) });
        let late = delay.due(&id(), vec![missing("A"), missing("B")], &[], at(30));
        assert_eq!(late, Due { findings: vec![missing("A")], next: Some(at(60)) });
    }

    #[test]
    fn one_that_went_and_came_back_waits_again() {
        let mut delay = delay();
        delay.due(&id(), vec![missing("A")], &[], at(0));
        delay.due(&id(), Vec::new(), &[], at(10));
        let back = delay.due(&id(), vec![missing("A")], &[], at(31));
        assert_eq!(back, Due { findings: Vec::new(), next: Some(at(61)) });
    }

    #[test]
    fn what_the_stored_report_says_goes_on_being_said() {
        let said = [FindingStatus::from(missing("A"))];
        let due = delay().due(&id(), vec![missing("A")], &said, at(0));
        assert_eq!(due, Due { findings: vec![missing("A")], next: None });
    }
}
