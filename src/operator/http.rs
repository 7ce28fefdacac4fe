//! The operator's own HTTP server: metrics, and the probes of the kubelet.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::model::watched::Watched;
use crate::operator::metrics::Metrics;

/// What this replica is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// It has no connection yet.
    Starting,
    /// It waits for its turn; as ready as it gets.
    Standby,
    /// It leads, and these kinds are not synced yet.
    Leading(BTreeSet<Watched>),
}

impl Stage {
    /// What is needed and not seen yet, such as kinds that are not synced.
    fn missing(&self) -> Vec<&'static str> {
        match self {
            Self::Starting => vec!["the Lease"],
            Self::Standby => Vec::new(),
            Self::Leading(unsynced) => {
                unsynced.iter().copied().filter(|kind| kind.is_needed()).map(Watched::as_str).collect()
            }
        }
    }
}

/// The port can't be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}; free the port, or choose another one with --bind")]
pub struct BindError {
    address: SocketAddr,
    #[source]
    cause: io::Error,
}

/// Takes the port.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).await.map_err(|cause| BindError { address, cause })
}

/// Serves until it is dropped.
pub async fn serve(listener: TcpListener, metrics: Metrics, stage: watch::Receiver<Stage>) -> io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready).with_state(stage))
        .route("/metrics", get(render).with_state(metrics));
    axum::serve(listener, router).await
}

async fn ready(State(stage): State<watch::Receiver<Stage>>) -> (StatusCode, String) {
    let missing = stage.borrow().missing();
    if missing.is_empty() {
        (StatusCode::OK, "ok\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not synced yet: {}\n", missing.join(", ")))
    }
}

async fn render(State(metrics): State<Metrics>) -> (StatusCode, String) {
    match metrics.render() {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot render the metrics: {error}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::WorkloadKind;

    #[test]
    fn a_leader_is_ready_once_the_needed_kinds_are_synced() {
        let kinds = |kinds: &[WorkloadKind]| kinds.iter().copied().map(Watched::Workload).collect();
        assert_eq!(Stage::Leading(kinds(&[WorkloadKind::Pod, WorkloadKind::Job])).missing(), ["Pod"]);
        assert_eq!(Stage::Leading(kinds(&[WorkloadKind::Job])).missing(), Vec::<&str>::new());
        assert_eq!(Stage::Standby.missing(), Vec::<&str>::new());
        assert_eq!(Stage::Starting.missing(), ["the Lease"]);
    }
}
