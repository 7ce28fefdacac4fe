//! Flapping: configs that change again and again, as when two controllers fight, roll a workload less and less often.
//!
//! Rollouts that follow one another within 10 minutes are in a row. From the third one on there is a pause behind each: a
//! minute, then twice as long each time, 30 minutes at most. It ends early when the configs have been quiet for 5 minutes.
//! A row ends when there is no rollout for twice its pause.

use jiff::{SignedDuration, Timestamp};

use crate::model::delivered::later;
use crate::model::record::{LastStamp, Record};

const IN_A_ROW: SignedDuration = SignedDuration::from_mins(10);
const FIRST_PAUSE: SignedDuration = SignedDuration::from_mins(1);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(30);
const QUIET: SignedDuration = SignedDuration::from_mins(5);
/// As many rollouts in a row have no pause behind them.
const FREE: u8 = 2;

/// How many rollouts there are in a row with one that begins now.
pub fn row(last: Option<&LastStamp>, now: Timestamp) -> u8 {
    match last {
        Some(last) if later(last.time, (pause(last.row) * 2).max(IN_A_ROW)) > now => last.row.saturating_add(1),
        Some(_) | None => 1,
    }
}

fn pause(row: u8) -> SignedDuration {
    match row.checked_sub(FREE + 1) {
        None => SignedDuration::ZERO,
        Some(times) => FIRST_PAUSE.checked_mul(1 << times.min(6)).unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE),
    }
}

/// Until when a rollout that is due is held, if nothing changes any more.
pub fn held_until(record: &Record, now: Timestamp) -> Option<Timestamp> {
    let stamp = record.stamp.as_ref()?;
    let quiet = later(record.unanswered().map(|change| change.last_seen).max()?, QUIET);
    let until = later(stamp.time, pause(stamp.row)).min(quiet);
    // A clock that was set back since then ends it.
    (stamp.time <= now && now < until).then_some(until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{at, named};
    use crate::model::record::{Entry, Seen};
    use rstest::rstest;
    use std::collections::BTreeSet;

    fn stamp(second: i64, row: u8) -> LastStamp {
        LastStamp { row, ..LastStamp::found("s".to_owned(), at(second)) }
    }

    #[rstest]
    #[case::the_first(None, 0, 1)]
    #[case::soon_after(Some(stamp(0, 1)), 599, 2)]
    #[case::long_after(Some(stamp(0, 1)), 600, 1)]
    #[case::after_a_long_pause(Some(stamp(0, 9)), 3_599, 10)]
    #[case::quiet_for_an_hour(Some(stamp(0, 9)), 3_600, 1)]
    fn rollouts_soon_after_one_another_are_in_a_row(
        #[case] last: Option<LastStamp>,
        #[case] now: i64,
        #[case] row: u8,
    ) {
        assert_eq!(super::row(last.as_ref(), at(now)), row);
    }

    #[rstest]
    #[case::two(2, 0)]
    #[case::three(3, 60)]
    #[case::five(5, 240)]
    #[case::many(9, 1_800)]
    #[case::very_many(255, 1_800)]
    fn pauses_get_longer(#[case] row: u8, #[case] seconds: i64) {
        assert_eq!(pause(row), SignedDuration::from_secs(seconds));
    }

    #[rstest]
    #[case::it_changes_again(5, 230, 235, Some(240))]
    #[case::its_pause_is_over(5, 230, 240, None)]
    #[case::it_has_gone_on(9, 10, 100, Some(310))]
    #[case::it_is_quiet(9, 10, 310, None)]
    fn a_pause_ends_early_when_it_is_quiet(
        #[case] row: u8,
        #[case] changed: i64,
        #[case] now: i64,
        #[case] until: Option<i64>,
    ) {
        let mut entry = Entry {
            config: named("ConfigMap/c"),
            digest: None,
            all: true,
            keys: [].into(),
            last_changed: None,
            absent_since: None,
            seen_to: None,
            change: None,
        };
        entry.open(Seen::Happening, at(changed), None, BTreeSet::new());
        let record = Record { entries: vec![entry], stamp: Some(stamp(0, row)), ..Record::default() };
        assert_eq!(held_until(&record, at(now)), until.map(at));
    }
}
