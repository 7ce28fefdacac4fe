//! The connection to the API server, and the deadline that every ordinary call has.

use std::future::Future;
use std::time::Duration;

use kube::{Client, Config};

use crate::operator::api_error::ApiError;

/// How long an ordinary call may take.
const DEADLINE: Duration = Duration::from_secs(15);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither a usable kubeconfig nor a pod's ServiceAccount.
    #[error("cannot find out how to reach a cluster; check KUBECONFIG")]
    Config(#[source] kube::config::InferConfigError),
    /// What the configuration asks for does not work.
    #[error("cannot use the cluster's configuration; check its certificates and its user")]
    Client(#[source] kube::Error),
}

/// Connects as kubectl does: by `KUBECONFIG`, `~/.kube/config`, or a pod's ServiceAccount.
pub async fn connect() -> Result<Client, ConnectError> {
    let config = Config::infer().await.map_err(ConnectError::Config)?;
    connect_with(config)
}

/// Connects with this configuration.
pub fn connect_with(mut config: Config) -> Result<Client, ConnectError> {
    // Fails only if one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // We retry ourselves, per object: the default repeats writes for minutes behind our back.
    config.default_retry = false;
    config.connect_timeout = Some(DEADLINE);
    Client::try_from(config).map_err(ConnectError::Client)
}

/// Gives a call its deadline.
pub async fn in_time<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, ApiError> {
    match tokio::time::timeout(DEADLINE, call).await {
        Ok(answer) => answer.map_err(ApiError::from),
        Err(_) => Err(ApiError::TimedOut(DEADLINE)),
    }
}
