//! A value's fingerprint: what stays in memory of a config's value. It says whether two values are equal, and no more.
//!
//! A fingerprint is never written anywhere: it has no `Serialize`, and its `Debug` shows nothing. What leaves the
//! process is a [`crate::model::digest::Digest`], made of fingerprints with a secret key.

use std::fmt;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// SHA-256 of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of these bytes.
    pub fn of(value: &[u8]) -> Self {
        Self(Sha256::digest(value).into())
    }

    /// Whether the value is empty: a placeholder that somebody else fills in.
    pub fn is_of_nothing(&self) -> bool {
        *self == Self::of(b"")
    }

    /// The bytes, for a keyed hash to go over.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(…)")
    }
}

/// How a field of the API holds its values.
pub trait Encoding {
    /// The fingerprint of a value that is written like this; `None` if it is malformed.
    fn fingerprint(text: &str) -> Option<Fingerprint>;
}

/// As text: `data` of a ConfigMap, `stringData` of a Secret.
#[derive(Debug, Clone, Copy)]
pub enum Plain {}

/// In base64: `data` of a Secret, `binaryData` of a ConfigMap.
#[derive(Debug, Clone, Copy)]
pub enum Base64 {}

impl Encoding for Plain {
    fn fingerprint(text: &str) -> Option<Fingerprint> {
        Some(Fingerprint::of(text.as_bytes()))
    }
}

impl Encoding for Base64 {
    fn fingerprint(text: &str) -> Option<Fingerprint> {
        let value = Zeroizing::new(BASE64_STANDARD.decode(text).ok()?);
        Some(Fingerprint::of(&value))
    }
}

/// A value that becomes its fingerprint while it is deserialized. No error of it quotes the value.
#[derive(Debug)]
pub struct Value<E> {
    /// What is kept.
    pub fingerprint: Fingerprint,
    encoding: std::marker::PhantomData<E>,
}

/// A value is no text at all.
pub(crate) const NO_TEXT: &str = "a value is not text";
/// A value is not encoded as its field has it.
pub(crate) const NOT_BASE64: &str = "a value is not in base64";

impl<'de, E: Encoding> Deserialize<'de> for Value<E> {
    /// Asks for text, so that YAML gives the digits of a plain `1e3` as they stand.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = deserializer.deserialize_str(ValueVisitor::<E>(std::marker::PhantomData));
        // The deserializer's own messages quote the value.
        let fingerprint = read.map_err(|_| de::Error::custom(NO_TEXT))?;
        let fingerprint = fingerprint.ok_or_else(|| de::Error::custom(NOT_BASE64))?;
        Ok(Self { fingerprint, encoding: std::marker::PhantomData })
    }
}

struct ValueVisitor<E>(std::marker::PhantomData<E>);

impl<E: Encoding> Visitor<'_> for ValueVisitor<E> {
    type Value = Option<Fingerprint>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value as the API writes it")
    }

    fn visit_str<F: de::Error>(self, text: &str) -> Result<Self::Value, F> {
        Ok(E::fingerprint(text))
    }

    fn visit_string<F: de::Error>(self, text: String) -> Result<Self::Value, F> {
        self.visit_str(&Zeroizing::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_same_in_every_encoding() {
        let plain: Value<Plain> = serde_json::from_str("\"hunter2\"").unwrap();
        let base64: Value<Base64> = serde_json::from_str("\"aHVudGVyMg==\"").unwrap();
        assert_eq!(plain.fingerprint, base64.fingerprint);
    }

    #[test]
    fn no_error_quotes_a_value() {
        for malformed in ["\"hunter2!\"", "4711", "-4711", "47.11", "true", "[\"hunter2\"]", "{\"hunter2\":1}"] {
            let error = serde_json::from_str::<Value<Base64>>(malformed).unwrap_err().to_string();
            assert!(!error.contains("hunter2") && !error.contains("47") && !error.contains("true"), "{error}");
        }
    }

    #[test]
    fn its_debug_shows_nothing() {
        assert_eq!(format!("{:?}", Fingerprint::of(b"hunter2")), "Fingerprint(…)");
    }
}
