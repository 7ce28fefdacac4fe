//! The manifest of a release: the objects that it declares, as far as the rules need them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::model::documents::{self, Part};
use crate::model::fields;
use crate::model::fingerprint::{Base64, Encoding, Fingerprint, Plain};
use crate::model::keys::KeyMap;
use crate::model::last_applied::Manifest;
use crate::model::names::{ConfigId, ConfigKind, Name, WorkloadId, WorkloadKind};

/// The declared keys of one config.
pub type Keys = KeyMap<Fingerprint>;
/// The declared spec of one workload.
pub type Spec = Map<String, Value>;

/// What a release declares.
#[derive(Clone, PartialEq, Default)]
pub struct ReleaseManifest {
    configs: BTreeMap<ConfigId, Keys>,
    workloads: BTreeMap<WorkloadId, Spec>,
}

impl fmt::Debug for ReleaseManifest {
    /// The names alone: a spec may hold what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReleaseManifest")
            .field("configs", &self.configs.keys())
            .field("workloads", &self.workloads.keys())
            .finish()
    }
}

/// What a document is about.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    api_version: String,
    kind: String,
    metadata: HeaderMetadata,
}

#[derive(Deserialize)]
struct HeaderMetadata {
    name: Name,
    namespace: Option<Name>,
}

impl ReleaseManifest {
    /// Reads a manifest of this namespace's release. An object that does not have the form of its kind is left out: of
    /// that one nothing is claimed.
    pub fn parse(text: &str, namespace: &Name) -> Self {
        let mut manifest = Self::default();
        for part in documents::split(text) {
            let read = read::<Header>(part);
            let Some(Header { api_version, kind, metadata: HeaderMetadata { name, namespace: own } }) = read else {
                continue;
            };
            let namespace = own.filter(|own| !own.as_str().is_empty()).unwrap_or_else(|| namespace.clone());
            manifest.take(part, (&api_version, &kind), namespace, name);
        }
        manifest
    }

    fn take(&mut self, part: Part<'_>, (api_version, kind): (&str, &str), namespace: Name, name: Name) {
        let workloads = WorkloadKind::ALL.into_iter();
        let mut workloads = workloads.filter(|known| known.as_str() == kind && known.api_version() == api_version);
        let id = |kind| ConfigId { kind, namespace: namespace.clone(), name: name.clone() };
        match (api_version, kind) {
            ("v1", "ConfigMap") => self.take_config::<Plain>(part, id(ConfigKind::ConfigMap)),
            ("v1", "Secret") => self.take_config::<Base64>(part, id(ConfigKind::Secret)),
            _ => {
                let Some(kind) = workloads.next() else { return };
                let spec = read::<Value>(part).and_then(|object| fields::declared_spec(kind, object));
                let id = WorkloadId { kind, namespace, name };
                self.workloads.extend(spec.map(|spec| (id, spec)));
            }
        }
    }

    fn take_config<E: Encoding>(&mut self, part: Part<'_>, id: ConfigId) {
        self.configs.extend(read::<Manifest<E>>(part).map(|manifest| (id, manifest.keys_and_nulls())));
    }

    /// The declared keys of this config, if it is declared.
    pub fn keys_of(&self, config: &ConfigId) -> Option<&Keys> {
        self.configs.get(config)
    }

    /// The declared keys of every config, and nothing else.
    pub fn into_keys(self) -> BTreeMap<ConfigId, Keys> {
        self.configs
    }

    /// The declared spec of this workload, if it is declared.
    pub fn spec_of(&self, workload: &WorkloadId) -> Option<&Spec> {
        self.workloads.get(workload)
    }
}

/// Reads a document as Helm does, whose YAML is of version 1.1: `0644` is a number to the base of eight.
fn read<T: DeserializeOwned>(part: Part<'_>) -> Option<T> {
    let mut options = documents::yaml_options();
    options.legacy_octal_numbers = true;
    serde_saphyr::from_str_with_options(part.text, options).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    const MANIFEST: &str = r#"---
# Source: web/templates/secret.yaml
apiVersion: v1
kind: Secret
metadata:
  name: s
stringData:
  A: "1"
  NUMBER: 1e3
data:
  B: Mg==
  NONE:
---
# Source: web/templates/config.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  namespace: other
data:
  text: |
    a
     ---
    b
binaryData:
  bin: AAE=
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: w}
spec:
  selector: {}
  template:
    spec:
      containers: [{name: app, image: "a:1"}]
      volumes: [{name: v, secret: {secretName: s, defaultMode: 0400}}]
---
apiVersion: v1
kind: Service
metadata: {name: w}
"#;

    fn id(kind: ConfigKind, namespace: &str, name: &str) -> ConfigId {
        ConfigId { kind, namespace: namespace.into(), name: name.into() }
    }

    fn keys(keys: &[(&str, &[u8])]) -> Keys {
        keys.iter().map(|(key, value)| ((*key).into(), Fingerprint::of(value))).collect()
    }

    #[test]
    fn it_declares_keys_and_specs_of_objects_by_their_names() {
        let manifest = ReleaseManifest::parse(MANIFEST, &"ns".into());
        let secret = keys(&[("A", b"1"), ("B", b"2"), ("NONE", b""), ("NUMBER", b"1e3")]);
        assert_eq!(manifest.keys_of(&id(ConfigKind::Secret, "ns", "s")), Some(&secret));
        let config = keys(&[("text", b"a\n ---\nb\n"), ("bin", &[0, 1])]);
        assert_eq!(manifest.keys_of(&id(ConfigKind::ConfigMap, "other", "c")), Some(&config));
        assert_eq!(manifest.keys_of(&id(ConfigKind::ConfigMap, "ns", "c")), None);
        let workload = WorkloadId { kind: WorkloadKind::Deployment, namespace: "ns".into(), name: "w".into() };
        let spec = Value::from(manifest.spec_of(&workload).unwrap().clone());
        assert_eq!(spec.pointer("/template/spec/volumes/0/secret/defaultMode"), Some(&json!(0o400)));
        assert_eq!((manifest.configs.len(), manifest.workloads.len()), (2, 1));
    }

    #[rstest]
    #[case::no_yaml("kind: [")]
    #[case::a_list("- a\n- b\n")]
    #[case::no_name("apiVersion: v1\nkind: Secret\nmetadata: {}\n")]
    #[case::a_value_that_is_no_text("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {A: [1]}\n")]
    #[case::not_base64("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {A: '!'}\n")]
    #[case::a_spec_of_another_form(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {replicas: many}\n"
    )]
    #[case::a_type_helm_would_not_know("apiVersion: v2\nkind: Secret\nmetadata: {name: s}\n")]
    fn what_is_malformed_declares_nothing(#[case] text: &str) {
        assert_eq!(ReleaseManifest::parse(text, &"ns".into()), ReleaseManifest::default());
    }

    #[test]
    fn one_malformed_object_does_not_hide_the_next() {
        let text = format!("kind: [\n{MANIFEST}");
        assert_eq!(ReleaseManifest::parse(&text, &"ns".into()), ReleaseManifest::parse(MANIFEST, &"ns".into()));
    }

    #[test]
    fn its_debug_shows_names_alone() {
        let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {selector: {}, template: {spec: \
                    {containers: [{name: app, args: [hunter2]}]}}}\n";
        let debug = format!("{:?}", ReleaseManifest::parse(text, &"ns".into()));
        assert!(debug.contains("\"w\"") && !debug.contains("hunter2"), "{debug}");
    }
}
