//! Leading: what the one replica does that holds the Lease. A standby does none of it.

use std::collections::BTreeSet;
use std::sync::Arc;

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
use crate::operator::releases::follow;
use crate::operator::reloader::look_out;
use crate::operator::retry::Retries;
use crate::operator::tasks::Writer;
use crate::operator::unread::UnreadNow;
use crate::operator::vigil::Vigil;
use crate::operator::watch::Watches;

/// As many events wait for the engine at most; then the watches wait.
const BACKLOG: usize = 256;

/// Leads until it is dropped. It ends by itself only if there is no hash key, or a watch breaks down.
pub async fn lead(
    client: Client,
    vigil: Arc<Vigil>,
    namespace: &str,
    settings: Settings,
    metrics: Metrics,
    stage: &watch::Sender<Stage>,
) -> Result<(), HashKeyError> {
    let scope = settings.scope.clone();
    let kinds: BTreeSet<_> = scope.watched().collect();
    metrics.begin(&scope);
    stage.send_replace(Stage::Leading(kinds.clone()));
    let keyring = Arc::new(load_key(&client, namespace).await?);
    let (unsynced, mut unsynced_kinds) = watch::channel(kinds);
    let (out, seen) = mpsc::channel(BACKLOG);
    let (release_changed, releases) = mpsc::channel(BACKLOG);
    let follow_releases = follow(client.clone(), scope.clone(), release_changed);
    let unread = UnreadNow::new(metrics.clone());
    let unread_now = unread.subscribe();
    let watches = Watches::start(&client, &scope, &metrics, &unread, &out);
    drop(unread);
    drop(out);
    let published = Published {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scope: (*scope).clone(),
        participation: settings.participation.clone(),
        drift: settings.drift.clone(),
        mode: settings.mode,
        unread: BTreeSet::new(),
    };
    let stakater_counts = settings.participation.stakater.is_anywhere();
    let writer = Writer::new(client.clone(), namespace, settings.change_cause, vigil.clone(), keyring.clone());
    let engine = Engine::new(writer, keyring, settings, namespace, metrics.clone(), unsynced, watches);
    let tell = async {
        while unsynced_kinds.changed().await.is_ok() {
            stage.send_replace(Stage::Leading(unsynced_kinds.borrow_and_update().clone()));
        }
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(engine.run(seen, releases), tell) } => Ok(()),
        () = publish(&client, &vigil, namespace, published, unread_now) => Ok(()),
        // It ends only if nobody listens, or there is nothing to follow.
        () = async { follow_releases.await; std::future::pending().await } => Ok(()),
        never = vigil.keep() => match never {},
        () = look_out(&client, namespace, &metrics), if stakater_counts => Ok(()),
    }
}

/// The hash key comes before the first list. While the API server is not well, it is asked again.
async fn load_key(client: &Client, namespace: &str) -> Result<Keyring, HashKeyError> {
    let mut retries = Retries::default();
    loop {
        match hash_key::load(client, namespace).await {
            Err(HashKeyError::Api { cause, .. }) if !cause.is_refusal() => {
                warn!(%cause, "cannot load the hash key yet");
                retries.pause(()).await;
            }
            loaded => return loaded,
        }
    }
}
