//! What a container reads, key by key, and which annotations change what counts: one workload and one config for each
//! row, all changed at once.

use serde_json::{Value, json};

use crate::support::history::History;
use crate::support::kind::DEPLOYMENT;
use crate::support::manifests::deployment;
use crate::support::namespace::Namespace;
use crate::support::{shared, turn};

/// A way to read a config, a change of it, and how often that rolls. `CONFIG` stands for a name of its own.
struct Row {
    name: &'static str,
    /// The pod's spec, where the container `app` needs no image.
    pod: Value,
    annotations: Value,
    before: Value,
    after: Value,
    rollouts: usize,
}

fn row(name: &'static str, pod: Value, before: Value, after: Value, rollouts: usize) -> Row {
    Row { name, pod, annotations: json!({"restamp.dev/auto-reload": "true"}), before, after, rollouts }
}

fn annotated(name: &'static str, annotations: Value, pod: Value, after: Value, rollouts: usize) -> Row {
    Row { annotations, ..row(name, pod, config_map(A1_B1), after, rollouts) }
}

const A1_B1: [(&str, &str); 2] = [("A", "1"), ("B", "1")];
const A2_B1: [(&str, &str); 2] = [("A", "2"), ("B", "1")];
const A1_B2: [(&str, &str); 2] = [("A", "1"), ("B", "2")];

fn config_map<const N: usize>(data: [(&str, &str); N]) -> Value {
    object("ConfigMap", json!({"data": map(data)}))
}

fn secret<const N: usize>(data: [(&str, &str); N]) -> Value {
    object("Secret", json!({"stringData": map(data)}))
}

fn map<const N: usize>(data: [(&str, &str); N]) -> Value {
    data.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect::<serde_json::Map<_, _>>().into()
}

fn object(kind: &str, mut content: Value) -> Value {
    content["apiVersion"] = json!("v1");
    content["kind"] = json!(kind);
    content["metadata"] = json!({"name": "CONFIG"});
    content
}

fn app(container: Value) -> Value {
    json!({"containers": [merged(json!({"name": "app", "image": "localhost/app:1"}), container)]})
}

fn merged(mut to: Value, from: Value) -> Value {
    to.as_object_mut().unwrap().extend(from.as_object().unwrap().clone());
    to
}

fn env(reference: &str, optional: bool, key: &str) -> Value {
    let from = json!({(reference): {"name": "CONFIG", "key": key, "optional": optional}});
    json!({"env": [{"name": "X", "valueFrom": from}]})
}

/// A pod that mounts this volume.
fn mounting(volume: Value, mount: Value) -> Value {
    let mount = merged(json!({"name": "v", "mountPath": "/v"}), mount);
    let container = json!({"volumeMounts": [mount], "env": [{"name": "NAME", "value": "A"}]});
    merged(app(container), json!({"volumes": [merged(json!({"name": "v"}), volume)]}))
}

fn config_volume() -> Value {
    json!({"configMap": {"name": "CONFIG"}})
}

fn env_from() -> Value {
    app(json!({"envFrom": [{"prefix": "P_", "configMapRef": {"name": "CONFIG"}}]}))
}

fn init(extra: Value) -> Value {
    let container = merged(json!({"name": "init", "image": "localhost/app:1"}), env("configMapKeyRef", false, "A"));
    merged(app(json!({})), json!({"initContainers": [merged(container, extra)]}))
}

/// The ways to consume.
fn ways() -> Vec<Row> {
    let (config, config_a2, config_b2) = (config_map(A1_B1), config_map(A2_B1), config_map(A1_B2));
    let (a_secret, secret_a2, secret_b2) = (secret(A1_B1), secret(A2_B1), secret(A1_B2));
    let read = |kind, optional| app(env(kind, optional, "A"));
    let items = json!([{"key": "A", "path": "a.conf"}]);
    let picked = json!({"secret": {"secretName": "CONFIG", "items": items}});
    let projected = json!({"projected": {"sources": [
        {"configMap": {"name": "kube-root-ca.crt"}}, {"secret": {"name": "CONFIG", "items": items}},
    ]}});
    let binary = |value: &str| object("ConfigMap", json!({"binaryData": {"A": value}}));
    let immutable = |value: &str| merged(config_map([("A", value)]), json!({"immutable": true}));
    let pulls = merged(app(json!({})), json!({"imagePullSecrets": [{"name": "CONFIG"}]}));
    vec![
        row("env-config-map", read("configMapKeyRef", false), config.clone(), config_a2.clone(), 1),
        row("env-secret", read("secretKeyRef", false), a_secret.clone(), secret_a2.clone(), 1),
        row("env-another-key", read("configMapKeyRef", false), config.clone(), config_b2.clone(), 0),
        row("env-optional-key", app(env("configMapKeyRef", true, "C")), config.clone(), config_map([("C", "1")]), 1),
        row("env-from", env_from(), config.clone(), config_b2.clone(), 1),
        row("env-from-removed", env_from(), config.clone(), config_map([("A", "1")]), 1),
        row("volume", mounting(config_volume(), json!({})), config.clone(), config_b2.clone(), 1),
        row("items", mounting(picked.clone(), json!({})), a_secret.clone(), secret_a2.clone(), 1),
        row("items-another", mounting(picked, json!({})), a_secret.clone(), secret_b2.clone(), 0),
        row("projected", mounting(projected.clone(), json!({})), a_secret.clone(), secret_a2.clone(), 1),
        row("projected-another", mounting(projected, json!({})), a_secret.clone(), secret_b2, 0),
        row("sub-path", mounting(config_volume(), json!({"subPath": "A"})), config.clone(), config_a2.clone(), 1),
        row("sub-path-other", mounting(config_volume(), json!({"subPath": "A"})), config.clone(), config_b2.clone(), 0),
        row("expr", mounting(config_volume(), json!({"subPathExpr": "$(NAME)"})), config.clone(), config_b2, 1),
        row("unmounted", unmounted(), config.clone(), config_a2.clone(), 0),
        row("init", init(json!({})), config.clone(), config_a2.clone(), 1),
        row("sidecar", init(json!({"restartPolicy": "Always"})), config, config_a2, 1),
        row("binary", mounting(config_volume(), json!({})), binary("AAEC"), binary("AAED"), 1),
        row("immutable", env_from(), immutable("1"), immutable("2"), 1),
        row("pull-secret", pulls, a_secret, secret_a2, 0),
    ]
}

fn unmounted() -> Value {
    merged(app(json!({})), json!({"volumes": [{"name": "v", "configMap": {"name": "CONFIG"}}]}))
}

/// The annotations.
fn annotations() -> Vec<Row> {
    let on = |more: Value| merged(json!({"restamp.dev/auto-reload": "true"}), more);
    let at_start = json!({"restamp.dev/auto-reload": "at-start"});
    let ignored = |what: &str| {
        merged(config_map(A2_B1), json!({"metadata": {"name": "CONFIG", "annotations": {"restamp.dev/ignore": what}}}))
    };
    let nothing = || app(json!({}));
    vec![
        annotated("at-start-env", at_start.clone(), env_from(), config_map(A2_B1), 1),
        annotated("at-start-volume", at_start, mounting(config_volume(), json!({})), config_map(A2_B1), 0),
        annotated("reload-on", json!({"restamp.dev/reload-on": "configmap/CONFIG"}), nothing(), config_map(A2_B1), 1),
        annotated("glob", json!({"restamp.dev/reload-on": "configmap/CONFI*"}), nothing(), config_map(A2_B1), 1),
        annotated(
            "exclude",
            on(json!({"restamp.dev/reload-exclude": "configmap/CONFIG"})),
            env_from(),
            config_map(A2_B1),
            0,
        ),
        annotated(
            "exclude-key",
            on(json!({"restamp.dev/reload-exclude": "configmap/CONFIG:B"})),
            env_from(),
            config_map(A1_B2),
            0,
        ),
        annotated(
            "exclude-other",
            on(json!({"restamp.dev/reload-exclude": "configmap/CONFIG:B"})),
            env_from(),
            config_map(A2_B1),
            1,
        ),
        annotated("ignored", on(json!({})), env_from(), ignored("reload"), 0),
        annotated("ignored-drift", on(json!({})), env_from(), ignored("drift"), 1),
        annotated("off", json!({"restamp.dev/auto-reload": "false"}), env_from(), config_map(A2_B1), 0),
        annotated("unsaid", json!({}), env_from(), config_map(A2_B1), 0),
    ]
}

impl Row {
    fn named(&self, value: &Value) -> Value {
        serde_json::from_str(
            &value.to_string().replace("CONFI*", &format!("of-{}*", self.name)).replace("CONFIG", &self.config()),
        )
        .unwrap()
    }

    fn config(&self) -> String {
        format!("of-{}", self.name)
    }

    fn workload(&self) -> Value {
        let mut workload = deployment(self.name).build();
        workload["metadata"]["annotations"] = self.named(&self.annotations);
        workload["spec"]["replicas"] = json!(1);
        let mut pod = self.named(&self.pod);
        pod["terminationGracePeriodSeconds"] = json!(0);
        workload["spec"]["template"]["spec"] = pod;
        workload
    }

    fn is_opted_in(&self) -> bool {
        self.annotations.as_object().unwrap().values().any(|value| value != "false")
    }

    fn change(&self, ns: &Namespace) {
        if self.before["immutable"] == true {
            ns.kubectl(&["delete", "configmap", &self.config()]);
        }
        ns.apply(&[self.named(&self.after)]);
    }
}

async fn each_rolls_as_its_row_says(ns: &Namespace, rows: Vec<Row>) {
    let configs: Vec<Value> = rows.iter().map(|row| row.named(&row.before)).collect();
    let workloads: Vec<Value> = rows.iter().map(Row::workload).collect();
    ns.apply(&configs);
    ns.apply(&workloads);
    let mut histories: Vec<History> = Vec::new();
    for row in &rows {
        histories.push(if row.is_opted_in() {
            ns.adopted(DEPLOYMENT, row.name).await
        } else {
            ns.history(DEPLOYMENT, row.name).await
        });
    }
    rows.iter().for_each(|row| row.change(ns));
    for row in rows.iter().filter(|row| row.rollouts > 0) {
        ns.reloaded(DEPLOYMENT, row.name, "").await;
    }
    ns.operator_has_caught_up().await;
    let mut rolled = Vec::new();
    for history in &histories {
        rolled.push(history.rollouts().await);
    }
    let told = |rolled: &[usize]| -> Vec<String> {
        rows.iter().zip(rolled).map(|(row, times)| format!("{}: {times}", row.name)).collect()
    };
    let expected: Vec<usize> = rows.iter().map(|row| row.rollouts).collect();
    assert_eq!(told(&rolled), told(&expected));
}

#[tokio::test]
async fn a_change_of_exactly_what_a_container_reads_rolls_it() {
    each_rolls_as_its_row_says(&shared("ways").await, ways()).await;
}

/// Reloader's annotations.
fn reloaders() -> Vec<Row> {
    let on = |annotation: &str, value: &str| json!({(annotation): value});
    let marked = |annotation: &str| {
        merged(config_map(A2_B1), json!({"metadata": {"name": "CONFIG", "annotations": {(annotation): "true"}}}))
    };
    let a2 = || config_map(A2_B1);
    let nothing = || app(json!({}));
    let both = |more: &str, value: &str| json!({"reloader.stakater.com/auto": "true", (more): value});
    vec![
        annotated("auto", on("reloader.stakater.com/auto", "true"), env_from(), a2(), 1),
        annotated("auto-off", on("reloader.stakater.com/auto", "false"), env_from(), a2(), 0),
        annotated("auto-maps", on("configmap.reloader.stakater.com/auto", "true"), env_from(), a2(), 1),
        annotated("auto-secrets", on("secret.reloader.stakater.com/auto", "true"), env_from(), a2(), 0),
        annotated("named", on("configmap.reloader.stakater.com/reload", "CONFIG"), nothing(), a2(), 1),
        annotated("listed", on("configmap.reloader.stakater.com/reload", "x,CONFIG"), nothing(), a2(), 1),
        annotated("regex", on("configmap.reloader.stakater.com/reload", "of-r.g.x"), nothing(), a2(), 1),
        annotated("anchored", on("configmap.reloader.stakater.com/reload", "of-anch"), nothing(), a2(), 0),
        annotated("excluded", both("configmaps.exclude.reloader.stakater.com/reload", "CONFIG"), env_from(), a2(), 0),
        annotated("not-excluded", both("secrets.exclude.reloader.stakater.com/reload", "CONFIG"), env_from(), a2(), 1),
        annotated(
            "matched",
            on("reloader.stakater.com/search", "true"),
            env_from(),
            marked("reloader.stakater.com/match"),
            1,
        ),
        annotated("unmatched", on("reloader.stakater.com/search", "true"), env_from(), a2(), 0),
        annotated(
            "ignored",
            on("reloader.stakater.com/auto", "true"),
            env_from(),
            marked("reloader.stakater.com/ignore"),
            0,
        ),
    ]
}

#[tokio::test]
async fn reloaders_annotations_say_what_counts() {
    let turn = turn().await;
    let _operator = turn.operator(&[("--stakater-annotations", "")]).await;
    each_rolls_as_its_row_says(&turn.namespace("reloader").await, reloaders()).await;
}

#[tokio::test]
async fn annotations_say_what_counts() {
    each_rolls_as_its_row_says(&shared("annotations").await, annotations()).await;
}
