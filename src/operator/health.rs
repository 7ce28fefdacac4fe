//! Whether a watch works. Trouble is told once, and its end once.

use std::time::Duration;

use tokio::time::Instant;

/// A watch that fails for so long does not only start anew, and neither does the API server.
const LASTING: Duration = Duration::from_secs(30);
/// The client says nothing when a watch works again and nothing happens on it. But it tries again within 60 s, and would
/// say within 10 s more that it fails.
const QUIET: Duration = Duration::from_secs(90);

/// Whether the last thing that a watch said was good.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Health(Option<Failing>);

#[derive(Debug, PartialEq, Eq)]
struct Failing {
    since: Instant,
    last: Instant,
}

impl Health {
    /// Whether it fails.
    pub fn is_failing(&self) -> bool {
        self.0.is_some()
    }

    /// It failed, once more or for the first time.
    pub fn failed(&mut self, now: Instant) {
        let since = self.0.as_ref().map_or(now, |failing| failing.since);
        self.0 = Some(Failing { since, last: now });
    }

    /// It works; whether that is news.
    pub fn works(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// Whether it has failed for longer than a hiccup takes.
    pub fn is_lasting(&self) -> bool {
        self.0.as_ref().is_some_and(|failing| failing.last.duration_since(failing.since) >= LASTING)
    }

    /// When it works again, unless it fails once more before.
    pub fn calm_at(&self) -> Option<Instant> {
        self.0.as_ref().map(|failing| failing.last + QUIET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_lasts_if_it_comes_again_and_ends_when_it_is_quiet() {
        let begin = Instant::now();
        let mut health = Health::default();
        health.failed(begin);
        assert!(health.is_failing() && !health.is_lasting());
        health.failed(begin + LASTING / 2);
        assert!(!health.is_lasting());
        health.failed(begin + LASTING);
        assert!(health.is_lasting());
        assert_eq!(health.calm_at(), Some(begin + LASTING + QUIET));
        assert!(health.works() && !health.works());
        assert_eq!((health.is_failing(), health.calm_at()), (false, None));
    }
}
