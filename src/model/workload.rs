//! A workload, reduced to what the rules need: what it consumes, what its owner wants, and how its rollout stands.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, DeploymentCondition, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;

use crate::api::annotations::{CONFIG_HASH, MADE_BY, MADE_FOR};
use crate::api::opt_in::{Annotations, OptIn};
use crate::api::stakater::Stakater;
use crate::api::vocabulary::Vocabulary;
use crate::model::consumption::Consumption;
use crate::model::custom::rollout::Lever;
use crate::model::fields::{Fields, Manifest, ManifestOrigin};
use crate::model::helm::{ReleaseId, Releases};
use crate::model::image::TemplateImage;
use crate::model::managed_fields::LastWrite;
use crate::model::names::{Name, ResourceVersion, Uid, WorkloadId, WorkloadKind, controller_of};
use crate::model::rerun::Run;
use crate::model::source::Origin;

/// What restamp keeps of an object that owns a pod template.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Which one.
    pub id: WorkloadId,
    /// Its uid; `None` in a manifest that no API server has seen.
    pub uid: Option<Uid>,
    /// The version that this was read from.
    pub version: Option<ResourceVersion>,
    /// The version at which it was made, where that was seen on the watch as it happened, and it was opted in by then.
    pub born: Option<ResourceVersion>,
    /// It rises with each change of the spec.
    pub generation: i64,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether a controller owns it.
    pub owned: Owned,
    /// What its annotations say, in the vocabulary that it was read in: our own, until it is heard in another one.
    pub opt_in: OptIn,
    /// Who looks after it, where it says so.
    pub origin: Option<Box<Origin>>,
    /// Its annotations, where some are Reloader's.
    pub annotations: Option<Box<Annotations>>,
    /// What its containers read.
    pub consumption: Consumption,
    /// How it differs from its manifest.
    pub fields: Box<Fields>,
    /// The stamp that its pod template carries.
    pub stamp: Option<String>,
    /// How its controller replaces pods.
    pub strategy: Strategy,
    /// How far its controller is.
    pub progress: Progress,
    /// The revision that its controller works towards.
    pub revision: Revision,
    /// How its controller is made to replace pods.
    pub lever: Lever,
    /// The installation that made it again, for a Job: it keeps the report, also before that is there.
    pub made_by: Option<String>,
    /// Why it was made again, and when: that is its last reload.
    pub made_for: Option<(String, Timestamp)>,
    /// The workload that has its pod template, where it has none itself: that one rolls it.
    pub template_in: Option<WorkloadId>,
    /// The images that its pod template asks for.
    pub images: Vec<TemplateImage>,
    /// Whether its rollout is late.
    pub deadline: Deadline,
    /// Who wrote its pod template last, beside restamp.
    pub template_written: Option<LastWrite>,
    /// How far it is, if it is a Job or CronJob.
    pub run: Run,
}

/// Whether a controller owns an object, and whether that one counts in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owned {
    /// None does.
    Not,
    /// This one does, as `Kind/name`, and it has no pod template that we know: an operator's custom resource.
    ByController(String),
    /// This workload does, as `Kind/name`: it has the pod template, and counts in the object's place.
    ByWorkload(String),
}

impl Owned {
    fn of(kind: WorkloadKind, metadata: &ObjectMeta) -> Self {
        match controller_of(metadata.owner_references.as_deref()) {
            None => Self::Not,
            Some(owner) if counts_for(owner, kind) => Self::ByWorkload(name_of(owner)),
            Some(owner) => Self::ByController(name_of(owner)),
        }
    }
}

/// Whether this owner has the pod template of an object of this kind. A Deployment that some operator made for its
/// custom resource is still what rolls; and what we don't know does not stand for a ReplicaSet or a Job.
fn counts_for(owner: &OwnerReference, kind: WorkloadKind) -> bool {
    let is =
        |known: WorkloadKind| owner.kind == known.as_str() && group(&owner.api_version) == group(known.api_version());
    match kind {
        WorkloadKind::ReplicaSet => is(WorkloadKind::Deployment),
        WorkloadKind::Job => is(WorkloadKind::CronJob),
        WorkloadKind::Pod => true,
        WorkloadKind::Deployment
        | WorkloadKind::StatefulSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::CronJob
        | WorkloadKind::Custom(_) => false,
    }
}

fn group(api_version: &str) -> Option<&str> {
    api_version.split_once('/').map(|(group, _)| group)
}

fn name_of(owner: &OwnerReference) -> String {
    format!("{}/{}", owner.kind, owner.name)
}

/// How pods are replaced when the template changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// All, at once.
    Rolling,
    /// Not at all, or not all, until somebody acts.
    ByHand(ByHand),
}

/// Why pods stay when the template changes, until somebody acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByHand {
    /// The Deployment is paused.
    Paused,
    /// The update strategy is `OnDelete`.
    OnDelete,
    /// The update strategy has a `partition`, below which pods stay.
    Partition,
}

impl fmt::Display for ByHand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paused => "it is paused: resume it, and its pods are replaced",
            Self::OnDelete => "its update strategy is OnDelete: delete its pods, and they are replaced",
            Self::Partition => {
                "its update strategy has a partition, below which pods stay: lower it, or delete these pods"
            }
        })
    }
}

/// How far the workload's own controller is with the present template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It has not seen the present generation yet.
    Unobserved,
    /// There are pods of earlier revisions, or too few of this one.
    InProgress,
    /// All pods are of this revision.
    Complete {
        /// How many there are.
        pods: i32,
    },
    /// It does not say.
    Unknown,
}

/// Whether a rollout is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// It is not, or there is none.
    Kept,
    /// Its controller says so: a Deployment's `ProgressDeadlineExceeded`.
    Exceeded,
    /// It is not finished, and its kind knows no deadline.
    Absent,
}

/// How the pods of the present revision are told from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revision {
    /// By their ReplicaSet: the one whose `deployment.kubernetes.io/revision` is the Deployment's.
    OfReplicaSet(Option<String>),
    /// By their `controller-revision-hash`: a StatefulSet's `status.updateRevision`.
    Hash(Option<String>),
    /// By their `pod-template-generation`, a DaemonSet's `deprecated.daemonset.template.generation`.
    TemplateGeneration(Option<String>),
    /// Not at all.
    Unknown,
}

/// The annotation by which a Deployment and its current ReplicaSet name their revision.
pub const DEPLOYMENT_REVISION: &str = "deployment.kubernetes.io/revision";
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

impl Workload {
    /// The Helm release that it names.
    pub fn release(&self) -> Option<&ReleaseId> {
        self.origin.as_ref()?.release.as_ref()
    }

    /// Takes over how it differs from what its release declares, where that was read and no annotation of `kubectl apply`
    /// comes first.
    pub fn compare_with(&mut self, releases: &Releases, metadata: &ObjectMeta, spec: &impl Serialize) {
        if matches!(self.fields.manifest, Manifest::Current { .. }) {
            return;
        }
        let declared = self.release().and_then(|release| releases.declared_spec(release, &self.id));
        if let Some(declared) = declared {
            *self.fields = Fields::of_release(self.id.kind, metadata, declared, spec);
        }
    }

    /// Takes back what its release said.
    pub fn forget_release(&mut self) {
        if matches!(self.fields.manifest, Manifest::Current { origin: ManifestOrigin::HelmRelease, .. }) {
            *self.fields = Fields { ownership: self.fields.ownership, ..Fields::default() };
        }
    }

    /// Whether it counts by itself, and no other workload in its place.
    pub fn is_its_own(&self) -> bool {
        !matches!(self.owned, Owned::ByWorkload(_))
    }

    /// What its annotations say; where they say nothing of what counts, what those of the workload say that takes its pod
    /// template from here.
    pub fn opt_in_with<'a>(&'a self, referrer: Option<&'a Workload>) -> &'a OptIn {
        let is_silent = self.opt_in.is_silent() && self.opt_in.reload_on.is_empty();
        match referrer {
            Some(referrer) if is_silent => &referrer.opt_in,
            _ => &self.opt_in,
        }
    }

    /// Reads its annotations in this vocabulary.
    pub fn hear(&mut self, vocabulary: Vocabulary) {
        let Some(annotations) = &self.annotations else {
            self.opt_in.vocabulary = vocabulary;
            return;
        };
        let own = OptIn::read(Some(&annotations.workload), Some(&annotations.template));
        self.opt_in = match vocabulary {
            Vocabulary::Own => own,
            Vocabulary::WithStakater => own.or_stakater(Stakater::read(self.id.kind, annotations)),
        };
        if matches!(self.id.kind, WorkloadKind::Custom(kind) if kind.is_argo_rollout()) {
            let own = annotations.workload.clone();
            self.choose_lever(&own, vocabulary);
            self.find_stamp();
        }
    }

    /// What they say is known: what was read of the same annotations before.
    pub fn heard(&mut self, opt_in: OptIn, lever: Lever) {
        self.opt_in = opt_in;
        if self.lever != lever {
            self.lever = lever;
            self.find_stamp();
        }
    }

    /// How its controller is made to replace pods, by the annotations of the object itself.
    pub fn choose_lever(&mut self, annotations: &BTreeMap<String, String>, vocabulary: Vocabulary) {
        match Lever::read(annotations, vocabulary) {
            Ok(lever) => self.lever = lever,
            Err(problem) => {
                self.lever = Lever::Template;
                self.opt_in.problems.push(problem);
            }
        }
    }

    /// The stamp stands where the lever puts it.
    fn find_stamp(&mut self) {
        let Some(annotations) = &self.annotations else { return };
        let place = match self.lever {
            Lever::Template => &annotations.template,
            Lever::RestartAt => &annotations.workload,
        };
        self.stamp = place.get(CONFIG_HASH).cloned();
    }

    /// What every kind has in common; `None` without a name.
    fn new(kind: WorkloadKind, metadata: &ObjectMeta, template: Template<'_>) -> Option<Self> {
        let namespace: Name = metadata.namespace.as_deref().unwrap_or("default").into();
        let annotations = template.annotations;
        let none = Consumption::default;
        Some(Self {
            consumption: template.spec.map_or_else(none, |spec| Consumption::of(&namespace, spec)),
            id: WorkloadId { kind, namespace, name: metadata.name.as_deref()?.into() },
            uid: metadata.uid.as_deref().map(Uid::from),
            version: metadata.resource_version.as_deref().and_then(|version| version.parse().ok()),
            born: None,
            generation: metadata.generation.unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            owned: Owned::of(kind, metadata),
            opt_in: OptIn::read(metadata.annotations.as_ref(), annotations),
            annotations: Annotations::with_stakater(metadata.annotations.as_ref(), annotations).map(Box::new),
            origin: Origin::of_workload(kind, metadata).map(Box::new),
            fields: Box::default(),
            stamp: annotations.and_then(|annotations| annotations.get(CONFIG_HASH)).cloned(),
            strategy: Strategy::Rolling,
            progress: Progress::Unobserved,
            revision: Revision::Unknown,
            lever: Lever::Template,
            template_in: None,
            made_by: None,
            made_for: None,
            images: template.spec.map(TemplateImage::all_of).unwrap_or_default(),
            deadline: Deadline::Kept,
            template_written: LastWrite::of_template(metadata),
            run: Run::NotOne,
        })
    }

    /// Reads an object of any kind, of which nothing is known but its pod template.
    pub fn of_template(kind: WorkloadKind, metadata: &ObjectMeta, template: Option<&PodTemplateSpec>) -> Option<Self> {
        Self::new(kind, metadata, template.into())
    }

    /// Reads a Deployment.
    pub fn of_deployment(object: &Deployment) -> Option<Self> {
        let mut workload = Self::new(WorkloadKind::Deployment, &object.metadata, (&object.spec.template).into())?;
        let status = object.status.clone().unwrap_or_default();
        if object.spec.paused == Some(true) {
            workload.strategy = Strategy::ByHand(ByHand::Paused);
        }
        workload.progress = progress(&Counts {
            observed: status.observed_generation >= object.metadata.generation,
            desired: object.spec.replicas.unwrap_or(1),
            pods: status.replicas.unwrap_or_default(),
            updated: status.updated_replicas.unwrap_or_default(),
        });
        let is_late = |condition: &DeploymentCondition| {
            condition.type_.as_deref() == Some("Progressing")
                && condition.reason.as_deref() == Some("ProgressDeadlineExceeded")
        };
        if status.conditions.iter().flatten().any(is_late) {
            workload.deadline = Deadline::Exceeded;
        }
        workload.revision = Revision::OfReplicaSet(annotation(&object.metadata, DEPLOYMENT_REVISION));
        workload.fields = Fields::of(&workload.id, &object.metadata, &object.spec).into();
        Some(workload)
    }

    /// Reads a StatefulSet.
    pub fn of_stateful_set(object: &StatefulSet) -> Option<Self> {
        let mut workload = Self::new(WorkloadKind::StatefulSet, &object.metadata, (&object.spec.template).into())?;
        let status = object.status.clone().unwrap_or_default();
        let strategy = object.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or_default();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            workload.strategy = Strategy::ByHand(ByHand::OnDelete);
        } else if partition > 0 {
            workload.strategy = Strategy::ByHand(ByHand::Partition);
        }
        // `updatedReplicas` is left at zero when a rollout is complete and nothing was updated since.
        let complete = status.update_revision.is_some() && status.update_revision == status.current_revision;
        workload.progress = progress(&Counts {
            observed: status.observed_generation >= object.metadata.generation,
            desired: object.spec.replicas.unwrap_or(1),
            pods: status.replicas,
            updated: if complete { status.replicas } else { status.updated_replicas.unwrap_or_default() },
        });
        if workload.progress == Progress::InProgress || status.update_revision != status.current_revision {
            workload.deadline = Deadline::Absent;
        }
        workload.revision = Revision::Hash(status.update_revision);
        workload.fields = Fields::of(&workload.id, &object.metadata, &object.spec).into();
        Some(workload)
    }

    /// Reads a DaemonSet.
    pub fn of_daemon_set(object: &DaemonSet) -> Option<Self> {
        let mut workload = Self::new(WorkloadKind::DaemonSet, &object.metadata, (&object.spec.template).into())?;
        let status = object.status.clone().unwrap_or_default();
        if object.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            workload.strategy = Strategy::ByHand(ByHand::OnDelete);
        }
        workload.progress = progress(&Counts {
            observed: status.observed_generation >= object.metadata.generation,
            desired: status.desired_number_scheduled,
            pods: status.current_number_scheduled,
            updated: status.updated_number_scheduled.unwrap_or_default(),
        });
        if workload.progress == Progress::InProgress {
            workload.deadline = Deadline::Absent;
        }
        workload.revision = Revision::TemplateGeneration(annotation(&object.metadata, TEMPLATE_GENERATION));
        workload.fields = Fields::of(&workload.id, &object.metadata, &object.spec).into();
        Some(workload)
    }

    /// Reads a ReplicaSet.
    pub fn of_replica_set(object: &ReplicaSet) -> Option<Self> {
        let workload = Self::new(WorkloadKind::ReplicaSet, &object.metadata, object.spec.template.as_ref().into())?;
        Some(Self { fields: Fields::of(&workload.id, &object.metadata, &object.spec).into(), ..workload })
    }

    /// Reads a Job.
    pub fn of_job(object: &Job) -> Option<Self> {
        let template = object.spec.as_ref().map(|spec| &spec.template);
        let mut workload = Self::new(WorkloadKind::Job, &object.metadata, template.into())?;
        workload.progress = Progress::Unknown;
        workload.run = Run::of_job(object);
        workload.made_by = annotation(&object.metadata, MADE_BY);
        let made_at = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
        workload.made_for = annotation(&object.metadata, MADE_FOR).zip(made_at);
        workload.fields = Fields::of(&workload.id, &object.metadata, &object.spec).into();
        Some(workload)
    }

    /// Reads a CronJob.
    pub fn of_cron_job(object: &CronJob) -> Option<Self> {
        let job = object.spec.job_template.spec.as_ref();
        let template = job.map(|job| &job.template);
        let mut workload = Self::new(WorkloadKind::CronJob, &object.metadata, template.into())?;
        workload.progress = Progress::Unknown;
        workload.run = Run::of_cron_job(object);
        workload.fields = Fields::of(&workload.id, &object.metadata, &object.spec).into();
        Some(workload)
    }

    /// Reads a pod, which is its own template.
    pub fn of_pod(metadata: &ObjectMeta, spec: Option<&PodSpec>) -> Option<Self> {
        Self::new(WorkloadKind::Pod, metadata, Template { annotations: None, spec })
    }
}

/// A ReplicaSet that a Deployment owns, or a custom workload: the link between the Deployment and its pods. Of one that counts by itself,
/// see [`Workload::of_replica_set`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedReplicaSet {
    /// Its uid.
    pub uid: Uid,
    /// Its namespace.
    pub namespace: Name,
    /// The owner's uid.
    pub deployment: Uid,
    /// The Deployment's revision that it stands for.
    pub revision: Option<String>,
}

impl OwnedReplicaSet {
    /// Reads a ReplicaSet; `None` if nothing owns it.
    pub fn of(object: &ReplicaSet) -> Option<Self> {
        let owner = controller_of(object.metadata.owner_references.as_deref())?;
        Some(Self {
            uid: object.metadata.uid.as_deref()?.into(),
            namespace: object.metadata.namespace.as_deref()?.into(),
            deployment: owner.uid.as_str().into(),
            revision: annotation(&object.metadata, DEPLOYMENT_REVISION),
        })
    }

    /// Whether its Deployment, which is at this revision, works towards it.
    pub fn is_of(&self, revision: &Revision) -> bool {
        matches!(revision, Revision::OfReplicaSet(Some(revision)) if self.revision.as_ref() == Some(revision))
    }
}

/// The parts of a pod template that count.
struct Template<'a> {
    annotations: Option<&'a BTreeMap<String, String>>,
    spec: Option<&'a PodSpec>,
}

impl<'a> From<&'a PodTemplateSpec> for Template<'a> {
    fn from(template: &'a PodTemplateSpec) -> Self {
        let metadata = template.metadata.as_ref();
        Self { annotations: metadata.and_then(|metadata| metadata.annotations.as_ref()), spec: template.spec.as_ref() }
    }
}

impl<'a> From<Option<&'a PodTemplateSpec>> for Template<'a> {
    fn from(template: Option<&'a PodTemplateSpec>) -> Self {
        template.map_or(Self { annotations: None, spec: None }, Self::from)
    }
}

/// What a workload's status counts.
pub(super) struct Counts {
    pub(super) observed: bool,
    pub(super) desired: i32,
    pub(super) pods: i32,
    pub(super) updated: i32,
}

pub(super) fn progress(counts: &Counts) -> Progress {
    if !counts.observed {
        Progress::Unobserved
    } else if counts.updated < counts.desired || counts.pods > counts.updated {
        Progress::InProgress
    } else {
        Progress::Complete { pods: counts.pods }
    }
}

fn annotation(metadata: &ObjectMeta, name: &str) -> Option<String> {
    metadata.annotations.as_ref()?.get(name).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::auto_reload::AutoReload;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn deployment(spec: Value, status: Value) -> Workload {
        let mut object = json!({
            "metadata": {"name": "w", "namespace": "ns", "uid": "u", "resourceVersion": "3", "generation": 2},
            "spec": {"selector": {}, "template": {}}, "status": status,
        });
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        Workload::of_deployment(&serde_json::from_value(object).unwrap()).unwrap()
    }

    fn owned_by(api_version: &str, kind: &str) -> Value {
        json!({"name": "w", "ownerReferences":
            [{"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u", "controller": true}]})
    }

    fn object(metadata: Value) -> Value {
        json!({"metadata": metadata, "spec": {"selector": {}, "template": {}}})
    }

    fn replica_set(metadata: Value) -> Workload {
        Workload::of_replica_set(&serde_json::from_value(object(metadata)).unwrap()).unwrap()
    }

    fn job(metadata: Value) -> Workload {
        Workload::of_job(&serde_json::from_value(object(metadata)).unwrap()).unwrap()
    }

    fn owned_deployment(metadata: Value) -> Workload {
        Workload::of_deployment(&serde_json::from_value(object(metadata)).unwrap()).unwrap()
    }

    fn owned_pod(metadata: Value) -> Workload {
        Workload::of_pod(&serde_json::from_value(metadata).unwrap(), None).unwrap()
    }

    #[rstest]
    #[case::a_replica_set(replica_set(json!({"name": "w"})), true)]
    #[case::one_of_a_deployment(replica_set(owned_by("apps/v1", "Deployment")), false)]
    #[case::one_of_something_unknown(replica_set(owned_by("x.example/v1", "Deployment")), true)]
    #[case::a_job(job(json!({"name": "w"})), true)]
    #[case::one_of_a_cron_job(job(owned_by("batch/v1", "CronJob")), false)]
    #[case::one_of_a_pipeline(job(owned_by("x.example/v1", "Pipeline")), true)]
    #[case::a_pod(owned_pod(json!({"name": "w"})), true)]
    #[case::one_of_a_stateful_set(owned_pod(owned_by("apps/v1", "StatefulSet")), false)]
    #[case::one_of_something_else(owned_pod(owned_by("x.example/v1", "Runner")), false)]
    #[case::a_deployment_that_an_operator_made(owned_deployment(owned_by("x.example/v1", "Database")), true)]
    fn what_a_workload_stands_for_does_not_count_by_itself(#[case] workload: Workload, #[case] expected: bool) {
        assert_eq!(workload.is_its_own(), expected, "{:?}", workload.owned);
    }

    #[rstest]
    #[case::unobserved(json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2}), Progress::Unobserved)]
    #[case::too_few(json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1}), Progress::InProgress)]
    #[case::old_ones_left(json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2}), Progress::InProgress)]
    #[case::done(json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2}), Progress::Complete { pods: 2 })]
    fn a_deployments_status_tells_its_progress(#[case] status: Value, #[case] expected: Progress) {
        assert_eq!(deployment(json!({"replicas": 2}), status).progress, expected);
    }

    #[test]
    fn a_paused_deployment_is_rolled_by_hand() {
        assert_eq!(deployment(json!({"paused": true}), json!({})).strategy, Strategy::ByHand(ByHand::Paused));
        assert_eq!(deployment(json!({}), json!({})).strategy, Strategy::Rolling);
    }

    #[rstest]
    #[case::rolling(json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}), Strategy::Rolling)]
    #[case::partition(json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}), Strategy::ByHand(ByHand::Partition))]
    #[case::on_delete(json!({"type": "OnDelete"}), Strategy::ByHand(ByHand::OnDelete))]
    fn a_stateful_sets_strategy_counts(#[case] strategy: Value, #[case] expected: Strategy) {
        let object = json!({"metadata": {"name": "w"},
            "spec": {"selector": {}, "serviceName": "", "template": {}, "updateStrategy": strategy}});
        let workload = Workload::of_stateful_set(&serde_json::from_value(object).unwrap()).unwrap();
        assert_eq!(workload.strategy, expected);
    }

    #[test]
    fn annotations_and_stamp_are_read_from_workload_and_template() {
        let workload = deployment(
            json!({"template": {"metadata": {"annotations": {(CONFIG_HASH): "s", "restamp.dev/auto-reload": "true"}}}}),
            json!({}),
        );
        assert_eq!((workload.stamp.as_deref(), workload.opt_in.auto_reload), (Some("s"), Some(AutoReload::Everything)));
    }

    #[rstest]
    #[case::late("ProgressDeadlineExceeded", Deadline::Exceeded)]
    #[case::at_it("ReplicaSetUpdated", Deadline::Kept)]
    fn a_deployments_condition_tells_whether_it_is_late(#[case] reason: &str, #[case] expected: Deadline) {
        let condition = json!({"type": "Progressing", "status": "False", "reason": reason});
        assert_eq!(deployment(json!({}), json!({"conditions": [condition]})).deadline, expected);
    }

    #[rstest]
    #[case::finished(json!({"replicas": 1, "updateRevision": "a", "currentRevision": "a"}), Deadline::Kept)]
    #[case::its_last_pod_is_not_ready(
        json!({"replicas": 1, "updatedReplicas": 1, "updateRevision": "b", "currentRevision": "a"}), Deadline::Absent)]
    #[case::made_with_too_few(json!({"replicas": 0, "updateRevision": "a", "currentRevision": "a"}), Deadline::Absent)]
    fn a_stateful_sets_rollout_has_no_deadline(#[case] status: Value, #[case] expected: Deadline) {
        let object = json!({"metadata": {"name": "w"}, "spec": {"selector": {}, "serviceName": "", "template": {}},
            "status": status});
        assert_eq!(Workload::of_stateful_set(&serde_json::from_value(object).unwrap()).unwrap().deadline, expected);
    }
}
