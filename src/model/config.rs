//! A ConfigMap or Secret, reduced to what the rules need. Its values become fingerprints while it is deserialized.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use zeroize::Zeroizing;

use crate::api::annotations::PREFIX;
use crate::api::stakater;
use crate::model::fingerprint::{Base64, Encoding, Fingerprint, Plain, Value};
use crate::model::helm::{ReleaseId, Releases};
use crate::model::keys::{self, KeyMap};
use crate::model::last_applied::{self, LastApplied, RawLastApplied};
use crate::model::managed_fields::{self, LastWrite, ManagedFields, RawEntry};
use crate::model::names::{ConfigId, ConfigKind, KeyName, Name, ResourceVersion, Uid, controller_of};
use crate::model::source::{Marks, Origin};

/// What restamp keeps of a ConfigMap or Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Which one.
    pub id: ConfigId,
    /// Its uid; `None` in a manifest that no API server has seen.
    pub uid: Option<Uid>,
    /// The version that this was read from.
    pub resource_version: Option<ResourceVersion>,
    /// The version at which it was made, where that was seen on a watch as it happened.
    pub born: Option<ResourceVersion>,
    /// When it was created, to the second.
    pub created: Option<Timestamp>,
    /// No value changed after this, as far as that was seen: what managers wrote later was something else.
    pub settled: Option<Timestamp>,
    /// Its live keys.
    pub values: KeyMap<LiveValue>,
    /// What `kubectl apply` last declared.
    pub last_applied: LastApplied,
    /// Who owns which key.
    pub managed_fields: ManagedFields,
    /// The controller that owns it as a whole: `Kind/name`.
    pub controller: Option<String>,
    /// The annotations that have a meaning here: ours, and those that tell where it comes from.
    pub annotations: BTreeMap<String, String>,
    /// Who looks after it, where it says so.
    pub origin: Option<Box<Origin>>,
    /// What its Helm release declares, once that was read.
    pub released: Option<KeyMap<Fingerprint>>,
}

impl Config {
    /// The Helm release that it names.
    pub fn release(&self) -> Option<&ReleaseId> {
        self.origin.as_ref()?.release.as_ref()
    }

    /// Takes over what its release declares, where that was read.
    pub fn compare_with(&mut self, releases: &Releases) {
        self.released = self.release().and_then(|release| releases.declared_keys(release, &self.id));
    }

    /// Takes over what the state before tells: a write that changed no value is none of a value.
    pub fn follow(&mut self, before: &Self) {
        let unchanged = before.uid == self.uid && before.values == self.values;
        self.settled = unchanged.then(|| before.settled.or_else(|| before.last_write_of_values())).flatten();
    }

    /// When a manager of some value last wrote.
    pub fn last_write_of_values(&self) -> Option<Timestamp> {
        let owners = self.managed_fields.iter().flatten().filter(|owner| !owner.keys.is_empty());
        owners.filter_map(|owner| owner.time).max()
    }

    /// The last write by a manager that owns one of these keys. It may have been of something else.
    pub fn last_write_of(&self, is_one_of: impl Fn(&KeyName) -> bool) -> Option<LastWrite> {
        let owners = self.managed_fields.iter().flatten().filter(|owner| owner.keys.iter().any(&is_one_of));
        let last = owners.filter(|owner| owner.time.is_some()).map(LastWrite::from).max()?;
        let time = last.time.map(|time| self.settled.map_or(time, |settled| settled.min(time)));
        Some(LastWrite { time, ..last })
    }
}

/// A live key's value and the field that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveValue {
    /// What it is.
    pub fingerprint: Fingerprint,
    /// Where it stands: a variable can't come from `binaryData`.
    pub field: Field,
}

/// The fields that hold keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `data`
    Data,
    /// `binaryData`, of a ConfigMap only
    BinaryData,
}

/// Configs by their id.
#[derive(Debug, Clone, Default)]
pub struct Configs {
    /// Boxed: a tree has room to spare in every node.
    known: BTreeMap<ConfigId, Box<Config>>,
    /// Kinds of which not all are looked at: one of these that is not here may exist.
    unknown: BTreeSet<ConfigKind>,
}

impl Configs {
    /// None yet, and of these kinds not all that there are.
    pub fn with_unknown(kinds: BTreeSet<ConfigKind>) -> Self {
        Self { known: BTreeMap::new(), unknown: kinds }
    }

    /// Takes it that there may be more of these kinds.
    pub fn may_have_more(&mut self, kinds: impl IntoIterator<Item = ConfigKind>) {
        self.unknown.extend(kinds);
    }

    /// Whether it is not known whether this config exists.
    pub fn is_unknown(&self, id: &ConfigId) -> bool {
        let is_read = ConfigKind::WITH_KEYS.contains(&id.kind);
        (self.unknown.contains(&id.kind) || !is_read) && !self.known.contains_key(id)
    }

    /// This config, if it exists.
    pub fn get(&self, id: &ConfigId) -> Option<&Config> {
        self.known.get(id).map(Box::as_ref)
    }

    /// The live keys of this config, if it exists.
    pub fn values(&self, id: &ConfigId) -> Option<&KeyMap<LiveValue>> {
        self.known.get(id).map(|config| &config.values)
    }

    /// Puts a config in its place; the one that was there before comes back.
    pub fn insert(&mut self, config: Config) -> Option<Config> {
        self.known.insert(config.id.clone(), Box::new(config)).map(|config| *config)
    }

    /// Takes a config out.
    pub fn remove(&mut self, id: &ConfigId) -> Option<Config> {
        self.known.remove(id).map(|config| *config)
    }

    /// Those of one kind in one namespace.
    pub fn within<'a>(&'a self, kind: ConfigKind, namespace: &'a Name) -> impl Iterator<Item = &'a Config> + use<'a> {
        let first = ConfigId { kind, namespace: namespace.clone(), name: "".into() };
        let from = self.known.range(first..).map(|(_, config)| config.as_ref());
        from.take_while(move |config| config.id.kind == kind && config.id.namespace == *namespace)
    }

    /// All of them, by kind, namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &Config> {
        self.known.values().map(Box::as_ref)
    }
}

impl FromIterator<Config> for Configs {
    fn from_iter<I: IntoIterator<Item = Config>>(configs: I) -> Self {
        let known = configs.into_iter().map(|config| (config.id.clone(), Box::new(config))).collect();
        Self { known, unknown: BTreeSet::new() }
    }
}

/// A ConfigMap as the API writes it, read straight into a [`Config`].
#[derive(Debug, Clone, kube::Resource, Deserialize)]
#[resource(inherit = k8s_openapi::api::core::v1::ConfigMap)]
#[serde(from = "Raw<Plain>")]
pub struct ConfigMapObject {
    metadata: ObjectMeta,
    /// What is kept of it.
    pub config: Config,
}

/// A Secret as the API writes it, read straight into a [`Config`].
#[derive(Debug, Clone, kube::Resource, Deserialize)]
#[resource(inherit = k8s_openapi::api::core::v1::Secret)]
#[serde(from = "Raw<Base64>")]
pub struct SecretObject {
    metadata: ObjectMeta,
    /// Where it comes from.
    pub form: Form,
    /// What is kept of it.
    pub config: Config,
}

/// Whether an object tells what is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// It does: so an API server shows it.
    Live,
    /// It has `stringData`, which no API server shows: it was written to be applied, and what is live is not known.
    Manifest,
}

impl From<Raw<Plain>> for ConfigMapObject {
    fn from(raw: Raw<Plain>) -> Self {
        Self { metadata: raw.metadata.for_watching(), config: raw.read(ConfigKind::ConfigMap) }
    }
}

impl From<Raw<Base64>> for SecretObject {
    fn from(raw: Raw<Base64>) -> Self {
        Self { metadata: raw.metadata.for_watching(), form: raw.form(), config: raw.read(ConfigKind::Secret) }
    }
}

/// A config on the way in; `E` is the encoding of its `data`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "E: Encoding")]
struct Raw<E> {
    metadata: RawMetadata<E>,
    #[serde(default)]
    data: Option<BTreeMap<KeyName, Value<E>>>,
    #[serde(default)]
    binary_data: Option<BTreeMap<KeyName, Value<Base64>>>,
    #[serde(default)]
    string_data: Option<BTreeMap<KeyName, IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "E: Encoding")]
struct RawMetadata<E> {
    name: Name,
    #[serde(default)]
    namespace: Option<Name>,
    uid: Option<Uid>,
    resource_version: Option<String>,
    creation_timestamp: Option<Time>,
    owner_references: Option<Vec<OwnerReference>>,
    managed_fields: Option<Vec<RawEntry>>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<Annotations<E>>,
}

impl<E> RawMetadata<E> {
    /// What kube's watcher looks at, and the labels: they may say that the operator looks elsewhere.
    fn for_watching(&self) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name.to_string()),
            namespace: self.namespace.as_ref().map(Name::to_string),
            resource_version: self.resource_version.clone(),
            labels: self.labels.clone(),
            ..ObjectMeta::default()
        }
    }
}

impl<E: Encoding> Raw<E> {
    fn form(&self) -> Form {
        if self.string_data.as_ref().is_some_and(|data| !data.is_empty()) { Form::Manifest } else { Form::Live }
    }

    fn read(self, kind: ConfigKind) -> Config {
        let metadata = self.metadata;
        let namespace = metadata.namespace.unwrap_or_else(|| "default".into());
        let id = ConfigId { kind, namespace, name: metadata.name };
        let annotations = metadata.annotations.unwrap_or_default();
        let controller = controller_of(metadata.owner_references.as_deref());
        let data = live(self.data, Field::Data);
        let values = keys::tight(data.chain(live(self.binary_data, Field::BinaryData)).collect());
        let is_empty = |key: &KeyName| values.get(key).is_some_and(|live| live.fingerprint.is_of_nothing());
        let last_applied = annotations.last_applied.map_or(LastApplied::Absent, |raw| raw.about(&id, is_empty));
        let managed_fields = managed_fields::read(metadata.managed_fields.unwrap_or_default());
        let origin = Origin::of(&Marks {
            api_version: "v1",
            kind: kind.as_str(),
            namespace: &id.namespace,
            name: &id.name,
            labels: &metadata.labels.unwrap_or_default(),
            annotations: &annotations.kept,
            managers: &managed_fields.iter().flatten().map(|owner| owner.manager.as_str()).collect::<Vec<_>>(),
        });
        Config {
            uid: metadata.uid,
            resource_version: metadata.resource_version.and_then(|version| version.parse().ok()),
            born: None,
            created: metadata.creation_timestamp.map(|time| time.0),
            settled: None,
            values,
            last_applied,
            managed_fields,
            controller: controller.map(|owner| format!("{}/{}", owner.kind, owner.name)),
            annotations: annotations.kept,
            origin: origin.map(Box::new),
            released: None,
            id,
        }
    }
}

fn live<E>(values: Option<BTreeMap<KeyName, Value<E>>>, field: Field) -> impl Iterator<Item = (KeyName, LiveValue)> {
    let values = values.into_iter().flatten();
    values.map(move |(key, value)| (key, LiveValue { fingerprint: value.fingerprint, field }))
}

/// The annotations, the last-applied one already parsed.
struct Annotations<E> {
    kept: BTreeMap<String, String>,
    last_applied: Option<RawLastApplied<E>>,
}

impl<E> Default for Annotations<E> {
    fn default() -> Self {
        Self { kept: BTreeMap::new(), last_applied: None }
    }
}

/// The annotations that stay in memory, by prefix; and Reloader's, by name.
const KEPT: [&str; 3] = [PREFIX, "meta.helm.sh/", "argocd.argoproj.io/"];

fn is_kept(name: &str) -> bool {
    KEPT.iter().any(|prefix| name.starts_with(prefix)) || stakater::ON_CONFIGS.contains(&name)
}

impl<'de, E: Encoding> Deserialize<'de> for Annotations<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AnnotationsVisitor(std::marker::PhantomData))
    }
}

struct AnnotationsVisitor<E>(std::marker::PhantomData<E>);

impl<'de, E: Encoding> Visitor<'de> for AnnotationsVisitor<E> {
    type Value = Annotations<E>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("annotations")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut annotations = Annotations::default();
        while let Some(name) = map.next_key::<String>()? {
            if name == last_applied::ANNOTATION {
                let text = Zeroizing::new(map.next_value::<String>()?);
                annotations.last_applied = Some(RawLastApplied::parse(&text));
            } else if is_kept(&name) {
                annotations.kept.insert(name, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(annotations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_is_read_into_fingerprints() {
        let object: SecretObject = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": "s", "namespace": "ns", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-11-30T12:59:07Z",
                "annotations": {"restamp.dev/ignore": "drift", "other": "x"},
                "ownerReferences": [{"apiVersion": "a/v1", "kind": "ExternalSecret", "name": "e", "uid": "o", "controller": true}],
            },
            "data": {"A": "MQ=="},
        }))
        .unwrap();
        let value = LiveValue { fingerprint: Fingerprint::of(b"1"), field: Field::Data };
        let config = Config {
            id: ConfigId { kind: ConfigKind::Secret, namespace: "ns".into(), name: "s".into() },
            uid: Some("u".into()),
            resource_version: Some(ResourceVersion(7)),
            born: None,
            created: Some("2026-11-30T12:59:07Z".parse().unwrap()),
            settled: None,
            values: [("A".into(), value)].into_iter().collect(),
            last_applied: LastApplied::Absent,
            managed_fields: None,
            controller: Some("ExternalSecret/e".to_owned()),
            annotations: [("restamp.dev/ignore".to_owned(), "drift".to_owned())].into(),
            origin: None,
            released: None,
        };
        assert_eq!(object.config, config);
    }

    #[test]
    fn nothing_of_a_value_or_of_the_annotation_shows_in_debug() {
        let object: SecretObject = serde_json::from_value(json!({
            "metadata": {
                "name": "s", "namespace": "ns",
                "annotations": {(last_applied::ANNOTATION): json!({
                    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"},
                    "stringData": {"A": "hunter2"},
                }).to_string()},
            },
            "data": {"A": "aHVudGVyMg=="},
        }))
        .unwrap();
        let debug = format!("{object:?}");
        assert!(!debug.contains("hunter2") && !debug.contains("aHVudGVyMg"), "{debug}");
        let declared = [("A".into(), Fingerprint::of(b"hunter2"))].into_iter().collect();
        assert_eq!(object.config.last_applied, LastApplied::Declares(declared));
    }

    #[test]
    fn a_config_map_has_text_and_binary_keys() {
        let object: ConfigMapObject = serde_json::from_value(json!({
            "metadata": {"name": "c", "namespace": "ns"}, "data": {"A": "1"}, "binaryData": {"b": "MQ=="},
        }))
        .unwrap();
        let value = |field| LiveValue { fingerprint: Fingerprint::of(b"1"), field };
        let values = [("A".into(), value(Field::Data)), ("b".into(), value(Field::BinaryData))];
        assert_eq!(object.config.values, values.into_iter().collect());
    }
}
