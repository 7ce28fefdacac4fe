//! The findings, each with the fields that it has, and how the API shows them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::drift_report::{Cause, Consumer, FindingStatus, FindingType};
use crate::model::consumption::Missing;
use crate::model::fields::Shown;
use crate::model::fields::owners::FieldOwner;
use crate::model::managed_fields::ManagerEntry;
use crate::model::names::{KeyName, Manager};

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
        }
    }

    /// The key of its subject that it is about.
    pub fn key(&self) -> Option<&KeyName> {
        match self {
            Self::StaleKey { key, .. }
            | Self::UndeclaredKey { key, .. }
            | Self::MissingKey { key, .. }
            | Self::ValueDiffers { key, .. } => Some(key),
            Self::RevertsOnApply { .. } | Self::UndeclaredField { .. } | Self::MissingReference(_) => None,
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
        }
    }
}

fn of_key(r#type: FindingType, key: KeyName, writer: Option<Writer>, consumers: Vec<Consumer>) -> FindingStatus {
    FindingStatus { key: Some(key), consumers, ..written(r#type, writer) }
}

fn written(r#type: FindingType, by: Option<Writer>) -> FindingStatus {
    let (manager, since) = by.map(|writer| (writer.manager, writer.since)).unzip();
    FindingStatus { manager, since: since.flatten().map(Time), ..FindingStatus::new(r#type) }
}
