//! Who applies manifests here, beside those that everybody knows: for every subcommand that judges the owners of keys.

use crate::model::managers::Managers;
use crate::model::names::Manager;

/// Further appliers.
#[derive(Debug, clap::Args)]
pub struct Appliers {
    /// Also take this field manager for one that applies manifests. May be given several times.
    #[arg(long, value_name = "MANAGER")]
    applier: Vec<String>,
}

impl Appliers {
    /// Who is who, with these.
    pub fn managers(&self) -> Managers {
        Managers::with_appliers(self.applier.iter().map(|manager| Manager::from(manager.as_str())))
    }
}
