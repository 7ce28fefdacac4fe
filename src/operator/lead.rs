//! Leading: what the one replica does that holds the Lease. A standby does none of it.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::sync::{mpsc, watch};
use tracing::warn;

use crate::api::published::Published;
use crate::model::digest::Keyring;
use crate::operator::engine::{Engine, Settings};
use crate::operator::hash_key::{self, HashKeyError};
use crate::operator::http::Stage;
use crate::operator::metrics::Metrics;
use crate::operator::publish::publish;
use crate::operator::retry::Retries;
use crate::operator::watch::watch_all;

/// As many events wait for the engine at most; then the watches wait.
const BACKLOG: usize = 256;

/// Leads until it is dropped. It ends by itself only if there is no hash key, or a watch breaks down.
pub async fn lead(
    client: Client,
    namespace: &str,
    settings: Settings,
    metrics: Metrics,
    stage: &watch::Sender<Stage>,
) -> Result<(), HashKeyError> {
    metrics.begin();
    stage.send_replace(Stage::Leading(BTreeSet::new()));
    let keyring = load_key(&client, namespace).await?;
    let (synced, mut synced_kinds) = watch::channel(BTreeSet::new());
    let (out, seen) = mpsc::channel(BACKLOG);
    let watches = watch_all(&client, &metrics, &out);
    drop(out);
    let published = Published {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        namespaces: Vec::new(),
        excluded: Vec::new(),
        namespace_selector: None,
        mode: settings.mode,
    };
    let engine = Engine::new(client.clone(), keyring, settings, namespace, metrics, synced);
    let tell = async {
        while synced_kinds.changed().await.is_ok() {
            stage.send_replace(Stage::Leading(synced_kinds.borrow_and_update().clone()));
        }
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(engine.run(seen, watches), tell) } => Ok(()),
        never = async {
            publish(&client, namespace, &published).await;
            std::future::pending().await
        } => never,
    }
}

/// The hash key comes before the first list. While the API server is not well, it is asked again.
async fn load_key(client: &Client, namespace: &str) -> Result<Keyring, HashKeyError> {
    let mut retries = Retries::default();
    loop {
        match hash_key::load(client, namespace).await {
            Err(HashKeyError::Api { cause, .. }) if !cause.is_refusal() => {
                warn!(%cause, "cannot load the hash key yet");
                let now = Timestamp::now();
                let wait = Duration::try_from(retries.failed((), now).duration_since(now)).unwrap_or_default();
                tokio::time::sleep(wait).await;
            }
            loaded => return loaded,
        }
    }
}
