//! The notes: worth knowing, and not drift.

use std::fmt;

use crate::api::ignore::UnknownIgnore;
use crate::model::last_applied::ANNOTATION;
use crate::model::names::{ImageText, Name};

/// One note about a subject. Its text is for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The object shows no managedFields, so nobody knows who wrote what.
    OwnersHidden,
    /// The last-applied annotation is there and says nothing.
    LastAppliedBroken,
    /// An annotation of ours that asks for nothing that we know.
    UnknownIgnore(UnknownIgnore),
    /// An image of which two starts may get two.
    MutableTag {
        /// The container.
        container: Name,
        /// The image that it asks for.
        image: ImageText,
    },
    /// Different digests of one image run on nodes that may have reasons of their own for that.
    DigestsApart {
        /// The container.
        container: Name,
        /// The image that it asks for.
        image: ImageText,
    },
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
            Self::MutableTag { container, image } => write!(
                f,
                "container {container} asks for {image}, which may be another image at each start: name a version, or \
                 pin a digest"
            ),
            Self::DigestsApart { container, image } => write!(
                f,
                "container {container} runs {image} by different digests on different nodes: another image, or the same \
                 for another architecture or runtime; compare the nodes, or pin a digest"
            ),
        }
    }
}
