//! Looks at Helm releases: a list of metadata, the newest revision's Secret, and the workloads that it declares. Of all of
//! these only what the rules need comes back.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::select_all;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{GetParams, ListParams};
use kube::core::{PartialObjectMeta, Request};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource as _};
use tokio::sync::mpsc::Sender;
use tokio::task::spawn_blocking;
use tracing::debug;
use zeroize::Zeroizing;

use crate::model::fields::{Fields, declared_spec};
use crate::model::helm::held::{Basis, Found, Look, SecretVersion};
use crate::model::helm::{
    Release, ReleaseId, ReleaseManifest, ReleaseSecret, SECRET_TYPE, labels_of, latest, release_of,
};
use crate::model::names::{ConfigKind, ResourceVersion, WorkloadId};
use crate::model::readable::Readable;
use crate::model::scope::{Extent, Scope};
use crate::model::watched::Watched;
use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;
use crate::operator::write::{object, version};

/// Where releases are followed: where Secrets are watched.
pub fn extents(scope: &Scope) -> Vec<Extent> {
    let secrets = Watched::Config(ConfigKind::Secret);
    if scope.watched().any(|kind| kind == secrets) { scope.extents(secrets) } else { Vec::new() }
}

/// Tells of each release of which some revision changed. It is told by metadata alone, and that is not kept.
pub async fn follow(client: Client, scope: Arc<Scope>, out: Sender<ReleaseId>) {
    let streams = extents(&scope).into_iter().map(|extent| {
        let api: Api<Readable<PartialObjectMeta<Secret>>> = match extent {
            Extent::Cluster => Api::all(client.clone()),
            Extent::Namespace(name) => Api::namespaced(client.clone(), name.as_str()),
        };
        let config =
            watcher::Config::default().timeout(230).fields(&format!("type={SECRET_TYPE}")).labels("owner=helm");
        watcher(api, config).default_backoff().boxed()
    });
    let mut events = select_all(streams);
    let mut newest: HashMap<ReleaseId, ResourceVersion> = HashMap::new();
    while let Some(event) = events.next().await {
        let metadata = match event {
            Ok(watcher::Event::Apply(found) | watcher::Event::InitApply(found) | watcher::Event::Delete(found)) => {
                found.meta().clone()
            }
            Ok(watcher::Event::Init | watcher::Event::InitDone) => continue,
            // Whoever may not watch them may not watch Secrets, which is told already.
            Err(error) => {
                debug!(%error, "watch of Helm releases fails; it starts anew");
                continue;
            }
        };
        let (Some(release), Ok(version)) = (release_of(&metadata), version(&metadata)) else { continue };
        // A list that begins anew tells nothing that is not known.
        if newest.get(&release).is_some_and(|known| *known >= version) {
            continue;
        }
        newest.insert(release.clone(), version);
        if out.send(release).await.is_err() {
            return;
        }
    }
}

/// Looks at a release.
pub async fn look(client: &Client, look: &Look) -> Result<Found, ApiError> {
    let nothing = Found::Declares { secret: None, keys: BTreeMap::new(), fields: BTreeMap::new() };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), look.release.namespace.as_str());
    let params = ListParams::default().fields(&format!("type={SECRET_TYPE}")).labels(&labels_of(&look.release));
    let list = in_time(secrets.list_metadata(&params)).await?;
    let all: Vec<ObjectMeta> = list.items.into_iter().map(|found| found.metadata).collect();
    let Some(name) = latest(&all) else { return Ok(nothing) };
    let metadata = all.iter().find(|metadata| metadata.name.as_deref() == Some(name));
    let newest = metadata.map(version).transpose()?.map(|version| (name.to_owned(), version));
    if newest == look.known && look.workloads.is_empty() {
        return Ok(Found::Unchanged);
    }
    let secret = read_secret(client, &look.release, name).await?;
    let read = Some((name.to_owned(), version(secret.meta())?));
    match secret.read() {
        Some((_, _, Release::Deployed(manifest))) => compare(client, look, read, manifest).await,
        Some((_, _, Release::Silent)) | None => {
            Ok(Found::Declares { secret: read, keys: BTreeMap::new(), fields: BTreeMap::new() })
        }
    }
}

/// Reads a revision. A large one is much to unpack, which must not keep the engine from its work.
async fn read_secret(client: &Client, release: &ReleaseId, name: &str) -> Result<ReleaseSecret, ApiError> {
    let requests = Request::new(ReleaseSecret::url_path(&(), Some(release.namespace.as_str())));
    let unreadable = || ApiError::Unreadable("data.release".to_owned());
    let request = requests.get(name, &GetParams::default()).map_err(|_| unreadable())?;
    let text = Zeroizing::new(in_time(client.request_text(request)).await?);
    let read = spawn_blocking(move || serde_json::from_str(&text));
    read.await.map_err(|_| unreadable())?.map_err(|_| unreadable())
}

async fn compare(
    client: &Client,
    look: &Look,
    secret: Option<SecretVersion>,
    manifest: ReleaseManifest,
) -> Result<Found, ApiError> {
    let mut fields = BTreeMap::new();
    for (id, basis) in &look.workloads {
        if let Some(found) = compare_workload(client, id, basis, &manifest).await? {
            fields.insert(id.clone(), found);
        }
    }
    Ok(Found::Declares { secret, keys: manifest.into_keys(), fields })
}

/// How a workload differs; nothing of one that is another by now, of which the watch tells.
async fn compare_workload(
    client: &Client,
    id: &WorkloadId,
    basis: &Basis,
    manifest: &ReleaseManifest,
) -> Result<Option<Fields>, ApiError> {
    let Some(declared) = manifest.spec_of(id) else { return Ok(None) };
    let live = match object(client, id).await {
        Ok(live) => live,
        Err(ApiError::NotFound) => return Ok(None),
        Err(error) => return Err(error),
    };
    if live.metadata.generation.unwrap_or_default() != basis.generation {
        return Ok(None);
    }
    let metadata = live.metadata.clone();
    let live = serde_json::to_value(live).ok().and_then(|live| declared_spec(id.kind, live));
    Ok(live.map(|live| Fields::of_release(id.kind, &metadata, declared, &live)))
}
