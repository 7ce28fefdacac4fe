//! The annotation `restamp.dev/expected-keys` of a config: keys that may be there without being declared.

use std::collections::BTreeMap;

use crate::api::annotations::EXPECTED_KEYS;
use crate::model::names::KeyName;

/// Names of keys, in which `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExpectedKeys(Vec<String>);

impl ExpectedKeys {
    /// What these annotations of a config expect: patterns with commas between them.
    pub fn read(annotations: &BTreeMap<String, String>) -> Self {
        let patterns = annotations.get(EXPECTED_KEYS).into_iter().flat_map(|text| text.split(','));
        Self(patterns.map(str::trim).filter(|pattern| !pattern.is_empty()).map(str::to_owned).collect())
    }

    /// Whether this key is expected.
    pub fn has(&self, key: &KeyName) -> bool {
        self.0.iter().any(|pattern| matches(pattern, key.as_str()))
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        // The first place is as good as any: what is left of the text is longest.
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("ca.crt", true)]
    #[case("ca.crt2", false)]
    #[case("cache-", true)]
    #[case("cache-1", true)]
    #[case("my-cache-1", false)]
    #[case("a-x-b-y-c", true)]
    #[case("a--b-c", false)]
    #[case("abc", false)]
    #[case("", false)]
    fn a_star_stands_for_any_text(#[case] key: &str, #[case] expected: bool) {
        let text = "ca.crt, cache-*,, a-*-b-*-c";
        let keys = ExpectedKeys::read(&[(EXPECTED_KEYS.to_owned(), text.to_owned())].into());
        assert_eq!(keys.has(&key.into()), expected);
    }
}
