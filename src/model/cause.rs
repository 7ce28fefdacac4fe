//! Why a workload rolls: which keys of which configs changed. Names only, never a value.

use std::collections::BTreeSet;
use std::fmt;

use crate::model::names::{ConfigName, KeyName};
use crate::model::record::Record;

/// The open changes of a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cause(Vec<(ConfigName, BTreeSet<KeyName>)>);

/// A sentence names at most this many keys of a config.
const MOST_KEYS: usize = 5;

impl Cause {
    /// What is open in this record.
    pub fn of(record: &Record) -> Self {
        let open = record.open_entries();
        Self(open.map(|(entry, change)| (entry.config.clone(), change.keys.clone())).collect())
    }

    /// The change of one config.
    pub fn of_config(config: ConfigName, keys: BTreeSet<KeyName>) -> Self {
        Self(vec![(config, keys)])
    }

    /// For a log's field: `Secret/build-service-secrets[LOG_LEVEL]`.
    pub fn as_field(&self) -> String {
        let parts = self.0.iter().map(|(config, keys)| match shortened(keys) {
            Some(keys) => format!("{config}[{keys}]"),
            None => config.to_string(),
        });
        parts.collect::<Vec<_>>().join(" ")
    }
}

/// For a person: `key LOG_LEVEL of Secret build-service-secrets changed`.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.iter().map(|(ConfigName { kind, name }, keys)| match (shortened(keys), keys.len()) {
            (None, _) => format!("{kind} {name}"),
            (Some(key), 1) => format!("key {key} of {kind} {name}"),
            (Some(keys), _) => format!("keys {keys} of {kind} {name}"),
        });
        write!(f, "{} changed", parts.collect::<Vec<_>>().join(", "))
    }
}

fn shortened(keys: &BTreeSet<KeyName>) -> Option<String> {
    let named: Vec<&str> = keys.iter().take(MOST_KEYS).map(KeyName::as_str).collect();
    match keys.len().checked_sub(MOST_KEYS) {
        _ if keys.is_empty() => None,
        Some(more) if more > 0 => Some(format!("{} and {more} more", named.join(", "))),
        _ => Some(named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::no_names(&[], "Secret s changed", "Secret/s")]
    #[case::one(&["A"], "key A of Secret s changed", "Secret/s[A]")]
    #[case::two(&["A", "B"], "keys A, B of Secret s changed", "Secret/s[A, B]")]
    #[case::many(&["A", "B", "C", "D", "E", "F"], "keys A, B, C, D, E and 1 more of Secret s changed", "Secret/s[A, B, C, D, E and 1 more]")]
    fn it_names_configs_and_keys(#[case] keys: &[&str], #[case] sentence: &str, #[case] field: &str) {
        let config = "Secret/s".to_owned().try_into().unwrap();
        let cause = Cause::of_config(config, keys.iter().map(|key| KeyName::from(*key)).collect());
        assert_eq!((cause.to_string().as_str(), cause.as_field().as_str()), (sentence, field));
    }
}
