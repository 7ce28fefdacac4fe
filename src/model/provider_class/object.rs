//! A SecretProviderClassPodStatus as the API writes it, and what is kept of it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::Deserialize;

use super::{Got, PodStatus, StatusId};
use crate::model::custom::CustomKind;
use crate::model::fingerprint::{Fingerprint, Plain, Value};
use crate::model::names::{ConfigId, ConfigKind, KeyName, Name};

const GROUP: &str = "secrets-store.csi.x-k8s.io";
const VERSION: &str = "v1";
const API_VERSION: &str = "secrets-store.csi.x-k8s.io/v1";
const KIND: &str = "SecretProviderClassPodStatus";
const PLURAL: &str = "secretproviderclasspodstatuses";

/// The kind of the statuses, to be looked for: the driver may be installed later, or never.
pub fn kind_of_statuses() -> CustomKind {
    CustomKind { api_version: API_VERSION.to_owned(), kind: KIND.to_owned(), label: KIND.to_owned() }
}

/// A SecretProviderClassPodStatus as the API writes it: one for each pod and class.
#[derive(Debug, Clone, Deserialize)]
pub struct StatusObject {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Option<RawStatus>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStatus {
    secret_provider_class_name: Option<Name>,
    objects: Option<Vec<RawObject>>,
}

/// A version may be a hash of the secret: it is kept as values are.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "RawVersion")]
struct RawObject {
    id: KeyName,
    version: Fingerprint,
}

#[derive(Deserialize)]
struct RawVersion {
    #[serde(default)]
    id: Option<KeyName>,
    #[serde(default)]
    version: Option<Value<Plain>>,
}

impl From<RawVersion> for RawObject {
    fn from(raw: RawVersion) -> Self {
        let version = raw.version.map_or_else(|| Fingerprint::of(b""), |version| version.fingerprint);
        Self { id: raw.id.unwrap_or_else(|| "".into()), version }
    }
}

impl Resource for StatusObject {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn kind((): &()) -> Cow<'_, str> {
        KIND.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl StatusObject {
    /// What is kept of it; nothing of one that is about no pod or no class.
    pub fn read(&self) -> Option<PodStatus> {
        let metadata = &self.metadata;
        let status = self.status.clone().unwrap_or_default();
        let namespace: Name = metadata.namespace.as_deref()?.into();
        let owner = metadata.owner_references.iter().flatten().find(|owner| owner.kind == "Pod")?;
        let created = metadata.creation_timestamp.as_ref().map(|time| time.0)?;
        let writes = metadata.managed_fields.iter().flatten().filter_map(|entry| entry.time.as_ref());
        let written = writes.map(|Time(time)| *time).max().unwrap_or(created);
        // It rises with each change of what the object says, also of its status: this kind has no status of its own.
        let is_as_it_was_made = metadata.generation.unwrap_or(1) <= 1;
        Some(PodStatus {
            id: StatusId { namespace: namespace.clone(), name: metadata.name.as_deref()?.into() },
            class: ConfigId {
                kind: ConfigKind::SecretProviderClass,
                namespace,
                name: status.secret_provider_class_name?,
            },
            pod: owner.uid.as_str().into(),
            created,
            version: metadata.resource_version.as_deref()?.parse().ok()?,
            since: if is_as_it_was_made { created } else { written },
            got: if is_as_it_was_made { Got::AtMount } else { Got::InPlace(BTreeSet::new()) },
            objects: status.objects.into_iter().flatten().map(|object| (object.id, object.version)).collect(),
        })
    }
}
