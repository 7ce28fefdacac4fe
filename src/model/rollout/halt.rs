//! The halt: a change that has failed in several workloads which were healthy before reaches nobody else.
//!
//! One failure may have a reason of its own; where a canary fails, one is enough. A halt ends with the change: with the next
//! write of the config, or when somebody says that this change is to go on all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;

use jiff::Timestamp;

use super::wave::Wave;
use crate::api::annotations::RESUME;
use crate::model::digest::ChangeId;
use crate::model::managed_fields::LastWrite;
use crate::model::names::{KeyName, WorkloadId};
use crate::model::report::to_the_second;

/// In how many workloads a change fails before it is halted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HaltAfter {
    /// It never is.
    Never,
    /// In this many; in one, where that is a canary.
    Failures(NonZeroU32),
}

impl HaltAfter {
    /// By the flag's number; zero for never.
    pub fn of(failures: u32) -> Self {
        NonZeroU32::new(failures).map_or(Self::Never, Self::Failures)
    }

    /// Whether this change is halted, by where some change of its config failed.
    pub fn halts(self, change: &ChangeId, failed: &BTreeMap<WorkloadId, (Wave, ChangeId)>) -> bool {
        let Self::Failures(most) = self else { return false };
        let waves = failed.values().filter(|(_, failed)| failed == change).map(|(wave, _)| *wave);
        let (count, canary) =
            waves.fold((0u32, false), |(count, canary), wave| (count + 1, canary || wave == Wave::CANARY));
        canary || count >= most.get()
    }
}

impl Default for HaltAfter {
    fn default() -> Self {
        Self::of(2)
    }
}

/// A change that is halted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halt {
    /// Which one.
    pub change: ChangeId,
    /// The keys that changed, for some of those who read it; empty where they can't be named.
    pub keys: BTreeSet<KeyName>,
    /// When restamp first saw it.
    pub seen: Option<Timestamp>,
    /// Who wrote the config last, and when, as far as it tells.
    pub written: Option<LastWrite>,
    /// In which workloads it failed.
    pub failed: BTreeSet<WorkloadId>,
    /// The workloads that it is held back from.
    pub spared: BTreeSet<WorkloadId>,
}

/// As many workloads, or keys, are named of one set.
const MOST_NAMED: usize = 10;

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, keys, seen, failed, spared, .. } = self;
        write!(f, "change {change}")?;
        if !keys.is_empty() {
            write!(f, " of {}", listed(keys.iter()))?;
        }
        if let Some(seen) = seen {
            write!(f, ", seen at {}", to_the_second(*seen).0)?;
        }
        write!(f, ", failed in {}", listed(failed.iter().map(|id| format!("{}/{}", id.kind, id.name))))?;
        if !spared.is_empty() {
            let names = listed(spared.iter().map(|id| format!("{}/{}", id.kind, id.name)));
            write!(f, "; it is held back from {}: {names}", spared.len())?;
        }
        write!(f, "; mend the config, or let the change go on: run restamp resume, or write {RESUME}={change} on it")
    }
}

fn listed(names: impl ExactSizeIterator<Item: fmt::Display>) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    let named: Vec<String> = names.take(MOST_NAMED).map(|name| name.to_string()).collect();
    match more {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::WorkloadKind;
    use rstest::rstest;

    const ALL: [(&str, &str, Wave); 3] = [("a", "x", Wave::CANARY), ("b", "y", Wave::CANARY), ("c", "z", Wave::CANARY)];

    fn failed(all: &[(&str, &str, Wave)]) -> BTreeMap<WorkloadId, (Wave, ChangeId)> {
        let id = |name: &str| WorkloadId { kind: WorkloadKind::Deployment, namespace: "ns".into(), name: name.into() };
        all.iter().map(|(name, change, wave)| (id(name), (*wave, ChangeId::from_text(change)))).collect()
    }

    #[rstest]
    #[case::one(2, &[("a", "x", Wave::default())], false)]
    #[case::two(2, &[("a", "x", Wave::default()), ("b", "x", Wave::default())], true)]
    #[case::two_of_another_change(2, &[("a", "y", Wave::default()), ("b", "y", Wave::default())], false)]
    #[case::one_of_each(2, &[("a", "x", Wave::default()), ("b", "y", Wave::default())], false)]
    #[case::a_canary(9, &[("a", "x", Wave::CANARY)], true)]
    #[case::the_canary_of_another_change(1, &[("a", "y", Wave::CANARY)], false)]
    #[case::never(0, &ALL, false)]
    fn a_change_is_halted_where_it_failed_too_often(
        #[case] most: u32,
        #[case] all: &[(&str, &str, Wave)],
        #[case] expected: bool,
    ) {
        assert_eq!(HaltAfter::of(most).halts(&ChangeId::from_text("x"), &failed(all)), expected);
    }
}
