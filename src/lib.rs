//! restamp rolls workloads when the config that they read changes, and reports
//! config keys that are live but declared nowhere any more.
//!
//! The library is the program's inside, split as ARCHITECTURE.md shows; it has
//! no stable interface of its own.

pub mod api;
pub mod cli;
pub mod connect;
pub mod model;
pub mod operator;
