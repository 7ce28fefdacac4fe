//! Manifests, with a default for whatever a test doesn't care about.

use serde_json::{Value, json};

use super::kind::{CONFIG_MAP, DAEMON_SET, DEPLOYMENT, Kind, SECRET, STATEFUL_SET};

pub fn config_map(name: &str, data: &[(&str, &str)]) -> Value {
    manifest(CONFIG_MAP, name, json!({"data": map(data)}))
}

pub fn secret(name: &str, string_data: &[(&str, &str)]) -> Value {
    manifest(SECRET, name, json!({"stringData": map(string_data)}))
}

/// Two pods, annotated for auto-reload, with one container named `app`.
pub fn deployment(name: &str) -> Workload {
    Workload::new(DEPLOYMENT, name)
}

pub fn stateful_set(name: &str) -> Workload {
    Workload::new(STATEFUL_SET, name)
}

pub fn daemon_set(name: &str) -> Workload {
    Workload::new(DAEMON_SET, name)
}

/// A Job that is annotated, with pods that run until they are deleted, or that are done at once.
pub fn job(name: &str, ends: bool) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "labels": {"team": "tools"}, "annotations": {
            "restamp.dev/auto-reload": "true", "example.com/note": "kept",
        }},
        "spec": job_spec(name, ends),
    })
}

/// What it does.
pub fn job_spec(name: &str, ends: bool) -> Value {
    json!({
        "backoffLimit": 3,
        "template": {
            "metadata": {"labels": {"app": name, "restamp.test/stuck": (!ends).to_string()}},
            "spec": {
                "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "app", "image": "localhost/app:1", "envFrom": [{"configMapRef": {"name": "c"}}],
                }],
            },
        },
    })
}

/// A CronJob that is annotated, and whose schedule comes to it at New Year only.
pub fn cron_job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": name, "annotations": {"restamp.dev/auto-reload": "true"}},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {
            "metadata": {"labels": {"team": "tools"}, "annotations": {"example.com/note": "kept"}},
            "spec": job_spec(name, true),
        }},
    })
}

#[derive(Clone)]
pub struct Workload {
    kind: Kind,
    name: String,
    image: String,
    env_from: Vec<Value>,
    env: Vec<Value>,
}

impl Workload {
    fn new(kind: Kind, name: &str) -> Self {
        Self { kind, name: name.to_owned(), image: "localhost/app:1".to_owned(), env_from: vec![], env: vec![] }
    }

    pub fn image(mut self, image: &str) -> Self {
        self.image = image.to_owned();
        self
    }

    /// All keys of this ConfigMap.
    pub fn env_from_config_map(mut self, name: &str) -> Self {
        self.env_from.push(json!({"configMapRef": {"name": name}}));
        self
    }

    /// All keys of this Secret.
    pub fn env_from_secret(mut self, name: &str) -> Self {
        self.env_from.push(json!({"secretRef": {"name": name}}));
        self
    }

    /// One key of this ConfigMap.
    pub fn env_of_config_map(mut self, name: &str, key: &str) -> Self {
        self.env.push(json!({"name": key, "valueFrom": {"configMapKeyRef": {"name": name, "key": key}}}));
        self
    }

    pub fn build(self) -> Value {
        let labels = json!({"app": self.name});
        let mut spec = json!({
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{
                        "name": "app", "image": self.image, "env": self.env, "envFrom": self.env_from,
                    }],
                },
            },
        });
        if self.kind != DAEMON_SET {
            spec["replicas"] = json!(2);
        }
        if self.kind == STATEFUL_SET {
            spec["serviceName"] = json!(self.name);
        }
        let mut manifest = manifest(self.kind, &self.name, json!({"spec": spec}));
        manifest["metadata"]["annotations"] = json!({"restamp.dev/auto-reload": "true"});
        manifest
    }
}

impl From<Workload> for Value {
    fn from(workload: Workload) -> Self {
        workload.build()
    }
}

fn manifest(kind: Kind, name: &str, content: Value) -> Value {
    let mut manifest = content;
    manifest["apiVersion"] = json!(kind.api_version());
    manifest["kind"] = json!(kind.name);
    manifest["metadata"] = json!({"name": name});
    manifest
}

fn map(pairs: &[(&str, &str)]) -> Value {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect::<serde_json::Map<_, _>>().into()
}
