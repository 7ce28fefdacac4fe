//! The findings, each with the fields that it has, and how the API shows them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Evidence, Outdated, Stall, Why};
use crate::api::drift_report::{Cause, Certainty, Consumer, FindingStatus, FindingType, RunningDigest};
use crate::model::consumption::Missing;
use crate::model::fields::Shown;
use crate::model::fields::owners::FieldOwner;
use crate::model::managed_fields::{LastWrite, ManagerEntry};
use crate::model::names::{ImageDigest, ImageText, KeyName, Manager, Name};
use crate::model::pod::Blocked;
use crate::model::report::to_the_second;
use crate::model::workload::{ByHand, Strategy};

/// One fact about a subject that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A key is live that no manifest declares any more.
    StaleKey {
        /// The key.
        key: KeyName,
        /// Why it is still there.
        cause: StaleCause,
        /// Who reads it.
        consumers: Vec<Consumer>,
    },
    /// A key was added by hand, and no manifest declares it.
    UndeclaredKey {
        /// The key.
        key: KeyName,
        /// Whose hand.
        by: Writer,
        /// Who reads it.
        consumers: Vec<Consumer>,
    },
    /// A key is declared, and not live.
    MissingKey {
        /// The key.
        key: KeyName,
        /// Who would read it.
        consumers: Vec<Consumer>,
    },
    /// A key's value is not the declared one: the next apply reverts it.
    ValueDiffers {
        /// The key.
        key: KeyName,
        /// Whose hand changed it, where that is known.
        by: Option<Writer>,
        /// Who reads it.
        consumers: Vec<Consumer>,
    },
    /// A declared field is live with another value, or not at all: the next apply reverts it.
    RevertsOnApply {
        /// The field.
        path: String,
        /// Both values, where they may be shown.
        shown: Option<Shown>,
        /// Who changed it, where that is known.
        by: Option<Writer>,
    },
    /// A container, a variable or a volume was added by hand, and no manifest declares it.
    UndeclaredField {
        /// The field.
        path: String,
        /// Whose hand.
        by: Writer,
    },
    /// A container needs a config, or a key of it, that does not exist.
    MissingReference(Missing),
    /// Pods of one revision run different images under one tag.
    MixedDigests {
        /// The container.
        container: Name,
        /// The image that it asks for.
        image: ImageText,
        /// What runs, and in how many pods.
        digests: BTreeMap<ImageDigest, u32>,
    },
    /// A pod runs something else than its template pins.
    DigestMismatch {
        /// The container.
        container: Name,
        /// The image that the template pins.
        image: ImageText,
        /// What runs instead, and in how many pods.
        digests: BTreeMap<ImageDigest, u32>,
    },
    /// Containers started before what they froze last changed.
    OutdatedPods(Outdated),
    /// The rollout makes no progress.
    RolloutStalled(Stall),
}

/// Why a stale key is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StaleCause {
    /// This manager wrote it, and its apply doesn't prune it.
    LeftByApply(Writer),
    /// Nobody owns it, so nobody prunes it.
    Unowned,
}

/// Who wrote a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// The field manager.
    pub manager: Manager,
    /// Its last write to the object: the key is at least as old.
    pub since: Option<Timestamp>,
}

impl Finding {
    /// Its type.
    pub fn r#type(&self) -> FindingType {
        match self {
            Self::StaleKey { .. } => FindingType::StaleKey,
            Self::UndeclaredKey { .. } => FindingType::UndeclaredKey,
            Self::MissingKey { .. } => FindingType::MissingKey,
            Self::ValueDiffers { .. } => FindingType::ValueDiffers,
            Self::RevertsOnApply { .. } => FindingType::RevertsOnApply,
            Self::UndeclaredField { .. } => FindingType::UndeclaredField,
            Self::MissingReference(_) => FindingType::MissingReference,
            Self::MixedDigests { .. } => FindingType::MixedDigests,
            Self::DigestMismatch { .. } => FindingType::DigestMismatch,
            Self::OutdatedPods(_) => FindingType::OutdatedPods,
            Self::RolloutStalled(_) => FindingType::RolloutStalled,
        }
    }

    /// The key of its subject that it is about.
    pub fn key(&self) -> Option<&KeyName> {
        match self {
            Self::StaleKey { key, .. }
            | Self::UndeclaredKey { key, .. }
            | Self::MissingKey { key, .. }
            | Self::ValueDiffers { key, .. } => Some(key),
            Self::RevertsOnApply { .. }
            | Self::UndeclaredField { .. }
            | Self::MissingReference(_)
            | Self::MixedDigests { .. }
            | Self::DigestMismatch { .. }
            | Self::OutdatedPods(_)
            | Self::RolloutStalled(_) => None,
        }
    }
}

impl From<&ManagerEntry> for Writer {
    fn from(owner: &ManagerEntry) -> Self {
        Self { manager: owner.manager.clone(), since: owner.time }
    }
}

impl From<&FieldOwner> for Writer {
    fn from(owner: &FieldOwner) -> Self {
        Self { manager: owner.manager.clone(), since: owner.time }
    }
}

impl From<Finding> for FindingStatus {
    fn from(finding: Finding) -> Self {
        match finding {
            Finding::StaleKey { key, cause: StaleCause::LeftByApply(writer), consumers } => {
                let cause = Some(Cause::LeftByApply);
                Self { cause, ..of_key(FindingType::StaleKey, key, Some(writer), consumers) }
            }
            Finding::StaleKey { key, cause: StaleCause::Unowned, consumers } => {
                let cause = Some(Cause::Unowned);
                Self { cause, ..of_key(FindingType::StaleKey, key, None, consumers) }
            }
            Finding::UndeclaredKey { key, by, consumers } => {
                of_key(FindingType::UndeclaredKey, key, Some(by), consumers)
            }
            Finding::MissingKey { key, consumers } => of_key(FindingType::MissingKey, key, None, consumers),
            Finding::ValueDiffers { key, by, consumers } => of_key(FindingType::ValueDiffers, key, by, consumers),
            Finding::RevertsOnApply { path, shown, by } => {
                let (declared, live) = shown.map(|shown| (shown.declared, shown.live)).unzip();
                Self { path: Some(path), declared, live, ..written(FindingType::RevertsOnApply, by) }
            }
            Finding::UndeclaredField { path, by } => {
                Self { path: Some(path), ..written(FindingType::UndeclaredField, Some(by)) }
            }
            Finding::MissingReference(Missing { config, key }) => {
                let object = Some(config.local().to_string());
                Self { object, key, ..Self::new(FindingType::MissingReference) }
            }
            Finding::MixedDigests { container, image, digests } => {
                let next = "restart the rollout to run one of them, or pin a digest";
                let message = format!("different images run as {image}, since the tag moved: {next}");
                of_digests(FindingType::MixedDigests, container, digests, message)
            }
            Finding::DigestMismatch { container, image, digests } => {
                let message = format!("the template pins {image}, and pods run something else: delete these pods");
                let status = of_digests(FindingType::DigestMismatch, container, digests, message);
                Self { declared: Some(image.to_string()), ..status }
            }
            Finding::OutdatedPods(outdated) => outdated.into(),
            Finding::RolloutStalled(stall) => stall.into(),
        }
    }
}

fn of_digests(
    r#type: FindingType,
    container: Name,
    digests: BTreeMap<ImageDigest, u32>,
    message: String,
) -> FindingStatus {
    let digests =
        digests.into_iter().map(|(digest, pods)| RunningDigest { digest: digest.to_string(), pods }).collect();
    FindingStatus { container: Some(container), digests, message: Some(message), ..FindingStatus::new(r#type) }
}

impl From<Outdated> for FindingStatus {
    fn from(outdated: Outdated) -> Self {
        let object = outdated.config.to_string();
        let (certainty, manager, since, message) = match outdated.evidence {
            Evidence::Seen { at, change, why } => {
                let manager = match &why {
                    Why::Stripped(Some(writer)) => Some(writer.manager.clone()),
                    _ => None,
                };
                (Certainty::Certain, manager, Some(at), format!("{change}; {why}"))
            }
            Evidence::Written { write: LastWrite { manager, time }, strategy } => {
                let next_step = match strategy {
                    Strategy::Rolling => "restart the rollout",
                    Strategy::ByHand(ByHand::Paused) => "it is paused, so resume it and restart the rollout",
                    Strategy::ByHand(ByHand::OnDelete) => "its update strategy is OnDelete, so delete its pods",
                    Strategy::ByHand(ByHand::Partition) => "its update strategy has a partition, so delete its pods",
                };
                let message = format!(
                    "{object} was written after containers that read it had started: {next_step}, unless nothing that they read changed"
                );
                (Certainty::Likely, Some(manager), time, message)
            }
        };
        Self {
            object: Some(object),
            certainty: Some(certainty),
            pods: Some(outdated.pods),
            oldest_start: Some(Time(outdated.oldest_start)),
            manager,
            since: since.map(to_the_second),
            message: Some(message),
            ..Self::new(FindingType::OutdatedPods)
        }
    }
}

impl From<Stall> for FindingStatus {
    fn from(stall: Stall) -> Self {
        let blocked = match stall.pod {
            Some((pod, Blocked { blocker, container: Some(container), .. })) => {
                format!("container {container} of pod {pod} {blocker}")
            }
            Some((pod, Blocked { blocker, container: None, .. })) => format!("pod {pod} {blocker}"),
            None => "no pod of it shows why: see kubectl describe".to_owned(),
        };
        let cause = match stall.our_cause {
            Some(cause) if cause.is_empty() => "; restamp began this rollout".to_owned(),
            Some(cause) => format!("; restamp began this rollout: {cause}"),
            None => String::new(),
        };
        let message = format!("{blocked}{cause}; mend it, or roll back with kubectl rollout undo");
        Self { message: Some(message), ..Self::new(FindingType::RolloutStalled) }
    }
}

fn of_key(r#type: FindingType, key: KeyName, writer: Option<Writer>, consumers: Vec<Consumer>) -> FindingStatus {
    FindingStatus { key: Some(key), consumers, ..written(r#type, writer) }
}

fn written(r#type: FindingType, by: Option<Writer>) -> FindingStatus {
    let (manager, since) = by.map(|writer| (writer.manager, writer.since)).unzip();
    FindingStatus { manager, since: since.flatten().map(Time), ..FindingStatus::new(r#type) }
}
