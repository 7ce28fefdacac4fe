//! The kinds that the operator watches.

use std::fmt;

use crate::model::names::{ConfigKind, WorkloadKind};

/// A watched kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watched {
    /// ConfigMaps or Secrets; of SecretProviderClasses what pods hold, where the Secrets Store CSI driver is installed.
    Config(ConfigKind),
    /// Objects with a pod template; of ReplicaSets also those that a Deployment owns, of Pods all.
    Workload(WorkloadKind),
    /// Our own reports: they hold the records.
    Report,
    /// Namespaces: their annotation is the default for their workloads.
    Namespace,
}

impl Watched {
    /// Whether reloading needs it. What only completes reports is optional.
    pub fn is_needed(self) -> bool {
        let is_optional = |kind| matches!(kind, WorkloadKind::Job | WorkloadKind::CronJob | WorkloadKind::Custom(_));
        match self {
            Self::Workload(kind) => !is_optional(kind),
            Self::Config(kind) => kind != ConfigKind::SecretProviderClass,
            Self::Report | Self::Namespace => true,
        }
    }

    /// The kind as manifests spell it, with its group where that is not enough.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config(kind) => kind.as_str(),
            Self::Workload(kind) => kind.label(),
            Self::Report => "DriftReport",
            Self::Namespace => "Namespace",
        }
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
