//! Objects from the cluster, page by page.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use crate::cli::inventory::{Inventory, Workload};
use crate::model::config::{ConfigMapObject, SecretObject};
use crate::model::names::{ConfigKind, WorkloadKind};

/// How long one page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const PAGE_SIZE: u32 = 500;

/// Which cluster, and what of it.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Another kubeconfig than the usual one.
    pub kubeconfig: Option<&'a Path>,
    /// Another context than the current one.
    pub context: Option<&'a str>,
    /// One namespace; all of them otherwise.
    pub namespace: Option<&'a str>,
}

/// Why a cluster can't be scanned.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The kubeconfig is no kubeconfig. Its text is not quoted: it holds credentials.
    #[error("cannot read {kubeconfig}: it does not parse, line {line}; see what kubectl config view says")]
    KubeconfigMalformed {
        /// Which one.
        kubeconfig: String,
        /// The first line that does not parse.
        line: u64,
    },
    /// The kubeconfig can't be used.
    #[error(
        "cannot use {kubeconfig}: {reason}; choose another with --kubeconfig or --context, or scan a file with --filename"
    )]
    Kubeconfig {
        /// Which one.
        kubeconfig: String,
        /// Why.
        reason: String,
    },
    /// No client can be made of the kubeconfig.
    #[error("cannot set up a connection to {url}: {reason}; see what kubectl config view says")]
    Client {
        /// The server.
        url: String,
        /// Why.
        reason: String,
    },
    /// The API server does not answer.
    #[error("cannot reach the API server at {url}: {reason}; check that it runs, or choose another with --context")]
    Unreachable {
        /// The server.
        url: String,
        /// Why.
        reason: String,
    },
    /// It takes too long.
    #[error("the API server at {url} took more than {} s to list {kind} objects; try one namespace with --namespace",
        PAGE_TIMEOUT.as_secs())]
    Slow {
        /// The server.
        url: String,
        /// What was listed.
        kind: &'static str,
    },
    /// The API server doesn't know who asks.
    #[error("the API server at {url} does not accept these credentials; log in again, or choose others with --context")]
    Unauthorized {
        /// The server.
        url: String,
    },
    /// It refuses for another reason.
    #[error("cannot list {kind} objects: the API server says {reason}")]
    Refused {
        /// What was listed.
        kind: &'static str,
        /// Its reason.
        reason: String,
    },
    /// What it answers can't be read. The cause may quote values.
    #[error("cannot read the API server's list of {kind} objects; is {url} a Kubernetes API server?")]
    Unreadable {
        /// What was listed.
        kind: &'static str,
        /// The server.
        url: String,
    },
    /// There is nothing that a scan could look at.
    #[error(
        "listing ConfigMaps and Secrets is forbidden; grant list on one of them, or try one namespace with --namespace"
    )]
    NothingAllowed,
    /// The runtime did not start.
    #[error("cannot start the asynchronous runtime")]
    Runtime(#[source] std::io::Error),
}

/// What was found, and the kinds that may not be listed.
#[derive(Debug, Default)]
pub struct Live {
    /// The objects.
    pub inventory: Inventory,
    /// The kinds that are left out.
    pub forbidden: Vec<&'static str>,
}

/// Lists all that a scan looks at.
pub fn read(target: Target<'_>) -> Result<Live, LiveError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LiveError::Runtime)?;
    runtime.block_on(async { Lister::new(target).await?.list_all().await })
}

struct Lister<'a> {
    client: Client,
    url: String,
    namespace: Option<&'a str>,
    live: Live,
}

impl<'a> Lister<'a> {
    async fn new(target: Target<'a>) -> Result<Self, LiveError> {
        // One provider for the process; if another part has installed it already, it is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = config(target).await?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        // A person waits: better an error at once than retries for minutes.
        config.default_retry = false;
        let url = config.cluster_url.to_string();
        let client = Client::try_from(config)
            .map_err(|error| LiveError::Client { url: url.clone(), reason: innermost(&error) })?;
        Ok(Self { client, url, namespace: target.namespace, live: Live::default() })
    }

    async fn list_all(mut self) -> Result<Live, LiveError> {
        let configs = ListParams::default();
        // Helm's records of releases are many and large, and declare nothing about themselves.
        let secrets = ListParams::default().fields("type!=helm.sh/release.v1");
        self.list(ConfigKind::ConfigMap.as_str(), configs, |all, object: ConfigMapObject| {
            all.add_config(object.config)
        })
        .await?;
        self.list(ConfigKind::Secret.as_str(), secrets, |all, object: SecretObject| all.add_config(object.config))
            .await?;
        if self.live.forbidden.len() == ConfigKind::ALL.len() {
            return Err(LiveError::NothingAllowed);
        }
        self.workloads::<Deployment>().await?;
        self.workloads::<StatefulSet>().await?;
        self.workloads::<DaemonSet>().await?;
        self.workloads::<ReplicaSet>().await?;
        self.workloads::<Job>().await?;
        self.workloads::<CronJob>().await?;
        self.workloads::<Pod>().await?;
        Ok(self.live)
    }

    async fn workloads<W>(&mut self) -> Result<(), LiveError>
    where
        W: Workload + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        W: Clone + std::fmt::Debug + DeserializeOwned,
    {
        self.list(WorkloadKind::as_str(W::WORKLOAD), ListParams::default(), |all, object: W| all.add_workload(&object))
            .await
    }

    /// Lists one kind. A page after a pause may come too late; then all is listed at once.
    async fn list<K>(
        &mut self,
        kind: &'static str,
        params: ListParams,
        mut add: impl FnMut(&mut Inventory, K),
    ) -> Result<(), LiveError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let api: Api<K> = match self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        let mut page = params.clone().limit(PAGE_SIZE);
        loop {
            let listed = tokio::time::timeout(PAGE_TIMEOUT, api.list(&page)).await;
            let listed = listed.map_err(|_| LiveError::Slow { url: self.url.clone(), kind })?;
            let list = match listed {
                Ok(list) => list,
                Err(kube::Error::Api(status)) if status.is_forbidden() => {
                    self.live.forbidden.push(kind);
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.code == 410 && page.limit.is_some() => {
                    page = params.clone();
                    continue;
                }
                Err(error) => return Err(self.failure(kind, error)),
            };
            list.items.into_iter().for_each(|object| add(&mut self.live.inventory, object));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(()),
            }
        }
    }

    fn failure(&self, kind: &'static str, error: kube::Error) -> LiveError {
        let url = self.url.clone();
        match error {
            kube::Error::Api(status) if status.code == 401 => LiveError::Unauthorized { url },
            kube::Error::Api(status) => LiveError::Refused { kind, reason: status.message },
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => LiveError::Unreadable { kind, url },
            error => LiveError::Unreachable { url, reason: innermost(&error) },
        }
    }
}

/// As kubectl does: the given kubeconfig, else the usual one, else that of the pod that we run in.
async fn config(target: Target<'_>) -> Result<Config, LiveError> {
    let kubeconfig = match target.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let kubeconfig = match kubeconfig {
        Err(KubeconfigError::ReadConfig(..) | KubeconfigError::FindPath) if target.is_unspecific() => {
            match Config::incluster() {
                Ok(config) => return Ok(config),
                Err(_) => kubeconfig,
            }
        }
        other => other,
    };
    let options = KubeConfigOptions { context: target.context.map(str::to_owned), ..KubeConfigOptions::default() };
    let unusable = |error| target.unusable(error);
    Config::from_custom_kubeconfig(kubeconfig.map_err(unusable)?, &options).await.map_err(unusable)
}

impl Target<'_> {
    /// Whether no cluster was asked for by name.
    fn is_unspecific(&self) -> bool {
        self.kubeconfig.is_none() && self.context.is_none()
    }

    fn unusable(&self, error: KubeconfigError) -> LiveError {
        let kubeconfig = match self.kubeconfig {
            Some(path) => format!("the kubeconfig {}", path.display()),
            None => "the kubeconfig".to_owned(),
        };
        match error {
            KubeconfigError::Parse(error) => {
                let line = error.location().map_or(1, |location| location.line());
                LiveError::KubeconfigMalformed { kubeconfig, line }
            }
            KubeconfigError::ReadConfig(error, path) => {
                let kubeconfig = format!("the kubeconfig {}", path.display());
                LiveError::Kubeconfig { kubeconfig, reason: error.to_string() }
            }
            other => LiveError::Kubeconfig { kubeconfig, reason: other.to_string() },
        }
    }
}

/// What is at the bottom of it: the layers above say only which of them failed.
fn innermost(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |cause| cause.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}
