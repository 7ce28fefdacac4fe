//! Publishes what this operator watches, for everybody who asks why nothing happens.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::watch;
use tracing::warn;

use crate::api::published::{CONFIG_MAP, Published};
use crate::model::managers::FIELD_MANAGER;
use crate::model::unread::Unread;
use crate::operator::client::in_time;
use crate::operator::metrics::{Metrics, Written};
use crate::operator::retry::Retries;
use crate::operator::vigil::Vigil;

/// Between two writes there is at least this time: several kinds fail, or work again, one after the other.
const PAUSE: Duration = Duration::from_secs(10);

/// Publishes, and again whenever what can't be read has changed; between such changes it asks nothing of the API server.
pub async fn publish(
    client: &Client,
    vigil: &Vigil,
    namespace: &str,
    mut published: Published,
    mut unread: watch::Receiver<BTreeSet<Unread>>,
    metrics: &Metrics,
) {
    loop {
        write(client, vigil, namespace, &published, metrics).await;
        match changed(&published.unread, &mut unread).await {
            Some(now) => published.unread = now,
            None => return std::future::pending().await,
        }
    }
}

/// Waits until what is said is wrong; then, what is right. `None` if nobody will tell any more.
async fn changed(said: &BTreeSet<Unread>, unread: &mut watch::Receiver<BTreeSet<Unread>>) -> Option<BTreeSet<Unread>> {
    loop {
        drop(unread.wait_for(|unread| unread != said).await.ok()?);
        tokio::time::sleep(PAUSE).await;
        let now = unread.borrow_and_update().clone();
        if now != *said {
            return Some(now);
        }
    }
}

/// Writes the ConfigMap; tries again until it stands there.
async fn write(client: &Client, vigil: &Vigil, namespace: &str, published: &Published, metrics: &Metrics) {
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let patch = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "labels": {"app.kubernetes.io/managed-by": "restamp"}},
        "data": published.to_data(),
    });
    let apply = PatchParams::apply(FIELD_MANAGER).force();
    let mut retries = Retries::default();
    loop {
        vigil.is_over().await;
        let written = in_time(config_maps.patch_metadata(CONFIG_MAP, &apply, &Patch::Apply(&patch))).await;
        let Err(cause) = written else { return };
        metrics.write_error(Written::Scope);
        if !retries.has_failed(&()) {
            warn!(%cause, "cannot write ConfigMap {namespace}/{CONFIG_MAP}; grant create and patch on it");
        }
        retries.pause(()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::unread::WhyUnread;
    use tokio::time::Instant;

    fn forbidden(kind: &str) -> BTreeSet<Unread> {
        [Unread { kind: kind.to_owned(), namespace: None, why: WhyUnread::Forbidden }].into()
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_together_is_said_once_and_what_is_over_is_not_said() {
        let (tell, mut unread) = watch::channel(BTreeSet::new());
        let both: BTreeSet<Unread> = forbidden("Pod").into_iter().chain(forbidden("Secret")).collect();
        let trouble = async {
            tell.send_replace(forbidden("Pod"));
            tokio::time::sleep(PAUSE / 2).await;
            tell.send_replace(BTreeSet::new());
            tokio::time::sleep(PAUSE).await;
            tell.send_replace(forbidden("Pod"));
            tokio::time::sleep(PAUSE / 2).await;
            tell.send_replace(both.clone());
        };
        let begin = Instant::now();
        let nothing = BTreeSet::new();
        let (said, ()) = tokio::join!(changed(&nothing, &mut unread), trouble);
        assert_eq!((said, begin.elapsed().as_secs()), (Some(both), (PAUSE * 5 / 2).as_secs()));
    }

    #[tokio::test(start_paused = true)]
    async fn while_nothing_changes_nothing_is_said() {
        let (_tell, mut unread) = watch::channel(forbidden("Pod"));
        let said = forbidden("Pod");
        let day = Duration::from_secs(24 * 60 * 60);
        assert!(tokio::time::timeout(day, changed(&said, &mut unread)).await.is_err());
    }
}
