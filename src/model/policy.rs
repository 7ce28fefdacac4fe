//! The choices of whoever runs restamp: how patient it is, and what counts at the edges.

use std::str::FromStr;

use jiff::SignedDuration;

use crate::model::rollout::budget::Budget;
use crate::model::rollout::halt::HaltAfter;

/// What holds for every workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How long the configs must be quiet before a rollout.
    pub settle: SignedDuration,
    /// What an optional config does that appears for the first time.
    pub on_create: Edge,
    /// What an optional config does that is deleted.
    pub on_delete: Edge,
    /// What first sight takes for read.
    pub adopt: Adopt,
    /// How many rollouts may be unfinished at once.
    pub budget: Budget,
    /// In how many workloads a change fails before it reaches nobody else.
    pub halt_after: HaltAfter,
}

/// Whether the appearance, or the deletion, of an optional config counts as a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// It does.
    Roll,
    /// It does not.
    Ignore,
}

/// What is taken for read when a workload is seen for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopt {
    /// All that is there at that moment.
    AsIs,
    /// What was last written before the containers started; later writes are likely changes, and roll.
    CatchUp,
}

/// A word that none of these choices has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write {expected}")]
pub struct UnknownChoice {
    pub(super) expected: &'static str,
}

impl FromStr for Edge {
    type Err = UnknownChoice;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "roll" => Ok(Self::Roll),
            "ignore" => Ok(Self::Ignore),
            _ => Err(UnknownChoice { expected: "roll or ignore" }),
        }
    }
}

impl FromStr for Adopt {
    type Err = UnknownChoice;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "as-is" => Ok(Self::AsIs),
            "catch-up" => Ok(Self::CatchUp),
            _ => Err(UnknownChoice { expected: "as-is or catch-up" }),
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            settle: SignedDuration::from_secs(5),
            on_create: Edge::Roll,
            on_delete: Edge::Ignore,
            adopt: Adopt::AsIs,
            budget: Budget::default(),
            halt_after: HaltAfter::default(),
        }
    }
}
