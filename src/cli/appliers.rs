//! Who is who among field managers here, beside those that everybody knows: for every subcommand that judges the owners
//! of keys.

use crate::model::managers::Managers;
use crate::model::names::Manager;

/// Further appliers and hands.
#[derive(Debug, clap::Args)]
pub struct Appliers {
    /// Also take this field manager for one that applies manifests. May be given several times.
    #[arg(long, value_name = "MANAGER")]
    applier: Vec<String>,
    /// Also take this field manager for a person's single command. May be given several times.
    #[arg(long, value_name = "MANAGER")]
    hand: Vec<String>,
}

impl Appliers {
    /// Who is who, with these.
    pub fn managers(&self) -> Managers {
        let names = |names: &[String]| names.iter().map(|name| Manager::from(name.as_str())).collect::<Vec<_>>();
        Managers::with_appliers(names(&self.applier)).and_hands(names(&self.hand))
    }
}
