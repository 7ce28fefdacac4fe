//! The annotation `restamp.dev/ignore` of a config.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::api::annotations::IGNORE;
use crate::api::auto_reload::LONGEST_VALUE;
use crate::api::stakater;
use crate::api::vocabulary::Vocabulary;

/// What is not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ignore {
    /// Its changes roll nothing.
    Reload,
    /// Its keys are not reported.
    Drift,
    /// Both.
    All,
}

impl Ignore {
    /// What these annotations of a config ask for, if anything.
    pub fn read(annotations: &BTreeMap<String, String>) -> Result<Option<Self>, UnknownIgnore> {
        annotations.get(IGNORE).map(|text| text.parse()).transpose()
    }

    /// Whether the changes of a config with these annotations roll nothing. Where ours is there, it alone counts.
    pub fn stops_reload(annotations: &BTreeMap<String, String>, vocabulary: Vocabulary) -> bool {
        match (Self::read(annotations), vocabulary) {
            (Ok(Some(ignore)), _) => ignore.covers_reload(),
            (Ok(None), Vocabulary::WithStakater) => stakater::is_ignored(annotations),
            (Ok(None), Vocabulary::Own) | (Err(_), _) => false,
        }
    }

    /// Whether the config's changes roll nothing.
    pub fn covers_reload(self) -> bool {
        matches!(self, Self::Reload | Self::All)
    }

    /// Whether the config's drift is not reported.
    pub fn covers_drift(self) -> bool {
        matches!(self, Self::Drift | Self::All)
    }
}

impl fmt::Display for Ignore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reload => "reload",
            Self::Drift => "drift",
            Self::All => "all",
        })
    }
}

impl FromStr for Ignore {
    type Err = UnknownIgnore;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "reload" => Ok(Self::Reload),
            "drift" => Ok(Self::Drift),
            "all" => Ok(Self::All),
            _ => Err(UnknownIgnore { text: text.chars().take(LONGEST_VALUE).collect() }),
        }
    }
}

/// A value that asks for nothing that we know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("annotation {IGNORE} is {text:?}, which is none of reload, drift and all: nothing is ignored")]
pub struct UnknownIgnore {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("reload", Ignore::Reload, false)]
    #[case("drift", Ignore::Drift, true)]
    #[case(" all", Ignore::All, true)]
    fn it_says_what_is_not_looked_at(#[case] text: &str, #[case] ignore: Ignore, #[case] drift: bool) {
        let annotations = [(IGNORE.to_owned(), text.to_owned())].into();
        assert_eq!(Ignore::read(&annotations), Ok(Some(ignore)));
        assert_eq!(ignore.covers_drift(), drift);
    }

    #[rstest]
    #[case::ours(&[(IGNORE, "reload")], Vocabulary::Own, true)]
    #[case::nothing(&[], Vocabulary::WithStakater, false)]
    #[case::reloaders(&[("reloader.stakater.com/ignore", "true")], Vocabulary::WithStakater, true)]
    #[case::reloaders_where_it_does_not_count(&[("reloader.stakater.com/ignore", "true")], Vocabulary::Own, false)]
    #[case::ours_before_reloaders(
        &[(IGNORE, "drift"), ("reloader.stakater.com/ignore", "true")], Vocabulary::WithStakater, false)]
    #[case::another_value(&[("reloader.stakater.com/ignore", "yes")], Vocabulary::WithStakater, false)]
    fn reloaders_ignore_counts_where_its_vocabulary_does(
        #[case] annotations: &[(&str, &str)],
        #[case] vocabulary: Vocabulary,
        #[case] expected: bool,
    ) {
        let annotations = annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(Ignore::stops_reload(&annotations, vocabulary), expected);
    }

    #[test]
    fn a_value_that_does_not_parse_ignores_nothing_and_says_so() {
        let annotations = [(IGNORE.to_owned(), "everything".to_owned())].into();
        let error = Ignore::read(&annotations).unwrap_err().to_string();
        assert_eq!(
            error,
            "annotation restamp.dev/ignore is \"everything\", which is none of reload, drift and all: nothing is ignored"
        );
    }
}
