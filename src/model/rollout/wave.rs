//! Waves: in which order those who read a config get its change. A wave begins when the change has ended for all of the
//! wave before: their rollouts completed, failed, or took more than 15 minutes. Whoever is held keeps the later waves
//! waiting, since what its rollout would show is not known.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::model::names::WorkloadId;

/// When a workload gets a change: lower ones first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wave(i32);

impl Wave {
    /// Before all others, and one workload after the other.
    pub const CANARY: Self = Self(-1);
}

impl fmt::Display for Wave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::CANARY { f.write_str("canary") } else { write!(f, "wave {}", self.0) }
    }
}

/// A text that is no wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a number from 0 to 65535")]
pub struct NoWave;

impl FromStr for Wave {
    type Err = NoWave;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<u16>().map(|wave| Self(wave.into())).map_err(|_| NoWave)
    }
}

/// A workload in its wave.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its wave.
    pub wave: Wave,
    /// The workload.
    pub workload: WorkloadId,
}

/// Of these, one that comes before this workload.
pub fn ahead<'a>(places: &'a BTreeSet<Place>, wave: Wave, id: &WorkloadId) -> Option<&'a Place> {
    let first = places.first()?;
    let is_ahead = first.wave < wave || (wave == Wave::CANARY && first.wave == wave && first.workload < *id);
    is_ahead.then_some(first)
}

/// Of these, who may have waited for one of this wave that has ended: the lowest wave that is left, or the next canary.
pub fn behind(places: &BTreeSet<Place>, ended: Wave) -> impl Iterator<Item = &WorkloadId> {
    let lowest = places.first().map(|place| place.wave);
    let waited = move |place: &&Place| Some(place.wave) == lowest && (place.wave > ended || ended == Wave::CANARY);
    places.iter().take_while(waited).map(|place| &place.workload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::WorkloadKind;
    use rstest::rstest;

    fn id(name: &str) -> WorkloadId {
        WorkloadId { kind: WorkloadKind::Deployment, namespace: "ns".into(), name: name.into() }
    }

    fn places(all: &[(Wave, &str)]) -> BTreeSet<Place> {
        all.iter().map(|(wave, name)| Place { wave: *wave, workload: id(name) }).collect()
    }

    fn name(place: Option<&Place>) -> Option<&str> {
        place.map(|place| place.workload.name.as_str())
    }

    #[rstest]
    #[case::nobody_before(Wave(0), "a", None)]
    #[case::not_its_own_wave(Wave(0), "z", None)]
    #[case::a_lower_one(Wave(2), "a", Some("b"))]
    fn lower_waves_come_first(#[case] wave: Wave, #[case] workload: &str, #[case] expected: Option<&str>) {
        let places = places(&[(Wave(0), "b"), (Wave(1), "a")]);
        assert_eq!(name(ahead(&places, wave, &id(workload))), expected);
    }

    #[rstest]
    #[case::the_first(Wave::CANARY, "c", None)]
    #[case::the_next(Wave::CANARY, "d", Some("c"))]
    #[case::all_others(Wave(0), "a", Some("c"))]
    fn canaries_come_before_all_and_one_by_one(
        #[case] wave: Wave,
        #[case] workload: &str,
        #[case] expected: Option<&str>,
    ) {
        let places = places(&[(Wave::CANARY, "c"), (Wave::CANARY, "d"), (Wave(0), "a")]);
        assert_eq!(name(ahead(&places, wave, &id(workload))), expected);
    }

    #[test]
    fn who_waited_for_the_one_that_ended_is_named() {
        let all = |left: &[(Wave, &str)], ended| {
            behind(&places(left), ended).map(|id| id.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(all(&[(Wave(0), "b"), (Wave(1), "c")], Wave(0)), [""; 0], "its wave goes on");
        assert_eq!(all(&[(Wave(1), "c"), (Wave(1), "d"), (Wave(2), "e")], Wave(0)), ["c", "d"]);
        assert_eq!(all(&[(Wave::CANARY, "d"), (Wave(0), "a")], Wave::CANARY), ["d"]);
    }

    #[rstest]
    #[case::lowest("0", Ok(Wave(0)))]
    #[case::higher("12", Ok(Wave(12)))]
    #[case::negative("-1", Err(NoWave))]
    #[case::no_number("first", Err(NoWave))]
    fn a_wave_is_a_number(#[case] text: &str, #[case] expected: Result<Wave, NoWave>) {
        assert_eq!(text.parse(), expected);
    }
}
