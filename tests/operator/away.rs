//! Operators that end, crash and come back.

use serde_json::json;

use crate::rerun_jobs;
use crate::support::kind::{CRON_JOB, DEPLOYMENT, DRIFT_REPORT, JOB};
use crate::support::manifests::{config_map, cron_job, deployment};
use crate::support::namespace::{stamp, state};
use crate::support::{Turn, turn};

#[tokio::test]
async fn a_restart_rolls_nothing() {
    let turn = turn().await;
    let ns = turn.namespace("restart").await;
    let operator = turn.operator(&[]).await;
    let both = [deployment("never-rolled").env_from_config_map("c"), deployment("rolled").env_from_config_map("d")];
    let [never_rolled, rolled] = both.map(Into::into);
    ns.apply(&[config_map("c", &[("K", "1")]), config_map("d", &[("K", "1")]), never_rolled, rolled]);
    let never_rolled = ns.adopted(DEPLOYMENT, "never-rolled").await;
    let rolled = ns.adopted(DEPLOYMENT, "rolled").await;
    ns.apply(&[config_map("d", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "rolled", "").await;

    operator.stop().await;
    let operator = turn.operator(&[]).await;
    ns.operator_has_caught_up().await;
    operator.kill();
    let _operator = turn.operator(&[]).await;
    ns.operator_has_caught_up().await;

    assert_eq!((never_rolled.rollouts().await, rolled.rollouts().await), (0, 1));
}

#[tokio::test]
async fn a_report_by_somebody_else_about_the_same_workload_counts_for_nothing() {
    let turn = turn().await;
    let ns = turn.namespace("forged").await;
    let operator = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;
    let mut report = ns.get(DRIFT_REPORT, "deployment-w").await.unwrap();
    operator.kill();

    report["metadata"] = json!({"name": "zzz", "ownerReferences": report["metadata"]["ownerReferences"]});
    report["status"]["reload"]["instance"] = json!("elsewhere");
    ns.kubectl_reading(&report.to_string(), &["create", "--filename=-"]);
    let status = json!({"status": report["status"]}).to_string();
    ns.kubectl(&["patch", "driftreport", "zzz", "--subresource=status", "--type=merge", "--patch", &status]);
    let _operator = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn a_change_while_the_operator_is_away_is_caught_when_it_returns() {
    let turn = turn().await;
    let ns = turn.namespace("away").await;
    let operator = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;

    operator.stop().await;
    ns.apply(&[config_map("c", &[("K", "2")])]);
    assert_eq!(history.rollouts().await, 0);
    let _operator = turn.operator(&[]).await;
    ns.reloaded(DEPLOYMENT, "w", "").await;
    ns.operator_has_caught_up().await;

    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn a_crash_between_stamp_and_record_loses_nothing_even_if_the_content_is_set_back_meanwhile() {
    let turn = turn().await;
    let ns = turn.namespace("crash").await;
    let operator = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "a")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;

    let records = ReportsReadOnly::on(&turn);
    ns.apply(&[config_map("c", &[("K", "b")])]);
    let workload = ns.until(DEPLOYMENT, "w", "to carry a stamp", |workload| !stamp(workload).is_empty()).await;
    let on_b = stamp(&workload).to_owned();
    operator.kill();
    let report = ns.get(DRIFT_REPORT, "deployment-w").await.unwrap();
    assert!(!report.to_string().contains(&on_b), "the stamp was recorded: nothing is shown by this");
    // Pods start on b, and then it is a again, as the record says.
    ns.rolled_out(DEPLOYMENT, "w").await;
    ns.apply(&[config_map("c", &[("K", "a")])]);
    records.writable_again();

    let _operator = turn.operator(&[]).await;
    ns.reloaded(DEPLOYMENT, "w", &on_b).await;
    ns.operator_has_caught_up().await;
    assert_eq!(history.rollouts().await, 2);
}

#[tokio::test]
async fn a_crash_between_stamp_and_record_does_not_roll_twice() {
    let turn = turn().await;
    let ns = turn.namespace("crash").await;
    let operator = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "a")]), deployment("w").env_from_config_map("c").into()]);
    let history = ns.adopted(DEPLOYMENT, "w").await;

    let records = ReportsReadOnly::on(&turn);
    ns.apply(&[config_map("c", &[("K", "b")])]);
    ns.until(DEPLOYMENT, "w", "to carry a stamp", |workload| !stamp(workload).is_empty()).await;
    operator.kill();
    records.writable_again();

    let _operator = turn.operator(&[]).await;
    ns.operator_has_caught_up().await;
    ns.until(DRIFT_REPORT, "deployment-w", "to be current", |report| state(report) == "Current").await;
    assert_eq!(history.rollouts().await, 1);
}

#[tokio::test]
async fn a_crash_between_the_run_of_a_cron_job_and_its_record_runs_it_no_second_time() {
    let turn = turn().await;
    let ns = turn.namespace("cron-crash").await;
    let operator = rerun_jobs::operator(&turn, &[]).await;
    ns.apply(&[config_map("c", &[("K", "a")]), cron_job("cj")]);
    rerun_jobs::adopted(&ns, CRON_JOB, "cj").await;

    let records = ReportsReadOnly::on(&turn);
    ns.apply(&[config_map("c", &[("K", "b")])]);
    ns.until_all(JOB, "to be run", |jobs| !jobs.is_empty()).await;
    operator.kill();
    let report = ns.get(DRIFT_REPORT, "cronjob-cj").await.unwrap();
    assert!(!report.to_string().contains("\"stamp\""), "the run was recorded: nothing is shown by this");
    records.writable_again();

    let _operator = turn.operator(&[rerun_jobs::RERUN]).await;
    ns.until(DRIFT_REPORT, "cronjob-cj", "to say that it ran", |report| {
        state(report) == "Current" && !report["status"]["reload"]["lastReload"].is_null()
    })
    .await;
    assert_eq!(rerun_jobs::job_names(&ns).await.len(), 1);
}

#[tokio::test]
async fn a_restart_of_the_control_plane_rolls_nothing_and_ends_nothing() {
    let turn = turn().await;
    let ns = turn.namespace("control-plane").await;
    let operator = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), deployment("w").env_from_config_map("c").into()]);
    ns.adopted(DEPLOYMENT, "w").await;

    turn.cluster().restart("kube-apiserver");
    turn.cluster().restart("etcd");
    ns.operator_has_caught_up().await;
    assert_eq!(ns.get(DEPLOYMENT, "w").await.unwrap()["metadata"]["generation"], 1);
    ns.apply(&[config_map("c", &[("K", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    operator.stop().await;
}

/// While it is there, the operator can't write its reports, and so no records.
struct ReportsReadOnly<'a> {
    turn: &'a Turn,
    role: String,
}

impl<'a> ReportsReadOnly<'a> {
    fn on(turn: &'a Turn) -> Self {
        let role = turn.cluster().kubectl(&["get", "clusterrole", "restamp", "--output=json"]);
        let mut read_only: serde_json::Value = serde_json::from_str(&role).unwrap();
        let rules = read_only["rules"].as_array_mut().unwrap();
        for rule in rules.iter_mut().filter(|rule| rule["apiGroups"][0] == "restamp.dev") {
            rule["verbs"] = serde_json::json!(["get", "list", "watch"]);
        }
        turn.cluster().kubectl_reading(&read_only.to_string(), &["replace", "--filename=-"]);
        let this = Self { turn, role };
        this.until_writing_is("no");
        this
    }

    fn writable_again(self) {
        let mut role: serde_json::Value = serde_json::from_str(&self.role).unwrap();
        role["metadata"]["resourceVersion"].take();
        self.turn.cluster().kubectl_reading(&role.to_string(), &["replace", "--filename=-"]);
        self.until_writing_is("yes");
    }

    /// The API server learns of a changed role a moment later.
    fn until_writing_is(&self, expected: &str) {
        let account = "--as=system:serviceaccount:restamp-system:restamp";
        let kubeconfig = self.turn.cluster().kubeconfig();
        let ask = || {
            let question = ["auth", "can-i", "patch", "driftreports.restamp.dev", "--subresource=status", account];
            let answer = self.turn.cluster().kubectl_with(&kubeconfig, &question, "");
            String::from_utf8(answer.stdout).unwrap().trim().to_owned()
        };
        assert!((0..100).any(|_| ask() == expected), "the role has no effect");
    }
}
