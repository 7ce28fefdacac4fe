//! A namespace of a test's own, and what a test does in it.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::history::History;
use super::kind::{DEPLOYMENT, DRIFT_REPORT, EVENT, Kind, POD};
use super::manifests::{config_map, deployment};
use super::operator::{log_tail, restamp};
use super::waiting::{PATIENCE, poll};

/// A new namespace. It is left for the end of its cluster: deleting it takes longer than most tests.
pub struct Namespace {
    cluster: &'static Cluster,
    client: Client,
    name: String,
}

impl Namespace {
    /// `word` says what it is for.
    pub async fn create(cluster: &'static Cluster, word: &str) -> Self {
        let name = format!("{word}-{:08x}", getrandom::u32().unwrap());
        cluster.kubectl(&["create", "namespace", &name]);
        let client = client(cluster).await;
        let namespace = Self { cluster, client, name };
        // Pods are refused before it exists.
        let account = Kind { group: "", version: "v1", name: "ServiceAccount", plural: "serviceaccounts" };
        namespace.until(account, "default", "to exist", |_| true).await;
        namespace
    }

    pub fn cluster(&self) -> &'static Cluster {
        self.cluster
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs kubectl here.
    pub fn kubectl(&self, args: &[&str]) -> String {
        self.cluster.kubectl(&[&["--namespace", &self.name], args].concat())
    }

    /// The same, with this on its standard input.
    pub fn kubectl_reading(&self, input: &str, args: &[&str]) -> String {
        self.cluster.kubectl_reading(input, &[&["--namespace", &self.name], args].concat())
    }

    /// Runs restamp here, as the cluster's administrator; what it prints.
    pub fn restamp(&self, args: &[&str]) -> String {
        let kubeconfig = self.cluster.kubeconfig();
        let mut command = restamp(args);
        let output = command.args(["--namespace", &self.name, "--kubeconfig"]).arg(kubeconfig).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// `kubectl apply` of these manifests, in this order.
    pub fn apply(&self, manifests: &[Value]) -> String {
        let text: Vec<String> = manifests.iter().map(Value::to_string).collect();
        self.kubectl_reading(&text.join("\n---\n"), &["apply", "--filename=-"])
    }

    /// Makes many objects at a time, as `kubectl apply` makes them.
    pub async fn create_as_applied(&self, kind: Kind, manifests: impl Iterator<Item = Value>) {
        let api = self.api(kind);
        let params =
            PostParams { field_manager: Some("kubectl-client-side-apply".to_owned()), ..PostParams::default() };
        let created = manifests.map(|mut manifest| {
            manifest["metadata"]["namespace"] = json!(self.name);
            let last_applied = manifest.to_string();
            manifest["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
                json!(last_applied);
            let object: DynamicObject = serde_json::from_value(manifest).unwrap();
            let (api, params) = (&api, &params);
            async move { api.create(params, &object).await }
        });
        let created: Result<Vec<_>, _> = futures::stream::iter(created).buffer_unordered(50).try_collect().await;
        created.unwrap();
    }

    pub async fn get(&self, kind: Kind, name: &str) -> Option<Value> {
        let object = self.api(kind).get_opt(name).await.unwrap();
        object.map(|object| serde_json::to_value(object).unwrap())
    }

    pub async fn list(&self, kind: Kind) -> Vec<Value> {
        let list = self.api(kind).list(&ListParams::default()).await.unwrap();
        list.into_iter().map(|object| serde_json::to_value(object).unwrap()).collect()
    }

    /// Writes an annotation of the object itself, as fast as it goes.
    pub async fn annotate(&self, kind: Kind, name: &str, note: &str) {
        let patch = json!({"metadata": {"annotations": {"note": note}}});
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Waits until this object is there and as it should be.
    pub async fn until(&self, kind: Kind, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut last = None;
        let found = poll(PATIENCE, async || {
            last = self.get(kind, name).await;
            last.as_ref().is_some_and(&holds)
        })
        .await;
        match (found, last) {
            (Ok(()), Some(object)) => object,
            (_, last) => self.give_up(&format!("{} {name} {what}", kind.name), &last.unwrap_or_default()).await,
        }
    }

    /// Waits until the objects of this kind are as they should be, all together.
    pub async fn until_all(&self, kind: Kind, what: &str, holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let mut last = vec![];
        let found = poll(PATIENCE, async || {
            last = self.list(kind).await;
            holds(&last)
        })
        .await;
        match found {
            Ok(()) => last,
            Err(_) => self.give_up(&format!("the {} {what}", kind.plural), &last.into()).await,
        }
    }

    /// Waits until restamp knows this workload and has nothing to do about it; the history begins here.
    pub async fn adopted(&self, kind: Kind, name: &str) -> History {
        let workload = self.rolled_out(kind, name).await;
        let uid = workload["metadata"]["uid"].clone();
        self.until(DRIFT_REPORT, &report_name(kind, name), "to say that its workload is current", |report| {
            report["metadata"]["ownerReferences"][0]["uid"] == uid && state(report) == "Current"
        })
        .await;
        History::since(&workload, self.api(kind))
    }

    /// The same for one that restamp has no report on: the history begins once it is rolled out.
    pub async fn history(&self, kind: Kind, name: &str) -> History {
        History::since(&self.rolled_out(kind, name).await, self.api(kind))
    }

    /// Waits until the workload's own controller has nothing left to roll.
    pub async fn rolled_out(&self, kind: Kind, name: &str) -> Value {
        self.until(kind, name, "to be rolled out", is_rolled_out).await
    }

    /// Waits until restamp has rolled this workload for what changed, and its pods have read it.
    pub async fn reloaded(&self, kind: Kind, name: &str, after: &str) -> Value {
        let stamped = |workload: &Value| !stamp(workload).is_empty() && stamp(workload) != after;
        self.until(kind, name, "to carry a new stamp", stamped).await;
        let workload = self.rolled_out(kind, name).await;
        let report = report_name(kind, name);
        self.until(DRIFT_REPORT, &report, "to say that its workload is current", |report| state(report) == "Current")
            .await;
        workload
    }

    /// Returns once the operator has done whatever it does about all that happened so far: a workload whose config
    /// changes only now has rolled. With this a test shows what does not happen, without guessing how long to wait.
    pub async fn operator_has_caught_up(&self) {
        let name = &format!("witness-{:08x}", getrandom::u32().unwrap());
        self.apply(&[config_map(name, &[("K", "1")]), deployment(name).env_from_config_map(name).into()]);
        self.adopted(DEPLOYMENT, name).await;
        self.apply(&[config_map(name, &[("K", "2")])]);
        self.reloaded(DEPLOYMENT, name, "").await;
    }

    /// The notes of the Events about this object with this reason.
    pub async fn events(&self, kind: Kind, name: &str, reason: &str) -> Vec<String> {
        let events = self.list(EVENT).await;
        let regarding = |event: &Value| {
            event["regarding"]["kind"] == kind.name && event["regarding"]["name"] == name && event["reason"] == reason
        };
        let notes = events.iter().filter(|event| regarding(event));
        notes.map(|event| event["note"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The pods of this workload that aren't going away.
    pub async fn pods(&self, workload: &str) -> Vec<Value> {
        let pods = self.list(POD).await;
        let stays = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
        pods.into_iter().filter(|pod| pod["metadata"]["labels"]["app"] == workload && stays(pod)).collect()
    }

    fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.name, &kind.resource())
    }

    /// Fails the test, with all that its reader needs.
    async fn give_up<T>(&self, what: &str, last: &Value) -> T {
        let mut last = last.clone();
        hide_managed_fields(&mut last);
        let reports: Vec<Value> = self.list(DRIFT_REPORT).await;
        let reports = reports.iter().map(|report| serde_json::to_string(&report["status"]).unwrap());
        panic!(
            "waited {PATIENCE:?} for {what}\n--- it is\n{last:#}\n--- the reports say\n{}\n--- the operator logged\n{}",
            reports.collect::<Vec<_>>().join("\n"),
            log_tail(self.cluster, &self.name),
        )
    }
}

/// The name of the report on this object.
pub fn report_name(kind: Kind, name: &str) -> String {
    format!("{}-{name}", kind.name.to_lowercase())
}

/// What a report says about the workload that it is about.
pub fn state(report: &Value) -> &str {
    report["status"]["reload"]["state"].as_str().unwrap_or_default()
}

/// The stamp that a workload's pod template carries.
pub fn stamp(workload: &Value) -> &str {
    stamp_of_template(&workload["spec"]["template"])
}

pub fn stamp_of_template(template: &Value) -> &str {
    template["metadata"]["annotations"]["restamp.dev/config-hash"].as_str().unwrap_or_default()
}

fn is_rolled_out(workload: &Value) -> bool {
    let status = &workload["status"];
    let count = |field: &str| status[field].as_u64().unwrap_or_default();
    let observed = status["observedGeneration"] == workload["metadata"]["generation"];
    if workload["kind"] == "DaemonSet" {
        let wanted = count("desiredNumberScheduled");
        return observed && wanted > 0 && count("updatedNumberScheduled") == wanted && count("numberReady") == wanted;
    }
    let wanted = workload["spec"]["replicas"].as_u64().unwrap_or(1);
    let settled = workload["kind"] != "StatefulSet" || status["currentRevision"] == status["updateRevision"];
    observed && settled && ["updatedReplicas", "readyReplicas", "replicas"].iter().all(|field| count(field) == wanted)
}

fn hide_managed_fields(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide_managed_fields),
        object => {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
        }
    }
}

async fn client(cluster: &Cluster) -> Client {
    // Another test was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.read_timeout = Some(Duration::from_secs(240));
    Client::try_from(config).unwrap()
}
