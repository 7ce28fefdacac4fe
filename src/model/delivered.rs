//! Delivered: a change that every container which consumes it has read, because it started after it.
//!
//! Pods prove it, never the age of a template or a ReplicaSet: an image set to B and back to A brings A's ReplicaSet
//! and its old pods back into use. No pods prove nothing.

use jiff::{SignedDuration, Timestamp};

use crate::model::names::{ConfigKind, Name};
use crate::model::observe::Sight;
use crate::model::pod::{Phase, Pod, Started};
use crate::model::provider_class;
use crate::model::record::{Answer, Change, Entry, Record};
use crate::model::revision;

/// How far the clocks of a node and of restamp may be apart.
pub const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(30);

/// How long a container's start may take to show in its pod's status. Within that time after a change, a container
/// that is shown as waiting may already have read the old value.
const STATUS_DELAY: SignedDuration = SignedDuration::from_secs(5);

/// A time so much later. What a report holds may be any time, so that this must not overflow.
pub fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// Whether every open change of the record is delivered.
pub fn is_delivered(record: &Record, sight: &Sight<'_>) -> bool {
    !sight.has_unplaced_pods && active(sight).next().is_some() && unproven(record, sight).next().is_none()
}

/// The pods that have not proven to have read every open change.
pub fn unproven<'a>(record: &'a Record, sight: &'a Sight<'a>) -> impl Iterator<Item = &'a Pod> {
    let of_the_template = revision::of_the_template(sight);
    active(sight).filter(move |pod| {
        let template = match &of_the_template {
            Some(is_of_it) if is_of_it(pod) => Template::Present,
            _ => Template::Unknown,
        };
        !has_read_all(pod, template, record, sight)
    })
}

/// The pods that count.
pub(super) fn active<'a>(sight: &Sight<'a>) -> impl Iterator<Item = &'a Pod> {
    sight.pods.iter().copied().filter(|pod| pod.phase == Phase::Active)
}

/// Which pod template a pod was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Template {
    /// The workload's present one.
    Present,
    /// Another one, or it can't be told: what its containers read is not known.
    Unknown,
}

fn has_read_all(pod: &Pod, template: Template, record: &Record, sight: &Sight<'_>) -> bool {
    record.open_entries().all(|(entry, change)| {
        if entry.config.kind == ConfigKind::SecretProviderClass
            && let Some(has_read) =
                provider_class::has_read(pod, &entry.config.within(&sight.workload.id.namespace), sight)
        {
            return has_read;
        }
        was_made_from_the_stamp(pod, change, record)
            || was_made_after(pod, change)
            || its_containers_started_after(pod, template, entry, change, sight)
    })
}

/// A stamp's text is unique, so a pod that carries it was made after the stamp, which was made after the change.
fn was_made_from_the_stamp(pod: &Pod, change: &Change, record: &Record) -> bool {
    let stamp = record.stamp.as_ref().map(|stamp| stamp.text.as_str());
    change.answer == Answer::Stamped && stamp.is_some() && pod.stamp.as_deref() == stamp
}

/// Nothing in it had started when the change was written. The time of creation only has to agree: the versions of two
/// kinds are not in one order where each has an etcd of its own.
fn was_made_after(pod: &Pod, change: &Change) -> bool {
    let (Some(born), Some(version), Some(created)) = (pod.born, change.version, pod.created) else {
        return false;
    };
    born > version && later(created, CLOCK_SKEW) >= change.last_seen
}

fn its_containers_started_after(
    pod: &Pod,
    template: Template,
    entry: &Entry,
    change: &Change,
    sight: &Sight<'_>,
) -> bool {
    let config = entry.config.within(&sight.workload.id.namespace);
    let readers = sight.workload.consumption.readers(&config, sight.counting);
    let reads = |name: &Name| template == Template::Unknown || readers.contains(name);
    let is_shown = |name: &Name| pod.containers.iter().any(|container| container.name == *name);
    let all_shown = !pod.containers.is_empty() && readers.iter().all(|reader| is_shown(reader));
    let waiting_counts = waiting_counts(change, sight);
    let read_after = |started| match started {
        Started::NotYet => waiting_counts,
        Started::At(started) => started >= later(change.last_seen, CLOCK_SKEW),
        Started::Unknown => false,
    };
    let mut reading = pod.containers.iter().filter(|container| reads(&container.name));
    (all_shown || waiting_counts) && reading.all(|container| read_after(container.started))
}

/// Whether a container that is shown as waiting was still waiting when the change was written: its start would show by
/// now, and the watch of pods is not behind.
fn waiting_counts(change: &Change, sight: &Sight<'_>) -> bool {
    let is_fresh = change.version.is_some_and(|version| sight.pods_seen_to > Some(version));
    is_fresh && sight.now >= later(change.last_seen, STATUS_DELAY)
}

/// The moment from which on a waiting container proves something, for looking again.
pub fn waiting_counts_from(record: &Record) -> Option<Timestamp> {
    record.open_entries().map(|(_, change)| later(change.last_seen, STATUS_DELAY)).max()
}

#[cfg(test)]
mod tests;
