//! The stamp: the pod template annotation by which restamp makes a workload's own controller roll it.
//!
//! Its text is unique: the workload's generation is in it, which rises with each change of the spec. A stamp thus
//! always rolls, and never brings back the ReplicaSet of an earlier one with its old pods.

use std::fmt;
use std::str::FromStr;

use crate::model::digest::Digest;

/// A stamp: the digest of all that the workload consumed, and the generation of the workload that it was put on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// What the workload consumed.
    pub digest: Digest,
    /// `metadata.generation` of the workload before the stamp.
    pub generation: i64,
}

impl Stamp {
    /// Whether it was made after the other one, on the same workload.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.generation > other.generation
    }

    /// Whether it can have been put on a workload that is at this generation now. A manifest that was exported and
    /// applied again may bring another workload's stamp.
    pub fn was_put_on(&self, generation: i64) -> bool {
        self.generation < generation
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.digest, self.generation)
    }
}

/// A text that is no stamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no stamp")]
pub struct NoStamp(String);

impl FromStr for Stamp {
    type Err = NoStamp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (digest, generation) = text.rsplit_once(':').ok_or_else(|| NoStamp(text.to_owned()))?;
        let generation = generation.parse().map_err(|_| NoStamp(text.to_owned()))?;
        Ok(Self { digest: Digest::from_text(digest), generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_it_writes() {
        let stamp = Stamp { digest: Digest::from_text("hmac-sha256:k1:abc"), generation: 7 };
        assert_eq!(stamp.to_string(), "hmac-sha256:k1:abc:7");
        assert_eq!(stamp.to_string().parse(), Ok(stamp));
    }

    #[test]
    fn a_stamp_raises_the_generation_that_is_in_it() {
        let stamp = Stamp { digest: Digest::from_text("d"), generation: 7 };
        assert_eq!([7, 8, 9].map(|generation| stamp.was_put_on(generation)), [false, true, true]);
    }

    #[test]
    fn another_text_is_no_stamp() {
        assert!("true".parse::<Stamp>().is_err());
        assert!("hmac-sha256:k1:abc".parse::<Stamp>().is_err());
    }
}
