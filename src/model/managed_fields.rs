//! Who owns which key of a config, read from `metadata.managedFields`.
//!
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::model::keys::KeySet;
use crate::model::managers::FIELD_MANAGER;
use crate::model::names::{KeyName, Manager};

/// How a manager writes: its entries of the two kinds are apart in managedFields, and mean different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Operation {
    /// Server-side apply: what the manager no longer sends is pruned.
    Apply,
    /// Anything else: create, update, patch.
    Update,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        })
    }
}

/// One manager's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagerEntry {
    /// The manager's name.
    pub manager: Manager,
    /// How it wrote.
    pub operation: Operation,
    /// Its last write to any of the fields that it owns.
    pub time: Option<Timestamp>,
    /// The keys that it owns in `data`, `binaryData` or `stringData`.
    pub keys: KeySet,
}

/// A manager and when it last wrote.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LastWrite {
    /// When it did.
    pub time: Option<Timestamp>,
    /// The manager.
    pub manager: Manager,
}

impl LastWrite {
    /// Who wrote a workload last that owns something of its pod template, beside restamp. What it wrote last may be gone:
    /// whoever takes a field away, owns nothing of it.
    pub fn of_template(metadata: &ObjectMeta) -> Option<Self> {
        let writes = metadata.managed_fields.iter().flatten().filter(|entry| {
            let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
            let has_template = fields.and_then(|fields| fields.get("f:spec")?.get("f:template")).is_some();
            has_template && entry.subresource.as_deref().is_none_or(str::is_empty)
        });
        let writes = writes.filter_map(|entry| {
            let manager = entry.manager.as_deref().filter(|manager| *manager != FIELD_MANAGER)?;
            Some(Self { time: entry.time.as_ref().map(|time| time.0), manager: manager.into() })
        });
        writes.max()
    }
}

impl From<&ManagerEntry> for LastWrite {
    fn from(entry: &ManagerEntry) -> Self {
        Self { time: entry.time, manager: entry.manager.clone() }
    }
}

/// All entries of one object; `None` where the object shows none at all, as in the output of `kubectl get -o yaml`.
pub type ManagedFields = Option<Box<[ManagerEntry]>>;

/// An entry as the API writes it. Whatever does not have the documented form owns nothing.
#[derive(Debug)]
pub(crate) struct RawEntry(EntryFields);

impl<'de> Deserialize<'de> for RawEntry {
    /// serde would also take a list for the fields in their order.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Lenient(EntryVisitor)).map(Self)
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryFields {
    #[serde(default)]
    manager: Option<Manager>,
    #[serde(default)]
    operation: Option<String>,
    #[serde(default)]
    time: Option<String>,
    #[serde(default)]
    subresource: Option<String>,
    #[serde(default)]
    fields_v1: OwnedKeys,
}

impl EntryFields {
    /// The entry, unless it is malformed or about a subresource.
    fn read(self) -> Option<ManagerEntry> {
        if self.subresource.is_some_and(|subresource| !subresource.is_empty()) {
            return None;
        }
        let operation = match self.operation.as_deref() {
            Some("Apply") => Operation::Apply,
            Some("Update") => Operation::Update,
            _ => return None,
        };
        let time = self.time.and_then(|time| time.parse().ok());
        Some(ManagerEntry { manager: self.manager?, operation, time, keys: self.fields_v1.0.into() })
    }
}

/// Reads what an object shows; an empty list is none.
pub(crate) fn read(raw: Vec<RawEntry>) -> ManagedFields {
    if raw.is_empty() {
        return None;
    }
    Some(raw.into_iter().filter_map(|entry| entry.0.read()).collect())
}

/// The keys below `f:data`, `f:binaryData` and `f:stringData` of a `fieldsV1`, collected while it is deserialized.
#[derive(Debug, Default)]
struct OwnedKeys(BTreeSet<KeyName>);

impl<'de> Deserialize<'de> for OwnedKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Lenient(FieldsVisitor))
    }
}

/// The names of the fields one level down: what stands behind `f:`.
#[derive(Debug, Default)]
struct FieldNames(BTreeSet<KeyName>);

impl<'de> Deserialize<'de> for FieldNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Lenient(NamesVisitor))
    }
}

/// Reads a map, or nothing.
trait MapReader {
    type Output: Default;
    fn read<'de, A: MapAccess<'de>>(map: A) -> Result<Self::Output, A::Error>;
}

struct EntryVisitor;

impl MapReader for EntryVisitor {
    type Output = EntryFields;

    fn read<'de, A: MapAccess<'de>>(map: A) -> Result<EntryFields, A::Error> {
        EntryFields::deserialize(MapAccessDeserializer::new(map))
    }
}

struct FieldsVisitor;

impl MapReader for FieldsVisitor {
    type Output = OwnedKeys;

    fn read<'de, A: MapAccess<'de>>(mut map: A) -> Result<OwnedKeys, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(field) = map.next_key::<String>()? {
            if matches!(field.as_str(), "f:data" | "f:binaryData" | "f:stringData") {
                keys.extend(map.next_value::<FieldNames>()?.0);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(OwnedKeys(keys))
    }
}

struct NamesVisitor;

impl MapReader for NamesVisitor {
    type Output = FieldNames;

    fn read<'de, A: MapAccess<'de>>(mut map: A) -> Result<FieldNames, A::Error> {
        let mut names = BTreeSet::new();
        while let Some((field, _)) = map.next_entry::<String, IgnoredAny>()? {
            if let Some(name) = field.strip_prefix("f:") {
                names.insert(name.into());
            }
        }
        Ok(FieldNames(names))
    }
}

/// A visitor that takes any JSON, and reads something only from a map.
struct Lenient<R>(R);

impl<'de, R: MapReader> Visitor<'de> for Lenient<R> {
    type Value = R::Output;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a set of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        R::read(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(R::Output::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(R::Output::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(R::Output::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(R::Output::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(R::Output::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(R::Output::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(R::Output::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_json(entries: serde_json::Value) -> ManagedFields {
        read(serde_json::from_value(entries).unwrap())
    }

    #[test]
    fn keys_of_data_binary_data_and_string_data_are_owned() {
        let fields = read_json(json!([{
            "manager": "kubectl", "operation": "Apply", "time": "2026-11-30T12:59:07Z",
            "fieldsV1": {"f:data": {".": {}, "f:A": {}}, "f:binaryData": {"f:b": {}}, "f:stringData": {"f:C": {}},
                "f:metadata": {"f:labels": {"f:x": {}}}},
        }]));
        let entry = ManagerEntry {
            manager: "kubectl".into(),
            operation: Operation::Apply,
            time: Some("2026-11-30T12:59:07Z".parse().unwrap()),
            keys: BTreeSet::from(["A", "b", "C"].map(KeyName::from)).into(),
        };
        assert_eq!(fields, Some([entry].into()));
    }

    #[test]
    fn no_entries_are_none_at_all() {
        assert_eq!(read_json(json!([])), None);
    }

    #[test]
    fn a_malformed_entry_owns_nothing() {
        let fields = read_json(json!([
            {"manager": "a", "operation": "Update", "fieldsV1": {"f:data": ["f:A", 1, null, true, -1, 0.5, "x"]}},
            {"manager": "b", "operation": "Steal", "fieldsV1": {"f:data": {"f:A": {}}}},
            {"operation": "Update", "fieldsV1": {"f:data": {"f:A": {}}}},
            {"manager": "c", "operation": "Update", "subresource": "status", "fieldsV1": {"f:data": {"f:A": {}}}},
            {"manager": "d", "operation": "Update", "time": "yesterday", "fieldsV1": "f:data"},
            ["e", "Update"],
            "f",
        ]));
        let entry = |manager: &str| ManagerEntry {
            manager: manager.into(),
            operation: Operation::Update,
            time: None,
            keys: KeySet::default(),
        };
        assert_eq!(fields, Some([entry("a"), entry("d")].into()));
    }

    #[test]
    fn whoever_wrote_the_template_last_is_known_unless_it_is_us() {
        let entry = |manager: &str, time: &str, fields: serde_json::Value| json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields});
        let template = json!({"f:spec": {"f:template": {}}});
        let mut status = entry("status", "2026-11-30T12:00:05Z", template.clone());
        status["subresource"] = json!("status");
        let metadata = serde_json::from_value(json!({"managedFields": [
            entry("kubectl-rollout", "2026-11-30T12:00:02Z", template.clone()),
            entry("kubectl-client-side-apply", "2026-11-30T12:00:01Z", template.clone()),
            entry("kubectl-scale", "2026-11-30T12:00:03Z", json!({"f:spec": {"f:replicas": {}}})),
            entry(FIELD_MANAGER, "2026-11-30T12:00:04Z", template),
            status,
        ]}));
        let time = Some("2026-11-30T12:00:02Z".parse().unwrap());
        assert_eq!(
            LastWrite::of_template(&metadata.unwrap()),
            Some(LastWrite { manager: "kubectl-rollout".into(), time })
        );
    }
}
