//! What there is to explain an object by, in a cluster.

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;
use serde::de::DeserializeOwned;

use super::object::{Kind, Place};
use super::{Args, ConfigFacts, ExplainError, Facts, WorkloadFacts};
use crate::api::published::{CONFIG_MAP, Published};
use crate::cli::Failure;
use crate::cli::live::{Lister, Live, LiveError, block_on};
use crate::model::config::{Config, ConfigMapObject, SecretObject};
use crate::model::explain::{Known, Operator, Sought, hear_as_reported};
use crate::model::names::{ConfigId, ConfigKind, Name, WorkloadKind};
use crate::model::pod::PodObject;
use crate::model::report::name_of;
use crate::model::workload::Workload;

/// Asks the API server.
pub(super) fn gather(args: &Args) -> Result<Facts, Failure> {
    block_on(async {
        let connection = args.target.connect().await.map_err(LiveError::from)?;
        let usual = connection.client.default_namespace();
        let namespace = Name::from(args.namespace.as_deref().unwrap_or(usual));
        let lister = Lister::new(connection, Some(namespace.clone()));
        let asking = Asking { lister, namespace, args };
        match args.object.kind {
            Kind::Workload(kind) => asking.workload(kind).await,
            Kind::Config(kind) => asking.config(kind).await,
        }
    })
}

/// What is asked, where.
struct Asking<'a> {
    lister: Lister,
    namespace: Name,
    args: &'a Args,
}

impl Asking<'_> {
    async fn workload(mut self, kind: WorkloadKind) -> Result<Facts, Failure> {
        let sought = match kind {
            WorkloadKind::Deployment => self.get(Workload::of_deployment).await?,
            WorkloadKind::StatefulSet => self.get(Workload::of_stateful_set).await?,
            WorkloadKind::DaemonSet => self.get(Workload::of_daemon_set).await?,
            WorkloadKind::ReplicaSet => self.get(Workload::of_replica_set).await?,
            WorkloadKind::Job => self.get(Workload::of_job).await?,
            WorkloadKind::CronJob => self.get(Workload::of_cron_job).await?,
            WorkloadKind::Pod => self.get(PodObject::as_workload).await?,
            // Nothing on the command line names one.
            WorkloadKind::Custom(_) => Sought::NoSuchKind,
        };
        let mut workload = self.found(sought)?;
        let report = name_of(kind.as_str(), &workload.id.name).into();
        let report = self.lister.get("DriftReport", &self.namespace, &report).await?;
        hear_as_reported(&mut workload, &report);
        let namespace = self.lister.namespace(&self.namespace).await?;
        let operator = self.operator().await?;
        self.lister.configs().await?;
        let known = self.known(&workload).await?;
        Ok(Facts::Workload(Box::new(WorkloadFacts { workload, namespace, known, report, operator })))
    }

    async fn config(mut self, kind: ConfigKind) -> Result<Facts, Failure> {
        let id = ConfigId { kind, namespace: self.namespace.clone(), name: self.args.object.name.clone() };
        let sought = self.get_config(&id).await?;
        let config = self.found(sought)?;
        self.lister.configs().await?;
        self.lister.workloads().await?;
        let Live { mut inventory, forbidden } = self.lister.into_live();
        inventory.add_config(config.clone());
        let consumers = inventory.consumers();
        Ok(Facts::Config(Box::new(ConfigFacts { config, consumers, forbidden })))
    }

    /// The object that is to be explained, or why there is none.
    fn found<T>(&self, sought: Sought<T>) -> Result<T, ExplainError> {
        let place = || Place { object: self.args.object.clone(), namespace: self.namespace.clone() };
        match sought {
            Sought::Found(found) => Ok(found),
            Sought::Unknown(_) => Err(ExplainError::Forbidden(place())),
            Sought::Absent | Sought::NoSuchKind => Err(ExplainError::Absent(place())),
        }
    }

    async fn get<K>(&self, read: fn(&K) -> Option<Workload>) -> Result<Sought<Workload>, LiveError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let object = &self.args.object;
        let sought = self.lister.get::<K>(object.kind.as_str(), &self.namespace, &object.name).await?;
        Ok(sought.and_then(|found| read(&found)))
    }

    async fn operator(&self) -> Result<Operator, LiveError> {
        let namespace = self.args.operator_namespace.clone();
        let found: Sought<ConfigMap> =
            self.lister.get("ConfigMap", &namespace.as_str().into(), &CONFIG_MAP.into()).await?;
        let published = found.and_then(|found| Published::from_data(&found.data.unwrap_or_default()).ok());
        Ok(Operator { namespace, published })
    }

    /// The configs that were listed; of kinds that may not be listed, those that the workload names.
    async fn known(self, workload: &Workload) -> Result<Known, LiveError> {
        let literal = workload.opt_in.reload_on.iter().filter_map(|pattern| pattern.literal(&self.namespace));
        let named: BTreeSet<ConfigId> = workload.consumption.configs().into_iter().cloned().chain(literal).collect();
        let mut alone = Vec::new();
        for id in named.into_iter().filter(|id| self.lister.is_forbidden(id.kind)) {
            alone.push((self.get_config(&id).await?, id));
        }
        let Live { inventory, .. } = self.lister.into_live();
        let mut known = Known { configs: inventory.into_configs(), ..Known::default() };
        for (sought, id) in alone {
            match sought {
                Sought::Found(config) => drop(known.configs.insert(config)),
                Sought::Unknown(unknown) => drop(known.unknown.insert(id, unknown)),
                Sought::Absent | Sought::NoSuchKind => {}
            }
        }
        Ok(known)
    }

    async fn get_config(&self, id: &ConfigId) -> Result<Sought<Config>, LiveError> {
        let ConfigId { kind, namespace, name } = id;
        Ok(match kind {
            ConfigKind::ConfigMap => {
                let sought = self.lister.get::<ConfigMapObject>(kind.as_str(), namespace, name).await?;
                sought.and_then(|found| Some(found.config))
            }
            ConfigKind::Secret => {
                let sought = self.lister.get::<SecretObject>(kind.as_str(), namespace, name).await?;
                sought.and_then(|found| Some(found.config))
            }
            // Nothing of it is read.
            ConfigKind::SecretProviderClass => Sought::NoSuchKind,
        })
    }
}
