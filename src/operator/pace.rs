//! How fast we write: a token bucket for all writes together, so that a fan-out over thousands of workloads leaves the API
//! server room for others. Whoever writes waits in a task of its own; nothing that watches or decides takes a token.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use leaky_bucket::RateLimiter;
use tokio::sync::Mutex;

use crate::operator::metrics::Metrics;

/// How fast we may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// As many writes per second, over a longer time.
    pub per_second: NonZeroU32,
    /// As many at once, after a quiet time.
    pub burst: NonZeroU32,
}

/// Which writes come first where tokens are short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// What a workload waits for.
    Now,
    /// What tells of it.
    Later,
}

/// The bucket.
#[derive(Debug)]
pub struct Pace {
    bucket: RateLimiter,
    /// The queue for tokens, in the order of arrival.
    queue: Mutex<()>,
    /// Of what may wait, one at a time stands in that queue.
    later: Mutex<()>,
    metrics: Metrics,
}

impl Pace {
    /// A full bucket.
    pub fn new(limits: Limits, metrics: Metrics) -> Self {
        let burst = usize::try_from(limits.burst.get()).unwrap_or(usize::MAX);
        let bucket = RateLimiter::builder()
            .initial(burst)
            .max(burst)
            .refill(1)
            .interval(Duration::from_secs(1) / limits.per_second.get())
            .build();
        Self { bucket, queue: Mutex::new(()), later: Mutex::new(()), metrics }
    }

    /// Waits for a token.
    pub async fn token(&self, urgency: Urgency) {
        let begin = Instant::now();
        let _later = match urgency {
            Urgency::Now => None,
            Urgency::Later => Some(self.later.lock().await),
        };
        let turn = self.queue.lock().await;
        self.bucket.acquire_one().await;
        drop(turn);
        self.metrics.write_waited(begin.elapsed().as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn pace(per_second: u32, burst: u32) -> Arc<Pace> {
        let limits = Limits { per_second: per_second.try_into().unwrap(), burst: burst.try_into().unwrap() };
        Arc::new(Pace::new(limits, Metrics::new().unwrap()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_then_the_rate_holds() {
        let (pace, begin) = (pace(10, 5), tokio::time::Instant::now());
        for _ in 0..5 {
            pace.token(Urgency::Now).await;
        }
        assert_eq!(begin.elapsed(), Duration::ZERO);
        for _ in 0..20 {
            pace.token(Urgency::Now).await;
        }
        assert_eq!(begin.elapsed().as_millis().div_ceil(100), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_workload_waits_for_overtakes_what_tells_of_it() {
        let pace = pace(1, 1);
        pace.token(Urgency::Now).await;
        let took = |urgency, pace: Arc<Pace>| async move {
            let begin = tokio::time::Instant::now();
            pace.token(urgency).await;
            begin.elapsed().as_secs()
        };
        let later: Vec<_> = (0..20).map(|_| tokio::spawn(took(Urgency::Later, pace.clone()))).collect();
        tokio::task::yield_now().await;
        let waited = took(Urgency::Now, pace.clone()).await;
        assert!(waited <= 2, "it waited {waited} s");
        for told in later {
            told.await.unwrap();
        }
        let text = pace.metrics.render().unwrap();
        assert!(text.contains("restamp_write_wait_seconds_count 22\n"), "{text}");
    }
}
