//! The last change of a config as a whole: how far it is with all who read it, by their reports.
//!
//! Those whose entry changed within a minute of the last one got the same change; who reads other keys of the config did
//! not. A change is told of while it goes on, and for a day.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::outcome::Outcome;
use crate::api::reload_status::{ReloadState, ReloadStatus};
use crate::model::delivered::later;
use crate::model::names::{ConfigName, KeyName, Name};
use crate::model::record::{Answer, Entry};

/// How far a change is for one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// All its containers have read it.
    Rolled,
    /// Its pods are being replaced.
    Rolling,
    /// It is due, and waits for its time.
    Waiting,
    /// It is due, and held.
    Held,
    /// Its rollout failed.
    Failed,
}

impl Stage {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::Rolled, Self::Rolling, Self::Waiting, Self::Held, Self::Failed];

    /// For the metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rolled => "rolled",
            Self::Rolling => "rolling",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Failed => "failed",
        }
    }

    fn of(status: &ReloadStatus, entry: &Entry) -> Self {
        let is_of_it = |change: &super::outcome::RolledChange| change.config == entry.config;
        let stamp = status.record.stamp.as_ref().filter(|stamp| stamp.changes.iter().any(is_of_it));
        let outcome = stamp.map(|stamp| stamp.outcome);
        match (&entry.change, outcome) {
            (Some(change), _) if change.answer != Answer::Stamped => match status.state {
                ReloadState::Held => Self::Held,
                ReloadState::Current | ReloadState::Waiting | ReloadState::RollingOut => Self::Waiting,
            },
            (_, Some(Outcome::Failed)) => Self::Failed,
            (Some(_), _) => Self::Rolling,
            (None, _) => Self::Rolled,
        }
    }
}

/// The last change of a config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigChange {
    /// The config's namespace.
    pub namespace: Name,
    /// The config.
    pub config: ConfigName,
    /// When restamp saw it.
    pub seen: Timestamp,
    /// Its keys, as far as somebody has not read them yet; empty where they can't be named.
    pub keys: BTreeSet<KeyName>,
    /// How many workloads all of whose containers have read it.
    pub rolled: usize,
    /// How many whose pods are being replaced.
    pub rolling: usize,
    /// How many for which it waits.
    pub waiting: usize,
    /// How many from which it is held.
    pub held: usize,
    /// How many in which it failed.
    pub failed: usize,
}

impl ConfigChange {
    /// How many workloads are at this stage.
    pub fn count(&self, stage: Stage) -> usize {
        match stage {
            Stage::Rolled => self.rolled,
            Stage::Rolling => self.rolling,
            Stage::Waiting => self.waiting,
            Stage::Held => self.held,
            Stage::Failed => self.failed,
        }
    }

    fn count_mut(&mut self, stage: Stage) -> &mut usize {
        match stage {
            Stage::Rolled => &mut self.rolled,
            Stage::Rolling => &mut self.rolling,
            Stage::Waiting => &mut self.waiting,
            Stage::Held => &mut self.held,
            Stage::Failed => &mut self.failed,
        }
    }

    /// Whether all have read it.
    pub fn is_over(&self) -> bool {
        Stage::ALL.into_iter().all(|stage| stage == Stage::Rolled || self.count(stage) == 0)
    }
}

/// What is one change.
const AT_ONCE: SignedDuration = SignedDuration::from_mins(1);
/// How long a change that is over is told of.
const TOLD_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Who reads a config, by its report, its entry, and when that changed.
type Reader<'a> = (&'a ReloadStatus, &'a Entry, Timestamp);

/// The last change of each config, by what the reports on workloads say, with their namespaces.
pub fn of_reports<'a>(
    reports: impl Iterator<Item = (&'a Name, &'a ReloadStatus)>,
    now: Timestamp,
) -> Vec<ConfigChange> {
    let mut readers: BTreeMap<(&Name, &ConfigName), Vec<Reader<'_>>> = BTreeMap::new();
    for (namespace, status) in reports {
        for entry in &status.record.entries {
            if let Some(changed) = entry.last_changed {
                readers.entry((namespace, &entry.config)).or_default().push((status, entry, changed));
            }
        }
    }
    let changes = readers.into_iter().filter_map(|((namespace, config), readers)| {
        let seen = readers.iter().map(|(.., changed)| *changed).max()?;
        let mut change = ConfigChange {
            namespace: namespace.clone(),
            config: config.clone(),
            seen,
            keys: BTreeSet::new(),
            rolled: 0,
            rolling: 0,
            waiting: 0,
            held: 0,
            failed: 0,
        };
        for (status, entry, _) in readers.into_iter().filter(|(.., changed)| later(*changed, AT_ONCE) >= seen) {
            *change.count_mut(Stage::of(status, entry)) += 1;
            change.keys.extend(entry.change.iter().flat_map(|change| change.keys.iter().cloned()));
        }
        Some(change)
    });
    changes.filter(|change| !change.is_over() || later(change.seen, TOLD_FOR) > now).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{at, named};
    use crate::model::digest::ChangeId;
    use crate::model::record::{LastStamp, Record, Seen};
    use crate::model::rollout::outcome::RolledChange;

    fn entry(changed: i64) -> Entry {
        Entry {
            config: named("ConfigMap/c"),
            digest: None,
            all: true,
            keys: [].into(),
            last_changed: Some(at(changed)),
            absent_since: None,
            seen_to: None,
            change: None,
        }
    }

    fn open(answer: Answer) -> Entry {
        let mut entry = entry(100);
        entry.open(Seen::Happening, at(100), None, ["K".into()].into());
        entry.change.as_mut().unwrap().answer = answer;
        entry
    }

    fn status(state: ReloadState, entry: Entry, outcome: Outcome) -> ReloadStatus {
        let changes = vec![RolledChange { config: named("ConfigMap/c"), id: ChangeId::from_text("x") }];
        let stamp = LastStamp { changes, outcome, ..LastStamp::found("s".to_owned(), at(101)) };
        let record = Record { entries: vec![entry], stamp: Some(stamp), ..Record::default() };
        ReloadStatus { state, message: String::new(), instance: "i".to_owned(), last_reload: None, due: None, record }
    }

    #[test]
    fn each_workload_is_at_one_stage() {
        let all = [
            status(ReloadState::Current, entry(99), Outcome::Complete),
            status(ReloadState::RollingOut, open(Answer::Stamped), Outcome::Unfinished),
            status(ReloadState::Waiting, open(Answer::None), Outcome::Complete),
            status(ReloadState::Held, open(Answer::None), Outcome::Complete),
            status(ReloadState::RollingOut, open(Answer::Stamped), Outcome::Failed),
            status(ReloadState::Current, entry(100), Outcome::Failed),
            status(ReloadState::Current, entry(39), Outcome::Complete),
        ];
        let namespace = Name::from("ns");
        let expected = ConfigChange {
            namespace: namespace.clone(),
            config: named("ConfigMap/c"),
            seen: at(100),
            keys: ["K".into()].into(),
            rolled: 1,
            rolling: 1,
            waiting: 1,
            held: 1,
            failed: 2,
        };
        assert_eq!(of_reports(all.iter().map(|status| (&namespace, status)), at(999_999)), [expected]);
    }

    #[test]
    fn what_is_over_is_told_of_for_a_day() {
        let status = status(ReloadState::Current, entry(0), Outcome::Complete);
        let namespace = Name::from("ns");
        let told = |now| of_reports([(&namespace, &status)].into_iter(), at(now)).len();
        assert_eq!((told(86_399), told(86_400)), (1, 0));
    }
}
