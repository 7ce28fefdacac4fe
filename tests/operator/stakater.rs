//! Reloader's annotations, where they count, and a Reloader that runs as well.

use serde_json::{Value, json};

use crate::support::kind::{DEPLOYMENT, EVENT};
use crate::support::manifests::{config_map, deployment};
use crate::support::namespace::{Namespace, stamp};
use crate::support::turn;

fn annotated(mut manifest: Value, annotations: Value) -> Value {
    manifest["metadata"]["annotations"] = annotations;
    manifest
}

fn reading(name: &str, annotations: Value) -> Value {
    annotated(deployment(name).env_from_config_map("c").build(), annotations)
}

fn change(ns: &Namespace, value: &str) {
    ns.apply(&[config_map("c", &[("K", value)])]);
}

#[tokio::test]
async fn reloaders_annotations_count_in_the_namespaces_that_have_moved() {
    let turn = turn().await;
    let [moved, staying] = [turn.namespace("moved").await, turn.namespace("staying").await];
    let label = |label: &str| moved.kubectl(&["label", "namespace", moved.name(), label]);
    label("restamp.test/moved=");
    let flags = [("--stakater-annotations", ""), ("--stakater-namespace-selector", "restamp.test/moved")];
    let _operator = turn.operator(&flags).await;
    let by_name = json!({"configmap.reloader.stakater.com/reload": "a(,c.*"});
    let unread = annotated(deployment("named").build(), by_name);
    for ns in [&moved, &staying] {
        let auto = reading("w", json!({"reloader.stakater.com/auto": "true"}));
        ns.apply(&[config_map("c", &[("K", "1")]), auto, unread.clone()]);
    }
    let histories = [moved.adopted(DEPLOYMENT, "w").await, moved.adopted(DEPLOYMENT, "named").await];
    for ns in [&moved, &staying] {
        change(ns, "2");
    }
    for name in ["w", "named"] {
        moved.reloaded(DEPLOYMENT, name, "").await;
    }
    for history in histories {
        assert_eq!(history.rollouts().await, 1);
    }
    let said = moved.events(DEPLOYMENT, "named", "InvalidAnnotation").await;
    assert_eq!(said.len(), 1, "{said:?}");
    moved.operator_has_caught_up().await;
    assert_eq!(stamp(&staying.get(DEPLOYMENT, "w").await.unwrap()), "");

    label("restamp.test/moved-");
    moved.operator_has_caught_up().await;
    let before = stamp(&moved.get(DEPLOYMENT, "w").await.unwrap()).to_owned();
    change(&moved, "3");
    moved.operator_has_caught_up().await;
    assert_eq!(stamp(&moved.get(DEPLOYMENT, "w").await.unwrap()), before);
}

#[tokio::test]
async fn a_reloader_that_runs_is_told_of() {
    let turn = turn().await;
    let ns = turn.namespace("reloader").await;
    let mut reloader = deployment("my-reloader").build();
    reloader["metadata"]["labels"] = json!({"app.kubernetes.io/name": "reloader"});
    ns.apply(&[reloader]);
    let role = turn.cluster().rendered("clusterrole", &["run.stakaterAnnotations=true"]);
    turn.cluster().kubectl_reading(&role, &["apply", "--filename=-"]);
    let operator = turn.operator(&[("--stakater-annotations", "")]).await;
    ns.until_all(EVENT, "to tell of a Reloader", |events| events.iter().any(|event| event["reason"] == "ReloaderRuns"))
        .await;
    let (_, metrics) = operator.get("/metrics").unwrap();
    assert!(metrics.contains("restamp_reloader_detected 1"), "{metrics}");
    assert!(operator.log().contains("a Reloader runs"), "{}", operator.log());
    assert!(!operator.log().contains("cannot see here whether a Reloader runs"), "{}", operator.log());
}
