//! The engine's half for what is looked at, or tried, again: at some time, or after an object's back-off.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::model::helm::ReleaseId;
use crate::model::names::{ConfigId, WorkloadId};
use crate::model::report::ReportKey;
use crate::operator::api_error::ApiError;
use crate::operator::engine::Engine;

/// What is looked at, or tried, again at some time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Again {
    Workload(WorkloadId),
    Config(ConfigId),
    Report(ReportKey),
    Release(ReleaseId),
}

/// The longest that an alarm sleeps, and then looks whether it is time; the queue takes about two years at most, and what
/// a flag, an annotation or a report says may be any time.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

impl Engine {
    /// It is time to look at this again.
    pub(super) fn again(&mut self, again: Again) {
        let now = Timestamp::now();
        match &again {
            Again::Workload(id) => {
                self.outdated.remove(id);
                self.steps_taken.remove(id);
                self.review_workload(id, now);
            }
            Again::Config(id) => self.review_config(id, now),
            Again::Report(key) => self.write_report(key),
            Again::Release(release) => self.look_at_release(release),
        }
        self.forget_retry(&again, now);
    }

    /// What failed, and is not tried again now that it is time, is not wanted any more.
    fn forget_retry(&mut self, again: &Again, now: Timestamp) {
        let is_under_way = match again {
            Again::Workload(id) => self.stamping.contains(id) || self.steps_taken.contains_key(id),
            Again::Report(key) => self.reports.is_under_way(key),
            Again::Config(_) | Again::Release(_) => return,
        };
        if !is_under_way && self.retries.waits_until(again, now).is_none() {
            self.succeeded(again);
        }
    }

    /// Looks again at this time, at the latest.
    pub(super) fn alarm(&mut self, again: Again, at: Timestamp, now: Timestamp) {
        if let Some((earlier, key)) = self.alarm_of.get(&again) {
            if *earlier <= at {
                return;
            }
            self.alarms.remove(key);
        }
        let key = self.alarms.insert(again.clone(), sleep(at, now));
        self.alarm_of.insert(again, (at, key));
    }

    /// Tries again after the object's back-off, and not before the API server wants it.
    pub(super) fn retry(&mut self, again: Again, not_before: Option<Duration>) {
        let now = Timestamp::now();
        let at = self.retries.failed(again.clone(), now, not_before);
        self.alarm(again, at, now);
    }

    /// A write of this object succeeded, or is not wanted any more.
    pub(super) fn succeeded(&mut self, again: &Again) {
        self.retries.succeeded(again);
        self.unwell.settled(again);
    }

    /// A write failed that is tried again.
    pub(super) fn note_unwell(&mut self, again: &Again, error: &ApiError) {
        if error.is_refusal() {
            self.unwell.settled(again);
        } else {
            let is_news = self.unwell.failed(again.clone(), Instant::now());
            tell_unwell(is_news, error);
        }
    }

    /// An Event is not tried again.
    pub(super) fn event_lost(&mut self, error: &ApiError) {
        match error {
            // It is about something that goes.
            ApiError::Terminating | ApiError::NotFound => {}
            error if error.is_refusal() => info!(%error, "an event could not be written"),
            error => {
                let is_news = self.unwell.lost(Instant::now());
                tell_unwell(is_news, error);
            }
        }
    }
}

/// Tells of an API server that is not well once, however many writes suffer.
fn tell_unwell(is_news: bool, error: &ApiError) {
    if is_news {
        warn!(%error, "writes fail; all but Events are tried again until they succeed");
    } else {
        debug!(%error, "a write failed");
    }
}

/// How long an alarm sleeps.
fn sleep(until: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(now)).unwrap_or_default().min(LONGEST_SLEEP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use tokio_util::time::DelayQueue;

    #[rstest]
    #[case::soon("2026-11-30T12:00:05Z", Duration::from_secs(5))]
    #[case::past("2026-11-30T11:00:00Z", Duration::ZERO)]
    #[case::far("9999-12-30T22:00:00Z", LONGEST_SLEEP)]
    #[tokio::test]
    async fn the_queue_takes_an_alarm_at_any_time(#[case] at: Timestamp, #[case] expected: Duration) {
        let sleep = sleep(at, "2026-11-30T12:00:00Z".parse().unwrap());
        DelayQueue::new().insert((), sleep);
        assert_eq!(sleep, expected);
    }
}
