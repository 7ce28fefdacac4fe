//! The one switch for the whole cluster: an annotation on the ConfigMap that the operator publishes, which is watched by
//! itself, so that it works at once.

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::watch;
use tracing::warn;

use crate::api::annotations::SUSPEND;
use crate::api::opt_in;
use crate::api::published::CONFIG_MAP;
use crate::model::rollout::suspension::Suspension;

/// Watches the switch, until it is dropped. One that does not parse suspends nothing, and is told in the log.
pub async fn follow(client: &Client, namespace: &str, tell: watch::Sender<Suspension>) {
    let config_maps: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(client.clone(), namespace);
    let config = watcher::Config::default().fields(&format!("metadata.name={CONFIG_MAP}")).timeout(230);
    let events = watcher(config_maps, config).default_backoff();
    let mut events = std::pin::pin!(events.map_err(|error| error.to_string()));
    let mut is_told = false;
    while let Some(event) = events.next().await {
        let said = match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => read(&object),
            Ok(watcher::Event::Delete(_)) => Suspension::No,
            Ok(watcher::Event::Init | watcher::Event::InitDone) => continue,
            Err(error) => {
                if !std::mem::replace(&mut is_told, true) {
                    warn!(
                        error,
                        "cannot watch ConfigMap {namespace}/{CONFIG_MAP}, by which all rollouts can be suspended; \
                                  grant list and watch on it"
                    );
                }
                continue;
            }
        };
        is_told = false;
        tell.send_if_modified(|before| std::mem::replace(before, said) != said);
    }
}

fn read(object: &PartialObjectMeta<ConfigMap>) -> Suspension {
    let Some(value) = object.annotations().get(SUSPEND) else { return Suspension::No };
    opt_in::suspension(value).unwrap_or_else(|problem| {
        warn!("{problem}");
        Suspension::No
    })
}
