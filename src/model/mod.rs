//! The rules, pure: no client, no async, no clock, no logging. Time is an argument.

pub mod adoption;
pub mod autoscaler;
#[cfg(test)]
pub(crate) mod builders;
pub mod cause;
pub mod config;
pub mod consumed;
pub mod consumers;
pub mod consumption;
pub mod counting;
pub mod custom;
pub mod decide;
pub mod declared;
pub mod delivered;
pub mod digest;
pub mod drift;
pub mod drift_scope;
pub mod explain;
pub mod fields;
pub mod fingerprint;
pub mod image;
pub mod index;
pub mod last_applied;
pub mod lease;
pub mod managed_fields;
pub mod managers;
pub mod names;
pub mod namespace;
pub mod observe;
pub mod participation;
pub mod pod;
pub mod policy;
pub mod provider_class;
pub mod record;
pub mod reloader;
pub mod report;
pub mod report_delay;
pub mod rerun;
pub mod revision;
pub mod scope;
pub mod selector;
#[cfg(test)]
mod simulation;
pub mod stamp;
pub mod unread;
pub mod watched;
pub mod workload;
