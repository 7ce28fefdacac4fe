//! What there is to explain an object by, in a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{CustomResourceExt as _, Resource};
use serde::de::DeserializeOwned;

use super::kinds::{self, Resolved};
use super::object::{Kind, ObjectName, OtherKind, Place};
use super::{Args, ConfigFacts, ExplainError, Facts, WorkloadFacts};
use crate::api::annotations::VERSION;
use crate::api::drift_report::DriftReport;
use crate::api::published::{CONFIG_MAP, LEASE, Published, USUAL_NAMESPACE};
use crate::cli::Failure;
use crate::cli::live::{Lister, Live, LiveError, block_on};
use crate::model::config::{Config, ConfigMapObject, SecretObject};
use crate::model::custom::object::CustomObject;
use crate::model::explain::{Known, NoDrift, Operator, Sought, Unknown};
use crate::model::lease::LeaseState;
use crate::model::names::{ConfigId, ConfigKind, Name, WorkloadId, WorkloadKind};
use crate::model::pod::PodObject;
use crate::model::readable::Readable;
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
        match &args.object.kind {
            Kind::Workload(kind) => asking.workload(*kind).await,
            Kind::Other(kind) => asking.custom(kind).await,
            Kind::Config(kind) => asking.config(*kind).await,
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
    async fn workload(self, kind: WorkloadKind) -> Result<Facts, Failure> {
        let name = &self.args.object.name;
        let sought = match kind {
            WorkloadKind::Deployment => self.get(kind, name, Workload::of_deployment).await?,
            WorkloadKind::StatefulSet => self.get(kind, name, Workload::of_stateful_set).await?,
            WorkloadKind::DaemonSet => self.get(kind, name, Workload::of_daemon_set).await?,
            WorkloadKind::ReplicaSet => self.get(kind, name, Workload::of_replica_set).await?,
            WorkloadKind::Job => self.get(kind, name, Workload::of_job).await?,
            WorkloadKind::CronJob => self.get(kind, name, Workload::of_cron_job).await?,
            WorkloadKind::Pod => self.get(kind, name, PodObject::as_workload).await?,
            // Nothing on the command line names one; the API server is asked which it is.
            WorkloadKind::Custom(_) => Sought::NoSuchKind,
        };
        let workload = found(sought, || self.place(self.args.object.kind.clone(), name))?;
        let report = self.report(&workload.id).await?;
        let operator = self.operator(&report).await?;
        let (referrer, forbidden) = self.referrer(&workload.id, &operator).await?;
        self.facts(workload, referrer, report, operator, forbidden).await
    }

    /// One of a kind that the API server is asked for.
    async fn custom(self, other: &OtherKind) -> Result<Facts, Failure> {
        let object = &self.args.object;
        let Sought::Found(served) = self.lister.served_kinds().await? else {
            return Err(ExplainError::KindsForbidden.into());
        };
        // The report is named as the operator calls the kind, which its flags say.
        let operator = self.operator(&Sought::Absent).await?;
        let watched = operator.watched_kinds();
        let Resolved { kind, resource } = kinds::resolve(object, other, &served, watched)?;
        let place = |name: &Name| self.place(Kind::Workload(WorkloadKind::Custom(kind)), name);
        let sought: Sought<Readable<CustomObject>> =
            self.lister.get_of(&kind.kind, &self.namespace, &object.name, &resource).await?;
        let custom = found(sought, || place(&object.name))?;
        let custom = custom.read().map_err(|_| ExplainError::Odd(place(&object.name)))?;
        if let Some(why) = custom.lacks_template() {
            return Err(ExplainError::without_template(why, place(&object.name)).into());
        }
        let asked = custom.read(kind).ok_or_else(|| ExplainError::Absent(place(&object.name)))?;
        let (workload, referrer) = match &asked.template_in {
            None => (asked, None),
            Some(holder) => {
                let deployment = self.get(holder.kind, &holder.name, Workload::of_deployment).await?;
                let place = || self.place(Kind::Workload(holder.kind), &holder.name);
                (found(deployment, place)?, Some(asked.clone()))
            }
        };
        let report = self.report(&workload.id).await?;
        let operator = self.operator(&report).await?;
        self.facts(workload, referrer, report, operator, Vec::new()).await
    }

    async fn facts(
        mut self,
        workload: Workload,
        referrer: Option<Workload>,
        report: Sought<DriftReport>,
        operator: Operator,
        forbidden: Vec<&'static str>,
    ) -> Result<Facts, Failure> {
        let namespace = self.lister.namespace(&self.namespace).await?;
        let known = Known::default();
        let mut facts = WorkloadFacts { workload, referrer, namespace, known, report, operator, forbidden };
        facts.hear();
        self.lister.configs(facts.operator.config_labels()).await?;
        facts.known = self.known(&facts.workload, &facts.operator).await?;
        Ok(Facts::Workload(Box::new(facts)))
    }

    async fn report(&self, id: &WorkloadId) -> Result<Sought<DriftReport>, LiveError> {
        let name = name_of(id.kind.label(), &id.name).into();
        self.lister.get("DriftReport", &self.namespace, &name).await
    }

    /// The Rollout that takes its pod template from this Deployment, where the operator watches such.
    async fn referrer(
        &self,
        id: &WorkloadId,
        operator: &Operator,
    ) -> Result<(Option<Workload>, Vec<&'static str>), LiveError> {
        let rollout = operator.watched_kinds().iter().find(|kind| kind.is_argo_rollout());
        let Some(kind) = rollout.filter(|_| id.kind == WorkloadKind::Deployment) else {
            return Ok((None, Vec::new()));
        };
        let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
        let resource = ApiResource::from_gvk(&gvk);
        let rollouts: Sought<Vec<Readable<CustomObject>>> =
            self.lister.list_of(&kind.kind, &self.namespace, &resource).await?;
        Ok(match rollouts {
            Sought::Found(rollouts) => {
                let mut workloads = rollouts.iter().filter_map(|rollout| rollout.get()?.read(kind));
                (workloads.find(|workload| workload.template_in.as_ref() == Some(id)), Vec::new())
            }
            Sought::Unknown(_) => (None, vec![kind.kind.as_str()]),
            Sought::Absent | Sought::NoSuchKind => (None, Vec::new()),
        })
    }

    async fn config(mut self, kind: ConfigKind) -> Result<Facts, Failure> {
        let id = ConfigId { kind, namespace: self.namespace.clone(), name: self.args.object.name.clone() };
        let sought = self.get_config(&id).await?;
        let (mut config, _) = found(sought, || self.place(self.args.object.kind.clone(), &id.name))?;
        if let Some(release) = config.release().cloned() {
            self.lister.read_release(&release).await?;
        }
        let no_drift = self.no_drift().await?;
        self.lister.configs(None).await?;
        self.lister.workloads().await?;
        let Live { mut inventory, forbidden, .. } = self.lister.into_live();
        config.compare_with(&inventory.releases);
        inventory.add_config(config.clone());
        let consumers = inventory.consumers();
        Ok(Facts::Config(Box::new(ConfigFacts { config, consumers, no_drift, forbidden })))
    }

    fn place(&self, kind: Kind, name: &Name) -> Place {
        Place { object: ObjectName { kind, name: name.clone() }, namespace: self.namespace.clone() }
    }

    async fn get<K>(
        &self,
        kind: WorkloadKind,
        name: &Name,
        read: fn(&K) -> Option<Workload>,
    ) -> Result<Sought<Workload>, LiveError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let sought = self.lister.get::<K>(kind.as_str(), &self.namespace, name).await?;
        Ok(sought.and_then(|found| read(&found)))
    }

    /// What there is to see of the operator: in the namespace that is asked for, else in that of who keeps the report.
    async fn operator(&self, report: &Sought<DriftReport>) -> Result<Operator, LiveError> {
        let reported = match report {
            Sought::Found(report) => report.status.as_ref().and_then(|status| status.reload.as_ref()),
            Sought::Absent | Sought::NoSuchKind | Sought::Unknown(_) => None,
        };
        let reported = reported.map(|reload| reload.instance.as_str());
        let namespace = self.args.operator_namespace.as_deref().or(reported).unwrap_or(USUAL_NAMESPACE).to_owned();
        let place = Name::from(namespace.as_str());
        let published = self.published(&place).await?;
        let lease: Sought<Lease> = self.lister.get("Lease", &place, &LEASE.into()).await?;
        let lease = lease.map(|lease| LeaseState::of(&lease, Timestamp::now()));
        let crd = self.lister.metadata_of_crd(&DriftReport::crd_name().into()).await?;
        let crd = crd.map(|metadata| metadata.annotations.and_then(|mut all| all.remove(VERSION)));
        Ok(Operator { namespace, published, lease, crd })
    }

    /// What the operator in this namespace says of itself.
    async fn published(&self, namespace: &Name) -> Result<Sought<Published>, LiveError> {
        let config_map: Sought<ConfigMap> = self.lister.get("ConfigMap", namespace, &CONFIG_MAP.into()).await?;
        Ok(match config_map.map(|found| Published::from_data(&found.data.unwrap_or_default())) {
            Sought::Found(Err(_)) => Sought::Unknown(Unknown::Unreadable),
            other => other.and_then(Result::ok),
        })
    }

    /// Why it reports no drift in the namespace that is looked at, where its flags say so.
    async fn no_drift(&self) -> Result<Option<NoDrift>, LiveError> {
        let operator = self.args.operator_namespace.as_deref().unwrap_or(USUAL_NAMESPACE);
        let published = self.published(&operator.into()).await?;
        let namespace = self.lister.namespace(&self.namespace).await?;
        Ok(NoDrift::of(&published, &self.namespace, &namespace))
    }

    /// The configs that were listed; of kinds that may not be listed, those that the workload names.
    async fn known(self, workload: &Workload, operator: &Operator) -> Result<Known, LiveError> {
        let literal = workload.opt_in.reload_on.iter().filter_map(|pattern| pattern.literal(&self.namespace));
        let named: BTreeSet<ConfigId> = workload.consumption.configs().into_iter().cloned().chain(literal).collect();
        let mut alone = Vec::new();
        for id in named.into_iter().filter(|id| self.lister.is_forbidden(id.kind)) {
            alone.push((self.get_config(&id).await?, id));
        }
        let mut live = self.lister.into_live();
        let mut unknown = BTreeMap::new();
        for (sought, id) in alone {
            match sought {
                Sought::Found((config, metadata)) => live.add_config(config, &metadata, operator.config_labels()),
                Sought::Unknown(why) => drop(unknown.insert(id, why)),
                Sought::Absent | Sought::NoSuchKind => {}
            }
        }
        let Live { mut inventory, unselected, .. } = live;
        // What the operator does not see it does not miss.
        inventory.may_lack(operator.partly_seen());
        Ok(Known { configs: inventory.into_configs(), unknown, unselected })
    }

    async fn get_config(&self, id: &ConfigId) -> Result<Sought<(Config, ObjectMeta)>, LiveError> {
        let ConfigId { kind, namespace, name } = id;
        Ok(match kind {
            ConfigKind::ConfigMap => {
                let sought = self.lister.get::<ConfigMapObject>(kind.as_str(), namespace, name).await?;
                sought.map(|found| (found.config.clone(), found.meta().clone()))
            }
            ConfigKind::Secret => {
                let sought = self.lister.get::<SecretObject>(kind.as_str(), namespace, name).await?;
                sought.map(|found| (found.config.clone(), found.meta().clone()))
            }
            // Nothing of it is read.
            ConfigKind::SecretProviderClass => Sought::NoSuchKind,
        })
    }
}

/// What was asked for, or why there is none.
fn found<T>(sought: Sought<T>, place: impl Fn() -> Place) -> Result<T, ExplainError> {
    match sought {
        Sought::Found(found) => Ok(found),
        Sought::Unknown(_) => Err(ExplainError::Forbidden(place())),
        Sought::Absent | Sought::NoSuchKind => Err(ExplainError::Absent(place())),
    }
}
