//! The annotation `restamp.dev/ignore` of a config.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::api::annotations::IGNORE;

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
            _ => Err(UnknownIgnore { text: text.to_owned() }),
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
