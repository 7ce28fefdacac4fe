//! Looks for a running Reloader, and says so aloud.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tracing::{info, warn};

use crate::model::names::{Name, Uid};
use crate::model::reloader::{self, DEPLOYMENT_LABELS, LEASE, META_INFO_LABEL, Sign};
use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;
use crate::operator::events::{self, Notice, Reason};
use crate::operator::metrics::Metrics;

/// The time between two looks.
const PAUSE: Duration = Duration::from_secs(300);
/// As many objects of a kind are looked at.
const MOST: u32 = 20;

/// What to do about it.
const ADVICE: &str = "it acts on the annotations that --stakater-annotations makes count here, so that a change rolls a \
                      workload twice; scale it down, or keep the two apart by namespaces";

/// Looks again and again, until it is dropped.
pub async fn look_out(client: &Client, instance: &str, metrics: &Metrics) {
    let mut told = BTreeSet::new();
    let mut refusals = BTreeSet::new();
    loop {
        let signs = look(client, &mut refusals).await;
        metrics.reloader_detected(&signs);
        for sign in signs.difference(&told) {
            warn!(ns = %sign.namespace(), seen = sign.what(), "a Reloader runs: {ADVICE}");
            if let Sign::Deployment { namespace, name, uid } = sign {
                tell(client, instance, namespace, name, uid.as_ref()).await;
            }
        }
        told.extend(signs);
        tokio::time::sleep(PAUSE).await;
    }
}

async fn look(client: &Client, refusals: &mut BTreeSet<String>) -> BTreeSet<Sign> {
    let mut labelled = Vec::new();
    for labels in DEPLOYMENT_LABELS {
        labelled.extend(list::<Deployment>(client, ListParams::default().labels(labels), refusals).await);
    }
    let mut published = Vec::new();
    let meta_info = ListParams::default().labels(META_INFO_LABEL);
    for (namespace, name) in list(client, meta_info, refusals).await.iter().filter_map(reloader::deployment_of) {
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
        published.extend(in_time(deployments.get_opt(&name)).await.ok().flatten());
    }
    let named = ListParams::default().fields(&format!("metadata.name={LEASE}"));
    let leases = list::<Lease>(client, named, refusals).await;
    reloader::signs(&labelled, &published, &leases, Timestamp::now())
}

/// Those that we may see. What is refused is told once: a sign may be missed, and nothing else depends on it.
async fn list<K>(client: &Client, params: ListParams, refusals: &mut BTreeSet<String>) -> Vec<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    match in_time(Api::<K>::all(client.clone()).list(&params.limit(MOST))).await {
        Ok(list) => list.items,
        Err(error) => {
            let kind = K::kind(&()).into_owned();
            if matches!(error, ApiError::Forbidden(_)) && refusals.insert(kind.clone()) {
                info!(kind, %error, "cannot see here whether a Reloader runs");
            }
            Vec::new()
        }
    }
}

async fn tell(client: &Client, instance: &str, namespace: &Name, name: &Name, uid: Option<&Uid>) {
    let regarding = ObjectReference {
        api_version: Some("apps/v1".to_owned()),
        kind: Some("Deployment".to_owned()),
        namespace: Some(namespace.to_string()),
        name: Some(name.to_string()),
        uid: uid.map(ToString::to_string),
        ..ObjectReference::default()
    };
    let note = format!("A Reloader runs beside restamp: {ADVICE}");
    let notice = Notice { regarding, reason: Reason::ReloaderRuns, note };
    if let Err(error) = events::publish(client, instance, notice).await {
        info!(%error, "an event could not be written");
    }
}
