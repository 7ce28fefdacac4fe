//! What can't be read at present: the watches tell it, one metric shows it at once, and it is published if it lasts.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::model::scope::Extent;
use crate::model::unread::{Unread, WhyUnread};
use crate::model::watched::Watched;
use crate::operator::metrics::Metrics;

/// What can't be read at present, as the watches know it.
#[derive(Debug, Clone)]
pub struct UnreadNow {
    now: watch::Sender<BTreeSet<Unread>>,
    metrics: Metrics,
}

impl UnreadNow {
    /// Nothing that can't be read is known yet.
    pub fn new(metrics: Metrics) -> Self {
        Self { now: watch::Sender::new(BTreeSet::new()), metrics }
    }

    /// Hears of every change.
    pub fn subscribe(&self) -> watch::Receiver<BTreeSet<Unread>> {
        self.now.subscribe()
    }

    /// A watch fails.
    pub fn fails(&self, kind: Watched, extent: &Extent, why: WhyUnread) {
        self.set(kind, extent, Some(why));
    }

    /// A watch works.
    pub fn works(&self, kind: Watched, extent: &Extent) {
        self.set(kind, extent, None);
    }

    fn set(&self, kind: Watched, extent: &Extent, why: Option<WhyUnread>) {
        let all = WhyUnread::ALL.map(|why| Unread::new(kind, extent, why));
        self.now.send_if_modified(|now| {
            let before = now.clone();
            now.retain(|unread| !all.contains(unread));
            now.extend(why.map(|why| Unread::new(kind, extent, why)));
            self.metrics.watch_failing(kind, now.iter().any(|unread| unread.kind == kind.as_str()));
            *now != before
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::ConfigKind;

    #[test]
    fn a_kind_fails_while_one_of_its_watches_does_and_is_told_once() {
        let metrics = Metrics::new().unwrap();
        let unread = UnreadNow::new(metrics.clone());
        let mut changes = unread.subscribe();
        let secret = Watched::Config(ConfigKind::Secret);
        let [a, b] = ["a", "b"].map(|name| Extent::Namespace(name.into()));
        let fails = || metrics.render().unwrap().contains("restamp_watch_failing{kind=\"Secret\"} 1\n");
        unread.fails(secret, &a, WhyUnread::Failing);
        unread.fails(secret, &a, WhyUnread::Forbidden);
        unread.fails(secret, &b, WhyUnread::Failing);
        let expected = [Unread::new(secret, &a, WhyUnread::Forbidden), Unread::new(secret, &b, WhyUnread::Failing)];
        assert_eq!((&*changes.borrow_and_update(), fails()), (&expected.into(), true));
        unread.fails(secret, &b, WhyUnread::Failing);
        assert!(!changes.has_changed().unwrap());
        unread.works(secret, &a);
        assert!(fails());
        unread.works(secret, &b);
        assert!(!fails() && changes.borrow().is_empty());
    }
}
