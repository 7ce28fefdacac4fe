//! The operator: I/O around the model. watch → index → decide → write.

pub mod api_error;
pub mod client;
pub mod engine;
pub mod events;
pub mod hash_key;
pub mod health;
pub mod http;
pub mod lead;
pub mod metrics;
pub mod publish;
pub mod releases;
mod reloader;
mod reloading;
mod reporting;
pub mod reports;
pub mod rerun;
mod rerunning;
pub mod retry;
pub mod run;
mod tally;
pub mod tasks;
mod trouble;
pub mod turns;
pub mod unread;
pub mod vigil;
pub mod watch;
pub mod write;
