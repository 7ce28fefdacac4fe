//! Patterns for configs and keys, as annotations hold them: `configmap/a`, `secret/b-*`, `secret/y:KEY`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

use crate::model::names::{ConfigId, ConfigKind, KeyName, Name};

/// Configs of one kind by name, in which `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct ConfigPattern {
    /// The kind.
    pub kind: ConfigKind,
    name: WildMatch,
}

/// A config pattern, or certain keys of what it matches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct Exclusion {
    config: ConfigPattern,
    key: Option<WildMatch>,
}

impl ConfigPattern {
    /// Whether this config is meant. Annotations reach no further than their namespace, which the caller sees to.
    pub fn matches(&self, config: &ConfigId) -> bool {
        self.kind == config.kind && self.name.matches(config.name.as_str())
    }

    /// The one config that is meant, if there is no `*`.
    pub fn literal(&self, namespace: &Name) -> Option<ConfigId> {
        let name = self.name.to_string();
        let id = || ConfigId { kind: self.kind, namespace: namespace.clone(), name: name.as_str().into() };
        (!name.contains(['*', '?'])).then(id)
    }
}

impl Exclusion {
    /// Whether all of this config is meant.
    pub fn covers(&self, config: &ConfigId) -> bool {
        self.key.is_none() && self.config.matches(config)
    }

    /// Whether this key is meant.
    pub fn covers_key(&self, config: &ConfigId, key: &KeyName) -> bool {
        self.config.matches(config) && self.key.as_ref().is_none_or(|pattern| pattern.matches(key.as_str()))
    }
}

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no pattern for configs")]
pub struct NoPattern(String);

impl FromStr for ConfigPattern {
    type Err = NoPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || NoPattern(text.to_owned());
        let (kind, name) = text.split_once('/').ok_or_else(refuse)?;
        let kind = ConfigKind::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(kind));
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '*');
        if name.is_empty() || !name.chars().all(valid) {
            return Err(refuse());
        }
        Ok(Self { kind: kind.ok_or_else(refuse)?, name: WildMatch::new(name) })
    }
}

impl FromStr for Exclusion {
    type Err = NoPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (config, key) = match text.split_once(':') {
            Some((_, "")) => return Err(NoPattern(text.to_owned())),
            Some((config, key)) => (config, Some(WildMatch::new(key))),
            None => (text, None),
        };
        let config = config.parse().map_err(|_| NoPattern(text.to_owned()))?;
        Ok(Self { config, key })
    }
}

impl fmt::Display for ConfigPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.as_str().to_lowercase(), self.name)
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{}:{key}", self.config),
            None => self.config.fmt(f),
        }
    }
}

impl From<ConfigPattern> for String {
    fn from(pattern: ConfigPattern) -> Self {
        pattern.to_string()
    }
}

impl TryFrom<String> for ConfigPattern {
    type Error = NoPattern;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Exclusion> for String {
    fn from(exclusion: Exclusion) -> Self {
        exclusion.to_string()
    }
}

impl TryFrom<String> for Exclusion {
    type Error = NoPattern;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn id(kind: ConfigKind, name: &str) -> ConfigId {
        ConfigId { kind, namespace: "ns".into(), name: name.into() }
    }

    #[rstest]
    #[case("configmap/a", ConfigKind::ConfigMap, "a", true)]
    #[case("ConfigMap/a", ConfigKind::ConfigMap, "a", true)]
    #[case("configmap/a", ConfigKind::Secret, "a", false)]
    #[case("secret/b-*", ConfigKind::Secret, "b-1", true)]
    #[case("secret/b-*", ConfigKind::Secret, "a-b-1", false)]
    #[case("secret/*", ConfigKind::Secret, "anything", true)]
    fn a_star_stands_for_any_text(
        #[case] pattern: &str,
        #[case] kind: ConfigKind,
        #[case] name: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(pattern.parse::<ConfigPattern>().unwrap().matches(&id(kind, name)), expected);
    }

    #[rstest]
    #[case::no_kind("a")]
    #[case::another_kind("pod/a")]
    #[case::no_name("secret/")]
    #[case::a_space("secret/a b")]
    fn anything_else_is_no_pattern(#[case] text: &str) {
        assert_eq!(text.parse::<ConfigPattern>(), Err(NoPattern(text.to_owned())));
        assert!(text.parse::<Exclusion>().is_err());
    }

    #[test]
    fn an_exclusion_is_of_a_config_or_of_keys() {
        let secret = id(ConfigKind::Secret, "y");
        let whole: Exclusion = "secret/y".parse().unwrap();
        let one: Exclusion = "secret/y:KEY_*".parse().unwrap();
        assert!(whole.covers(&secret) && whole.covers_key(&secret, &"ANY".into()));
        assert!(
            !one.covers(&secret) && one.covers_key(&secret, &"KEY_1".into()) && !one.covers_key(&secret, &"A".into())
        );
        assert_eq!(one.to_string(), "secret/y:KEY_*");
    }

    #[test]
    fn a_pattern_without_a_star_names_one_config() {
        let literal = |text: &str| text.parse::<ConfigPattern>().unwrap().literal(&"ns".into());
        assert_eq!(literal("secret/y"), Some(id(ConfigKind::Secret, "y")));
        assert_eq!(literal("secret/y*"), None);
    }
}
