//! The rules, pure: no client, no async, no clock, no logging. Time is an argument.

#[cfg(test)]
pub(crate) mod builders;
pub mod config;
pub mod consumers;
pub mod consumption;
pub mod declared;
pub mod drift;
pub mod fingerprint;
pub mod last_applied;
pub mod managed_fields;
pub mod managers;
pub mod names;
pub mod report;
