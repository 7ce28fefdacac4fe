//! The notes: worth knowing, and not drift.

use std::fmt;

use crate::api::ignore::UnknownIgnore;
use crate::model::last_applied::ANNOTATION;

/// One note about a subject. Its text is for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The object shows no managedFields, so nobody knows who wrote what.
    OwnersHidden,
    /// The last-applied annotation is there and says nothing.
    LastAppliedBroken,
    /// An annotation of ours that asks for nothing that we know.
    UnknownIgnore(UnknownIgnore),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnersHidden => f.write_str(
                "there are no managedFields, so it is not known who left which key: use --show-managed-fields with \
                 kubectl get",
            ),
            Self::LastAppliedBroken => write!(f, "annotation {ANNOTATION} does not parse, so it declares nothing"),
            Self::UnknownIgnore(error) => error.fmt(f),
        }
    }
}
