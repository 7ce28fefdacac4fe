//! Adoption: what first sight takes for read, and why a workload that was known is taken anew.
//!
//! Nothing can be compared then. It is never silent, and rolls nothing by itself: the pods are asked as witnesses, and
//! whoever is on call decides.

use std::collections::BTreeSet;
use std::fmt;

use crate::model::names::ConfigName;

/// Why a workload's configs are taken as they are, and not compared with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Adoption {
    /// It is seen for the first time, or it is opted in from now on.
    FirstSight,
    /// Its template carries a stamp of ours, and it has no report: somebody deleted that, or it was opted out meanwhile.
    RecordGone,
    /// Its report is there, and its record can't be read.
    RecordUnreadable,
    /// The key that the record's digests were made with is gone.
    HashKeyLost,
    /// The record's digests were made by an algorithm that this build does not know.
    OtherAlgorithm,
}

/// A workload that was taken into care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    /// Why.
    pub why: Adoption,
    /// The configs that were written after some container which reads them had started: it may hold older values.
    pub maybe_unread: BTreeSet<ConfigName>,
}

impl Adoption {
    /// Every reason.
    pub const ALL: [Self; 5] =
        [Self::FirstSight, Self::RecordGone, Self::RecordUnreadable, Self::HashKeyLost, Self::OtherAlgorithm];

    /// The reason in one word, as the metric's label has it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::FirstSight => "FirstSight",
            Self::RecordGone => "RecordGone",
            Self::RecordUnreadable => "RecordUnreadable",
            Self::HashKeyLost => "HashKeyLost",
            Self::OtherAlgorithm => "OtherAlgorithm",
        }
    }

    /// Whether a record was there before, so that a change since then may go unseen.
    pub fn is_a_loss(self) -> bool {
        self != Self::FirstSight
    }

    fn what_happened(self) -> &'static str {
        match self {
            Self::FirstSight => "it is seen for the first time",
            Self::RecordGone => {
                "it carries an earlier stamp and has no DriftReport: that was deleted, or the workload was opted out"
            }
            Self::RecordUnreadable => "the record in its DriftReport can't be read",
            Self::HashKeyLost => "the hash key of its record is gone from Secret restamp-hash-key",
            Self::OtherAlgorithm => "its record was made by an algorithm that this version of restamp does not know",
        }
    }
}

impl fmt::Display for Adopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, so its configs are taken as they are now; ", self.why.what_happened())?;
        if self.maybe_unread.is_empty() {
            return f.write_str("none was written since its containers started");
        }
        let configs: Vec<String> = self.maybe_unread.iter().map(ToString::to_string).collect();
        write!(
            f,
            "its containers started before the last write of {}: run kubectl rollout restart if they may hold old values",
            configs.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::named;
    use rstest::rstest;

    #[rstest]
    #[case::nothing_to_fear(
        &[],
        "the hash key of its record is gone from Secret restamp-hash-key, so its configs are taken as they are now; \
         none was written since its containers started"
    )]
    #[case::old_values(
        &["ConfigMap/c", "Secret/s"],
        "the hash key of its record is gone from Secret restamp-hash-key, so its configs are taken as they are now; \
         its containers started before the last write of ConfigMap/c, Secret/s: run kubectl rollout restart if they may \
         hold old values"
    )]
    fn it_says_what_the_pods_tell(#[case] configs: &[&str], #[case] expected: &str) {
        let maybe_unread = configs.iter().map(|config| named(config)).collect();
        assert_eq!(Adopted { why: Adoption::HashKeyLost, maybe_unread }.to_string(), expected);
    }

    #[test]
    fn every_reason_has_a_word_of_its_own() {
        let words: BTreeSet<&str> = Adoption::ALL.into_iter().map(Adoption::reason).collect();
        assert_eq!(words.len(), Adoption::ALL.len());
    }
}
