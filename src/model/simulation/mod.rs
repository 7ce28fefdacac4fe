//! The model against a small cluster, in any order of events: no change is missed, and none rolls twice.

mod cluster;
mod operator;
mod world;

use proptest::prelude::*;

use crate::model::decide::Decision;
use crate::model::names::WorkloadKind;
use world::{Step, World};

fn kinds() -> impl Strategy<Value = WorkloadKind> {
    prop_oneof![4 => Just(WorkloadKind::Deployment), 1 => Just(WorkloadKind::StatefulSet), 1 => Just(WorkloadKind::DaemonSet)]
}

/// By users.
fn edits() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..2usize, 0..2usize, 0..3u8).prop_map(|(config, key, value)| Step::Write { config, key, value }),
        1 => (0..2usize, 0..2usize).prop_map(|(config, key)| Step::RemoveKey { config, key }),
        1 => (0..2usize).prop_map(|config| Step::Delete { config }),
        3 => (0..4u8).prop_map(Step::Image),
        2 => (0..4usize).prop_map(Step::Reading),
        2 => Just(Step::Undo),
        1 => Just(Step::Strip),
        1 => (0..4usize).prop_map(Step::Scale),
        1 => Just(Step::Pause),
        1 => Just(Step::CreateWorkload),
        1 => Just(Step::DeleteWorkload),
    ]
}

/// Nothing that a container reads is touched by these.
fn harmless() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..2usize).prop_map(|config| Step::Label { config }),
        (0..2usize, 0..3u8).prop_map(|(config, value)| Step::WriteUnread { config, value }),
        (0..9usize).prop_map(Step::RestartContainer),
    ]
}

/// In the cluster, and on the way to the operator.
fn moves() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..8u8).prop_map(Step::Control),
        5 => (0..9usize).prop_map(Step::RunPod),
        10 => (0..9usize, 1..20u8).prop_map(|(kind, events)| Step::Deliver { kind, events }),
        4 => prop_oneof![Just(10), Just(900), Just(2_500), Just(5_100), Just(11_000), Just(40_000), Just(700_000)]
            .prop_map(|millis| Step::Wait { millis }),
        2 => (0..3usize, any::<bool>()).prop_map(|(stamp, answer)| Step::Land { stamp, answer }),
        2 => Just(Step::WriteReport),
        1 => Just(Step::Start),
    ]
}

fn faults() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Crash),
        2 => Just(Step::TimeOut),
        2 => (0..9usize).prop_map(|kind| Step::Relist { kind }),
        1 => (-9..9i64).prop_map(|seconds| Step::SetClock { seconds }),
    ]
}

fn anything() -> impl Strategy<Value = Step> {
    prop_oneof![4 => edits(), 1 => harmless(), 10 => moves(), 1 => faults()]
}

fn run(kind: WorkloadKind, reading: usize, status_delay: i64, is_adopted: bool, steps: &[Step]) -> World {
    let mut world = World::new(kind, reading);
    world.cluster.status_delay = status_delay;
    if is_adopted {
        world.come_to_rest();
    }
    for step in steps {
        world.step(*step);
    }
    world.come_to_rest();
    world
}

/// No change is missed, unless the decision says why; and none rolls twice.
fn check(world: &World) -> Result<(), TestCaseError> {
    let decision = world.decision();
    let outdated = world.outdated();
    let says_why = match &decision {
        Some(Decision::Hold(_)) => true,
        Some(Decision::RollingOut) => !world.rolls(),
        Some(Decision::Nothing) | None => false,
        _ => return Err(TestCaseError::fail(format!("at rest: {decision:?}\n{}", world.log))),
    };
    prop_assert!(outdated.is_empty() || says_why, "missed: {decision:?} {outdated:#?}\n{}", world.log);
    prop_assert!(decision != Some(Decision::RollingOut) || !world.rolls(), "never closed\n{}", world.log);
    let (stamps, allowed) = (world.cluster.stamps, world.allowed);
    prop_assert!(stamps <= allowed, "{stamps} stamps, {allowed} allowed\n{}", world.log);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_is_missed(
        kind in kinds(), reading in 0..4usize, delay in prop_oneof![Just(0i64), Just(3_000)], is_adopted: bool,
        steps in prop::collection::vec(anything(), 0..60),
    ) {
        check(&run(kind, reading, delay, is_adopted, &steps))?;
    }
}
