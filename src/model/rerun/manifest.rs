//! Manifests of Jobs, made of what the API server has. As JSON, so that fields which this build does not know survive.

use serde_json::{Map, Value, json};

use crate::api::annotations::{CONFIG_HASH, MADE_BY, MADE_FOR};
use crate::model::names::{Name, Uid};

/// What the API server, or the Job's controller, writes into a Job's metadata.
const GIVEN: [&str; 8] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];
/// The labels by which a Job finds its pods: each Job gets its own.
const OWN_LABELS: [&str; 4] =
    ["controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"];

/// The manifest by which this installation makes a Job again for this cause, with this stamp in its pod template.
pub fn again(live: &Value, stamp: &str, instance: &str, cause: &str) -> Value {
    let mut job = live.clone();
    remove(&mut job, "", &["status"]);
    remove(&mut job, "/metadata", &GIVEN);
    if job.pointer("/spec/manualSelector") != Some(&Value::Bool(true)) {
        remove(&mut job, "/spec", &["selector"]);
        remove(&mut job, "/metadata/labels", &OWN_LABELS);
        remove(&mut job, "/spec/template/metadata/labels", &OWN_LABELS);
    }
    if let Some(annotations) = ["metadata", "annotations"].into_iter().try_fold(&mut job, entry) {
        insert(annotations, MADE_BY, json!(instance));
        insert(annotations, MADE_FOR, json!(cause));
    }
    let annotations = ["spec", "template", "metadata", "annotations"];
    if let Some(annotations) = annotations.into_iter().try_fold(&mut job, entry) {
        insert(annotations, CONFIG_HASH, json!(stamp));
    }
    job
}

/// The same under any name, to ask whether the API server would take it while its own name is taken.
pub fn under_any_name(job: &Value, name: &Name) -> Value {
    let mut job = job.clone();
    if let Some(metadata) = job.pointer_mut("/metadata") {
        insert(metadata, "generateName", json!(format!("{name}-")));
    }
    remove(&mut job, "/metadata", &["name"]);
    job
}

/// A Job that never runs a pod, and that keeps what this annotation says. None of the labels and annotations: whoever
/// selects Jobs by those does not mean it.
pub fn idle(job: &Value, name: &Name, annotation: (&str, String)) -> Value {
    let mut idle = job.clone();
    let metadata = json!({
        "name": name,
        "namespace": job.pointer("/metadata/namespace"),
        "labels": {"app.kubernetes.io/managed-by": "restamp"},
        "annotations": {(annotation.0): annotation.1},
    });
    insert(&mut idle, "metadata", metadata);
    if let Some(spec) = idle.pointer_mut("/spec") {
        insert(spec, "suspend", json!(true));
        insert(spec, "parallelism", json!(0));
    }
    remove(&mut idle, "/spec", &["selector", "manualSelector", "ttlSecondsAfterFinished"]);
    idle
}

/// One run of a CronJob, as `kubectl create job --from` makes it; `None` for one without a template.
pub fn run_of(cron_job: &Value, name: &Name, uid: &Uid, stamp: &str) -> Option<Value> {
    let template = cron_job.pointer("/spec/jobTemplate")?;
    let metadata = template.get("metadata");
    let mut annotations = metadata.and_then(|metadata| metadata.get("annotations")).cloned().unwrap_or_default();
    if annotations.is_null() {
        annotations = json!({});
    }
    insert(&mut annotations, "cronjob.kubernetes.io/instantiate", json!("manual"));
    insert(&mut annotations, CONFIG_HASH, json!(stamp));
    Some(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": cron_job.pointer("/metadata/namespace"),
            "labels": metadata.and_then(|metadata| metadata.get("labels")),
            "annotations": annotations,
            // Not `blockOwnerDeletion`: that would need a right on the CronJob's finalizers.
            "ownerReferences": [{
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "name": cron_job.pointer("/metadata/name"),
                "uid": uid,
                "controller": true,
            }],
        },
        "spec": template.get("spec")?,
    }))
}

fn remove(value: &mut Value, place: &str, fields: &[&str]) {
    if let Some(object) = value.pointer_mut(place).and_then(Value::as_object_mut) {
        for field in fields {
            object.remove(*field);
        }
    }
}

fn insert(value: &mut Value, field: &str, content: Value) {
    if let Some(object) = value.as_object_mut() {
        object.insert(field.to_owned(), content);
    }
}

/// The object at this field, which is made where there is none.
fn entry<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let object = value.as_object_mut()?;
    let entry = object.entry(field).or_insert_with(|| Map::new().into());
    if entry.is_null() {
        *entry = Map::new().into();
    }
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(manual_selector: bool) -> Value {
        let own = json!({"app": "w", "controller-uid": "u", "batch.kubernetes.io/job-name": "w"});
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "unheardOf": {"kept": 1.5},
            "metadata": {
                "name": "w", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 1,
                "creationTimestamp": "2026-11-30T12:00:00Z", "managedFields": [{}], "labels": own,
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
            },
            "spec": {
                "manualSelector": manual_selector, "selector": {"matchLabels": {"controller-uid": "u"}},
                "parallelism": 3, "unheardOf": [null],
                "template": {"metadata": {"labels": own, "creationTimestamp": null}, "spec": {"unheardOf": "x"}},
            },
            "status": {"active": 1},
        })
    }

    #[test]
    fn a_job_is_made_again_with_all_that_its_owner_wrote_and_nothing_that_was_given_to_it() {
        let expected = json!({
            "apiVersion": "batch/v1", "kind": "Job", "unheardOf": {"kept": 1.5},
            "metadata": {
                "name": "w", "namespace": "ns", "labels": {"app": "w"},
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": "{}", "restamp.dev/made-by": "us",
                    "restamp.dev/made-for": "why",
                },
            },
            "spec": {
                "manualSelector": false, "parallelism": 3, "unheardOf": [null],
                "template": {
                    "metadata": {
                        "labels": {"app": "w"}, "annotations": {"restamp.dev/config-hash": "s"}, "creationTimestamp": null,
                    },
                    "spec": {"unheardOf": "x"},
                },
            },
        });
        assert_eq!(again(&live(false), "s", "us", "why"), expected);
    }

    #[test]
    fn a_selector_that_its_owner_wrote_stays() {
        let (live, again) = (live(true), again(&live(true), "s", "us", "why"));
        for place in ["/spec/selector", "/metadata/labels", "/spec/template/metadata/labels"] {
            assert_eq!(again.pointer(place), live.pointer(place), "{place}");
        }
    }

    #[test]
    fn what_is_asked_for_under_any_name_is_otherwise_the_same() {
        let again = again(&live(false), "s", "us", "why");
        let mut asked = under_any_name(&again, &"w".into());
        assert_eq!(asked["metadata"]["generateName"].take(), "w-");
        assert_eq!(asked["metadata"]["name"], Value::Null);
        remove(&mut asked, "/metadata", &["generateName"]);
        asked["metadata"]["name"] = json!("w");
        assert_eq!(asked, again);
    }

    #[test]
    fn an_idle_job_runs_no_pod_and_is_selected_by_nobody() {
        let idle = idle(&again(&live(true), "s", "us", "why"), &"i".into(), ("a", "kept".to_owned()));
        let expected = json!({
            "name": "i", "namespace": "ns", "labels": {"app.kubernetes.io/managed-by": "restamp"},
            "annotations": {"a": "kept"},
        });
        assert_eq!(idle["metadata"], expected);
        assert_eq!((&idle["spec"]["suspend"], &idle["spec"]["parallelism"]), (&json!(true), &json!(0)));
        assert_eq!(idle["spec"]["selector"], Value::Null);
    }

    #[test]
    fn a_run_is_what_kubectl_makes_of_a_cron_job() {
        let template = json!({
            "metadata": {"labels": {"team": "x"}, "annotations": {"note": "n"}}, "spec": {"unheardOf": {"a": "b"}},
        });
        let cron_job = json!({"metadata": {"name": "c", "namespace": "ns"}, "spec": {"jobTemplate": template}});
        let expected = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": "c-1", "namespace": "ns", "labels": {"team": "x"},
                "annotations": {
                    "note": "n", "cronjob.kubernetes.io/instantiate": "manual", "restamp.dev/config-hash": "s",
                },
                "ownerReferences": [
                    {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "u", "controller": true},
                ],
            },
            "spec": {"unheardOf": {"a": "b"}},
        });
        assert_eq!(run_of(&cron_job, &"c-1".into(), &"u".into(), "s"), Some(expected));
    }
}
