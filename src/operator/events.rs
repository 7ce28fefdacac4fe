//! Events: one sentence with names, on the object that it is about. Never for a retry.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::model::config::Config;
use crate::model::names::{Uid, WorkloadId};
use crate::model::namespace::Namespace;
use crate::model::workload::Workload;
use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;

/// Why there is an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A consumed config changed.
    ConfigChanged,
    /// A workload was stamped.
    Reloaded,
    /// A stamp was refused.
    ReloadFailed,
    /// A rollout that is due is held.
    ReloadHeld,
    /// A change failed in some workloads, and reaches no others.
    ChangeHalted,
    /// Somebody took the stamp away while a change was open.
    StampRemoved,
    /// There is no record, or none that can be compared, where there had been one.
    AdoptedAnew,
    /// An annotation does not parse.
    InvalidAnnotation,
    /// The opt-in is gone.
    OptInGone,
    /// A stamp would be put on, were this not a dry run.
    WouldReload,
    /// A Reloader runs, and acts on the same annotations.
    ReloaderRuns,
}

impl Reason {
    fn as_str(self) -> &'static str {
        match self {
            Self::ConfigChanged => "ConfigChanged",
            Self::Reloaded => "Reloaded",
            Self::ReloadFailed => "ReloadFailed",
            Self::ReloadHeld => "ReloadHeld",
            Self::ChangeHalted => "ChangeHalted",
            Self::StampRemoved => "StampRemoved",
            Self::AdoptedAnew => "AdoptedAnew",
            Self::InvalidAnnotation => "InvalidAnnotation",
            Self::OptInGone => "OptInGone",
            Self::WouldReload => "WouldReload",
            Self::ReloaderRuns => "ReloaderRuns",
        }
    }

    fn severity(self) -> &'static str {
        match self {
            Self::ConfigChanged | Self::Reloaded | Self::WouldReload => "Normal",
            Self::ReloadFailed
            | Self::ReloadHeld
            | Self::StampRemoved
            | Self::ChangeHalted
            | Self::AdoptedAnew
            | Self::OptInGone
            | Self::ReloaderRuns
            | Self::InvalidAnnotation => "Warning",
        }
    }

    /// What restamp was at, as the API wants it.
    fn action(self) -> &'static str {
        match self {
            Self::ConfigChanged | Self::ReloaderRuns => "Watching",
            Self::Reloaded
            | Self::WouldReload
            | Self::ReloadFailed
            | Self::ReloadHeld
            | Self::ChangeHalted
            | Self::StampRemoved => "Reloading",
            Self::AdoptedAnew | Self::InvalidAnnotation | Self::OptInGone => "Adopting",
        }
    }
}

/// An Event to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// What it is about.
    pub regarding: ObjectReference,
    /// Why.
    pub reason: Reason,
    /// The sentence.
    pub note: String,
}

/// The API's limit for a note, in bytes.
const LONGEST_NOTE: usize = 1024;

impl Notice {
    /// About a config.
    pub fn on_config(config: &Config, reason: Reason, note: String) -> Self {
        let regarding = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some(config.id.kind.as_str().to_owned()),
            namespace: Some(config.id.namespace.to_string()),
            name: Some(config.id.name.to_string()),
            uid: config.uid.as_ref().map(ToString::to_string),
            ..ObjectReference::default()
        };
        Self { regarding, reason, note }
    }

    /// About a workload.
    pub fn on_workload(workload: &Workload, reason: Reason, note: String) -> Self {
        Self::on_object(&workload.id, workload.uid.as_ref(), reason, note)
    }

    /// About an object of the kind of some workload, by its name and uid.
    pub fn on_object(id: &WorkloadId, uid: Option<&Uid>, reason: Reason, note: String) -> Self {
        let regarding = ObjectReference {
            api_version: Some(id.kind.api_version().to_owned()),
            kind: Some(id.kind.as_str().to_owned()),
            namespace: Some(id.namespace.to_string()),
            name: Some(id.name.to_string()),
            uid: uid.map(ToString::to_string),
            ..ObjectReference::default()
        };
        Self { regarding, reason, note }
    }

    /// About a namespace. It is written there, where its owners may read it.
    pub fn on_namespace(namespace: &Namespace, reason: Reason, note: String) -> Self {
        let regarding = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Namespace".to_owned()),
            namespace: Some(namespace.name.to_string()),
            name: Some(namespace.name.to_string()),
            uid: namespace.uid.as_ref().map(ToString::to_string),
            ..ObjectReference::default()
        };
        Self { regarding, reason, note }
    }

    fn into_event(self, instance: &str) -> Event {
        let mut note = self.note;
        while note.len() > LONGEST_NOTE {
            note.pop();
        }
        let now = Timestamp::now();
        Event {
            metadata: ObjectMeta {
                name: Some(name(self.regarding.name.as_deref().unwrap_or_default(), now)),
                namespace: self.regarding.namespace.clone(),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(now)),
            reporting_controller: Some("restamp.dev/restamp".to_owned()),
            reporting_instance: Some(instance.to_owned()),
            action: Some(self.reason.action().to_owned()),
            reason: Some(self.reason.as_str().to_owned()),
            type_: Some(self.reason.severity().to_owned()),
            note: Some(note),
            regarding: Some(self.regarding),
            ..Event::default()
        }
    }
}

/// The name of an Event, as Kubernetes' own components make it: the object's, and the time in hexadecimal.
fn name(object: &str, now: Timestamp) -> String {
    let object: String = object.chars().take(220).collect();
    format!("{}.{:x}", object.trim_end_matches(['.', '-']), now.as_nanosecond())
}

/// Writes an Event.
pub async fn publish(client: &Client, instance: &str, notice: Notice) -> Result<(), ApiError> {
    let namespace = notice.regarding.namespace.clone().unwrap_or_default();
    let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
    in_time(events.create(&PostParams::default(), &notice.into_event(instance))).await.map(|_| ())
}
