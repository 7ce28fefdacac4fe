//! The budget: how many rollouts that restamp began may be unfinished at once, in the cluster and in one namespace.
//!
//! A namespace that holds fewer slots comes first; of those with equally many, the one whose workload waits longest. So
//! that a namespace with hundreds of consumers does not keep others waiting, and none waits for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;

use jiff::{SignedDuration, Timestamp};

use crate::model::delivered::later;
use crate::model::names::{Name, WorkloadId};

/// The longest that a rollout holds a slot.
pub const SLOT_AT_MOST: SignedDuration = SignedDuration::from_mins(15);

/// How many rollouts may be unfinished at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// Any number.
    Unlimited,
    /// So many.
    Limited {
        /// In the cluster.
        cluster: NonZeroU32,
        /// In one namespace; none for as many as in the cluster.
        namespace: Option<NonZeroU32>,
    },
}

impl Budget {
    /// By the flags' numbers: no budget at all if the cluster's is zero.
    pub fn of(cluster: u32, namespace: u32) -> Self {
        match NonZeroU32::new(cluster) {
            None => Self::Unlimited,
            Some(cluster) => Self::Limited { cluster, namespace: NonZeroU32::new(namespace) },
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(10, 3)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Limited { cluster, namespace: None } => write!(f, "{cluster}"),
            Self::Limited { cluster, namespace: Some(namespace) } => {
                write!(f, "{cluster}, and {namespace} in one namespace")
            }
        }
    }
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The cluster's.
    Cluster,
    /// The namespace's.
    Namespace,
}

/// Who holds a slot, and who waits for one.
#[derive(Debug, Default)]
pub struct Queue {
    slots: BTreeMap<Name, BTreeMap<WorkloadId, Timestamp>>,
    due: BTreeMap<Name, BTreeSet<(Timestamp, WorkloadId)>>,
}

/// Since when a workload holds a slot, and since when it waits for one.
type Standing = (Option<Timestamp>, Option<Timestamp>);

impl Queue {
    /// A workload stood like the first, and stands like the second now.
    pub fn note(&mut self, id: &WorkloadId, before: Standing, now: Standing) {
        let namespace = &id.namespace;
        if before.0 != now.0 {
            let slots = self.slots.entry(namespace.clone()).or_default();
            match now.0 {
                Some(since) => drop(slots.insert(id.clone(), since)),
                None => drop(slots.remove(id)),
            }
            if slots.is_empty() {
                self.slots.remove(namespace);
            }
        }
        if before.1 != now.1 {
            let due = self.due.entry(namespace.clone()).or_default();
            if let Some(since) = before.1 {
                due.remove(&(since, id.clone()));
            }
            if let Some(since) = now.1 {
                due.insert((since, id.clone()));
            }
            if due.is_empty() {
                self.due.remove(namespace);
            }
        }
    }

    /// How many hold a slot, and how many wait for one.
    pub fn counts(&self, now: Timestamp) -> (usize, usize) {
        let held = self.slots.keys().map(|namespace| self.held(namespace, now)).sum();
        (held, self.due.values().map(BTreeSet::len).sum())
    }

    fn held(&self, namespace: &Name, now: Timestamp) -> usize {
        let slots = self.slots.get(namespace).into_iter().flatten();
        slots.filter(|(_, since)| later(**since, SLOT_AT_MOST) > now).count()
    }

    /// Whether this workload may begin a rollout: it holds a slot already, or its turn has come.
    pub fn admits(&self, id: &WorkloadId, budget: Budget, now: Timestamp) -> Result<(), Full> {
        let Budget::Limited { namespace, .. } = budget else { return Ok(()) };
        let holds = self.slots.get(&id.namespace).and_then(|slots| slots.get(id));
        if holds.is_some_and(|since| later(*since, SLOT_AT_MOST) > now) {
            return Ok(());
        }
        let mut turns = self.turns(budget, now);
        if turns.any(|turn| turn == id) {
            return Ok(());
        }
        let is_full = namespace.is_some_and(|most| self.held(&id.namespace, now) >= usize_of(most));
        Err(if is_full { Full::Namespace } else { Full::Cluster })
    }

    /// Whose turn it is.
    pub fn next(&self, budget: Budget, now: Timestamp) -> Option<WorkloadId> {
        self.turns(budget, now).next().cloned()
    }

    /// Those whose turn it is, one after the other, until there is no slot left.
    fn turns(&self, budget: Budget, now: Timestamp) -> impl Iterator<Item = &WorkloadId> {
        let (cluster, most) = match budget {
            // Who needs no slot does not wait for one.
            Budget::Unlimited => (0, 0),
            Budget::Limited { cluster, namespace } => (usize_of(cluster), namespace.map_or(usize::MAX, usize_of)),
        };
        let free = cluster.saturating_sub(self.counts(now).0);
        let mut waiting: BTreeSet<Turn<'_>> = BTreeSet::new();
        if free > 0 {
            let turns = self.due.iter().filter_map(|(name, due)| Turn::first(self.held(name, now), due));
            waiting.extend(turns.filter(|turn| turn.held < most));
        }
        std::iter::from_fn(move || {
            let turn = waiting.pop_first()?;
            waiting.extend(turn.after(&self.due).filter(|next| next.held < most));
            Some(turn.id)
        })
        .take(free)
    }
}

/// The next of one namespace: the order is that in which they get slots.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn<'a> {
    /// How many slots the namespace holds by then.
    held: usize,
    since: Timestamp,
    id: &'a WorkloadId,
}

impl<'a> Turn<'a> {
    fn first(held: usize, due: &'a BTreeSet<(Timestamp, WorkloadId)>) -> Option<Self> {
        due.first().map(|(since, id)| Self { held, since: *since, id })
    }

    fn after(&self, due: &'a BTreeMap<Name, BTreeSet<(Timestamp, WorkloadId)>>) -> Option<Self> {
        let due = due.get(&self.id.namespace)?;
        let this = (self.since, self.id.clone());
        let mut after = due.range((std::ops::Bound::Excluded(this), std::ops::Bound::Unbounded));
        after.next().map(|(since, id)| Self { held: self.held + 1, since: *since, id })
    }
}

fn usize_of(number: NonZeroU32) -> usize {
    usize::try_from(number.get()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::at;
    use crate::model::names::WorkloadKind;

    fn id(namespace: &str, name: &str) -> WorkloadId {
        WorkloadId { kind: WorkloadKind::Deployment, namespace: namespace.into(), name: name.into() }
    }

    fn queue(slots: &[(&str, &str)], due: &[(&str, &str, i64)]) -> Queue {
        let mut queue = Queue::default();
        for (namespace, name) in slots {
            queue.note(&id(namespace, name), (None, None), (Some(at(0)), None));
        }
        for (namespace, name, since) in due {
            queue.note(&id(namespace, name), (None, None), (None, Some(at(*since))));
        }
        queue
    }

    fn turns(queue: &Queue, budget: Budget) -> Vec<String> {
        queue.turns(budget, at(10)).map(|id| format!("{}/{}", id.namespace, id.name)).collect()
    }

    #[test]
    fn who_holds_fewer_slots_comes_first_and_then_who_waits_longest() {
        let due = [("a", "2", 2), ("a", "3", 3), ("a", "4", 4), ("b", "9", 9), ("c", "1", 1)];
        let queue = queue(&[("a", "0"), ("c", "0")], &due);
        assert_eq!(turns(&queue, Budget::of(6, 0)), ["b/9", "c/1", "a/2", "a/3"]);
        assert_eq!(turns(&queue, Budget::of(9, 2)), ["b/9", "c/1", "a/2"]);
        assert_eq!(turns(&queue, Budget::of(2, 0)), [""; 0]);
    }

    #[test]
    fn it_says_which_limit_is_reached() {
        let queue = queue(&[("a", "0"), ("b", "0")], &[("a", "1", 1), ("b", "1", 2), ("b", "2", 3)]);
        let admits = |namespace, name, budget| queue.admits(&id(namespace, name), budget, at(10));
        assert_eq!(admits("a", "1", Budget::of(2, 2)), Err(Full::Cluster));
        assert_eq!(admits("a", "1", Budget::of(9, 1)), Err(Full::Namespace));
        assert_eq!(admits("a", "1", Budget::of(3, 2)), Ok(()));
        assert_eq!(admits("b", "1", Budget::of(3, 2)), Err(Full::Cluster), "the other waits longer");
        assert_eq!(admits("a", "0", Budget::of(2, 2)), Ok(()), "it holds a slot");
        assert_eq!(admits("a", "1", Budget::Unlimited), Ok(()));
    }

    #[test]
    fn a_slot_is_free_after_15_minutes() {
        let queue = queue(&[("a", "0")], &[("a", "1", 1)]);
        let next = |second| queue.next(Budget::of(1, 1), at(second));
        assert_eq!((next(899), next(900)), (None, Some(id("a", "1"))));
    }
}
