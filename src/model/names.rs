//! The names of things: objects, keys, versions; each a type of its own, so that none is taken for another.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

use crate::model::custom::CustomKind;

/// Defines a cheap, immutable text type. What is mostly short is a `SmolStr`, which keeps up to 23 bytes in itself;
/// what is always longer, an `Arc<str>`, which takes less place. Cloning either copies a pointer at most.
macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident($text:ty)) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($text);

        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Cow::<'de, str>::deserialize(deserializer)?.as_ref().into())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}

text_type!(
    /// The name of an object, a namespace, a container, a volume or a variable.
    Name(SmolStr)
);
text_type!(
    /// A key of a config's `data` or `binaryData`.
    KeyName(SmolStr)
);
text_type!(
    /// An object's uid: another one for an object that was deleted and made again.
    Uid(Arc<str>)
);
text_type!(
    /// A field manager, as managedFields name it.
    Manager(SmolStr)
);
text_type!(
    /// An image as a template or a pod names it.
    ImageText(Arc<str>)
);
text_type!(
    /// The digest of an image's manifest, as in `sha256:…`.
    ImageDigest(Arc<str>)
);

/// An object's resourceVersion. Larger is later, also across kinds that share one etcd
/// (KEP-5504 makes this official within a kind; the API server has always counted so).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub struct ResourceVersion(#[schemars(with = "String")] pub u64);

impl From<ResourceVersion> for String {
    fn from(version: ResourceVersion) -> Self {
        version.to_string()
    }
}

impl TryFrom<String> for ResourceVersion {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for ResourceVersion {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The kinds of config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigKind {
    /// `v1/ConfigMap`
    ConfigMap,
    /// `v1/Secret`
    Secret,
    /// Of the Secrets Store CSI driver. What is in it is never read: the statuses of pods tell what they hold of it.
    SecretProviderClass,
}

impl ConfigKind {
    /// Every kind of config.
    pub const ALL: [Self; 3] = [Self::ConfigMap, Self::Secret, Self::SecretProviderClass];
    /// Those with keys of their own, which are read.
    pub const WITH_KEYS: [Self; 2] = [Self::ConfigMap, Self::Secret];

    /// The kind as manifests spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::SecretProviderClass => "SecretProviderClass",
        }
    }
}

/// The kinds of object whose containers may consume a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// `apps/v1`
    Deployment,
    /// `apps/v1`
    StatefulSet,
    /// `apps/v1`
    DaemonSet,
    /// `apps/v1`, where no Deployment owns it
    ReplicaSet,
    /// `batch/v1`, where no CronJob owns it
    Job,
    /// `batch/v1`
    CronJob,
    /// `v1`, where nothing owns it
    Pod,
    /// Any other kind with a pod template, which the operator is told of
    Custom(&'static CustomKind),
}

impl WorkloadKind {
    /// Every kind of workload that is built in.
    pub const ALL: [Self; 7] =
        [Self::Deployment, Self::StatefulSet, Self::DaemonSet, Self::ReplicaSet, Self::Job, Self::CronJob, Self::Pod];

    /// The kind as manifests spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::ReplicaSet => "ReplicaSet",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
            Self::Pod => "Pod",
            Self::Custom(kind) => &kind.kind,
        }
    }

    /// What it is called where no group is said: another kind may have the same name.
    pub fn label(self) -> &'static str {
        match self {
            Self::Custom(kind) => &kind.label,
            built_in => built_in.as_str(),
        }
    }

    /// The group and version that restamp speaks for this kind.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Deployment | Self::StatefulSet | Self::DaemonSet | Self::ReplicaSet => "apps/v1",
            Self::Job | Self::CronJob => "batch/v1",
            Self::Pod => "v1",
            Self::Custom(kind) => &kind.api_version,
        }
    }

    /// Whether its own controller replaces the pods when the pod template changes.
    pub fn rolls_by_template(self) -> bool {
        matches!(self, Self::Deployment | Self::StatefulSet | Self::DaemonSet | Self::Custom(_))
    }
}

/// Defines `Display` and `FromStr` for a kind: its name in manifests.
macro_rules! kind_as_text {
    ($kind:ty, $what:literal, $text:ident) => {
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.$text())
            }
        }

        impl FromStr for $kind {
            type Err = UnknownKind;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL
                    .into_iter()
                    .find(|kind| kind.as_str() == text)
                    .ok_or_else(|| UnknownKind { what: $what, text: text.to_owned() })
            }
        }
    };
}

kind_as_text!(ConfigKind, "kind of config", as_str);
kind_as_text!(WorkloadKind, "kind of workload", label);

/// A kind that restamp does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {what}")]
pub struct UnknownKind {
    what: &'static str,
    text: String,
}

/// Which config: kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigId {
    /// Its kind.
    pub kind: ConfigKind,
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

impl fmt::Display for ConfigId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// Which workload: kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadId {
    /// Deployment, StatefulSet, …
    pub kind: WorkloadKind,
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

impl ConfigId {
    /// Its name within its namespace.
    pub fn local(&self) -> ConfigName {
        ConfigName { kind: self.kind, name: self.name.clone() }
    }
}

/// Which config within a namespace; as text `Kind/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct ConfigName {
    /// Its kind.
    pub kind: ConfigKind,
    /// Its name.
    pub name: Name,
}

impl ConfigName {
    /// The config of this name in a namespace.
    pub fn within(&self, namespace: &Name) -> ConfigId {
        ConfigId { kind: self.kind, namespace: namespace.clone(), name: self.name.clone() }
    }
}

impl fmt::Display for ConfigName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl From<ConfigName> for String {
    fn from(config: ConfigName) -> Self {
        config.to_string()
    }
}

impl TryFrom<String> for ConfigName {
    type Error = UnknownKind;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (kind, name) = text.split_once('/').unwrap_or((&text, ""));
        Ok(Self { kind: kind.parse()?, name: name.into() })
    }
}

impl fmt::Display for WorkloadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// The controller that owns an object, if any: the owner reference with `controller: true`.
pub fn controller_of(owners: Option<&[OwnerReference]>) -> Option<&OwnerReference> {
    owners?.iter().find(|owner| owner.controller == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_as_manifests_spell_it() {
        assert_eq!("Secret".parse(), Ok(ConfigKind::Secret));
        let error = "secret".parse::<ConfigKind>().unwrap_err();
        assert_eq!(error.to_string(), "\"secret\" is no kind of config");
    }

    #[test]
    fn names_compare_as_text() {
        assert!(Name::from("a") < Name::from("b"));
        assert_eq!(serde_json::to_string(&KeyName::from("LOG_LEVEL")).unwrap(), "\"LOG_LEVEL\"");
    }
}
