//! Regular expressions for names, as Reloader's annotations hold them.

use std::fmt;
use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};

/// A compiled expression takes this much memory at most, in bytes: who may annotate a workload decides what we compile.
const LARGEST: usize = 16 * 1024;
/// Groups stand within each other this deep at most.
const DEEPEST: u32 = 32;

/// A regular expression that a name matches as a whole. It takes time in proportion to the name's length.
#[derive(Clone)]
pub struct NameRegex {
    text: Arc<str>,
    // Shared, since a clone of a `Regex` has working memory of its own.
    whole: Arc<Regex>,
}

/// A text that is no regular expression, or one that is too large.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no regular expression for names")]
pub struct NoRegex(String);

impl NameRegex {
    /// Compiles it.
    pub fn new(text: &str) -> Result<Self, NoRegex> {
        let refuse = |_| NoRegex(text.to_owned());
        // Alone first, so that no bracket in it closes the one that we put around it.
        compile(text).map_err(refuse)?;
        let whole = compile(&format!("^(?:{text})$")).map_err(refuse)?;
        Ok(Self { text: text.into(), whole: whole.into() })
    }

    /// Whether it matches all of this name.
    pub fn matches(&self, name: &str) -> bool {
        self.whole.is_match(name.as_bytes())
    }
}

/// Names are ASCII, and so are the classes of characters in Go's expressions.
fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).unicode(false).size_limit(LARGEST).dfa_size_limit(LARGEST).nest_limit(DEEPEST).build()
}

impl PartialEq for NameRegex {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for NameRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NameRegex({:?})", self.text)
    }
}

impl fmt::Display for NameRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::time::{Duration, Instant};

    #[rstest]
    #[case::plain("app", "app", true)]
    #[case::not_a_part("app", "my-app", false)]
    #[case::not_a_beginning("app", "app-1", false)]
    #[case::any_end("app-.*", "app-1", true)]
    #[case::anchored_already("^app-.*$", "app-1", true)]
    #[case::either("app|web", "web", true)]
    #[case::either_as_a_whole("app|web", "app-1", false)]
    #[case::a_class("app-[0-9]{1,3}", "app-12", true)]
    #[case::a_word(r"\w+", "app", true)]
    #[case::a_length("[a-z0-9-]{1,63}", "app-1", true)]
    #[case::the_names_that_kubernetes_takes(
        r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
        "a.b-c",
        true
    )]
    fn it_matches_whole_names(#[case] text: &str, #[case] name: &str, #[case] expected: bool) {
        assert_eq!(NameRegex::new(text).unwrap().matches(name), expected);
    }

    #[rstest]
    #[case::a_bracket("app-(")]
    #[case::one_that_would_close_ours("a)|(?:b")]
    #[case::a_comment_over_ours("(?x)a#")]
    #[case::a_star("*-app")]
    #[case::looking_back("(?<=a)b")]
    #[case::too_large("(a{1,100}){1,100}")]
    #[case::too_deep(&format!("{}a{}", "(".repeat(1_000), ")".repeat(1_000)))]
    fn what_is_none_or_too_large_is_refused(#[case] text: &str) {
        assert_eq!(NameRegex::new(text), Err(NoRegex(text.to_owned())));
    }

    #[rstest]
    #[case("(a*)*b")]
    #[case("(a|aa)+b")]
    #[case("(.*a.{20})")]
    #[case("(.*)(.*)(.*)(.*)(.*)(.*)b")]
    fn a_hostile_one_takes_little_time(#[case] text: &str) {
        let regex = NameRegex::new(text).unwrap();
        let name = "a".repeat(253);
        let start = Instant::now();
        for _ in 0..100 {
            regex.matches(&name);
        }
        // A backtracking matcher would take years.
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    }
}
