//! `RolloutStalled`: a rollout that makes no progress. A Deployment's controller says so; a StatefulSet or DaemonSet has
//! no deadline, and stalls where a pod of the new revision has long been kept from starting by what does not mend itself.

use jiff::{SignedDuration, Timestamp};

use super::{Finding, WorkloadSight};
use crate::model::delivered::later;
use crate::model::names::Name;
use crate::model::pod::{Blocked, Pod};
use crate::model::record::Before;
use crate::model::revision;
use crate::model::workload::{Deadline, Progress, Strategy};

/// After this time a pod that can't start stalls a rollout that has no deadline: a Deployment's is the same by default.
const DEADLINE: SignedDuration = SignedDuration::from_mins(10);

/// A rollout that makes no progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    /// The pod that blocks it, and what blocks the pod.
    pub pod: Option<(Name, Blocked)>,
    /// What changed, where a stamp of ours caused the rollout, and the one before had gone well; empty where that is not known.
    pub our_cause: Option<String>,
}

/// The stall, if there is one.
pub(super) fn find(sight: &WorkloadSight<'_>) -> Vec<Finding> {
    stall(sight).map(Finding::RolloutStalled).into_iter().collect()
}

/// Whether, and by what, the rollout stalls. One that is paused or left to its owner does not.
pub(super) fn stall(sight: &WorkloadSight<'_>) -> Option<Stall> {
    let workload = sight.workload;
    if workload.deleting || workload.strategy != Strategy::Rolling || workload.progress == Progress::Unobserved {
        return None;
    }
    let pod = match workload.deadline {
        Deadline::Kept => return None,
        Deadline::Exceeded => worst(blocked(sight)),
        Deadline::Absent => Some(worst(
            lasting(sight)
                .filter(|(_, since, _)| later(*since, DEADLINE) <= sight.now)
                .map(|(pod, _, blocked)| (pod, blocked)),
        )?),
    };
    Some(Stall { pod: pod.map(|(pod, blocked)| (pod.name.clone(), blocked.clone())), our_cause: our_cause(sight) })
}

/// When a rollout without a deadline stalls, if nothing happens until then.
pub(super) fn next_look(sight: &WorkloadSight<'_>) -> Option<Timestamp> {
    let is_without = sight.workload.deadline == Deadline::Absent;
    let stalls = lasting(sight).filter(|_| is_without).map(|(_, since, _)| later(since, DEADLINE));
    stalls.filter(|stall| *stall > sight.now).min()
}

/// The pods of the new revision that are not ready.
fn blocked<'a>(sight: &WorkloadSight<'a>) -> impl Iterator<Item = (&'a Pod, &'a Blocked)> + use<'a> {
    let is_new = revision::of_the_template(&sight.own_pods);
    let new = sight.active().filter(move |pod| is_new.as_ref().is_some_and(|is_new| is_new(pod)));
    new.filter_map(|pod| Some((pod, pod.blocked.as_ref()?)))
}

/// Those among them for which waiting is no help, and since when.
fn lasting<'a>(sight: &WorkloadSight<'a>) -> impl Iterator<Item = (&'a Pod, Timestamp, &'a Blocked)> + use<'a> {
    let lasting = blocked(sight).filter(|(_, blocked)| blocked.blocker.is_lasting());
    lasting.filter_map(|(pod, blocked)| Some((pod, blocked.since?, blocked)))
}

/// The same of several pods, whatever their order.
fn worst<'a>(pods: impl Iterator<Item = (&'a Pod, &'a Blocked)>) -> Option<(&'a Pod, &'a Blocked)> {
    pods.min_by_key(|(pod, blocked)| (blocked.blocker, &pod.name))
}

fn our_cause(sight: &WorkloadSight<'_>) -> Option<String> {
    let stamp = sight.reloading?.record.stamp.as_ref()?;
    // What kept the pods before from starting keeps the stamped ones too.
    let went_well = stamp.before == Before::Settled;
    (went_well && sight.workload.stamp.as_deref() == Some(stamp.text.as_str())).then(|| stamp.cause.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{
        PodBuilder, Scene, WorkloadBuilder, at, deployment, pod_of, running_since, scene, stateful_set,
    };
    use crate::model::decide::Decision;
    use crate::model::drift::Reloading;
    use crate::model::pod::Blocker;
    use crate::model::record::{LastStamp, Record};
    use crate::model::workload::Revision;
    use rstest::rstest;

    fn late() -> WorkloadBuilder {
        deployment("w").progress(Progress::InProgress).deadline(Deadline::Exceeded)
    }

    fn slow() -> WorkloadBuilder {
        let workload = stateful_set("w").progress(Progress::InProgress).deadline(Deadline::Absent);
        workload.revision(Revision::Hash(Some("new".to_owned())))
    }

    fn of(hash: &str, blocker: Blocker) -> PodBuilder {
        pod_of("w", "w-1").hash(hash).blocked(blocker, 0)
    }

    fn blocking(scene: Scene) -> Option<Option<(String, Blocker)>> {
        let pod = |stall: Stall| stall.pod.map(|(pod, blocked)| (pod.to_string(), blocked.blocker));
        scene.look(|sight| stall(sight).map(pod))
    }

    #[rstest]
    #[case::past_its_deadline(
        scene(late()).pod(pod_of("rs-1", "p").blocked(Blocker::Image, 0)), Some(Some(("p".to_owned(), Blocker::Image))))]
    #[case::past_it_with_no_pod_at_all(scene(late()), Some(None))]
    #[case::the_old_pods_do_not_block_it(
        scene(late()).pod(pod_of("rs-0", "p").blocked(Blocker::Crash, 0)), Some(None))]
    #[case::the_worst_is_named(
        scene(late()).pod(pod_of("rs-1", "p").blocked(Blocker::NotReady, 0)).pod(pod_of("rs-1", "q").blocked(Blocker::Crash, 9)),
        Some(Some(("q".to_owned(), Blocker::Crash))))]
    #[case::in_time(scene(deployment("w").progress(Progress::InProgress)).pod(running_since(0)), None)]
    #[case::paused_since(scene(late().by_hand()), None)]
    #[case::edited_since(scene(late().progress(Progress::Unobserved)), None)]
    #[case::being_deleted(scene(late().deleting()), None)]
    fn a_deployment_stalls_when_its_controller_says_so(
        #[case] scene: Scene,
        #[case] expected: Option<Option<(String, Blocker)>>,
    ) {
        assert_eq!(blocking(scene), expected);
    }

    #[rstest]
    #[case::long_enough(scene(slow()).pod(of("new", Blocker::Crash)).second(600), true)]
    #[case::not_yet(scene(slow()).pod(of("new", Blocker::Crash)).second(599), false)]
    #[case::an_old_pod(scene(slow()).pod(of("old", Blocker::Crash)).second(600), false)]
    #[case::slow_to_be_ready(scene(slow()).pod(of("new", Blocker::NotReady)).second(9_000), false)]
    #[case::a_large_image(scene(slow()).pod(of("new", Blocker::Starting)).second(9_000), false)]
    #[case::on_its_way_out(scene(slow()).pod(of("new", Blocker::Crash).over()).second(600), false)]
    #[case::finished(scene(slow().deadline(Deadline::Kept)).pod(of("new", Blocker::Crash)).second(600), false)]
    #[case::on_delete(scene(slow().by_hand()).pod(of("new", Blocker::Crash)).second(600), false)]
    fn a_stateful_set_stalls_when_a_new_pod_cannot_start_for_long(#[case] scene: Scene, #[case] expected: bool) {
        assert_eq!(blocking(scene).is_some(), expected);
    }

    #[test]
    fn it_is_looked_at_again_when_it_would_stall() {
        let scene = |second| scene(slow()).pod(of("new", Blocker::Crash)).second(second);
        assert_eq!(scene(5).look(next_look), Some(at(600)));
        assert_eq!(scene(600).look(next_look), None);
    }

    #[rstest]
    #[case::ours("s", Before::Settled, Some("key K of ConfigMap c changed".to_owned()))]
    #[case::somebody_elses("t", Before::Settled, None)]
    #[case::what_did_not_start_before("s", Before::Unsettled, None)]
    fn a_stamp_of_ours_is_named_as_the_cause(
        #[case] live: &str,
        #[case] before: Before,
        #[case] expected: Option<String>,
    ) {
        let cause = "key K of ConfigMap c changed".to_owned();
        let stamp = LastStamp { cause, before, ..LastStamp::found("s".to_owned(), at(0)) };
        let record = Record { stamp: Some(stamp), ..Record::default() };
        let found = scene(late().stamp(live)).look(|sight| {
            let reloading = Reloading { record: &record, decision: &Decision::RollingOut, obstacle: None };
            stall(&WorkloadSight { reloading: Some(reloading), ..*sight })
        });
        assert_eq!(found.unwrap().our_cause, expected);
    }
}
