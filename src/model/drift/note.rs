//! The notes: worth knowing, and not drift.

use std::fmt;

use super::Writer;
use crate::api::auto_reload::InvalidAnnotation;
use crate::api::ignore::UnknownIgnore;
use crate::model::fields::Shown;
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
    /// An annotation of ours of which not all parses.
    InvalidAnnotation(InvalidAnnotation),
    /// A controller set another number of pods than the manifest declares.
    ScaledByController {
        /// Both numbers.
        shown: Option<Shown>,
        /// Who set it.
        by: Writer,
    },
    /// The manifest declares a number of pods that a HorizontalPodAutoscaler sets.
    Autoscaled(Name),
    /// More than one hand or applier writes the same fields.
    SharedFields {
        /// The first of them.
        path: String,
        /// How many there are beside.
        more: usize,
        /// Who writes them; who wrote last comes last.
        writers: Vec<Writer>,
    },
    /// More than one hand or applier writes keys of a config. Who wrote last comes last.
    SharedKeys(Vec<Writer>),
    /// There is more than a report has room for.
    FieldsLeftOut(usize),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnersHidden => f.write_str(
                "there are no managedFields, so it is not known who wrote what: use --show-managed-fields with \
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
            Self::InvalidAnnotation(problem) => problem.fmt(f),
            Self::ScaledByController { shown, by } => {
                write!(f, "{} scales it", by.manager)?;
                if let Some(Shown { declared, live }) = shown {
                    write!(f, " to {live}, and the manifest declares {declared}")?;
                }
                f.write_str("; each apply sets it back for a while: leave spec.replicas out of the manifest")
            }
            Self::Autoscaled(autoscaler) => write!(
                f,
                "HorizontalPodAutoscaler {autoscaler} scales it, and the manifest declares spec.replicas too: leave it out \
                 of the manifest"
            ),
            Self::SharedFields { path, more, writers } => {
                write!(f, "{path}")?;
                if *more > 0 {
                    write!(f, " and {more} more fields")?;
                }
                write!(f, " {} written by ", if *more > 0 { "are" } else { "is" })?;
                tell(writers, f)
            }
            Self::SharedKeys(writers) => {
                f.write_str("its keys are written by ")?;
                tell(writers, f)
            }
            Self::FieldsLeftOut(many) => {
                write!(f, "{many} more fields differ, and are left out: apply the manifest again, or mend it")
            }
        }
    }
}

/// Who writes, and who wrote last.
fn tell(writers: &[Writer], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let names: Vec<&str> = writers.iter().map(|writer| writer.manager.as_str()).collect();
    f.write_str(&names.join(" and "))?;
    match writers.last() {
        Some(Writer { manager, since: Some(since) }) => write!(f, "; {manager} wrote last, at {since}"),
        Some(_) | None => Ok(()),
    }
}
