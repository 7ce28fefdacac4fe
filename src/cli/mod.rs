//! The command line: one file per subcommand.

pub mod annotate;
mod appliers;
pub mod approve;
pub mod changes;
pub mod crd;
pub mod explain;
mod input;
mod inventory;
mod live;
pub mod resume;
pub mod run;
mod sarif;
pub mod scan;
pub mod scope;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Rolls workloads when the config that they read changes, and reports config keys that nobody declares any more.
#[derive(Debug, Parser)]
#[command(name = "restamp", version, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Crd(crd::Args),
    Scan(scan::Args),
    Explain(explain::Args),
    Changes(changes::Args),
    Approve(approve::Args),
    Resume(resume::Args),
}

/// Why a subcommand gave up. Its text names the object and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The output can't be written.
    #[error("cannot write the output")]
    Output(#[source] io::Error),
    /// The operator.
    #[error(transparent)]
    Run(#[from] run::Failure),
    /// An object can't be explained.
    #[error(transparent)]
    Explain(#[from] explain::ExplainError),
    /// Nothing can be approved or resumed.
    #[error(transparent)]
    Annotate(#[from] annotate::AnnotateError),
    /// The reports can't be read.
    #[error(transparent)]
    Changes(#[from] changes::ChangesError),
    /// A file can't be read.
    #[error(transparent)]
    Input(#[from] input::InputError),
    /// A cluster does not tell.
    #[error(transparent)]
    Live(#[from] live::LiveError),
}

impl Cli {
    /// Runs the subcommand: its result goes to `out`, and what else there is to say to `log`.
    pub fn run(&self, out: &mut impl Write, log: &mut impl Write) -> Result<ExitCode, Failure> {
        match &self.command {
            Command::Run(args) => Ok(run::run(args).map(|()| ExitCode::SUCCESS)?),
            Command::Crd(args) => crd::run(args, out).map(|()| ExitCode::SUCCESS),
            Command::Scan(args) => scan::run(args, out, log),
            Command::Explain(args) => explain::run(args, out, log).map(|()| ExitCode::SUCCESS),
            Command::Changes(args) => changes::run(args, out).map(|()| ExitCode::SUCCESS),
            Command::Approve(args) => approve::run(args, out).map(|()| ExitCode::SUCCESS),
            Command::Resume(args) => resume::run(args, out).map(|()| ExitCode::SUCCESS),
        }
    }
}
