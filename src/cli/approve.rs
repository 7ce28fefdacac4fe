//! `restamp approve`: what is due, and waits for approval, rolls.

use std::io::Write;

use crate::api::annotations::APPROVE;
use crate::cli::Failure;
use crate::cli::annotate::{Request, annotate};
use crate::cli::explain::object::ObjectName;
use crate::connect::Target;

/// Let what is due for a workload roll, where restamp.dev/auto-reload is "notify": exactly what its report names now.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The object, as kubectl names it: deployment/web
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
        annotation: APPROVE,
        hash: |status| status.reload.as_ref()?.due.clone(),
        waits: "waits for approval",
    };
    annotate(&request, "approved", out)
}
