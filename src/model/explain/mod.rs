//! Why restamp does what it does about one object, or why it does nothing: what `restamp explain` says.
//!
//! It asks the rules themselves: nothing is decided here that the operator would decide in another place.

mod config;
mod no_drift;
mod operator;
mod readings;
mod reload;
mod sought;
mod why;
mod workload;

pub use config::{ConfigExplanation, DriftOfKey, KeyExplanation, OwnedKeys, of_config};
pub use no_drift::{NoDrift, NoDriftReason};
pub use operator::{Operator, OperatorExplanation, Remark, RemarkReason, Running};
pub use readings::{Existence, Reading};
pub use reload::{NoReload, NoReloadReason, OpenChange, Reload, ReloadOfConfig};
pub use sought::{Known, Sought, Unknown};
pub use why::{Rolls, Verdict, Why};
pub use workload::{Subject, WorkloadExplanation, WorkloadSight, hear, of_workload};
