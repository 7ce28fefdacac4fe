//! What became of a rollout that restamp began: it stands in the record, beside the stamp.
//!
//! It is complete when as many pods carry the stamp and are ready as its controller counts. It has failed when its
//! controller says that it is late, or when a pod of it has been kept from running for a while by what does not mend itself.
//! That may come after it was complete, since one that crashes is ready in between; what comes after 15 minutes, or after
//! somebody else wrote the template, is not laid to the stamp. A failure stays until the next stamp.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::budget::SLOT_AT_MOST;
use crate::model::config::Configs;
use crate::model::custom::rollout::Lever;
use crate::model::delivered::{active, later};
use crate::model::digest::{ChangeId, Keyring};
use crate::model::names::{ConfigId, ConfigKind, ConfigName, Name, WorkloadKind};
use crate::model::observe::Sight;
use crate::model::pod::{Blocker, Pod};
use crate::model::record::{Answer, Before, Change, Entry, LastStamp, Record};
use crate::model::rerun::Run;
use crate::model::workload::{Deadline, Progress, Strategy, Workload};

/// What became of a rollout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    /// It is not finished, as far as that is known.
    #[default]
    Unfinished,
    /// All pods carry the stamp, and were ready.
    Complete,
    /// It failed.
    Failed,
}

impl Outcome {
    pub(crate) fn is_unfinished(&self) -> bool {
        *self == Self::Unfinished
    }
}

/// A change that a stamp was made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolledChange {
    /// The config, as `Kind/name`.
    pub config: ConfigName,
    /// The change.
    pub id: ChangeId,
}

impl RolledChange {
    /// The open changes of a record of this namespace, as there is now.
    pub fn all_open(record: &Record, namespace: &Name, configs: &Configs, keyring: &Keyring) -> Vec<Self> {
        let rolled = |(entry, change): (&Entry, &Change)| {
            let config = entry.config.within(namespace);
            Self { id: change_id(&config, Some(change), configs, keyring), config: entry.config.clone() }
        };
        record.open_entries().map(rolled).collect()
    }
}

/// The id of the change that brought a config to what it holds now. A SecretProviderClass holds nothing that is known: of it,
/// each change of what a workload's pods hold is one by itself.
pub fn change_id(config: &ConfigId, change: Option<&Change>, configs: &Configs, keyring: &Keyring) -> ChangeId {
    let key = keyring.current();
    if config.kind == ConfigKind::SecretProviderClass {
        let version = change.and_then(|change| change.version).map_or(0, |version| version.0);
        return key.change_of_version(config, version);
    }
    let values = configs.values(config);
    key.change_id(config, values.map(|values| values.iter().map(|(key, value)| (key, &value.fingerprint))))
}

/// How long a pod must be kept from running before its rollout has failed: a container may end once, since what it needs
/// was a moment late.
const KEPT_FOR: SignedDuration = SignedDuration::from_secs(30);

/// Since when a workload holds a slot.
pub fn slot(workload: &Workload, record: &Record, now: Timestamp) -> Option<Timestamp> {
    if workload.run != Run::NotOne || workload.deleting {
        return None;
    }
    let since = match (&record.attempt, &record.stamp) {
        (Some(attempt), _) => attempt.time,
        (None, Some(stamp)) if is_on_its_way(workload, stamp) => stamp.time,
        _ => return None,
    };
    // A clock that was set back since then must not make it longer.
    let since = since.min(now);
    (later(since, SLOT_AT_MOST) > now).then_some(since)
}

/// Since when a workload that was not seen yet holds a slot, by its record alone.
pub fn slot_by_record(record: &Record, now: Timestamp) -> Option<Timestamp> {
    let unfinished = record.stamp.as_ref().filter(|stamp| stamp.outcome == Outcome::Unfinished);
    let since = record.attempt.as_ref().or(unfinished)?.time.min(now);
    (later(since, SLOT_AT_MOST) > now).then_some(since)
}

/// Whether the rollout of this stamp is not finished, and goes on by itself.
fn is_on_its_way(workload: &Workload, stamp: &LastStamp) -> bool {
    stamp.outcome == Outcome::Unfinished && is_live(workload, stamp) && workload.strategy == Strategy::Rolling
}

fn is_live(workload: &Workload, stamp: &LastStamp) -> bool {
    workload.stamp.as_deref() == Some(stamp.text.as_str())
}

/// The configs with a change that has not ended for this workload: it was not stamped for it, or the rollout goes on.
pub fn pending<'a>(
    workload: &'a Workload,
    record: &'a Record,
    now: Timestamp,
) -> impl Iterator<Item = &'a ConfigName> + use<'a> {
    let open = record.open_entries().filter(|(_, change)| change.answer != Answer::Stamped);
    // A pod that carries the stamp has read the change before it is ready, which closes the entry.
    let going_on = slot(workload, record, now).into_iter().flat_map(|_| record.attempt.iter().chain(&record.stamp));
    let going_on = going_on.flat_map(|stamp| &stamp.changes).map(|change| &change.config);
    open.map(|(entry, _)| &entry.config).chain(going_on).filter(|_| !workload.deleting)
}

/// The changes that a failed rollout is laid to.
pub fn laid_to(record: &Record) -> impl Iterator<Item = &RolledChange> {
    let failed = |stamp: &&LastStamp| stamp.outcome == Outcome::Failed && stamp.before == Before::Settled;
    record.stamp.iter().filter(failed).flat_map(|stamp| &stamp.changes)
}

/// What became of the last stamp's rollout, where that is another thing than the record says.
pub fn outcome(record: &Record, sight: &Sight<'_>) -> Option<Outcome> {
    let stamp = record.stamp.as_ref().filter(|stamp| may_end(stamp, sight))?;
    let now = if blockers(stamp, sight).any(|since| later(since, KEPT_FOR) <= sight.now) || is_late(sight) {
        Outcome::Failed
    } else if stamp.outcome == Outcome::Unfinished && is_complete(record, stamp, sight) {
        Outcome::Complete
    } else {
        stamp.outcome
    };
    (now != stamp.outcome).then_some(now)
}

/// Whether it may show what became of the last stamp's rollout: it was made not long ago, and is still there.
pub fn is_followed(workload: &Workload, record: &Record, now: Timestamp) -> bool {
    let live = record.stamp.as_ref().filter(|stamp| is_live(workload, stamp) && stamp.outcome != Outcome::Failed);
    record.attempt.is_some() || live.is_some_and(|stamp| later(stamp.time, SLOT_AT_MOST) > now)
}

/// When a rollout may have ended that nothing happens to until then.
pub fn next_look(record: &Record, sight: &Sight<'_>) -> Option<Timestamp> {
    let stamp = record.stamp.as_ref().filter(|stamp| may_end(stamp, sight));
    let fails = stamp.into_iter().flat_map(|stamp| blockers(stamp, sight)).map(|since| later(since, KEPT_FOR));
    let ends = slot(sight.workload, record, sight.now).map(|since| later(since, SLOT_AT_MOST));
    fails.filter(|at| *at > sight.now).chain(ends).min()
}

/// Whether what happens to the workload's pods is the doing of this stamp.
fn may_end(stamp: &LastStamp, sight: &Sight<'_>) -> bool {
    let workload = sight.workload;
    let written = workload.template_written.as_ref().and_then(|written| written.time);
    stamp.outcome != Outcome::Failed
        && workload.run == Run::NotOne
        && is_live(workload, stamp)
        && workload.progress != Progress::Unobserved
        && later(stamp.time, SLOT_AT_MOST) > sight.now
        && written.is_none_or(|written| written <= stamp.time)
}

/// A Deployment's controller says that it makes no progress.
fn is_late(sight: &Sight<'_>) -> bool {
    sight.workload.deadline == Deadline::Exceeded && sight.workload.strategy == Strategy::Rolling
}

/// Since when pods of this stamp are kept from running by what may be the config's doing.
fn blockers<'a>(stamp: &'a LastStamp, sight: &'a Sight<'_>) -> impl Iterator<Item = Timestamp> + use<'a> {
    stamped(stamp, sight).filter_map(|pod| pod.blocked.as_ref()).filter_map(|blocked| match blocked.blocker {
        Blocker::Config | Blocker::Start | Blocker::Crash => blocked.since,
        Blocker::Image | Blocker::Unschedulable | Blocker::Starting | Blocker::NotReady => None,
    })
}

fn stamped<'a>(stamp: &'a LastStamp, sight: &'a Sight<'_>) -> impl Iterator<Item = &'a Pod> + use<'a> {
    active(sight).filter(|pod| pod.stamp.as_deref() == Some(stamp.text.as_str()))
}

fn is_complete(record: &Record, stamp: &LastStamp, sight: &Sight<'_>) -> bool {
    let is_open = record.open_entries().next().is_some();
    match (sight.workload.progress, sight.workload.id.kind, sight.workload.lever) {
        (Progress::Complete { pods }, kind, Lever::Template) if !matches!(kind, WorkloadKind::Custom(_)) => {
            let ready = stamped(stamp, sight).filter(|pod| pod.blocked.is_none()).count();
            i32::try_from(ready).is_ok_and(|ready| ready >= pods)
        }
        // Its pods may not be seen, or don't carry the stamp: that it was delivered shows that they are there.
        (Progress::Complete { pods }, ..) => pods == 0 || active(sight).all(|pod| pod.blocked.is_none()),
        (Progress::Unknown, ..) => !is_open,
        (Progress::InProgress | Progress::Unobserved, ..) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{PodBuilder, Scene, WorkloadBuilder, at, deployment, pod_of, running_since, scene};
    use rstest::rstest;

    fn w() -> WorkloadBuilder {
        deployment("w").stamp("s").progress(Progress::InProgress)
    }

    fn record(outcome: Outcome) -> Record {
        let stamp = LastStamp { outcome, before: Before::Settled, ..LastStamp::found("s".to_owned(), at(100)) };
        Record { stamp: Some(stamp), ..Record::default() }
    }

    fn stamped(name: &str) -> PodBuilder {
        pod_of("rs-1", name).stamp("s")
    }

    fn ends(scene: Scene) -> Option<Outcome> {
        scene.see(|sight| outcome(&record(Outcome::Unfinished), sight))
    }

    #[rstest]
    #[case::its_pods_are_ready(scene(w().progress(Progress::Complete { pods: 1 })).pod(stamped("p")), Some(Outcome::Complete))]
    #[case::without_pods(scene(w().progress(Progress::Complete { pods: 0 })), Some(Outcome::Complete))]
    #[case::one_is_missing(scene(w().progress(Progress::Complete { pods: 2 })).pod(stamped("p")), None)]
    #[case::one_is_not_ready(
        scene(w().progress(Progress::Complete { pods: 1 })).pod(stamped("p").blocked(Blocker::NotReady, 100)), None)]
    #[case::only_the_earlier_pods_are_seen(
        scene(w().progress(Progress::Complete { pods: 1 })).pod(running_since(0)), None)]
    #[case::it_goes_on(scene(w()).pod(stamped("p")), None)]
    #[case::it_is_late(scene(w().deadline(Deadline::Exceeded)), Some(Outcome::Failed))]
    #[case::paused(scene(w().deadline(Deadline::Exceeded).by_hand()), None)]
    #[case::it_crashes(scene(w()).pod(stamped("p").blocked(Blocker::Crash, 120)), Some(Outcome::Failed))]
    #[case::a_config_is_missing(scene(w()).pod(stamped("p").blocked(Blocker::Config, 120)), Some(Outcome::Failed))]
    #[case::it_crashed_once(scene(w()).pod(stamped("p").blocked(Blocker::Crash, 121)), None)]
    #[case::an_earlier_pod_crashes(scene(w()).pod(pod_of("rs-0", "p").blocked(Blocker::Crash, 0)), None)]
    #[case::an_image(scene(w()).pod(stamped("p").blocked(Blocker::Image, 100)), None)]
    #[case::another_stamp(scene(w().stamp("t").deadline(Deadline::Exceeded)), None)]
    fn a_rollout_ends_well_or_not(#[case] scene: Scene, #[case] expected: Option<Outcome>) {
        assert_eq!(ends(scene.second(150)), expected);
    }

    #[test]
    fn one_that_was_complete_for_a_moment_may_still_fail() {
        let crashing = |second| scene(w()).pod(stamped("p").blocked(Blocker::Crash, 400)).second(second);
        let ended = |scene: Scene, before| scene.see(|sight| outcome(&record(before), sight));
        assert_eq!(ended(crashing(430), Outcome::Complete), Some(Outcome::Failed));
        assert_eq!(ended(crashing(1_000), Outcome::Complete), None, "too late to be the stamp's doing");
        let mended = scene(w().progress(Progress::Complete { pods: 1 })).pod(stamped("p")).second(430);
        assert_eq!(ended(mended, Outcome::Failed), None, "a failure stays");
    }

    #[rstest]
    #[case::goes_on(w(), 999, true)]
    #[case::for_15_minutes(w(), 1_000, false)]
    #[case::somebody_else_rolled_it(w().stamp("t"), 200, false)]
    #[case::paused(w().by_hand(), 200, false)]
    #[case::being_deleted(w().deleting(), 200, false)]
    fn a_rollout_holds_a_slot(#[case] workload: WorkloadBuilder, #[case] second: i64, #[case] expected: bool) {
        let workload = workload.build();
        assert_eq!(slot(&workload, &record(Outcome::Unfinished), at(second)).is_some(), expected);
        assert_eq!(slot(&workload, &record(Outcome::Complete), at(200)), None);
        assert_eq!(slot(&workload, &record(Outcome::Failed), at(200)), None);
    }

    #[test]
    fn a_stamp_holds_a_slot_from_when_it_is_sent() {
        let mut record = record(Outcome::Complete);
        record.attempt = Some(LastStamp::found("t".to_owned(), at(300)));
        assert_eq!(slot(&w().build(), &record, at(301)), Some(at(300)));
        assert_eq!(slot(&w().build(), &record, at(250)), Some(at(250)), "the clock was set back");
    }
}
