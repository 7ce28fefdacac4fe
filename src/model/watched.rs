//! The kinds that the operator watches.

use std::fmt;

use crate::model::names::{ConfigKind, WorkloadKind};
use crate::model::workload::Workload;

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
    /// HorizontalPodAutoscalers: a number of pods that one sets is no drift.
    Autoscaler,
}

impl Watched {
    /// Whether reloading needs it. What only completes reports is optional.
    pub fn is_needed(self) -> bool {
        let is_optional = |kind| matches!(kind, WorkloadKind::Job | WorkloadKind::CronJob | WorkloadKind::Custom(_));
        match self {
            Self::Workload(kind) => !is_optional(kind),
            Self::Config(kind) => kind != ConfigKind::SecretProviderClass,
            Self::Report | Self::Namespace => true,
            Self::Autoscaler => false,
        }
    }

    /// The kind as manifests spell it, with its group where that is not enough.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config(kind) => kind.as_str(),
            Self::Workload(kind) => kind.label(),
            Self::Report => "DriftReport",
            Self::Namespace => "Namespace",
            Self::Autoscaler => "HorizontalPodAutoscaler",
        }
    }
}

impl Workload {
    /// The kinds without which nothing can be decided about it: its own, its pods', what it consumes.
    pub fn needs(&self) -> impl Iterator<Item = Watched> {
        let links = match self.id.kind {
            WorkloadKind::Deployment | WorkloadKind::Custom(_) => Some(Watched::Workload(WorkloadKind::ReplicaSet)),
            _ => None,
        };
        let consumed = self.consumption.configs().into_iter().map(|id| id.kind);
        let named = self.opt_in.reload_on.iter().map(|pattern| pattern.kind);
        let configs = consumed.chain(named).map(Watched::Config).filter(|kind| kind.is_needed());
        let own = [Watched::Workload(self.id.kind), Watched::Report, Watched::Workload(WorkloadKind::Pod)];
        own.into_iter().chain(links).chain(configs)
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
