//! The Helm releases that listed objects name: each is read once, and its newest deployed revision alone.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Resource, ResourceExt as _, api::ListParams};

use super::{Asked, Lister, LiveError};
use crate::model::explain::Sought;
use crate::model::helm::{Release, ReleaseId, ReleaseSecret, SECRET_TYPE, labels_of, latest};
use crate::model::names::Name;

/// The newest revision's Secret, at the version that was read.
pub(super) type Seen = Option<(String, Option<String>)>;

/// The release that an object names.
pub(super) fn named_by<K: Resource>(object: &K) -> Option<ReleaseId> {
    ReleaseId::named_by(object.labels(), object.annotations())
}

impl Lister {
    /// Reads these releases, those that were read already left out.
    pub(super) async fn read_releases(&mut self, named: BTreeSet<ReleaseId>) -> Result<(), LiveError> {
        for id in named {
            self.read_release(&id).await?;
        }
        Ok(())
    }

    /// Reads a release, unless it was read already.
    pub async fn read_release(&mut self, id: &ReleaseId) -> Result<(), LiveError> {
        if self.live.inventory.releases.knows(id) {
            return Ok(());
        }
        let (mut release, mut seen) = (Release::Silent, None);
        if let Some(name) = self.newest_deployed(id).await?.and_then(|newest| newest.name) {
            let sought = self.get::<ReleaseSecret>("Secret", &id.namespace, &Name::from(name.as_str())).await?;
            match sought {
                Sought::Found(secret) => {
                    seen = Some((name, secret.meta().resource_version.clone()));
                    release = secret.read().map_or(Release::Silent, |(_, _, release)| release);
                }
                Sought::Unknown(_) => drop(self.live.unread_releases.insert(id.clone())),
                Sought::Absent | Sought::NoSuchKind => {}
            }
        }
        self.live.inventory.releases.insert(id.clone(), 0, release);
        self.seen_releases.insert(id.clone(), seen);
        Ok(())
    }

    /// The newest revision's Secret, if that is deployed; without its content.
    async fn newest_deployed(&mut self, id: &ReleaseId) -> Result<Option<ObjectMeta>, LiveError> {
        let api: Api<Secret> = Api::namespaced(self.connection.client.clone(), id.namespace.as_str());
        let params = ListParams::default().fields(&format!("type={SECRET_TYPE}")).labels(&labels_of(id));
        let sought = self.sought(Asked::List("Secret"), api.list_metadata(&params)).await?;
        let list = match sought {
            Sought::Found(list) => list,
            Sought::Unknown(_) => {
                self.live.unread_releases.insert(id.clone());
                return Ok(None);
            }
            Sought::Absent | Sought::NoSuchKind => return Ok(None),
        };
        let all: Vec<ObjectMeta> = list.items.into_iter().map(|found| found.metadata).collect();
        let newest = latest(&all).map(str::to_owned);
        Ok(all.into_iter().find(|metadata| metadata.name == newest && newest.is_some()))
    }

    /// Drops what releases said that went on while the objects were listed: these may be of another revision.
    pub(super) async fn drop_changed_releases(&mut self) -> Result<(), LiveError> {
        for (id, seen) in std::mem::take(&mut self.seen_releases) {
            if seen.is_none() {
                continue;
            }
            let newest = self.newest_deployed(&id).await?;
            let now = newest.and_then(|newest| Some((newest.name?, newest.resource_version)));
            if now != seen {
                self.live.inventory.forget_release(&id);
            }
        }
        Ok(())
    }
}
