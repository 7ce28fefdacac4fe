//! What is due for Jobs and CronJobs, a sentence for each rule.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::auto_reload::AutoReload;
use crate::model::builders::{Scene, WorkloadBuilder, at, config_map, cron_job, deployment, job, pod_of, scene};
use crate::model::counting::Counting;
use crate::model::decide::Hold;
use crate::model::names::ResourceVersion;
use crate::model::participation::Participation;

const CHANGED: i64 = 0;

fn reader(workload: WorkloadBuilder) -> WorkloadBuilder {
    workload.env_from("ConfigMap/c")
}

fn seen(workload: &WorkloadBuilder, value: &str, version: u64) -> Scene {
    scene(workload.clone()).config(config_map("c").value("A", value).at_version(version))
}

/// Its record after the config changed once.
fn record(workload: &WorkloadBuilder) -> Record {
    let mut record = seen(workload, "1", 9).second(-100).adopt();
    seen(workload, "2", 10).second(CHANGED).observe(&mut record);
    record
}

fn decided(workload: WorkloadBuilder, second: i64) -> Decision {
    let record = record(&workload);
    seen(&workload, "2", 10).second(second).decide(&record)
}

fn active_schedule(overlap: Overlap, running: usize, last: Option<i64>) -> Run {
    Run::CronJob(Schedule::Active { overlap, running, last: last.map(at) })
}

#[rstest]
#[case::at_once(JobPhase::Due, 0, Decision::Wait { until: at(5), reason: WaitReason::Settling })]
#[case::when_configs_are_quiet(JobPhase::Due, 6, Decision::Stamp)]
#[case::that_has_succeeded(JobPhase::Succeeded, 6, Decision::Close)]
#[case::that_is_suspended(JobPhase::Suspended, 6, Decision::Close)]
fn a_job_is_made_again_unless_it_needs_nothing(
    #[case] phase: JobPhase,
    #[case] second: i64,
    #[case] expected: Decision,
) {
    assert_eq!(decided(reader(job("w")).run(Run::Job(phase)), second), expected);
}

#[test]
fn a_job_whose_pods_were_all_made_after_the_change_is_not_made_again() {
    let workload = reader(job("w"));
    let record = record(&workload);
    let with_pod = |pod| seen(&workload, "2", 10).pod(pod).second(6).decide(&record);
    assert_eq!(with_pod(pod_of("w", "old").started("app", -50)), Decision::Stamp);
    assert_eq!(with_pod(pod_of("w", "new").made(1, 11)), Decision::Close);
}

#[test]
fn a_job_that_is_being_deleted_is_left_to_that() {
    assert_eq!(decided(reader(job("w")).deleting(), 6), Decision::Hold(Hold::BeingDeleted));
}

#[test]
fn a_job_that_makes_way_is_not_made_again_twice() {
    let workload = reader(job("w"));
    let mut record = record(&workload);
    record.ask("s".to_owned(), at(6));
    assert!(record.confirm("s"));
    let scene = seen(&workload.clone().deleting(), "2", 10);
    assert_eq!(scene.second(7).decide(&record), Decision::RollingOut);
    seen(&workload, "3", 12).second(8).observe(&mut record);
    assert_eq!(seen(&workload, "3", 12).second(20).decide(&record), Decision::Stamp, "for what changed after that");
}

#[rstest]
#[case::that_is_idle(active_schedule(Overlap::Barred, 0, None), Decision::Stamp)]
#[case::that_runs_and_may_overlap(active_schedule(Overlap::Allowed, 1, None), Decision::Stamp)]
#[case::that_runs(
    active_schedule(Overlap::Barred, 1, None),
    Decision::Wait { until: at(606), reason: WaitReason::RunInProgress }
)]
#[case::that_ran_before_the_change(active_schedule(Overlap::Barred, 0, Some(29)), Decision::Stamp)]
#[case::that_ran_since(active_schedule(Overlap::Barred, 1, Some(30)), Decision::Close)]
#[case::that_is_suspended(Run::CronJob(Schedule::Suspended), Decision::Close)]
fn a_cron_job_runs_once_for_a_change(#[case] run: Run, #[case] expected: Decision) {
    assert_eq!(decided(reader(cron_job("w")).run(run), 6), expected);
}

#[test]
fn a_change_of_a_cron_job_is_delivered_by_its_run() {
    let workload = reader(cron_job("w"));
    let mut record = record(&workload);
    record.ask("s".to_owned(), at(6));
    assert!(record.confirm("s"));
    assert_eq!(seen(&workload, "2", 10).second(7).decide(&record), Decision::Close);
}

#[test]
fn a_run_has_the_same_name_for_the_same_changes_and_another_one_for_others() {
    let workload = reader(cron_job(&"n".repeat(52)));
    let name = |record: &Record| {
        let id = workload.clone().build().id;
        name_of_run(&id, &"u".into(), &Digest::from_text("d"), record).to_string()
    };
    let first = name(&record(&workload));
    assert_eq!(first.len(), 63);
    assert_eq!(name(&record(&workload)), first);
    let mut again = record(&workload);
    seen(&workload, "1", 11).second(50).observe(&mut again);
    seen(&workload, "2", 12).second(60).observe(&mut again);
    assert_ne!(name(&again), first, "the content of before, written again");
}

#[rstest]
#[case::a_job(job("w"), Reruns::Yes, true)]
#[case::a_job_by_default(job("w"), Reruns::No, false)]
#[case::a_job_of_a_controller(job("w").owned_by_a_controller(), Reruns::Yes, false)]
#[case::a_cron_job(cron_job("w"), Reruns::Yes, true)]
#[case::a_cron_job_by_default(cron_job("w"), Reruns::No, false)]
#[case::any_other(deployment("w"), Reruns::No, true)]
fn what_is_not_asked_for_does_not_count(
    #[case] workload: WorkloadBuilder,
    #[case] reruns: Reruns,
    #[case] expected: bool,
) {
    let participation = Participation { reruns, ..Participation::default() };
    let workload = workload.build();
    let counting = participation.counting(&workload, &workload.opt_in, AutoReload::Off, None);
    assert_eq!(counting == Counting::everything(), expected);
    assert_eq!(counting.is_off(), !expected);
}

fn conditions(conditions: &[(&str, &str)]) -> Value {
    let all = conditions.iter().map(|(r#type, status)| json!({"type": r#type, "status": status}));
    json!({"conditions": all.collect::<Vec<_>>()})
}

#[rstest]
#[case::new(json!({}), json!(null), JobPhase::Due)]
#[case::failed(json!({}), conditions(&[("FailureTarget", "True"), ("Failed", "True")]), JobPhase::Due)]
#[case::resumed(json!({"suspend": false}), conditions(&[("Suspended", "False")]), JobPhase::Due)]
#[case::suspended(json!({"suspend": true}), conditions(&[("Suspended", "True")]), JobPhase::Suspended)]
#[case::about_to_succeed(json!({}), conditions(&[("SuccessCriteriaMet", "True")]), JobPhase::Succeeded)]
#[case::succeeded(json!({"suspend": true}), conditions(&[("Complete", "True")]), JobPhase::Succeeded)]
fn a_job_tells_how_far_it_is(#[case] spec: Value, #[case] status: Value, #[case] expected: JobPhase) {
    let mut job = json!({"metadata": {}, "spec": {"template": {}}, "status": status});
    job["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    assert_eq!(Run::of_job(&serde_json::from_value(job).unwrap()), Run::Job(expected));
}

#[rstest]
#[case::new(json!({}), json!(null), active_schedule(Overlap::Allowed, 0, None))]
#[case::suspended(json!({"suspend": true}), json!({"active": [{}]}), Run::CronJob(Schedule::Suspended))]
#[case::running(
    json!({"concurrencyPolicy": "Forbid"}),
    json!({"active": [{}], "lastScheduleTime": at(60).to_string()}),
    active_schedule(Overlap::Barred, 1, Some(60))
)]
#[case::replacing(json!({"concurrencyPolicy": "Replace"}), json!({}), active_schedule(Overlap::Barred, 0, None))]
#[case::allowing(json!({"concurrencyPolicy": "Allow"}), json!({}), active_schedule(Overlap::Allowed, 0, None))]
fn a_cron_job_tells_how_it_runs(#[case] spec: Value, #[case] status: Value, #[case] expected: Run) {
    let template = json!({"spec": {"template": {}}});
    let mut cron_job = json!({
        "metadata": {}, "spec": {"schedule": "0 0 1 1 *", "jobTemplate": template}, "status": status,
    });
    cron_job["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    assert_eq!(Run::of_cron_job(&serde_json::from_value(cron_job).unwrap()), expected);
}

#[test]
fn what_changed_without_a_version_has_a_name_too() {
    let workload = reader(cron_job("w"));
    let mut record = record(&workload);
    record.open_changes_mut().for_each(|change| change.version = None);
    let id = workload.build().id;
    let name = name_of_run(&id, &"u".into(), &Digest::from_text("d"), &record);
    record.open_changes_mut().for_each(|change| change.version = Some(ResourceVersion(1)));
    assert_ne!(name_of_run(&id, &"u".into(), &Digest::from_text("d"), &record), name);
}
