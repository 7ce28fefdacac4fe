//! `restamp resume`: a change that was halted goes on.

use std::io::Write;

use crate::api::annotations::RESUME;
use crate::api::drift_report::FindingType;
use crate::cli::Failure;
use crate::cli::annotate::{Request, annotate};
use crate::cli::explain::object::ObjectName;
use crate::connect::Target;

/// Let a change of a config go on that was halted since it failed: the one that its report names now.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The object, as kubectl names it: secret/web-env
    #[arg(value_name = "KIND/NAME")]
    object: ObjectName,
    /// The object's namespace [default: the kubeconfig's]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    target: Target,
}

/// Annotates it.
pub fn run(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let request = Request {
        target: &args.target,
        namespace: args.namespace.as_deref(),
        object: &args.object,
        annotation: RESUME,
        hash: |status| {
            let mut halted = status.findings.iter().filter(|finding| finding.r#type == FindingType::ChangeHalted);
            halted.find_map(|finding| finding.change.as_ref().map(ToString::to_string))
        },
        waits: "is halted",
    };
    annotate(&request, "resumed", out)
}
