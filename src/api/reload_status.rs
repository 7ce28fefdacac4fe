//! `status.reload` of a DriftReport: whether, and how, restamp watches a workload. For workloads that are opted in.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::record::Record;

/// How reloading stands for one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReloadStatus {
    /// Where it stands.
    pub state: ReloadState,
    /// Why, in words; empty while the state says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The namespace of the restamp that keeps this report; another one leaves the workload alone.
    pub instance: String,
    /// The last rollout that restamp caused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reload: Option<LastReload>,
    /// The hash that approves what is due, where that waits for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// What restamp knows of the workload's configs.
    pub record: Record,
}

/// Where reloading stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ReloadState {
    /// Every running container has read what it consumes.
    Current,
    /// A rollout is due, and waits for its time.
    Waiting,
    /// A rollout is due, and would do harm now.
    Held,
    /// The workload's controller replaces the pods.
    RollingOut,
}

impl fmt::Display for ReloadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Current => "Current",
            Self::Waiting => "Waiting",
            Self::Held => "Held",
            Self::RollingOut => "RollingOut",
        })
    }
}

/// The last rollout that restamp caused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastReload {
    /// When.
    pub time: Timestamp,
    /// Why: names of configs and keys.
    pub cause: String,
}
