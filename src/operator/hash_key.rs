//! The Secret with this installation's hash keys. It is made once, and outlives an uninstall.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use zeroize::Zeroizing;

use crate::model::digest::{HashKey, Keyring};
use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;

/// The Secret's name.
pub const SECRET: &str = "restamp-hash-key";
/// The entry that names the current key; every other entry is a key, by its id.
const CURRENT: &str = "current";

/// Why there is no hash key.
#[derive(Debug, thiserror::Error)]
pub enum HashKeyError {
    /// The Secret can't be read or made.
    #[error("cannot {verb} Secret {namespace}/{SECRET}; grant get and create on secrets in this namespace")]
    Api {
        /// What was tried.
        verb: &'static str,
        /// Our namespace.
        namespace: String,
        /// Why not.
        #[source]
        cause: ApiError,
    },
    /// Its content is not ours.
    #[error("Secret {namespace}/{SECRET} holds no usable key: {problem}; restore it, or delete it for a new one")]
    Malformed {
        /// Our namespace.
        namespace: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// There is no randomness.
    #[error("cannot get random bytes for a new hash key")]
    Random(#[source] getrandom::Error),
}

/// Reads the keys; makes the first one where there is none.
pub async fn load(client: &Client, namespace: &str) -> Result<Keyring, HashKeyError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let error = |verb| move |cause| HashKeyError::Api { verb, namespace: namespace.to_owned(), cause };
    let found = in_time(secrets.get_opt(SECRET)).await.map_err(error("get"))?;
    let secret = match found {
        Some(secret) => secret,
        None => match in_time(secrets.create(&PostParams::default(), &generate(namespace)?)).await {
            // Another replica was faster.
            Err(ApiError::Exists) => in_time(secrets.get(SECRET)).await.map_err(error("get"))?,
            made => made.map_err(error("create"))?,
        },
    };
    read(secret.data.unwrap_or_default())
        .map_err(|problem| HashKeyError::Malformed { namespace: namespace.to_owned(), problem })
}

fn generate(namespace: &str) -> Result<Secret, HashKeyError> {
    let (mut id, mut key) = ([0; 4], Zeroizing::new([0; 32]));
    getrandom::fill(&mut id).and_then(|()| getrandom::fill(&mut *key)).map_err(HashKeyError::Random)?;
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let data = [(CURRENT.to_owned(), ByteString(id.clone().into_bytes())), (id, ByteString(key.to_vec()))];
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(SECRET.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some([("app.kubernetes.io/managed-by".to_owned(), "restamp".to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some(data.into()),
        type_: Some("restamp.dev/hash-key".to_owned()),
        ..Secret::default()
    })
}

fn read(mut data: BTreeMap<String, ByteString>) -> Result<Keyring, &'static str> {
    let current = data.remove(CURRENT).ok_or("the entry `current` is missing")?;
    let current = String::from_utf8(current.0).map_err(|_| "the entry `current` is no text")?;
    let mut keys = Vec::new();
    let mut first = None;
    for (id, secret) in data {
        let secret = Zeroizing::new(secret.0);
        let secret = <[u8; 32]>::try_from(secret.as_slice()).map_err(|_| "a key is not 32 bytes long")?;
        let key = HashKey::new(&id, Zeroizing::new(secret));
        if id == current { first = Some(key) } else { keys.push(key) }
    }
    Ok(Keyring::new(first.ok_or("the key that `current` names is missing")?, keys))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn it_reads_what_it_generates() {
        let secret = generate("ns").unwrap();
        let current = String::from_utf8(secret.data.as_ref().unwrap()[CURRENT].0.clone()).unwrap();
        assert!(read(secret.data.unwrap()).unwrap().find(&current).is_some());
    }

    #[test]
    fn older_keys_stay_usable() {
        let data = [("current", b"k2".to_vec()), ("k1", vec![1; 32]), ("k2", vec![2; 32])];
        let keyring = read(data.map(|(key, value)| (key.to_owned(), ByteString(value))).into()).unwrap();
        assert!(keyring.find("k1").is_some() && keyring.find("k2").is_some() && keyring.find("k3").is_none());
    }

    #[rstest]
    #[case::nothing(&[], "the entry `current` is missing")]
    #[case::no_such_key(&[("current", "k")], "the key that `current` names is missing")]
    #[case::short(&[("current", "k"), ("k", "abc")], "a key is not 32 bytes long")]
    fn a_secret_that_is_not_ours_is_refused(#[case] data: &[(&str, &str)], #[case] problem: &str) {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        assert_eq!(read(data.collect()).unwrap_err(), problem);
    }
}
