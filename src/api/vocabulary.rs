//! The vocabularies: whose annotations count.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose annotations count on a workload, and on the configs that it consumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Vocabulary {
    /// Ours, `restamp.dev/*`.
    #[default]
    Own,
    /// Also Reloader's, `reloader.stakater.com/*`, where ours say nothing.
    WithStakater,
}

impl Vocabulary {
    /// Whether only ours count.
    pub fn is_own(&self) -> bool {
        *self == Self::Own
    }
}
