//! The first lists, however the API server gives them.

use crate::support::cluster::Cluster;
use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT};
use crate::support::manifests::{config_map, deployment};
use crate::support::namespace::{Namespace, stamp, state};
use crate::support::operator::Operator;

#[tokio::test]
async fn a_server_that_streams_no_lists_is_asked_for_pages() {
    let cluster: &Cluster = Box::leak(Box::new(Cluster::start_without_streamed_lists()));
    let ns = Namespace::create(cluster, "pages").await;
    // More than a page.
    let configs: Vec<_> = (0..120).map(|number| config_map(&format!("c-{number}"), &[("K", "1")])).collect();
    ns.apply(&configs);
    ns.apply(&[deployment("w").env_from_config_map("c-119").into()]);
    let operator = Operator::start(cluster, &["--settle", "1s", "--log", "restamp=debug"]).await;
    ns.until(DRIFT_REPORT, "deployment-w", "to be current", |report| state(report) == "Current").await;
    let log = operator.log();
    assert!(log.contains("streams no lists") && !log.contains("watch fails"), "{log}");

    ns.apply(&[config_map("c-119", &[("K", "2")])]);
    ns.until(DEPLOYMENT, "w", "to carry a stamp", |workload| !stamp(workload).is_empty()).await;
}
