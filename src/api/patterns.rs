//! Patterns for configs and keys, as annotations hold them: `configmap/a`, `secret/b-*`, `secret/y:KEY`. Reloader's
//! regular expressions are written down as `secret/~b-.*`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

use crate::api::name_regex::NameRegex;
use crate::model::names::{ConfigId, ConfigKind, KeyName, Name};

/// Configs of one kind by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct ConfigPattern {
    /// The kind.
    pub kind: ConfigKind,
    name: NamePattern,
}

/// Names.
#[derive(Debug, Clone, PartialEq)]
enum NamePattern {
    /// `*` stands for any text.
    Stars(WildMatch),
    /// As in Reloader's annotations.
    Regex(NameRegex),
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
    /// What an item of Reloader's lists means: a regular expression for names.
    pub fn of_regex(kind: ConfigKind, text: &str) -> Result<Self, NoPattern> {
        if is_plain(text) {
            return Self::of_name(kind, text);
        }
        let regex = NameRegex::new(text).map_err(|_| NoPattern(text.to_owned()))?;
        Ok(Self { kind, name: NamePattern::Regex(regex) })
    }

    /// The one config of this name.
    pub fn of_name(kind: ConfigKind, name: &str) -> Result<Self, NoPattern> {
        if name.is_empty() || !name.chars().all(|c| is_plain_char(c) || c == '.') {
            return Err(NoPattern(name.to_owned()));
        }
        Ok(Self { kind, name: NamePattern::Stars(WildMatch::new(name)) })
    }

    /// Whether this config is meant. Annotations reach no further than their namespace, which the caller sees to.
    pub fn matches(&self, config: &ConfigId) -> bool {
        self.kind == config.kind
            && match &self.name {
                NamePattern::Stars(stars) => stars.matches(config.name.as_str()),
                NamePattern::Regex(regex) => regex.matches(config.name.as_str()),
            }
    }

    /// The one config that is meant, if the pattern is a name.
    pub fn literal(&self, namespace: &Name) -> Option<ConfigId> {
        let NamePattern::Stars(name) = &self.name else { return None };
        let name = name.to_string();
        let id = || ConfigId { kind: self.kind, namespace: namespace.clone(), name: name.as_str().into() };
        (!name.contains(['*', '?'])).then(id)
    }
}

impl Exclusion {
    /// All of the config of this name.
    pub fn of_name(kind: ConfigKind, name: &str) -> Result<Self, NoPattern> {
        Ok(Self { config: ConfigPattern::of_name(kind, name)?, key: None })
    }

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
        let (kind, name) = split(text).ok_or_else(refuse)?;
        if name.is_empty() || !name.chars().all(|c| is_plain_char(c) || matches!(c, '.' | '*')) {
            return Err(refuse());
        }
        Ok(Self { kind, name: NamePattern::Stars(WildMatch::new(name)) })
    }
}

fn split(text: &str) -> Option<(ConfigKind, &str)> {
    let (kind, name) = text.split_once('/')?;
    let kind = ConfigKind::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(kind))?;
    Some((kind, name))
}

/// Whether a text means the same as a name and as a regular expression.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_plain_char)
}

fn is_plain_char(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
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
        let kind = self.kind.as_str().to_lowercase();
        match &self.name {
            NamePattern::Stars(stars) => write!(f, "{kind}/{stars}"),
            NamePattern::Regex(regex) => write!(f, "{kind}/~{regex}"),
        }
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

    /// What was written down: an annotation of ours holds no regular expression.
    fn try_from(text: String) -> Result<Self, Self::Error> {
        match split(&text).and_then(|(kind, name)| Some((kind, name.strip_prefix('~')?))) {
            Some((kind, regex)) => Self::of_regex(kind, regex),
            None => text.parse(),
        }
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
    #[case::a_regular_expression("secret/~a.*")]
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

    #[rstest]
    #[case::a_name("app", "secret/app")]
    #[case::a_dot("ca.crt", "secret/~ca.crt")]
    #[case::an_expression("app-(a|b).*", "secret/~app-(a|b).*")]
    #[case::with_a_slash("a/b", "secret/~a/b")]
    fn a_regular_expression_survives_being_written_down(#[case] text: &str, #[case] written: &str) {
        let pattern = ConfigPattern::of_regex(ConfigKind::Secret, text).unwrap();
        assert_eq!(String::from(pattern.clone()), written);
        assert_eq!(ConfigPattern::try_from(written.to_owned()), Ok(pattern));
    }

    #[test]
    fn a_pattern_without_a_star_names_one_config() {
        let literal = |text: &str| text.parse::<ConfigPattern>().unwrap().literal(&"ns".into());
        assert_eq!(literal("secret/y"), Some(id(ConfigKind::Secret, "y")));
        assert_eq!(literal("secret/y*"), None);
    }
}
