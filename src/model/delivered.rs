//! Delivered: a change that every container which consumes it has read, because it started after it.
//!
//! Pods prove it, never the age of a template or a ReplicaSet: an image set to B and back to A brings A's ReplicaSet
//! and its old pods back into use. No pods prove nothing.

use jiff::{SignedDuration, Timestamp};

use crate::model::consumption::Consumption;
use crate::model::names::ConfigId;
use crate::model::observe::Sight;
use crate::model::pod::{Phase, Pod, Started};
use crate::model::record::{Answer, Change, Entry, Record};

/// How far the clocks of a node and of restamp may be apart.
pub const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(30);

/// How long a container's start may take to show in its pod's status. Within that time after a change, a container
/// that is shown as waiting may already have read the old value.
const STATUS_DELAY: SignedDuration = SignedDuration::from_secs(5);

/// A time so much later. What a report holds may be any time, so that this must not overflow.
pub(super) fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// Whether every open change of the record is delivered.
pub fn is_delivered(record: &Record, sight: &Sight<'_>) -> bool {
    let mut active = active(sight).peekable();
    active.peek().is_some() && active.all(|pod| has_read_all(pod, record, sight))
}

/// The pods that have not proven to have read every open change.
pub fn unproven<'a>(record: &'a Record, sight: &'a Sight<'a>) -> impl Iterator<Item = &'a Pod> {
    active(sight).filter(|pod| !has_read_all(pod, record, sight))
}

/// The pods that count.
pub(super) fn active<'a>(sight: &Sight<'a>) -> impl Iterator<Item = &'a Pod> {
    sight.pods.iter().copied().filter(|pod| pod.phase == Phase::Active)
}

fn has_read_all(pod: &Pod, record: &Record, sight: &Sight<'_>) -> bool {
    record.open_entries().all(|(entry, change)| {
        was_made_from_the_stamp(pod, change, record)
            || was_made_after(pod, change)
            || its_containers_started_after(pod, entry, change, sight)
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

fn its_containers_started_after(pod: &Pod, entry: &Entry, change: &Change, sight: &Sight<'_>) -> bool {
    let consumption = &sight.workload.consumption;
    let config = entry.config.within(&sight.workload.id.namespace);
    let readers = consumption.readers(&config, sight.counting);
    let shown = readers.iter().all(|reader| pod.containers.iter().any(|container| container.name == **reader));
    let waiting_counts = sight.now >= later(change.last_seen, STATUS_DELAY);
    let read_after = |started| match started {
        Started::NotYet => waiting_counts,
        Started::At(started) => started >= later(change.last_seen, CLOCK_SKEW),
        Started::Unknown => false,
    };
    let mut reading = pod.containers.iter().filter(|container| may_read(consumption, &config, container, sight));
    (shown || waiting_counts) && reading.all(|container| read_after(container.started))
}

/// A container that the present template does not have belongs to an earlier one: what it reads is not known.
fn may_read(
    consumption: &Consumption,
    config: &ConfigId,
    container: &crate::model::pod::RunningContainer,
    sight: &Sight<'_>,
) -> bool {
    !consumption.has_container(&container.name) || consumption.readers(config, sight.counting).contains(&container.name)
}

/// The moment from which on a waiting container proves something, for looking again.
pub fn waiting_counts_from(record: &Record) -> Option<Timestamp> {
    record.open_entries().map(|(_, change)| later(change.last_seen, STATUS_DELAY)).max()
}

#[cfg(test)]
mod tests;
