//! The Secret in which Helm keeps one revision of a release: `data.release` is JSON, compressed, in base64 twice.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::read::GzDecoder;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

use super::{Release, ReleaseId, ReleaseManifest};
use crate::model::names::Name;

/// The type of such a Secret.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";
/// What the names of all of them begin with.
pub const NAME_PREFIX: &str = "sh.helm.release.v1.";

/// A release may be so large: its chart is in it, and a Secret of 1 MiB that was made to do harm could become 1 GiB.
const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// And a manifest so large, which is ten times what a cluster takes of most.
const MOST_TEXT: usize = 8 * 1024 * 1024;

/// A Secret of this type, read straight into what its release declares.
#[derive(Debug, Clone, kube::Resource, Deserialize)]
#[resource(inherit = k8s_openapi::api::core::v1::Secret)]
#[serde(from = "Raw")]
pub struct ReleaseSecret {
    metadata: ObjectMeta,
    release: Release,
    is_one: bool,
}

#[derive(Deserialize)]
struct Raw {
    metadata: ObjectMeta,
    r#type: Option<String>,
    data: Option<RawData>,
}

#[derive(Deserialize)]
struct RawData {
    #[serde(default, deserialize_with = "text")]
    release: Zeroizing<String>,
}

/// A text that does not stay in memory.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Zeroizing<String>, D::Error> {
    String::deserialize(deserializer).map(Zeroizing::new)
}

impl From<Raw> for ReleaseSecret {
    fn from(Raw { metadata, r#type, data }: Raw) -> Self {
        let is_one = r#type.as_deref() == Some(SECRET_TYPE);
        let deployed = Revision::of(&metadata).is_some_and(|revision| revision.is_deployed);
        let text = data.filter(|_| is_one && deployed).and_then(|data| decode(&data.release));
        let namespace: Name = metadata.namespace.as_deref().unwrap_or("default").into();
        let manifest = text.map(|text| ReleaseManifest::parse(&text, &namespace));
        Self { release: manifest.map_or(Release::Silent, Release::Deployed), metadata, is_one }
    }
}

impl ReleaseSecret {
    /// Which release, which revision of it, and what it says; `None` for a Secret of another type.
    pub fn read(self) -> Option<(ReleaseId, u64, Release)> {
        let revision = Revision::of(&self.metadata).filter(|_| self.is_one)?;
        Some((revision.id, revision.number, self.release))
    }
}

/// One revision, by the labels that Helm goes by itself.
struct Revision {
    id: ReleaseId,
    number: u64,
    is_deployed: bool,
}

impl Revision {
    fn of(metadata: &ObjectMeta) -> Option<Self> {
        let none = BTreeMap::new();
        let labels = metadata.labels.as_ref().unwrap_or(&none);
        labels.get("owner").filter(|owner| *owner == "helm")?;
        let namespace = metadata.namespace.as_deref().unwrap_or("default").into();
        let id = ReleaseId { namespace, name: labels.get("name")?.as_str().into() };
        let is_deployed = labels.get("status").is_some_and(|status| status == "deployed");
        Some(Self { id, number: labels.get("version")?.parse().ok()?, is_deployed })
    }
}

/// The release of which a Secret with this metadata keeps a revision.
pub fn release_of(metadata: &ObjectMeta) -> Option<ReleaseId> {
    Revision::of(metadata).map(|revision| revision.id)
}

/// The labels of all revisions of a release, as a selector.
pub fn labels_of(release: &ReleaseId) -> String {
    format!("owner=helm,name={}", release.name)
}

/// The name of the Secret with the newest revision among these, if that one is deployed.
pub fn latest(secrets: &[ObjectMeta]) -> Option<&str> {
    let revisions = secrets.iter().filter_map(|metadata| Some((Revision::of(metadata)?, metadata)));
    let (newest, metadata) = revisions.max_by_key(|(revision, _)| revision.number)?;
    metadata.name.as_deref().filter(|_| newest.is_deployed)
}

/// The part of a release that matters here. Chart and values are passed over while they are read.
#[derive(Deserialize)]
struct Content {
    #[serde(deserialize_with = "text")]
    manifest: Zeroizing<String>,
}

/// The manifest in `data.release`, as the API server writes it.
fn decode(text: &str) -> Option<Zeroizing<String>> {
    let inner = Zeroizing::new(BASE64_STANDARD.decode(text).ok()?);
    let packed = Zeroizing::new(BASE64_STANDARD.decode(inner.as_slice()).ok()?);
    // Helm wrote releases without compression once, and reads them still.
    let is_packed = packed.starts_with(&[0x1f, 0x8b, 0x08]);
    let content: Content = if is_packed {
        let unpacked = GzDecoder::new(packed.as_slice()).take(MOST_BYTES);
        serde_json::from_reader(BufReader::new(unpacked)).ok()?
    } else {
        serde_json::from_slice(&packed).ok()?
    };
    (content.manifest.len() <= MOST_TEXT).then_some(content.manifest)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::names::{ConfigId, ConfigKind};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::{Value, json};
    use std::io::Write as _;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn twice(bytes: &[u8]) -> String {
        BASE64_STANDARD.encode(BASE64_STANDARD.encode(bytes))
    }

    fn content(manifest: &str) -> Vec<u8> {
        json!({"name": "r", "chart": {"templates": [{"data": "x"}]}, "manifest": manifest, "version": 1})
            .to_string()
            .into()
    }

    fn secret(release: &str, status: &str, r#type: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "type": r#type, "data": {"release": release}, "metadata": {
            "name": "sh.helm.release.v1.r.v7", "namespace": "ns",
            "labels": {"owner": "helm", "name": "r", "version": "7", "status": status}}})
    }

    fn read(secret: Value) -> Option<(ReleaseId, u64, Release)> {
        serde_json::from_value::<ReleaseSecret>(secret).unwrap().read()
    }

    const MANIFEST: &str = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  A: hunter2\n";

    #[rstest]
    #[case::packed(twice(&gzip(&content(MANIFEST))))]
    #[case::of_an_old_helm(twice(&content(MANIFEST)))]
    fn a_deployed_release_declares_its_manifest(#[case] release: String) {
        let (id, revision, release) = read(secret(&release, "deployed", SECRET_TYPE)).unwrap();
        assert_eq!((id.to_string().as_str(), revision), ("ns/r", 7));
        let Release::Deployed(manifest) = release else { panic!("it is silent") };
        let config = ConfigId { kind: ConfigKind::ConfigMap, namespace: "ns".into(), name: "c".into() };
        assert_eq!(manifest.keys_of(&config).map(|keys| keys.len()), Some(1));
    }

    #[rstest]
    #[case::of_another_status(twice(&gzip(&content(MANIFEST))), "pending-upgrade")]
    #[case::failed(twice(&gzip(&content(MANIFEST))), "failed")]
    #[case::empty(String::new(), "deployed")]
    #[case::base64_once(BASE64_STANDARD.encode(gzip(&content(MANIFEST))), "deployed")]
    #[case::cut(twice(gzip(&content(MANIFEST)).split_at(40).0), "deployed")]
    #[case::no_manifest(twice(&gzip(b"{}")), "deployed")]
    #[case::a_bomb(twice(&gzip(&[b' '; 33 * 1024 * 1024])), "deployed")]
    #[case::a_manifest_like_a_bomb(twice(&gzip(&content(&"#".repeat(9 * 1024 * 1024)))), "deployed")]
    fn any_other_is_silent(#[case] release: String, #[case] status: &str) {
        let silent = Some((ReleaseId { namespace: "ns".into(), name: "r".into() }, 7, Release::Silent));
        assert_eq!(read(secret(&release, status, SECRET_TYPE)), silent);
    }

    #[test]
    fn a_secret_of_another_type_is_no_release() {
        assert_eq!(read(secret(&twice(&gzip(&content(MANIFEST))), "deployed", "Opaque")), None);
    }

    #[test]
    fn nothing_of_a_value_shows_in_debug() {
        let secret = secret(&twice(&gzip(&content(MANIFEST))), "deployed", SECRET_TYPE);
        let debug = format!("{:?}", serde_json::from_value::<ReleaseSecret>(secret).unwrap());
        assert!(!debug.contains("hunter2"), "{debug}");
    }

    fn revision(number: &str, status: &str) -> ObjectMeta {
        let labels = json!({"owner": "helm", "name": "r", "version": number, "status": status});
        serde_json::from_value(json!({"name": format!("v{number}"), "labels": labels})).unwrap()
    }

    #[rstest]
    #[case::none(&[], None)]
    #[case::numbers_count_as_numbers(&[("9", "superseded"), ("10", "deployed")], Some("v10"))]
    #[case::an_upgrade_in_progress(&[("1", "deployed"), ("2", "pending-upgrade")], None)]
    #[case::a_failed_upgrade(&[("1", "deployed"), ("2", "failed")], None)]
    #[case::rolled_back(&[("1", "superseded"), ("2", "failed"), ("3", "deployed")], Some("v3"))]
    #[case::no_number(&[("x", "deployed")], None)]
    fn the_newest_revision_counts_if_it_is_deployed(#[case] all: &[(&str, &str)], #[case] expected: Option<&str>) {
        let all: Vec<_> = all.iter().map(|(number, status)| revision(number, status)).collect();
        assert_eq!(latest(&all), expected);
    }

    proptest! {
        #[test]
        fn a_release_of_any_bytes_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let releases = [twice(&bytes), twice(&gzip(&bytes)), BASE64_STANDARD.encode(&bytes)];
            for release in releases {
                let (_, _, release) = read(secret(&release, "deployed", SECRET_TYPE)).unwrap();
                prop_assert_eq!(release, Release::Silent);
            }
        }

        #[test]
        fn a_manifest_of_any_text_is_read_without_a_panic(manifest in "(?s).{0,400}") {
            let release = twice(&gzip(&content(&manifest)));
            prop_assert!(read(secret(&release, "deployed", SECRET_TYPE)).is_some());
        }
    }
}
