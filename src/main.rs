//! The `restamp` binary: parses the command line and hands over to a subcommand.

fn main() {}
