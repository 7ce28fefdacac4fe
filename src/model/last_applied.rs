//! What `kubectl apply` last sent, read from the annotation that it leaves on the object.
//!
//! The annotation holds Secret values in clear: they become fingerprints while it is parsed.
//! <https://kubernetes.io/docs/tasks/manage-kubernetes-objects/declarative-config/>

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de::DeserializeOwned};

use crate::model::fingerprint::{Base64, Encoding, Fingerprint, Plain, Value};
use crate::model::keys::{self, KeyMap};
use crate::model::names::{ConfigId, KeyName, Name};

/// The annotation's name.
pub const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What the annotation says about the object that carries it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LastApplied {
    /// There is none.
    #[default]
    Absent,
    /// It does not parse, so it says nothing.
    Broken,
    /// It is about another object: controllers copy their parent's annotations onto children.
    Foreign,
    /// The keys that the manifest declared.
    Declares(KeyMap<Fingerprint>),
}

/// The annotation's content while an object is being read; `None` if it does not parse.
#[derive(Debug, Default)]
pub(crate) struct RawLastApplied<E>(Option<Manifest<E>>);

/// The part of a config's manifest that matters here; `E` is the encoding of its `data`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound = "E: Encoding")]
pub(crate) struct Manifest<E> {
    api_version: Option<String>,
    kind: Option<String>,
    metadata: Object<ManifestMetadata>,
    data: Option<BTreeMap<KeyName, Option<Value<E>>>>,
    binary_data: Option<BTreeMap<KeyName, Option<Value<Base64>>>>,
    string_data: Option<BTreeMap<KeyName, Option<Value<Plain>>>>,
}

#[derive(Debug, Deserialize)]
struct ManifestMetadata {
    name: Option<Name>,
    namespace: Option<Name>,
}

/// What is read from a JSON object alone: serde would also take a list for a struct's fields in their order.
#[derive(Debug)]
struct Object<T>(T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

impl<E: Encoding> RawLastApplied<E> {
    /// Parses the annotation's text.
    pub(crate) fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).ok().map(|Object(manifest)| manifest))
    }

    /// What it says about this object, whose keys without content these are.
    pub(crate) fn about(self, config: &ConfigId, is_empty: impl Fn(&KeyName) -> bool) -> LastApplied {
        let Some(manifest) = self.0 else {
            return LastApplied::Broken;
        };
        if !manifest.is_of(config) {
            return LastApplied::Foreign;
        }
        LastApplied::Declares(manifest.keys_where_null(is_empty))
    }
}

impl<E: Encoding> Manifest<E> {
    fn is_of(&self, config: &ConfigId) -> bool {
        self.api_version.as_deref() == Some("v1")
            && self.kind.as_deref() == Some(config.kind.as_str())
            && self.metadata.0.name.as_ref() == Some(&config.name)
            && self.metadata.0.namespace.as_ref() == Some(&config.namespace)
    }

    /// The declared keys; `stringData` wins over `data`, as the API server has it.
    ///
    /// To `kubectl apply` a null asks for removal. `kubectl create` and `replace` with `--save-config` and server-side apply
    /// send it, and the API server then makes an empty value of it: such a one is as declared.
    fn keys_where_null(self, is_empty: impl Fn(&KeyName) -> bool) -> KeyMap<Fingerprint> {
        let mut keys = BTreeMap::new();
        declare(&mut keys, self.data, &is_empty);
        declare(&mut keys, self.binary_data, &is_empty);
        declare(&mut keys, self.string_data, &is_empty);
        keys::tight(keys)
    }

    /// The same where a null is a placeholder: whoever creates an object with one, as Helm does, gets an empty value.
    pub(crate) fn keys_and_nulls(self) -> KeyMap<Fingerprint> {
        self.keys_where_null(|_| true)
    }
}

fn declare<E>(
    keys: &mut BTreeMap<KeyName, Fingerprint>,
    field: Option<BTreeMap<KeyName, Option<Value<E>>>>,
    null_is_empty: impl Fn(&KeyName) -> bool,
) {
    for (key, value) in field.into_iter().flatten() {
        match value {
            Some(value) => keys.insert(key, value.fingerprint),
            None if null_is_empty(&key) => keys.insert(key, Fingerprint::of(b"")),
            None => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::ConfigKind;
    use rstest::rstest;

    fn secret() -> ConfigId {
        ConfigId { kind: ConfigKind::Secret, namespace: "ns".into(), name: "s".into() }
    }

    fn read(text: &str) -> LastApplied {
        RawLastApplied::<Base64>::parse(text).about(&secret(), |key| key.as_str() == "EMPTY")
    }

    #[test]
    fn it_declares_the_keys_that_are_not_null_and_those_that_a_null_made_empty() {
        let text = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"ns"},
            "data":{"A":"MQ==","GONE":null,"BOTH":"MQ=="},"stringData":{"B":"2","BOTH":"3","NONE":null,"EMPTY":null}}"#;
        let declared = [("A", "1"), ("B", "2"), ("BOTH", "3"), ("EMPTY", "")];
        let keys = declared.into_iter().map(|(key, value)| (key.into(), Fingerprint::of(value.as_bytes())));
        assert_eq!(read(text), LastApplied::Declares(keys.collect()));
    }

    #[rstest]
    #[case::another_name(r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"parent","namespace":"ns"}}"#)]
    #[case::another_namespace(r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"other"}}"#)]
    #[case::no_namespace(r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}"#)]
    #[case::another_kind(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s","namespace":"ns"}}"#)]
    #[case::another_group(r#"{"apiVersion":"x/v1","kind":"Secret","metadata":{"name":"s","namespace":"ns"}}"#)]
    fn one_that_was_copied_from_another_object_is_foreign(#[case] text: &str) {
        assert_eq!(read(text), LastApplied::Foreign);
    }

    #[rstest]
    #[case::cut("{\"apiVersion\":\"v1\",\"data\":{")]
    #[case::empty("")]
    #[case::a_list("[]")]
    #[case::a_list_of_what_a_manifest_has(r#"["v1","Secret",{"name":"s","namespace":"ns"},{"A":"MQ=="},null,null]"#)]
    #[case::a_list_for_the_metadata(r#"{"apiVersion":"v1","kind":"Secret","metadata":["s","ns"],"data":{"A":"MQ=="}}"#)]
    #[case::a_number_for_a_value(
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"ns"},"data":{"A":1}}"#
    )]
    #[case::not_base64(
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"ns"},"data":{"A":"!"}}"#
    )]
    fn one_that_does_not_parse_is_broken(#[case] text: &str) {
        assert_eq!(read(text), LastApplied::Broken);
    }
}
