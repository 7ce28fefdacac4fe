//! How often a workload's pod template changed: every state of it, as a watch shows them.

use std::sync::{Arc, Mutex};

use futures::{StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::waiting::{PATIENCE, poll};

/// The pod templates that one workload has had since a moment, in their order.
pub struct History {
    api: Api<DynamicObject>,
    name: String,
    seen: Arc<Mutex<Seen>>,
    watch: JoinHandle<()>,
}

struct Seen {
    /// The newest state of the object that the watch has shown.
    version: u64,
    templates: Vec<Value>,
}

impl History {
    /// From this state of the object on.
    pub fn since(object: &Value, api: Api<DynamicObject>) -> Self {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let template = object["spec"]["template"].clone();
        let seen = Arc::new(Mutex::new(Seen { version: version_of(object), templates: vec![template] }));
        let watch = tokio::spawn(watch(api.clone(), name.clone(), Arc::clone(&seen)));
        Self { api, name, seen, watch }
    }

    /// Every template that came after the first, up to this moment.
    pub async fn changes(&self) -> Vec<Value> {
        let now = version_of(&serde_json::to_value(self.api.get(&self.name).await.unwrap()).unwrap());
        let caught_up = async || self.seen.lock().unwrap().version >= now;
        poll(PATIENCE, caught_up).await.expect("the watch of the test itself is late");
        self.seen.lock().unwrap().templates.iter().skip(1).cloned().collect()
    }

    /// How often the template changed, up to this moment.
    pub async fn rollouts(&self) -> usize {
        self.changes().await.len()
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

async fn watch(api: Api<DynamicObject>, name: String, seen: Arc<Mutex<Seen>>) {
    let params = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(200);
    loop {
        let since = seen.lock().unwrap().version.to_string();
        let mut events = api.watch(&params, &since).await.unwrap().boxed();
        while let Some(event) = events.try_next().await.unwrap() {
            if let WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) = event {
                seen.lock().unwrap().note(&serde_json::to_value(object).unwrap());
            }
        }
    }
}

impl Seen {
    fn note(&mut self, object: &Value) {
        self.version = version_of(object);
        let template = &object["spec"]["template"];
        if self.templates.last() != Some(template) {
            self.templates.push(template.clone());
        }
    }
}

fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}
