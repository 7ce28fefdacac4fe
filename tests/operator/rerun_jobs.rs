//! Jobs and CronJobs: left alone by default, made again and run once with `--rerun-jobs`.

use jiff::Timestamp;
use restamp::model::rerun::placeholder::name_of;
use serde_json::{Value, json};

use crate::adoption::second_installation;
use crate::scope::{grant_role, grant_roles};
use crate::support::cluster::{Cluster, repository};
use crate::support::kind::{CONFIG_MAP, CRON_JOB, DRIFT_REPORT, EVENT, JOB, Kind, POD};
use crate::support::manifests::{config_map, cron_job, job, job_spec};
use crate::support::namespace::{Namespace, report_name, state};
use crate::support::operator::Operator;
use crate::support::{Flag, Turn, turn};

pub const RERUN: Flag<'static> = ("--rerun-jobs", "");

fn install(cluster: &Cluster) {
    cluster.kubectl(&[
        "apply",
        "--filename",
        repository("deploy/kustomize/components/rerun-jobs/role.yaml").to_str().unwrap(),
    ]);
}

/// An operator with the flag, and with the rights for it.
pub async fn operator(turn: &Turn, flags: &[Flag<'_>]) -> Operator {
    install(turn.cluster());
    turn.operator(&[&[RERUN], flags].concat()).await
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap()
}

pub fn change(ns: &Namespace, value: &str) {
    ns.apply(&[config_map("c", &[("K", value)])]);
}

/// Waits until the operator knows this object and has nothing to do about it.
pub async fn adopted(ns: &Namespace, kind: Kind, name: &str) -> Value {
    let object = ns.until(kind, name, "to exist", |_| true).await;
    ns.until(DRIFT_REPORT, &report_name(kind, name), "to be current", |report| {
        report["metadata"]["ownerReferences"][0]["uid"] == object["metadata"]["uid"] && state(report) == "Current"
    })
    .await;
    object
}

/// A Job whose pod has read the config and runs: kwok leaves it pending, so its status is written here.
async fn running(ns: &Namespace, name: &str) -> Value {
    let of_job = |pod: &&Value| pod["metadata"]["labels"]["app"] == name;
    let shown = |pod: &Value| !pod["status"]["containerStatuses"].is_null();
    let pods = ns.until_all(POD, "to be shown", |pods| pods.iter().find(of_job).is_some_and(shown)).await;
    let pod = pods.iter().find(of_job).unwrap();
    let running = json!({"running": {"startedAt": Timestamp::now().to_string()}});
    let status = json!({"status": {"containerStatuses": [
        {"name": "app", "image": "i", "imageID": "", "restartCount": 0, "ready": true, "started": true, "state": running},
    ]}});
    let pod = pod["metadata"]["name"].as_str().unwrap();
    ns.kubectl(&["patch", "pod", pod, "--subresource=status", "--type=merge", "--patch", &status.to_string()]);
    adopted(ns, JOB, name).await
}

async fn made_again(ns: &Namespace, before: &Value) -> Value {
    let name = before["metadata"]["name"].as_str().unwrap();
    ns.until(JOB, name, "to be made again", |job| uid(job) != uid(before)).await;
    adopted(ns, JOB, name).await
}

pub async fn job_names(ns: &Namespace) -> Vec<String> {
    let jobs = ns.list(JOB).await;
    jobs.iter().map(|job| job["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn by_default_jobs_and_cron_jobs_are_left_alone() {
    let turn = turn().await;
    let ns = turn.namespace("jobs-default").await;
    let _operator = turn.operator(&[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), job("w", false), cron_job("cj")]);
    let before = ns.until(JOB, "w", "to run", |job| job["status"]["active"] == 1).await;
    change(&ns, "2");
    ns.operator_has_caught_up().await;
    assert_eq!(uid(&ns.get(JOB, "w").await.unwrap()), uid(&before));
    assert_eq!(job_names(&ns).await, ["w"]);
    assert_eq!(ns.get(DRIFT_REPORT, "job-w").await, None);
    assert_eq!(ns.get(DRIFT_REPORT, "cronjob-cj").await, None);
}

#[tokio::test]
async fn a_job_that_one_installation_made_again_stays_with_it() {
    let turn = turn().await;
    let [ns, own] = [turn.namespace("jobs-shared").await, turn.namespace("jobs-second").await];
    let first = operator(&turn, &[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), job("w", false)]);
    let before = running(&ns, "w").await;
    let _second = second_installation(&turn, &own, &[RERUN]).await;
    own.operator_has_caught_up().await;
    change(&ns, "2");
    let after = ns.until(JOB, "w", "to be made again", |job| uid(job) != uid(&before)).await;
    assert_eq!(after["metadata"]["annotations"]["restamp.dev/made-by"], "restamp-system");
    own.operator_has_caught_up().await;
    adopted(&ns, JOB, "w").await;
    let report = ns.get(DRIFT_REPORT, "job-w").await.unwrap();
    assert_eq!(report["status"]["reload"]["instance"], "restamp-system", "{}", first.log());
}

#[tokio::test]
async fn a_running_job_is_made_again_once_and_keeps_what_its_owner_wrote() {
    let turn = turn().await;
    let ns = turn.namespace("job-again").await;
    let operator = operator(&turn, &[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), job("w", false)]);
    let before = running(&ns, "w").await;
    change(&ns, "2");
    let after = made_again(&ns, &before).await;

    let kept = |job: &Value| {
        let mut job = job.clone();
        let annotations = job["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.retain(|name, _| !name.starts_with("restamp.dev/made-"));
        for label in
            ["controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"]
        {
            job["spec"]["template"]["metadata"]["labels"].as_object_mut().unwrap().remove(label);
        }
        let stamp = "restamp.dev/config-hash";
        let annotations = job["spec"]["template"]["metadata"]["annotations"].as_object_mut();
        let is_stamped = annotations.is_some_and(|annotations| annotations.remove(stamp).is_some());
        job["spec"]["template"]["metadata"].as_object_mut().unwrap().remove("annotations");
        job["spec"].as_object_mut().unwrap().remove("selector");
        (json!([job["spec"], job["metadata"]["labels"], job["metadata"]["annotations"]]), is_stamped)
    };
    assert_eq!((kept(&before).0, true), kept(&after));
    assert!(after["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].is_string());
    assert!(ns.apply(&[job("w", false)]).contains("unchanged"));

    ns.operator_has_caught_up().await;
    assert_eq!(uid(&ns.get(JOB, "w").await.unwrap()), uid(&after));
    assert_eq!(job_names(&ns).await, ["w"]);
    let said = ns.events(JOB, "w", "Reloaded").await;
    assert_eq!(said, ["Reloading: key K of ConfigMap c changed; the Job was made again"]);
    assert!(ns.events(CONFIG_MAP, "c", "ConfigChanged").await[0].contains("1 workload"));

    operator.stop().await;
    let _operator = turn.operator(&[RERUN]).await;
    ns.operator_has_caught_up().await;
    assert_eq!(uid(&ns.get(JOB, "w").await.unwrap()), uid(&after), "a restart made it again");
    change(&ns, "3");
    made_again(&ns, &after).await;
}

#[tokio::test]
async fn a_job_that_has_succeeded_or_that_a_controller_owns_is_left_alone() {
    let turn = turn().await;
    let ns = turn.namespace("job-done").await;
    let _operator = operator(&turn, &[]).await;
    let mut owned = job("owned", false);
    owned["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "controller": true, "uid": "will be known"},
    ]);
    ns.apply(&[config_map("c", &[("K", "1")]), job("w", true)]);
    owned["metadata"]["ownerReferences"][0]["uid"] = ns.get(CONFIG_MAP, "c").await.unwrap()["metadata"]["uid"].clone();
    ns.apply(&[owned]);
    ns.until(JOB, "w", "to succeed", |job| {
        job["status"]["succeeded"] == 1 && !job["status"]["completionTime"].is_null()
    })
    .await;
    let done = adopted(&ns, JOB, "w").await;
    let owned = ns.get(JOB, "owned").await.unwrap();

    change(&ns, "2");
    ns.operator_has_caught_up().await;
    assert_eq!(uid(&ns.get(JOB, "w").await.unwrap()), uid(&done));
    assert_eq!(uid(&ns.get(JOB, "owned").await.unwrap()), uid(&owned));
    assert_eq!(ns.events(CONFIG_MAP, "c", "ConfigChanged").await, [""; 0]);
}

#[tokio::test]
async fn a_job_that_the_api_server_would_not_take_again_stays_until_it_would() {
    let turn = turn().await;
    let ns = turn.namespace("job-refused").await;
    let _operator = operator(&turn, &[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), job("w", false)]);
    let before = running(&ns, "w").await;
    ns.kubectl(&["create", "quota", "one", "--hard=count/jobs.batch=1"]);
    let quota = Kind { group: "", version: "v1", name: "ResourceQuota", plural: "resourcequotas" };
    ns.until(quota, "one", "to be counted", |quota| quota["status"]["used"]["count/jobs.batch"] == "1").await;

    change(&ns, "2");
    ns.until_all(EVENT, "to tell of it", |events| events.iter().any(|event| event["reason"] == "ReloadFailed")).await;
    let said = ns.events(JOB, "w", "ReloadFailed").await;
    assert!(said[0].contains("exceeded quota") && said[0].contains("it stays as it is"), "{said:?}");
    assert!(said[0].ends_with("or let the quota have room for one Job more"), "{said:?}");
    assert_eq!((uid(&ns.get(JOB, "w").await.unwrap()), job_names(&ns).await.len()), (uid(&before), 1));

    ns.kubectl(&[
        "patch",
        "quota",
        "one",
        "--type=merge",
        "--patch",
        r#"{"spec": {"hard": {"count/jobs.batch": "2"}}}"#,
    ]);
    made_again(&ns, &before).await;
    assert_eq!(ns.events(JOB, "w", "ReloadFailed").await.len(), 1);
}

#[tokio::test]
async fn a_job_that_a_policy_refuses_by_now_stays() {
    let turn = turn().await;
    let ns = turn.namespace("job-policy").await;
    let _operator = operator(&turn, &[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), job("w", false)]);
    let before = running(&ns, "w").await;
    let policy = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": ns.name()}, "spec": spec,
        })
    };
    let rule = json!({"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]});
    ns.apply(&[
        policy(
            "ValidatingAdmissionPolicy",
            json!({
                "failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": "false", "message": "no Jobs on Fridays"}],
            }),
        ),
        policy(
            "ValidatingAdmissionPolicyBinding",
            json!({
                "policyName": ns.name(), "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": ns.name()},
                }},
            }),
        ),
    ]);
    // The API server takes a policy up a moment later.
    let probe = job("probe", false).to_string();
    let kubeconfig = turn.cluster().kubeconfig();
    let ask = ["create", "--dry-run=server", "--namespace", ns.name(), "--filename=-"];
    assert!((0..200).any(|_| !turn.cluster().kubectl_with(&kubeconfig, &ask, &probe).status.success()));

    change(&ns, "2");
    ns.until_all(EVENT, "to tell of it", |events| events.iter().any(|event| event["reason"] == "ReloadFailed")).await;
    let said = ns.events(JOB, "w", "ReloadFailed").await;
    assert!(said[0].contains("no Jobs on Fridays") && said[0].contains("it stays as it is"), "{said:?}");
    ns.operator_has_caught_up().await;
    assert_eq!((uid(&ns.get(JOB, "w").await.unwrap()), job_names(&ns).await.len()), (uid(&before), 1));
}

#[tokio::test]
async fn without_the_right_it_says_which_one_to_grant() {
    let turn = turn().await;
    let ns = turn.namespace("job-right").await;
    turn.cluster().kubectl(&["delete", "clusterrolebinding", "restamp-rerun-jobs", "--ignore-not-found"]);
    let _operator = turn.operator(&[RERUN]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), job("w", false), cron_job("cj")]);
    let before = running(&ns, "w").await;
    adopted(&ns, CRON_JOB, "cj").await;
    change(&ns, "2");
    let of = |event: &Value, kind: &str| event["reason"] == "ReloadFailed" && event["regarding"]["kind"] == kind;
    let both = |events: &[Value]| ["Job", "CronJob"].iter().all(|kind| events.iter().any(|event| of(event, kind)));
    ns.until_all(EVENT, "to tell of it", both).await;
    for (kind, name) in [(JOB, "w"), (CRON_JOB, "cj")] {
        let said = ns.events(kind, name, "ReloadFailed").await;
        assert!(said[0].contains("grant create and delete on jobs (docs/jobs.md)"), "{said:?}");
    }
    assert_eq!((uid(&ns.get(JOB, "w").await.unwrap()), job_names(&ns).await.len()), (uid(&before), 1));
    install(turn.cluster());
    made_again(&ns, &before).await;
}

#[tokio::test]
async fn in_a_named_namespace_roles_are_enough() {
    let turn = turn().await;
    let ns = turn.namespace("job-roles").await;
    let account = &format!("jobs-of-{}", ns.name());
    grant_roles(turn.cluster(), account, &[&ns]);
    grant_role(turn.cluster(), account, &ns, "rerun-jobs", &["run.rerunJobs=true"]);
    let operator = turn.operator_as(account, &[RERUN, ("--namespace", ns.name())]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), job("w", false), cron_job("cj")]);
    let before = running(&ns, "w").await;
    adopted(&ns, CRON_JOB, "cj").await;
    change(&ns, "2");
    made_again(&ns, &before).await;
    ns.until_all(JOB, "to be the new one and the run", |jobs| jobs.len() == 2).await;
    assert!(!operator.log().to_lowercase().contains("forbidden"), "{}", operator.log());
}

#[tokio::test]
async fn a_job_is_not_lost_when_the_operator_ends_before_the_new_one_is_there() {
    let turn = turn().await;
    let ns = turn.namespace("job-crash").await;
    let operator = operator(&turn, &[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), job("w", false)]);
    // It stays on its way out for as long as this is there.
    ns.kubectl(&[
        "patch",
        "job",
        "w",
        "--type=merge",
        "--patch",
        r#"{"metadata": {"finalizers": ["restamp.test/held"]}}"#,
    ]);
    let before = running(&ns, "w").await;
    change(&ns, "2");
    ns.until(JOB, "w", "to make way", |job| !job["metadata"]["deletionTimestamp"].is_null()).await;
    operator.kill();
    let unhold = r#"{"metadata": {"finalizers": null}}"#;
    ns.kubectl(&["patch", "job", "w", "--type=merge", "--patch", unhold]);
    ns.until_all(JOB, "to be but the placeholder", |jobs| jobs.len() == 1 && jobs[0]["metadata"]["name"] != "w").await;

    let _operator = turn.operator(&[RERUN]).await;
    let after = made_again(&ns, &before).await;
    assert_eq!(after["metadata"]["annotations"]["example.com/note"], "kept");
    ns.until_all(JOB, "to be but the new one", |jobs| jobs.len() == 1).await;
    ns.operator_has_caught_up().await;
    assert_eq!(uid(&ns.get(JOB, "w").await.unwrap()), uid(&after));
    // Its one pod is the new Job's: none was made by the placeholder.
    let owners: Vec<Value> =
        ns.pods("w").await.iter().map(|pod| pod["metadata"]["ownerReferences"][0]["uid"].clone()).collect();
    assert_eq!(owners, [after["metadata"]["uid"].clone()]);
}

#[tokio::test]
async fn a_placeholder_that_somebody_forged_makes_and_deletes_nothing() {
    let turn = turn().await;
    let ns = turn.namespace("job-forged").await;
    let operator = operator(&turn, &[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), job("w", false)]);
    let victim = running(&ns, "w").await;
    let forged = |name: &str, of: &str| {
        let kept = json!({
            "instance": "restamp-system", "name": of, "uid": uid(&victim),
            "version": victim["metadata"]["resourceVersion"], "cause": "", "manifest": job(of, true).to_string(),
            "seal": "hmac-sha256:k1:AAAA",
        });
        let mut forged = job(name, false);
        forged["metadata"]["annotations"] = json!({"restamp.dev/rerun": kept.to_string()});
        forged
    };
    ns.apply(&[forged("f1", "w"), forged("f2", "absent")]);
    let told = async || operator.log().matches("is not sealed").count() == 2;
    crate::support::waiting::poll(crate::support::waiting::PATIENCE, told).await.unwrap();
    ns.operator_has_caught_up().await;
    assert_eq!(job_names(&ns).await, ["f1", "f2", "w"]);
    assert_eq!(uid(&ns.get(JOB, "w").await.unwrap()), uid(&victim));
}

#[tokio::test]
async fn a_job_of_somebody_else_with_the_placeholders_name_is_told_of_and_left_alone() {
    let turn = turn().await;
    let ns = turn.namespace("job-in-the-way").await;
    let _operator = operator(&turn, &[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), job("w", false)]);
    let before = running(&ns, "w").await;
    let name = name_of(&uid(&before).into()).to_string();
    let mut foreign = job(&name, false);
    foreign["spec"]["suspend"] = json!(true);
    ns.apply(&[foreign]);
    change(&ns, "2");
    let told = |events: &[Value]| {
        let notes = events.iter().filter(|event| event["reason"] == "ReloadFailed").map(|event| &event["note"]);
        let mut notes = notes.filter_map(Value::as_str);
        notes.any(|note| note.contains(&name) && note.contains("is not restamp's") && note.contains("delete that"))
    };
    ns.until_all(EVENT, "to name the Job in the way", told).await;
    assert_eq!(uid(&ns.get(JOB, "w").await.unwrap()), uid(&before));

    ns.kubectl(&["delete", "job", &name]);
    made_again(&ns, &before).await;
    let report = ns.get(DRIFT_REPORT, "job-w").await.unwrap();
    assert_eq!(report["status"]["reload"]["lastReload"]["cause"], "key K of ConfigMap c changed");
}

#[tokio::test]
async fn a_cron_job_runs_once_for_a_change_and_a_suspended_one_does_not() {
    let turn = turn().await;
    let ns = turn.namespace("cron-job").await;
    let operator = operator(&turn, &[]).await;
    let mut suspended = cron_job("suspended");
    suspended["spec"]["suspend"] = json!(true);
    ns.apply(&[config_map("c", &[("K", "1")]), cron_job("cj"), suspended]);
    let owner = adopted(&ns, CRON_JOB, "cj").await;
    adopted(&ns, CRON_JOB, "suspended").await;
    assert_eq!(job_names(&ns).await, [""; 0]);

    change(&ns, "2");
    let jobs = ns.until_all(JOB, "to be there", |jobs| !jobs.is_empty()).await;
    let metadata = &jobs[0]["metadata"];
    let by = |reference: &Value| (reference["kind"].clone(), reference["uid"].clone(), reference["controller"].clone());
    assert_eq!(by(&metadata["ownerReferences"][0]), (json!("CronJob"), owner["metadata"]["uid"].clone(), json!(true)));
    assert_eq!(metadata["annotations"]["cronjob.kubernetes.io/instantiate"], "manual");
    assert_eq!(
        (&metadata["labels"]["team"], &metadata["annotations"]["example.com/note"]),
        (&json!("tools"), &json!("kept"))
    );
    ns.until(DRIFT_REPORT, "cronjob-cj", "to be current again", |report| {
        state(report) == "Current" && !report["status"]["reload"]["lastReload"].is_null()
    })
    .await;
    ns.operator_has_caught_up().await;
    let run = metadata["name"].as_str().unwrap().to_owned();
    assert_eq!(job_names(&ns).await, std::slice::from_ref(&run));
    let said = ns.events(CRON_JOB, "cj", "Reloaded").await;
    assert_eq!(said, [format!("Reloading: key K of ConfigMap c changed; it runs now, as Job {run}")]);

    operator.stop().await;
    let _operator = turn.operator(&[RERUN]).await;
    ns.operator_has_caught_up().await;
    assert_eq!(job_names(&ns).await, [run], "a restart ran it again");
    // The same content as at first, and yet another change.
    change(&ns, "1");
    ns.until_all(JOB, "to run again", |jobs| jobs.len() == 2).await;
}

#[tokio::test]
async fn a_cron_job_whose_runs_must_not_overlap_waits_for_the_one_in_progress() {
    let turn = turn().await;
    let ns = turn.namespace("cron-forbid").await;
    let _operator = operator(&turn, &[]).await;
    let mut forbids = cron_job("cj");
    forbids["spec"]["concurrencyPolicy"] = json!("Forbid");
    forbids["spec"]["jobTemplate"]["spec"] = job_spec("cj", false);
    ns.apply(&[config_map("c", &[("K", "1")]), forbids]);
    adopted(&ns, CRON_JOB, "cj").await;
    // A run as by its schedule, which comes to it at New Year only: its controller keeps this list from then on.
    ns.kubectl(&["create", "job", "first", "--from=cronjob/cj"]);
    let first = ns.until(JOB, "first", "to run", |job| job["status"]["active"] == 1).await;
    let active =
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "first", "namespace": ns.name(), "uid": uid(&first)}]);
    let status = json!({"status": {"active": active}}).to_string();
    ns.kubectl(&["patch", "cronjob", "cj", "--subresource=status", "--type=merge", "--patch", &status]);

    change(&ns, "2");
    ns.until(DRIFT_REPORT, "cronjob-cj", "to wait for the run", |report| {
        report["status"]["reload"]["message"].as_str().is_some_and(|message| message.contains("the run in progress"))
    })
    .await;
    ns.operator_has_caught_up().await;
    assert_eq!(job_names(&ns).await, ["first"]);
    ns.kubectl(&["delete", "job", "first"]);
    ns.until_all(JOB, "to be run", |jobs| jobs.len() == 1 && uid(&jobs[0]) != uid(&first)).await;
}

#[tokio::test]
async fn a_dry_run_says_what_it_would_do_and_writes_no_job() {
    let turn = turn().await;
    let ns = turn.namespace("job-dry").await;
    let live = operator(&turn, &[]).await;
    ns.apply(&[config_map("c", &[("K", "1")]), job("w", false), cron_job("cj")]);
    let before = running(&ns, "w").await;
    adopted(&ns, CRON_JOB, "cj").await;
    live.stop().await;
    let _dry = turn.operator(&[RERUN, ("--dry-run", "")]).await;
    change(&ns, "2");
    let told = |events: &[Value]| events.iter().filter(|event| event["reason"] == "WouldReload").count() == 2;
    ns.until_all(EVENT, "to tell of a dry run", told).await;
    assert_eq!((uid(&ns.get(JOB, "w").await.unwrap()), job_names(&ns).await.len()), (uid(&before), 1));
}
