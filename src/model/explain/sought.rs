//! What was looked for, and what became of it: whoever asks may not be allowed to look, and a file may not have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::model::config::Configs;
use crate::model::names::ConfigId;

/// Something that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sought<T> {
    /// It is there.
    Found(T),
    /// It is not there.
    Absent,
    /// The API server knows no such kind.
    NoSuchKind,
    /// It is not known whether it is there.
    Unknown(Unknown),
}

impl<T> Sought<T> {
    /// What is made of what was found.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Sought<U> {
        self.and_then(|found| Some(make(found)))
    }

    /// What is read from what was found; it is not there if there is nothing to read.
    pub fn and_then<U>(self, read: impl FnOnce(T) -> Option<U>) -> Sought<U> {
        match self {
            Self::Found(found) => read(found).map_or(Sought::Absent, Sought::Found),
            Self::Absent => Sought::Absent,
            Self::NoSuchKind => Sought::NoSuchKind,
            Self::Unknown(unknown) => Sought::Unknown(unknown),
        }
    }
}

/// Why something is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unknown {
    /// Whoever asks may not read it.
    Forbidden,
    /// The files have no object of this kind: they may leave the kind out.
    NotInFiles,
    /// The files have a manifest of it that no API server has seen.
    OnlyManifest,
    /// It is there, and another version of restamp, or somebody else, wrote it.
    Unreadable,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forbidden => "you may not read it",
            Self::NotInFiles => "the files have no object of its kind",
            Self::Unreadable => "this version of restamp can't read it",
            Self::OnlyManifest => "the files have only a manifest of it with stringData, which no live object has",
        })
    }
}

/// The configs, and those of which it is not known whether they exist.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Those that were found.
    pub configs: Configs,
    /// Those of which nothing is known, and why.
    pub unknown: BTreeMap<ConfigId, Unknown>,
    /// Those that lack the labels which the operator looks for.
    pub unselected: BTreeSet<ConfigId>,
}
