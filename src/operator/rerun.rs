//! The writes by which a Job is made again and a CronJob runs. Each reads what is there now, as JSON and whole, and
//! names the state that it saw.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::api::{DeleteParams, GetParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::Request;
use kube::{Client, Resource};
use serde_json::Value;

use crate::api::annotations::RERUN;
use crate::model::digest::{Digest, Keyring};
use crate::model::index::StampOrder;
use crate::model::managers::FIELD_MANAGER;
use crate::model::names::{Name, ResourceVersion, Uid};
use crate::model::rerun::manifest;
use crate::model::rerun::placeholder::{Kept, Placeholder, Step, name_of};
use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;

/// What these writes need to know of who makes them.
#[derive(Clone)]
pub struct Rerunner {
    client: Client,
    instance: Arc<str>,
    keyring: Arc<Keyring>,
}

/// What a step led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// The new Job is there.
    Made {
        /// Its uid.
        uid: Uid,
        /// Why it was made again.
        cause: String,
    },
    /// The watch shows what comes of it.
    Done,
    /// The placeholder is not what this installation wrote: it is left alone.
    NotOurs,
}

impl Rerunner {
    /// For the installation of this name.
    pub fn new(client: Client, instance: &str, keyring: Arc<Keyring>) -> Self {
        Self { client, instance: instance.into(), keyring }
    }

    /// Has a Job make way for the new one. The API server has to take that one first; and what it will be is kept in
    /// the cluster before the old one goes.
    pub async fn make_again(&self, order: &StampOrder) -> Result<(), ApiError> {
        let jobs = self.jobs(&order.workload.namespace);
        let name = &order.workload.name;
        let live = jobs.get(name).await?;
        is_as_decided(&live, order)?;
        let job = manifest::again(&live, &order.text, &self.instance, &order.cause.to_string());
        jobs.ask(&manifest::under_any_name(&job, name)).await?;
        let placeholder_name = name_of(&order.uid);
        let annotation = self.kept(order, &job)?;
        match jobs.create(&manifest::idle(&job, &placeholder_name, (RERUN, annotation))).await {
            Ok(_) => {}
            Err(ApiError::Exists) => return Err(self.in_the_way(order, &placeholder_name).await),
            Err(error) => return Err(error),
        }
        jobs.delete_with_pods(name, &order.uid, order.version).await
    }

    /// What the Job means that has the placeholder's name. A placeholder is seen on the watch, soon, and what is to be done
    /// about it comes first; any other Job has to go before anything is done.
    async fn in_the_way(&self, order: &StampOrder, name: &Name) -> ApiError {
        let namespace = &order.workload.namespace;
        let live = match self.jobs(namespace).get(name).await {
            Ok(live) => live,
            Err(ApiError::NotFound) => return ApiError::Conflict,
            Err(error) => return error,
        };
        let metadata = live.get("metadata").cloned().and_then(|metadata| serde_json::from_value(metadata).ok());
        match metadata.as_ref().and_then(Placeholder::of) {
            Some(placeholder) if placeholder.original == order.workload => ApiError::Conflict,
            Some(_) | None => ApiError::NameTaken(format!("Job {namespace}/{name}")),
        }
    }

    /// What the placeholder of a Job keeps, as an annotation.
    fn kept(&self, order: &StampOrder, job: &Value) -> Result<String, ApiError> {
        let kept = Kept {
            instance: self.instance.to_string(),
            name: order.workload.name.clone(),
            uid: order.uid.clone(),
            version: order.version,
            cause: order.cause.to_string(),
            manifest: job.to_string(),
            seal: Digest::from_text(""),
        };
        let kept = kept.sealed(&order.workload.namespace, self.keyring.current());
        serde_json::to_string(&kept).map_err(|_| ApiError::Unreadable("the manifest".to_owned()))
    }

    /// Runs a CronJob, as a Job of this name. One that is there already is the one that was asked for.
    pub async fn run(&self, order: &StampOrder, name: &Name) -> Result<(), ApiError> {
        let namespace = order.workload.namespace.as_str();
        let cron_jobs = self.resource(CronJob::url_path(&(), Some(namespace)));
        let live = cron_jobs.get(&order.workload.name).await?;
        is_as_decided(&live, order)?;
        let run = manifest::run_of(&live, name, &order.uid, &order.text);
        let run = run.ok_or_else(|| ApiError::Unreadable("spec.jobTemplate.spec".to_owned()))?;
        match self.jobs(&order.workload.namespace).create(&run).await {
            Ok(_) | Err(ApiError::Exists) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes the next step of making a Job again.
    pub async fn take(&self, placeholder: &Placeholder, step: &Step) -> Result<Taken, ApiError> {
        let jobs = self.jobs(&placeholder.original.namespace);
        let live = match jobs.get(&placeholder.name).await {
            Err(ApiError::NotFound) => return Ok(Taken::Done),
            live => live?,
        };
        let Some(kept) = self.read(&live, placeholder) else { return Ok(Taken::NotOurs) };
        let done = match step {
            Step::Wait => Ok(()),
            Step::Delete => jobs.delete_with_pods(&placeholder.original.name, &kept.uid, kept.version).await,
            Step::Discard => jobs.delete(&placeholder.name, &placeholder.uid).await,
            Step::Create => {
                let manifest = serde_json::from_str(&kept.manifest);
                let manifest: Value = manifest.map_err(|_| ApiError::Unreadable(format!("annotation {RERUN}")))?;
                return match jobs.create(&manifest).await {
                    Ok(made) => Ok(Taken::Made { uid: uid_of(&made)?, cause: kept.cause }),
                    Err(ApiError::Exists) => Ok(Taken::Done),
                    Err(error) => Err(error),
                };
            }
        };
        match done {
            // Whoever changed or deleted it was faster, and the watch shows that.
            Ok(()) | Err(ApiError::NotFound | ApiError::Conflict) => Ok(Taken::Done),
            Err(error) => Err(error),
        }
    }

    fn read(&self, live: &Value, placeholder: &Placeholder) -> Option<Kept> {
        let annotations = live.pointer("/metadata/annotations")?;
        let kept = annotations.get(RERUN)?.as_str()?;
        Kept::read(kept, &placeholder.name, &placeholder.original.namespace, &self.keyring)
    }

    fn jobs(&self, namespace: &Name) -> Objects<'_> {
        self.resource(Job::url_path(&(), Some(namespace.as_str())))
    }

    fn resource(&self, path: String) -> Objects<'_> {
        Objects { client: &self.client, request: Request::new(path) }
    }
}

/// Objects of one kind in one namespace, as JSON.
struct Objects<'a> {
    client: &'a Client,
    request: Request,
}

impl Objects<'_> {
    async fn get(&self, name: &Name) -> Result<Value, ApiError> {
        self.call(self.request.get(name.as_str(), &GetParams::default())).await
    }

    async fn create(&self, object: &Value) -> Result<Value, ApiError> {
        self.post(object, false).await
    }

    /// Whether the API server would take it: quotas and admission included, and nothing is made.
    async fn ask(&self, object: &Value) -> Result<(), ApiError> {
        self.post(object, true).await.map(|_| ())
    }

    async fn post(&self, object: &Value, dry_run: bool) -> Result<Value, ApiError> {
        let params = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
        self.call(self.request.create(&params, object.to_string().into_bytes())).await
    }

    /// Deletes a Job in this state, and not before its pods are gone: two runs of it must not overlap.
    async fn delete_with_pods(&self, name: &Name, uid: &Uid, version: ResourceVersion) -> Result<(), ApiError> {
        let preconditions = Preconditions { uid: Some(uid.to_string()), resource_version: Some(version.to_string()) };
        self.delete_if(name, preconditions, PropagationPolicy::Foreground).await
    }

    /// Deletes a Job that has no pods.
    async fn delete(&self, name: &Name, uid: &Uid) -> Result<(), ApiError> {
        let preconditions = Preconditions { uid: Some(uid.to_string()), resource_version: None };
        self.delete_if(name, preconditions, PropagationPolicy::Background).await
    }

    async fn delete_if(
        &self,
        name: &Name,
        preconditions: Preconditions,
        propagation: PropagationPolicy,
    ) -> Result<(), ApiError> {
        let params = DeleteParams {
            preconditions: Some(preconditions),
            propagation_policy: Some(propagation),
            ..DeleteParams::default()
        };
        self.call(self.request.delete(name.as_str(), &params)).await.map(|_| ())
    }

    async fn call(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, ApiError> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        in_time(self.client.request(request)).await
    }
}

/// Whether an object is still in the state that was decided on.
fn is_as_decided(live: &Value, order: &StampOrder) -> Result<(), ApiError> {
    let version = live.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    let is_same = uid_of(live)? == order.uid && version == Some(order.version.to_string().as_str());
    if is_same { Ok(()) } else { Err(ApiError::Conflict) }
}

fn uid_of(object: &Value) -> Result<Uid, ApiError> {
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
    uid.map(Uid::from).ok_or_else(|| ApiError::Unreadable("metadata.uid".to_owned()))
}
