//! What users write and read: the custom resource and the annotations.

pub mod annotations;
pub mod auto_reload;
pub mod drift_report;
pub mod expected_keys;
pub mod ignore;
pub mod ignore_findings;
pub mod name_regex;
pub mod opt_in;
pub mod patterns;
pub mod published;
pub mod reload_status;
pub mod stakater;
pub mod vocabulary;
