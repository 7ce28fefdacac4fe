//! Publishes what this operator watches, for everybody who asks why nothing happens.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tracing::warn;

use crate::api::published::{CONFIG_MAP, Published};
use crate::model::managers::FIELD_MANAGER;
use crate::operator::client::in_time;
use crate::operator::retry::Retries;

/// Writes the ConfigMap; tries again until it stands there.
pub async fn publish(client: &Client, namespace: &str, published: &Published) {
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let patch = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "labels": {"app.kubernetes.io/managed-by": "restamp"}},
        "data": published.to_data(),
    });
    let apply = PatchParams::apply(FIELD_MANAGER).force();
    let mut retries = Retries::default();
    while let Err(cause) = in_time(config_maps.patch_metadata(CONFIG_MAP, &apply, &Patch::Apply(&patch))).await {
        if !retries.has_failed(&()) {
            warn!(%cause, "cannot write ConfigMap {namespace}/{CONFIG_MAP}; grant create and patch on it");
        }
        retries.pause(()).await;
    }
}
