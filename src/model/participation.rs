//! Who takes part in reloading, as far as the operator's flags say.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use crate::api::auto_reload::AutoReload;
use crate::api::opt_in::OptIn;
use crate::api::vocabulary::Vocabulary;
use crate::model::counting::Counting;
use crate::model::names::WorkloadKind;
use crate::model::policy::UnknownChoice;
use crate::model::rerun::Reruns;
use crate::model::selector::LabelSelector;
use crate::model::workload::Workload;

/// What the flags say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Participation {
    /// Whether anything is rolled at all.
    pub reload: Reloading,
    /// Where Reloader's annotations count.
    pub stakater: Stakater,
    /// What counts for a workload of which neither it nor its namespace says anything.
    pub unsaid: AutoReload,
    /// Kinds of workload that are never rolled.
    pub ignored: BTreeSet<WorkloadKind>,
    /// What becomes of Jobs and CronJobs.
    pub reruns: Reruns,
}

/// Whether a change rolls what reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reloading {
    /// It does, where that is asked for.
    #[default]
    On,
    /// It rolls nothing, whatever annotations say; the right to patch workloads is not needed.
    Off,
}

impl FromStr for Reloading {
    type Err = UnknownChoice;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err(UnknownChoice { expected: "on or off" }),
        }
    }
}

/// Where Reloader's annotations count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Stakater {
    /// Nowhere.
    #[default]
    Nowhere,
    /// In every namespace.
    Everywhere,
    /// In the namespaces with these labels.
    Labelled(LabelSelector),
}

impl Stakater {
    /// Whether they count anywhere.
    pub fn is_anywhere(&self) -> bool {
        *self != Self::Nowhere
    }

    /// Whose annotations count in a namespace with these labels; `None` if that depends on them, and they are not known.
    pub fn vocabulary(&self, labels: Option<&BTreeMap<String, String>>) -> Option<Vocabulary> {
        let counts = match self {
            Self::Nowhere => false,
            Self::Everywhere => true,
            Self::Labelled(selector) => selector.match_all(labels?),
        };
        Some(if counts { Vocabulary::WithStakater } else { Vocabulary::Own })
    }
}

impl Participation {
    /// What counts for this workload, of which this is said, with this default.
    pub fn counting(
        &self,
        workload: &Workload,
        opt_in: &OptIn,
        default: AutoReload,
        before: Option<&Counting>,
    ) -> Counting {
        let is_left_alone = self.reload == Reloading::Off || self.ignored.contains(&workload.id.kind);
        if is_left_alone || !self.reruns.may_run(workload) {
            return Counting::default();
        }
        opt_in.counting(default, before)
    }
}
