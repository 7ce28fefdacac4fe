//! The operator as a process, against a real control plane (`tests/cluster`), with what `deploy/` installs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy lets tests do so, and doesn't see that what tests call belongs to them"
)]

mod adoption;
mod away;
mod bad_input;
mod chart;
mod consumption;
mod custom_kinds;
mod drift;
mod explain;
mod fields;
mod helm;
mod leadership;
mod lists;
mod namespaces;
mod node;
mod options;
mod others;
mod permissions;
mod policies;
mod provider_classes;
mod reload;
mod reports;
mod rerun_jobs;
mod running;
mod scan;
mod scenario;
mod scope;
mod secrecy;
mod stakater;
mod support;
mod timing;
