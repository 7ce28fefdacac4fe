//! What a document is about: kinds and names, and nothing else of it.

use std::fmt;

use kube::Resource as _;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::api::drift_report::DriftReport;
use crate::model::helm::NAME_PREFIX;
use crate::model::names::{ConfigKind, WorkloadKind};

/// An object's type and name, and those of a list's items.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    api_version: Option<String>,
    kind: Option<String>,
    metadata: Option<Metadata>,
    items: Option<Vec<Header>>,
}

/// The same, from a mapping alone: serde's own reading would take `["v1", "Secret"]` for one.
#[derive(Debug, Default)]
pub(super) struct Header(Fields);

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
}

/// What to do with an object.
#[derive(Debug)]
pub(super) enum Shape<'a> {
    Config(ConfigKind),
    Workload(WorkloadKind),
    /// A Secret with what Helm keeps of a release.
    Release,
    /// It scales one.
    Autoscaler,
    /// It says what counts for its workloads.
    Namespace,
    /// One of our own.
    Report,
    /// A list, and the type of the items that don't say their own: the API's typed lists leave it out.
    List(&'a [Header], ItemType<'a>),
    /// Its kind says nothing here.
    Other,
}

/// The type that the items of a typed list have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ItemType<'a> {
    api_version: Option<&'a str>,
    kind: Option<&'a str>,
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Header;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Header, A::Error> {
        Fields::deserialize(MapAccessDeserializer::new(fields)).map(Header)
    }
}

impl Header {
    /// What this object is.
    pub(super) fn shape<'a>(&'a self, default: ItemType<'a>) -> Shape<'a> {
        let (api_version, kind) = self.type_or(default);
        if let (Some(kind), Some(items)) = (kind.strip_suffix("List"), &self.0.items) {
            let typed = ItemType { api_version: Some(api_version), kind: Some(kind) };
            return Shape::List(items, if kind.is_empty() { ItemType::default() } else { typed });
        }
        if (api_version, kind) == ("v1", "Secret") && self.is_named_like_a_release() {
            return Shape::Release;
        }
        if let Some(config) =
            ConfigKind::WITH_KEYS.into_iter().find(|known| known.as_str() == kind && api_version == "v1")
        {
            return Shape::Config(config);
        }
        if (api_version, kind) == (&*DriftReport::api_version(&()), &*DriftReport::kind(&())) {
            return Shape::Report;
        }
        if (api_version, kind) == ("v1", "Namespace") {
            return Shape::Namespace;
        }
        if kind == "HorizontalPodAutoscaler" && api_version.starts_with("autoscaling/") {
            return Shape::Autoscaler;
        }
        let mut workloads = WorkloadKind::ALL.into_iter();
        match workloads.find(|known| known.as_str() == kind && known.api_version() == api_version) {
            Some(workload) => Shape::Workload(workload),
            None => Shape::Other,
        }
    }

    fn is_named_like_a_release(&self) -> bool {
        let name = self.0.metadata.as_ref().and_then(|metadata| metadata.name.as_deref());
        name.is_some_and(|name| name.starts_with(NAME_PREFIX))
    }

    /// `Kind namespace/name`, as far as it is known.
    pub(super) fn name(&self, default: ItemType<'_>) -> String {
        let (_, kind) = self.type_or(default);
        let metadata = self.0.metadata.as_ref();
        let name = metadata.and_then(|metadata| metadata.name.as_deref()).unwrap_or("without a name");
        match metadata.and_then(|metadata| metadata.namespace.as_deref()) {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        }
    }

    /// The first object without a kind: the document itself, or one of its items, counted from 1.
    pub(super) fn first_without_kind(&self) -> Option<Option<usize>> {
        match self.shape(ItemType::default()) {
            _ if self.0.kind.is_none() => Some(None),
            Shape::List(items, default) if default.kind.is_none() => {
                let nested = |item: &Header| item.first_without_kind().is_some();
                items.iter().position(nested).map(|position| Some(position + 1))
            }
            _ => None,
        }
    }

    /// Its type, or the one that its list gives it.
    pub(super) fn type_or<'a>(&'a self, default: ItemType<'a>) -> (&'a str, &'a str) {
        let api_version = self.0.api_version.as_deref().or(default.api_version);
        let kind = self.0.kind.as_deref().or(default.kind);
        (api_version.unwrap_or_default(), kind.unwrap_or_default())
    }
}
