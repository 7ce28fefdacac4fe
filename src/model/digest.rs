//! Digests: what may leave the process and says that consumed values changed, and nothing about the values.
//!
//! HMAC-SHA-256 with a key of this installation: whoever reads a digest can't try passwords against it. The namespace
//! is inside, so that no tenant can use another's digests to find equal values. Every part is length-prefixed, so that
//! no two different contents run together into the same bytes.

use std::fmt;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use hmac::{Hmac, KeyInit as _, Mac as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::model::fingerprint::Fingerprint;
use crate::model::names::{ConfigId, KeyName, Uid};

const ALGORITHM: &str = "hmac-sha256";

/// The text of a digest: `algorithm:key id:hash`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The id of the key that it was made with; `None` for an algorithm that this build does not know.
    pub fn key_id(&self) -> Option<&str> {
        self.0.strip_prefix(ALGORITHM)?.strip_prefix(':')?.split_once(':').map(|(id, _)| id)
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A digest that somebody wrote down.
    pub fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The digest of a single key, short: it tells which of a config's keys changed. 72 bits of a keyed hash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct KeyDigest(String);

/// Tells one change of a config from all others: a short digest of all that it holds since. 72 bits of a keyed hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ChangeId(String);

impl ChangeId {
    /// One that somebody wrote down.
    pub fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A secret key for digests.
pub struct HashKey {
    id: String,
    secret: Zeroizing<[u8; 32]>,
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HashKey({})", self.id)
    }
}

/// The keys of this installation: digests are made with the current one, older ones still compare.
#[derive(Debug)]
pub struct Keyring {
    current: HashKey,
    older: Vec<HashKey>,
}

impl Keyring {
    /// A ring of one key or more.
    pub fn new(current: HashKey, older: Vec<HashKey>) -> Self {
        Self { current, older }
    }

    /// The key that digests are made with.
    pub fn current(&self) -> &HashKey {
        &self.current
    }

    /// The key of this id, if it is still there.
    pub fn find(&self, id: &str) -> Option<&HashKey> {
        std::iter::once(&self.current).chain(&self.older).find(|key| key.id == id)
    }
}

impl HashKey {
    /// A key with an id that is no secret.
    pub fn new(id: &str, secret: Zeroizing<[u8; 32]>) -> Self {
        Self { id: id.to_owned(), secret }
    }

    /// The digest of consumed keys of one config; `None` stands for a key that is not there.
    pub fn digest_config<'a>(
        &self,
        config: &ConfigId,
        keys: impl Iterator<Item = (&'a KeyName, &'a Option<Fingerprint>)>,
    ) -> Digest {
        let mut hash = self.start("config", config);
        for (key, value) in keys {
            part(&mut hash, key.as_str().as_bytes());
            value_part(&mut hash, value.as_ref());
        }
        self.finish(hash)
    }

    /// The digest of one key of a config.
    pub fn digest_key(&self, config: &ConfigId, key: &KeyName, value: Option<&Fingerprint>) -> KeyDigest {
        let mut hash = self.start("key", config);
        part(&mut hash, key.as_str().as_bytes());
        value_part(&mut hash, value);
        KeyDigest(short(hash))
    }

    /// The id of the change that made a config hold this, or be gone.
    pub fn change_id<'a>(
        &self,
        config: &ConfigId,
        keys: Option<impl Iterator<Item = (&'a KeyName, &'a Fingerprint)>>,
    ) -> ChangeId {
        let mut hash = self.start("change", config);
        part(&mut hash, if keys.is_some() { b"there" } else { b"gone" });
        for (key, value) in keys.into_iter().flatten() {
            part(&mut hash, key.as_str().as_bytes());
            value_part(&mut hash, Some(value));
        }
        ChangeId(short(hash))
    }

    /// The id of a change of a config that has versions, and no content.
    pub fn change_of_version(&self, config: &ConfigId, version: u64) -> ChangeId {
        let mut hash = self.start("version", config);
        part(&mut hash, &version.to_be_bytes());
        ChangeId(short(hash))
    }

    /// The digest of all that a workload consumes; `None` stands for a config that is not there.
    pub fn digest_state<'a>(
        &self,
        workload: &Uid,
        configs: impl Iterator<Item = (&'a ConfigId, Option<Digest>)>,
    ) -> Digest {
        let mut hash = self.mac();
        part(&mut hash, b"state");
        part(&mut hash, workload.as_str().as_bytes());
        for (config, digest) in configs {
            part(&mut hash, config.kind.as_str().as_bytes());
            part(&mut hash, config.namespace.as_str().as_bytes());
            part(&mut hash, config.name.as_str().as_bytes());
            part(&mut hash, digest.map_or(Vec::new(), |digest| digest.0.into_bytes()).as_slice());
        }
        self.finish(hash)
    }

    /// The digest of some text that was written down where others may write too.
    pub fn seal(&self, parts: &[&str]) -> Digest {
        let mut hash = self.mac();
        part(&mut hash, b"seal");
        for text in parts {
            part(&mut hash, text.as_bytes());
        }
        self.finish(hash)
    }

    fn start(&self, what: &str, config: &ConfigId) -> Hmac<Sha256> {
        let mut hash = self.mac();
        part(&mut hash, what.as_bytes());
        part(&mut hash, config.namespace.as_str().as_bytes());
        part(&mut hash, config.kind.as_str().as_bytes());
        part(&mut hash, config.name.as_str().as_bytes());
        hash
    }

    fn mac(&self) -> Hmac<Sha256> {
        // A key of one block length at most is used as it is, padded with zeros (RFC 2104).
        let mut block = Zeroizing::new([0; 64]);
        for (to, from) in block.iter_mut().zip(self.secret.iter()) {
            *to = *from;
        }
        Hmac::new((&*block).into())
    }

    fn finish(&self, hash: Hmac<Sha256>) -> Digest {
        let hash = BASE64_URL_SAFE_NO_PAD.encode(hash.finalize().into_bytes());
        Digest(format!("{ALGORITHM}:{}:{hash}", self.id))
    }
}

/// The beginning of a hash, as text: 72 bits.
fn short(hash: Hmac<Sha256>) -> String {
    let bytes = hash.finalize().into_bytes();
    BASE64_URL_SAFE_NO_PAD.encode(bytes.get(..9).unwrap_or(&bytes))
}

fn part(hash: &mut Hmac<Sha256>, bytes: &[u8]) {
    hash.update(&(bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn value_part(hash: &mut Hmac<Sha256>, value: Option<&Fingerprint>) {
    match value {
        Some(value) => part(hash, value.as_bytes()),
        None => part(hash, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::ConfigKind;

    fn key(id: &str) -> HashKey {
        HashKey::new(id, Zeroizing::new([7; 32]))
    }

    fn config(namespace: &str) -> ConfigId {
        ConfigId { kind: ConfigKind::Secret, namespace: namespace.into(), name: "s".into() }
    }

    fn digest(key: &HashKey, config: &ConfigId, values: &[(&str, Option<&str>)]) -> Digest {
        let values: Vec<(KeyName, Option<Fingerprint>)> = values
            .iter()
            .map(|(key, value)| ((*key).into(), value.map(|value| Fingerprint::of(value.as_bytes()))))
            .collect();
        key.digest_config(config, values.iter().map(|(key, value)| (key, value)))
    }

    #[test]
    fn it_names_its_algorithm_and_key() {
        let digest = digest(&key("k1"), &config("ns"), &[("A", Some("1"))]);
        assert!(digest.as_str().starts_with("hmac-sha256:k1:"), "{digest}");
        assert_eq!(digest.key_id(), Some("k1"));
        assert_eq!(Digest::from_text("md5:k1:abc").key_id(), None);
    }

    #[test]
    fn namespace_key_value_and_absence_all_count() {
        let base = digest(&key("k1"), &config("ns"), &[("A", Some("1"))]);
        assert_eq!(base, digest(&key("k1"), &config("ns"), &[("A", Some("1"))]));
        for other in [
            digest(&key("k1"), &config("other"), &[("A", Some("1"))]),
            digest(&key("k1"), &config("ns"), &[("A", Some("2"))]),
            digest(&key("k1"), &config("ns"), &[("B", Some("1"))]),
            digest(&key("k1"), &config("ns"), &[("A", None)]),
            digest(&key("k1"), &config("ns"), &[("A", Some("1")), ("B", None)]),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn it_is_hmac_sha_256_over_length_prefixed_parts() {
        // Computed with Python's hmac over the same parts.
        let digest = key("k1").digest_config(&config("ns"), std::iter::empty());
        assert_eq!(digest.as_str(), "hmac-sha256:k1:Fu_rsKzAFLsU35rhYga3RNOmvka-eY6rrZGd4_vTeOk");
    }

    #[test]
    fn the_debug_of_a_key_shows_its_id_alone() {
        assert_eq!(format!("{:?}", key("k1")), "HashKey(k1)");
    }
}
