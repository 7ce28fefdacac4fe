//! `restamp crd`: prints the custom resource definition.

use std::io::Write;

use kube::CustomResourceExt as _;

use crate::api::annotations::VERSION;
use crate::api::drift_report::DriftReport;
use crate::cli::Failure;

/// Print the custom resource definition of DriftReport, for `kubectl apply -f -`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Prints it.
pub fn run(_: &Args, out: &mut impl Write) -> Result<(), Failure> {
    out.write_all(yaml()?.as_bytes()).map_err(Failure::Output)
}

fn yaml() -> Result<String, Failure> {
    let mut crd = DriftReport::crd();
    // An operator that is older does not know all that it has.
    let version = (VERSION.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    crd.metadata.annotations = Some([version].into());
    serde_saphyr::to_string(&crd).map_err(|error| Failure::Output(std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_crd_is_the_one_that_is_printed() {
        let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/crds/driftreports.yaml");
        let is = std::fs::read_to_string(committed).unwrap_or_default();
        assert!(is == super::yaml().unwrap(), "run: cargo run -- crd > crds/driftreports.yaml");
    }
}
