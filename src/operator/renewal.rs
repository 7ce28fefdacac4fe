//! Whether the calls for the Lease get through. The library that makes them tells it at each try; we tell it once.

use std::sync::{Arc, Mutex, PoisonError};

use tracing::{info, warn};

/// So many calls fail in a row before anybody hears of it: one alone is made again in time.
const TOLD_AFTER: u32 = 2;

/// How the last calls went; all clones are about the same ones.
#[derive(Debug, Clone, Default)]
pub struct Renewal(Arc<Mutex<Failed>>);

#[derive(Debug, Default, PartialEq, Eq)]
struct Failed(u32);

/// What there is to tell.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Fails,
    WorksAgain,
}

impl Renewal {
    /// A call was answered, or failed for this reason.
    pub fn heard(&self, why_not: Option<String>) {
        let news = self.0.lock().unwrap_or_else(PoisonError::into_inner).note(why_not.is_none());
        match (news, why_not) {
            (Some(News::Fails), why) => warn!(why, "the Lease can't be asked for or renewed; it is tried again"),
            (Some(News::WorksAgain), _) => info!("the Lease can be asked for again"),
            (None, _) => {}
        }
    }
}

impl Failed {
    fn note(&mut self, answered: bool) -> Option<News> {
        let before = self.0;
        self.0 = if answered { 0 } else { before.saturating_add(1) };
        if self.0 == TOLD_AFTER {
            return Some(News::Fails);
        }
        (answered && before >= TOLD_AFTER).then_some(News::WorksAgain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_told_once_and_its_end_once() {
        let mut failed = Failed::default();
        let calls = [false, true, false, false, false, true, true].map(|answered| failed.note(answered));
        assert_eq!(calls, [None, None, None, Some(News::Fails), None, Some(News::WorksAgain), None]);
    }
}
