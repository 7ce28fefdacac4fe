//! The objects of a document, each read straight into its type.

use std::fmt;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::Wanted;
use super::header::{Header, ItemType, Shape};
use crate::api::drift_report::DriftReport;
use crate::cli::inventory::Inventory;
use crate::model::autoscaler::AutoscalerObject;
use crate::model::config::{ConfigMapObject, Form, SecretObject};
use crate::model::custom::object::CustomObject;
use crate::model::fingerprint::{NO_TEXT, NOT_BASE64};
use crate::model::helm::ReleaseSecret;
use crate::model::names::{ConfigKind, WorkloadKind};
use crate::model::namespace::Namespace;
use crate::model::pod::PodObject;
use crate::model::workload::{OwnedReplicaSet, Workload};

/// What is read of the documents: the Helm releases before all else, since the objects that name one are compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Helm releases.
    Releases,
    /// Anything else.
    Objects,
}

/// Takes the objects of a document into an inventory.
pub(super) struct Objects<'i> {
    inventory: &'i mut Inventory,
    wanted: Wanted<'i>,
    pass: Pass,
    current: String,
}

impl<'i> Objects<'i> {
    pub(super) fn new(inventory: &'i mut Inventory, wanted: Wanted<'i>, pass: Pass) -> Self {
        Self { inventory, wanted, pass, current: String::new() }
    }

    /// Reads a document about which this is known.
    pub(super) fn seed<'a>(&'a mut self, header: &'a Header) -> ObjectSeed<'a, 'i> {
        ObjectSeed { header, default: ItemType::default(), objects: self }
    }

    /// The object that was read last.
    pub(super) fn current(&self) -> String {
        self.current.clone()
    }

    fn add_config<'de, D: Deserializer<'de>>(&mut self, kind: ConfigKind, object: D) -> Result<(), D::Error> {
        match kind {
            ConfigKind::ConfigMap => self.inventory.add_config(ConfigMapObject::deserialize(object)?.config),
            ConfigKind::Secret => {
                let SecretObject { form, config, .. } = SecretObject::deserialize(object)?;
                match form {
                    Form::Live => self.inventory.add_config(config),
                    Form::Manifest => self.inventory.add_manifest(config.id),
                }
            }
            // No document is taken for one.
            ConfigKind::SecretProviderClass => drop(IgnoredAny::deserialize(object)?),
        }
        Ok(())
    }

    fn add_workload<'de, D: Deserializer<'de>>(&mut self, kind: WorkloadKind, object: D) -> Result<(), D::Error> {
        match kind {
            WorkloadKind::Deployment => self.add(object, Workload::of_deployment),
            WorkloadKind::StatefulSet => self.add(object, Workload::of_stateful_set),
            WorkloadKind::DaemonSet => self.add(object, Workload::of_daemon_set),
            WorkloadKind::ReplicaSet => {
                let object = ReplicaSet::deserialize(object)?;
                OwnedReplicaSet::of(&object).into_iter().for_each(|owned| self.inventory.add_replica_set(owned));
                self.take(Workload::of_replica_set(&object), &object)
            }
            WorkloadKind::Job => self.add(object, Workload::of_job),
            WorkloadKind::CronJob => self.add(object, Workload::of_cron_job),
            WorkloadKind::Pod => {
                let object = PodObject::deserialize(object)?;
                let workload = object.as_workload();
                object.read().into_iter().for_each(|pod| self.inventory.add_pod(pod));
                workload.into_iter().for_each(|workload| self.inventory.add_workload(workload));
                Ok(())
            }
            WorkloadKind::Custom(kind) => {
                let custom = CustomObject::deserialize(object)?;
                if let Some(workload) = custom.read(kind) {
                    match custom.lacks_template() {
                        None => self.inventory.add_workload(workload),
                        Some(why) => drop(self.inventory.without_template.insert(workload.id, why)),
                    }
                }
                Ok(())
            }
        }
    }

    fn add_autoscaler<'de, D: Deserializer<'de>>(&mut self, object: D) -> Result<(), D::Error> {
        if let Some(autoscaler) = AutoscalerObject::deserialize(object)?.read() {
            self.inventory.autoscalers.insert(autoscaler);
        }
        Ok(())
    }

    fn add_namespace<'de, D: Deserializer<'de>>(&mut self, object: D) -> Result<(), D::Error> {
        let namespace = Namespace::of(&OnlyMetadata::deserialize(object)?.metadata);
        self.inventory.namespaces.extend(namespace.map(|namespace| (namespace.name.clone(), namespace)));
        Ok(())
    }

    /// Takes in a report, unless another version of restamp wrote what this one does not know.
    fn add_report<'de, D: Deserializer<'de>>(&mut self, object: D) -> Result<(), D::Error> {
        let report = serde_json::Value::deserialize(object)?;
        self.inventory.reports.extend(serde_json::from_value::<DriftReport>(report).ok());
        Ok(())
    }

    fn add_release<'de, D: Deserializer<'de>>(&mut self, object: D) -> Result<(), D::Error> {
        let release = ReleaseSecret::deserialize(object)?.read();
        release.into_iter().for_each(|(id, revision, release)| self.inventory.releases.insert(id, revision, release));
        Ok(())
    }

    fn add<'de, W: Resource + Serialize + Deserialize<'de>, D: Deserializer<'de>>(
        &mut self,
        object: D,
        read: impl Fn(&W) -> Option<Workload>,
    ) -> Result<(), D::Error> {
        let object = W::deserialize(object)?;
        self.take(read(&object), &object)
    }

    fn take<E, W: Resource + Serialize>(&mut self, workload: Option<Workload>, object: &W) -> Result<(), E> {
        workload.into_iter().for_each(|workload| self.inventory.add_object(workload, object));
        Ok(())
    }
}

/// Any object.
#[derive(Deserialize)]
struct OnlyMetadata {
    metadata: ObjectMeta,
}

/// Reads one object, by what its header says.
pub(super) struct ObjectSeed<'a, 'i> {
    header: &'a Header,
    default: ItemType<'a>,
    objects: &'a mut Objects<'i>,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, object: D) -> Result<(), D::Error> {
        self.objects.current = self.header.name(self.default);
        match (self.header.shape(self.default), self.objects.pass) {
            (Shape::List(items, default), _) => {
                object.deserialize_map(ListVisitor(Items { items, default, objects: self.objects }))
            }
            (Shape::Release, Pass::Releases) => self.objects.add_release(object),
            (Shape::Release, Pass::Objects) | (_, Pass::Releases) => IgnoredAny::deserialize(object).map(|_| ()),
            (shape, Pass::Objects) => self.take_object(shape, object),
        }
    }
}

impl ObjectSeed<'_, '_> {
    fn take_object<'de, D: Deserializer<'de>>(self, shape: Shape<'_>, object: D) -> Result<(), D::Error> {
        match shape {
            Shape::Config(kind) => self.objects.add_config(kind, object),
            Shape::Workload(kind) => self.objects.add_workload(kind, object),
            Shape::Autoscaler => self.objects.add_autoscaler(object),
            Shape::Namespace => self.objects.add_namespace(object),
            Shape::Report => self.objects.add_report(object),
            Shape::List(..) | Shape::Release | Shape::Other => {
                let (api_version, kind) = self.header.type_or(self.default);
                if let Some(kind) = (self.objects.wanted)(api_version, kind) {
                    return self.objects.add_workload(WorkloadKind::Custom(kind), object);
                }
                self.objects.inventory.passed_over += 1;
                IgnoredAny::deserialize(object).map(|_| ())
            }
        }
    }
}

/// Reads the `items` of a list.
struct ListVisitor<'a, 'i>(Items<'a, 'i>);

impl<'de> Visitor<'de> for ListVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(field) = list.next_key::<String>()? {
            if field == "items" {
                list.next_value_seed(&mut self.0)?;
            } else {
                list.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Items<'a, 'i> {
    items: &'a [Header],
    default: ItemType<'a>,
    objects: &'a mut Objects<'i>,
}

impl<'de> DeserializeSeed<'de> for &mut Items<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, items: D) -> Result<(), D::Error> {
        items.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut Items<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for header in self.items {
            let seed = ObjectSeed { header, default: self.default, objects: &mut *self.objects };
            if items.next_element_seed(seed)?.is_none() {
                return Ok(());
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// What is wrong with an object, without a word of its content: the messages of the readers quote values.
pub(super) fn flaw_in_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    flaw(text.strip_suffix(&position).unwrap_or(&text))
}

/// The same for YAML.
pub(super) fn flaw_in_yaml(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error as E;
    match error.without_snippet() {
        E::Message { msg, .. } => flaw(msg),
        E::SerdeMissingField { field, .. } => format!("missing field `{field}`"),
        E::SerdeInvalidType { expected, .. } | E::SerdeInvalidValue { expected, .. } => format!("expected {expected}"),
        E::Unexpected { expected, .. } => format!("expected {expected}"),
        E::InvalidScalar { ty, .. } => format!("expected {ty}"),
        E::NullIntoString { .. } => "expected a string".to_owned(),
        _ => FORM.to_owned(),
    }
}

const FORM: &str = "it does not have the form of its kind";

/// The part of a message that says what was expected; what was found instead stands before it.
fn flaw(message: &str) -> String {
    if let Some(ours) = [NO_TEXT, NOT_BASE64].into_iter().find(|ours| *ours == message) {
        return ours.to_owned();
    }
    let missing = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    if let Some(field) = missing.filter(|field| field.chars().all(|letter| letter.is_ascii_alphanumeric())) {
        return format!("missing field `{field}`");
    }
    match message.rsplit_once(", expected ") {
        Some((_, expected)) => format!("expected {expected}"),
        None => FORM.to_owned(),
    }
}
