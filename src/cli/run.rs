//! `restamp run`: the operator.

use crate::cli::Failure;

/// Run the operator.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs it until it is told to stop.
pub fn run(_: &Args) -> Result<(), Failure> {
    Ok(())
}
