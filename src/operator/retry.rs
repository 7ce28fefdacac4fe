//! Retrying, per object: each object that fails has its own back-off, and delays no other.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use jiff::Timestamp;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

/// The longest wait, but for the jitter, which may double it.
const LONGEST: Duration = Duration::from_secs(30);

/// The back-offs of the objects that failed last.
#[derive(Debug)]
pub struct Retries<K>(HashMap<K, Retry>);

#[derive(Debug)]
struct Retry {
    backoff: ExponentialBackoff,
    until: Timestamp,
    times: u32,
}

impl<K> Default for Retries<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Retries<K> {
    /// It failed once more: when to try again. Not before so long, if the API server said that.
    pub fn failed(&mut self, object: K, now: Timestamp, not_before: Option<Duration>) -> Timestamp {
        let retry = self.0.entry(object).or_insert_with(|| {
            let builder = ExponentialBuilder::default().with_min_delay(Duration::from_millis(500));
            let backoff = builder.with_max_delay(LONGEST).with_jitter().without_max_times().build();
            Retry { backoff, until: now, times: 0 }
        });
        // Whatever a server asks for, it does not keep us away for longer than our own patience.
        let asked = not_before.unwrap_or_default().min(LONGEST);
        let wait = retry.backoff.next().unwrap_or(LONGEST).max(asked);
        retry.times = retry.times.saturating_add(1);
        retry.until = now.checked_add(wait).unwrap_or(now);
        retry.until
    }

    /// When to try again, if it failed and that time has not come.
    pub fn waits_until(&self, object: &K, now: Timestamp) -> Option<Timestamp> {
        self.0.get(object).map(|retry| retry.until).filter(|until| now < *until)
    }

    /// How often it failed since it last succeeded.
    pub fn times(&self, object: &K) -> u32 {
        self.0.get(object).map_or(0, |retry| retry.times)
    }

    /// Whether it failed since it last succeeded.
    pub fn has_failed(&self, object: &K) -> bool {
        self.0.contains_key(object)
    }

    /// It failed once more: waits until it is time to try again.
    pub async fn pause(&mut self, object: K) {
        let now = Timestamp::now();
        let wait = self.failed(object, now, None).duration_since(now);
        tokio::time::sleep(Duration::try_from(wait).unwrap_or_default()).await;
    }

    /// It succeeded, or is gone.
    pub fn succeeded(&mut self, object: &K) {
        self.0.remove(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_has_its_own_back_off_and_it_is_bounded() {
        let now = Timestamp::UNIX_EPOCH;
        let mut retries = Retries::default();
        let waits: Vec<_> = (0..20).map(|_| retries.failed("a", now, None).duration_since(now).as_secs()).collect();
        assert!(waits.iter().all(|wait| *wait <= 60), "{waits:?}");
        assert!(waits[5] > waits[0]);
        assert!(retries.waits_until(&"a", now).is_some() && retries.waits_until(&"b", now).is_none());
        assert!(retries.failed("b", now, None).duration_since(now).as_secs() < 2);
        let asked = retries.failed("c", now, Some(Duration::from_secs(20))).duration_since(now).as_secs();
        assert_eq!((asked, retries.times(&"c"), retries.times(&"a")), (20, 1, 20));
        retries.succeeded(&"a");
        assert_eq!(retries.waits_until(&"a", now), None);
    }
}
