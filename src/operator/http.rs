//! The operator's own pages: metrics, the probes of the kubelet, and the index for who looks for a fault.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::model::watched::Watched;
use crate::operator::dump::Desk;
use crate::operator::metrics::Metrics;

/// What this replica is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// It waits for its turn; as ready as it gets.
    Standby,
    /// It leads, and these kinds are not synced yet.
    Leading(BTreeSet<Watched>),
}

impl Stage {
    /// The needed kinds that are not synced yet.
    fn missing(&self) -> Vec<&'static str> {
        match self {
            Self::Standby => Vec::new(),
            Self::Leading(unsynced) => {
                unsynced.iter().copied().filter(|kind| kind.is_needed()).map(Watched::as_str).collect()
            }
        }
    }
}

/// The port can't be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}; free the port, or choose another one")]
pub struct BindError {
    address: SocketAddr,
    #[source]
    cause: io::Error,
}

/// Takes the port.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).await.map_err(|cause| BindError { address, cause })
}

/// What the kubelet asks for.
pub fn probes(stage: watch::Receiver<Stage>) -> Router {
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready).with_state(stage))
}

/// What Prometheus asks for.
pub fn metrics(metrics: Metrics, stage: watch::Receiver<Stage>) -> Router {
    Router::new().route("/metrics", get(render).with_state((metrics, stage)))
}

/// What the leader knows.
pub fn index(desk: Desk) -> Router {
    Router::new().route("/debug/index", get(dump).with_state(desk))
}

/// Serves until it is dropped.
pub async fn serve(listener: TcpListener, router: Router) -> io::Result<()> {
    axum::serve(listener, router).await
}

async fn dump(State(desk): State<Desk>) -> Response {
    match desk.ask().await.map(|dump| serde_json::to_string(&dump)) {
        Some(Ok(json)) => ([(CONTENT_TYPE, "application/json")], json).into_response(),
        Some(Err(error)) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot write the index: {error}\n")).into_response()
        }
        None => (StatusCode::SERVICE_UNAVAILABLE, "this replica does not lead; ask the one that holds the Lease\n")
            .into_response(),
    }
}

async fn ready(State(stage): State<watch::Receiver<Stage>>) -> (StatusCode, String) {
    let missing = stage.borrow().missing();
    if missing.is_empty() {
        (StatusCode::OK, "ok\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not synced yet: {}\n", missing.join(", ")))
    }
}

async fn render(State((metrics, stage)): State<(Metrics, watch::Receiver<Stage>)>) -> (StatusCode, String) {
    metrics.ready(stage.borrow().missing().is_empty());
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
    }
}
