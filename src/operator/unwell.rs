//! Whether the API server is well, as far as our writes tell. While it is not, each of hundreds of writes fails for the same
//! reason: that is told once, and its end once.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// Trouble is over if nothing failed for so long, and nothing that failed still waits for its next try.
const QUIET: Duration = Duration::from_secs(20);

/// The writes that failed for no reason of their own, and that wait for their next try.
#[derive(Debug)]
pub struct Unwell<K> {
    failing: HashSet<K>,
    /// When something last failed; none while nothing is wrong.
    last: Option<Instant>,
}

impl<K> Default for Unwell<K> {
    fn default() -> Self {
        Self { failing: HashSet::new(), last: None }
    }
}

impl<K: Eq + Hash> Unwell<K> {
    /// This write failed, and is tried again. Whether that is news.
    pub fn failed(&mut self, write: K, now: Instant) -> bool {
        self.failing.insert(write);
        self.lost(now)
    }

    /// A write failed that is not tried again. Whether that is news.
    pub fn lost(&mut self, now: Instant) -> bool {
        self.last.replace(now).is_none()
    }

    /// This write succeeded, or nobody wants it any more.
    pub fn settled(&mut self, write: &K) {
        self.failing.remove(write);
    }

    /// When the trouble is over, unless something fails until then.
    pub fn over_at(&self) -> Option<Instant> {
        self.last.filter(|_| self.failing.is_empty()).map(|last| last + QUIET)
    }

    /// The trouble is over.
    pub fn over(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_news_once_and_over_when_all_is_done_and_quiet() {
        let (begin, later) = (Instant::now(), Instant::now() + QUIET / 2);
        let mut unwell = Unwell::default();
        assert_eq!(unwell.over_at(), None);
        assert!(unwell.failed("a", begin) && !unwell.failed("b", begin) && !unwell.lost(later));
        unwell.settled(&"a");
        assert_eq!(unwell.over_at(), None);
        unwell.settled(&"b");
        assert_eq!(unwell.over_at(), Some(later + QUIET));
        unwell.over();
        assert_eq!(unwell.over_at(), None);
        assert!(unwell.lost(later));
    }
}
