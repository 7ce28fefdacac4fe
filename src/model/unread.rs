//! What the operator can't read at present: it publishes that, since nothing happens where it sees nothing.

use std::fmt;
use std::str::FromStr;

use crate::model::names::Name;
use crate::model::scope::Extent;
use crate::model::watched::Watched;

/// A kind that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    /// The kind, as logs and metrics call it.
    pub kind: String,
    /// Where, if only in one namespace.
    pub namespace: Option<Name>,
    /// Why.
    pub why: WhyUnread,
}

/// Why a kind can't be read. Everybody may know it, so it tells nothing that the API server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyUnread {
    /// The operator may not list or watch it.
    Forbidden,
    /// The API server does not know it.
    NotInstalled,
    /// Its watch fails for another reason.
    Failing,
}

impl WhyUnread {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Forbidden, Self::NotInstalled, Self::Failing];

    /// The reason in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::NotInstalled => "not-installed",
            Self::Failing => "failing",
        }
    }
}

impl Unread {
    /// This kind can't be read there.
    pub fn new(kind: Watched, extent: &Extent, why: WhyUnread) -> Self {
        let namespace = match extent {
            Extent::Cluster => None,
            Extent::Namespace(name) => Some(name.clone()),
        };
        Self { kind: kind.as_str().to_owned(), namespace, why }
    }

    /// Whether nothing of this kind is seen in this namespace.
    pub fn hides(&self, kind: Watched, namespace: &Name) -> bool {
        self.kind == kind.as_str() && self.namespace.as_ref().is_none_or(|only| only == namespace)
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, " in {namespace}")?;
        }
        write!(f, ": {}", self.why.as_str())
    }
}

/// A text that says of no kind that it can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoUnread;

impl FromStr for Unread {
    type Err = NoUnread;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (what, why) = text.split_once(": ").ok_or(NoUnread)?;
        let why = WhyUnread::ALL.into_iter().find(|known| known.as_str() == why).ok_or(NoUnread)?;
        let (kind, namespace) = match what.split_once(" in ") {
            Some((kind, namespace)) => (kind, Some(namespace.into())),
            None => (what, None),
        };
        Ok(Self { kind: kind.to_owned(), namespace, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::ConfigKind;
    use rstest::rstest;

    const SECRET: Watched = Watched::Config(ConfigKind::Secret);

    #[rstest]
    #[case::everywhere(Extent::Cluster, WhyUnread::Forbidden, "Secret: forbidden")]
    #[case::in_one_namespace(Extent::Namespace("a".into()), WhyUnread::Failing, "Secret in a: failing")]
    fn it_reads_what_it_writes(#[case] extent: Extent, #[case] why: WhyUnread, #[case] text: &str) {
        let unread = Unread::new(SECRET, &extent, why);
        assert_eq!((unread.to_string().as_str(), text.parse()), (text, Ok(unread)));
    }

    #[rstest]
    #[case("Secret")]
    #[case("Secret: lost")]
    fn anything_else_is_no_such_text(#[case] text: &str) {
        assert_eq!(text.parse::<Unread>(), Err(NoUnread));
    }

    #[test]
    fn a_kind_is_hidden_where_it_cannot_be_read() {
        let everywhere = Unread::new(SECRET, &Extent::Cluster, WhyUnread::Forbidden);
        let in_a = Unread::new(SECRET, &Extent::Namespace("a".into()), WhyUnread::Forbidden);
        assert!(everywhere.hides(SECRET, &"b".into()) && in_a.hides(SECRET, &"a".into()));
        assert!(!in_a.hides(SECRET, &"b".into()) && !everywhere.hides(Watched::Report, &"b".into()));
    }
}
