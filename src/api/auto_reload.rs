//! The annotation `restamp.dev/auto-reload` of a workload, of its pod template, or of a namespace.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::annotations::AUTO_RELOAD;
use crate::model::consumption::Refresh;

/// The value of [`AUTO_RELOAD`], or what Reloader's annotations want.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum AutoReload {
    /// `"false"`, or no annotation.
    #[default]
    Off,
    /// `"true"`: any change of what it consumes counts.
    Everything,
    /// `"at-start"`: files that the kubelet swaps in place don't count.
    AtStart,
    /// Reloader's `search`: any change of what it consumes counts, if the config is annotated to match.
    Matching,
}

impl AutoReload {
    /// The annotation's value, or what stands for Reloader's.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "false",
            Self::Everything => "true",
            Self::AtStart => "at-start",
            Self::Matching => "search",
        }
    }

    /// Whether a key that is consumed like this counts.
    pub fn counts(self, refresh: Refresh) -> bool {
        match self {
            Self::Off => false,
            Self::Everything | Self::Matching => true,
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
            _ => Err(InvalidAnnotation::new(AUTO_RELOAD, value, "\"true\", \"at-start\" or \"false\"")),
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

/// As many characters of a value are said.
pub(super) const LONGEST_VALUE: usize = 100;

impl InvalidAnnotation {
    /// This annotation, with what is wrong in it, and what to write instead.
    pub fn new(name: &'static str, value: &str, expected: &'static str) -> Self {
        Self { name, value: value.chars().take(LONGEST_VALUE).collect(), expected }
    }
}
