//! The `restamp` binary: parses the command line and hands over to a subcommand.

use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use restamp::cli::{Cli, Failure};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done =
        cli.run(&mut out, &mut io::stderr()).and_then(|code| out.flush().map_err(Failure::Output).map(|()| code));
    match done {
        Ok(code) => code,
        // Whoever reads our output has seen enough: `restamp scan | head`.
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // Nobody is left to hear of an error about standard error.
            let _ = writeln!(io::stderr(), "error: {}", sentence(&failure));
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes, as one sentence.
fn sentence(failure: &Failure) -> String {
    let mut causes = std::iter::successors(std::error::Error::source(failure), |cause| cause.source());
    causes.by_ref().fold(failure.to_string(), |text, cause| format!("{text}: {cause}"))
}
