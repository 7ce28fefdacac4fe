//! The rules, pure: no client, no async, no clock, no logging. Time is an argument.

#[cfg(test)]
pub(crate) mod builders;
pub mod config;
pub mod consumption;
pub mod digest;
pub mod fingerprint;
pub mod last_applied;
pub mod managed_fields;
pub mod names;
pub mod pod;
pub mod stamp;
pub mod workload;
