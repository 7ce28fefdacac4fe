//! The model against a small cluster, in any order of events: no change is missed, and none rolls twice.

mod cluster;
mod fleet;
mod operator;
mod world;

use proptest::prelude::*;

use crate::model::decide::Decision;
use crate::model::names::WorkloadKind;
use cluster::{KEYS, READING_COUNT};
use world::{Step, World};

fn kinds() -> impl Strategy<Value = WorkloadKind> {
    prop_oneof![4 => Just(WorkloadKind::Deployment), 1 => Just(WorkloadKind::StatefulSet), 1 => Just(WorkloadKind::DaemonSet)]
}

/// By users.
fn edits() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..4usize, 0..2usize, 0..2u8).prop_map(|(config, key, value)| Step::Write { config: config / 3, key, value }),
        1 => (0..2usize, 0..2usize).prop_map(|(config, key)| Step::RemoveKey { config, key }),
        1 => (0..2usize).prop_map(|config| Step::Delete { config }),
        4 => (0..4u8).prop_map(Step::Image),
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
    let a_while = || prop_oneof![Just(10i64), Just(900), Just(2_500), Just(5_100), Just(11_000), Just(40_000)];
    let lagging = prop_oneof![2 => Just(0u8), 3 => (0..6u8).prop_map(|bit| 1 << bit), 2 => any::<u8>()];
    prop_oneof![
        12 => (0..6u8, a_while(), lagging).prop_map(|(rounds, millis, lagging)| Step::Flow { rounds, millis, lagging }),
        1 => (1..8u8).prop_map(Step::Control),
        2 => (0..9usize).prop_map(Step::RunPod),
        4 => (0..6usize, 1..20u8).prop_map(|(kind, events)| Step::Deliver { kind, events }),
        1 => prop_oneof![2 => a_while(), 1 => Just(700_000i64)].prop_map(|millis| Step::Wait { millis }),
        4 => (0..3usize, prop::bool::weighted(0.7)).prop_map(|(stamp, answer)| Step::Land { stamp, answer }),
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
    prop_oneof![4 => edits(), 1 => harmless(), 8 => moves(), 1 => faults()]
}

/// What makes it unclear which changes a stamp answers.
fn around_a_stamp() -> impl Strategy<Value = Step> {
    let a_while = prop_oneof![2 => Just(10i64), 2 => Just(900), 4 => Just(5_100), 2 => Just(40_000)];
    let lagging = prop_oneof![2 => Just(0u8), 3 => (0..6u8).prop_map(|bit| 1 << bit)];
    prop_oneof![
        5 => (0..3u8).prop_map(|value| Step::Write { config: 0, key: 0, value }),
        7 => (0..5u8, a_while, lagging).prop_map(|(rounds, millis, lagging)| Step::Flow { rounds, millis, lagging }),
        5 => (0..2usize, prop::bool::weighted(0.6)).prop_map(|(stamp, answer)| Step::Land { stamp, answer }),
        2 => Just(Step::TimeOut),
        2 => Just(Step::Crash),
        2 => Just(Step::Start),
        2 => Just(Step::WriteReport),
        1 => (0..4u8).prop_map(Step::Image),
        1 => (0..3usize).prop_map(Step::Scale),
        1 => (0..4usize).prop_map(Step::RestartContainer),
    ]
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

/// Whether the workload's containers read this key.
fn is_read(world: &World, config: usize, key: usize) -> bool {
    let reads = world.cluster.workload.iter().flat_map(|workload| workload.template.reads());
    let mut reads = reads.filter(|reads| reads.config == config);
    reads.any(|reads| reads.key.is_none_or(|only| only == KEYS[config][key]))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_is_missed(
        kind in kinds(), reading in 0..READING_COUNT, delay in prop_oneof![Just(0i64), Just(3_000)], is_adopted: bool,
        steps in prop::collection::vec(anything(), 0..60),
    ) {
        check(&run(kind, reading, delay, is_adopted, &steps))?;
    }

    #[test]
    fn no_change_is_missed_around_a_stamp(
        delay in prop_oneof![Just(0i64), Just(3_000)], steps in prop::collection::vec(around_a_stamp(), 0..25),
    ) {
        check(&run(WorkloadKind::Deployment, 0, delay, true, &steps))?;
    }

    /// Labels, unread keys, images, scaling, containers that restart, and any fault of the operator or its watches.
    #[test]
    fn without_a_change_nothing_rolls(
        kind in kinds(), reading in 0..READING_COUNT, is_adopted: bool,
        steps in prop::collection::vec(
            prop_oneof![
                3 => harmless(), 1 => (0..4u8).prop_map(Step::Image), 1 => (0..4usize).prop_map(Step::Scale),
                8 => moves(), 2 => faults(),
            ],
            0..40,
        ),
    ) {
        let world = run(kind, reading, 0, is_adopted, &steps);
        check(&world)?;
        prop_assert_eq!(world.cluster.stamps, 0, "{}", world.log);
    }

    /// Where nothing fails and nobody else edits: one rollout for the changes that come together, none for others.
    #[test]
    fn changes_that_come_together_roll_once(
        kind in kinds(), reading in 0..READING_COUNT,
        batches in prop::collection::vec(
            prop::collection::vec((0..2usize, 0..2usize, 0..3u8, 1..1_200i64), 1..5), 1..4,
        ),
        kinds_first: u64,
    ) {
        let mut world = World::new(kind, reading);
        world.come_to_rest();
        for batch in batches {
            let stamps = world.cluster.stamps;
            let mut is_changed = false;
            for (config, key, value, pause) in batch {
                let before = world.cluster.configs[config].as_ref().map(|it| it.content.clone());
                world.step(Step::Write { config, key, value });
                let after = world.cluster.configs[config].as_ref().map(|it| it.content.clone());
                is_changed |= before != after && is_read(&world, config, key);
                world.deliver_all_from(kinds_first);
                world.step(Step::Wait { millis: pause });
            }
            world.come_to_rest();
            check(&world)?;
            prop_assert_eq!(world.cluster.stamps - stamps, usize::from(is_changed), "{}", world.log);
        }
    }

    /// As `helm upgrade` does: somebody else's rollout brings the change, in whatever order its events come.
    #[test]
    fn a_config_and_then_an_image_roll_once(
        kind in kinds(), reading in 0..READING_COUNT, value in 1..3u8, pause in 1..4_000i64, kinds_first: u64,
        clock in -9..9i64,
        moves in prop::collection::vec(prop_oneof![
            (1..8u8).prop_map(Step::Control), (0..9usize).prop_map(Step::RunPod),
            (1..100i64).prop_map(|millis| Step::Wait { millis }),
        ], 0..20),
    ) {
        let mut world = World::new(kind, reading);
        world.come_to_rest();
        world.step(Step::SetClock { seconds: clock });
        world.step(Step::Write { config: 0, key: 0, value });
        world.deliver_all_from(kinds_first);
        world.step(Step::Wait { millis: pause });
        world.step(Step::Image(1));
        for step in moves {
            world.step(step);
            world.deliver_all_from(kinds_first);
        }
        world.run_cluster();
        world.deliver_all_from(kinds_first);
        world.come_to_rest();
        check(&world)?;
        prop_assert_eq!(world.cluster.stamps, 0, "{}", world.log);
    }
}
