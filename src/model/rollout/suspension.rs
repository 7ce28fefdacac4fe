//! Suspension: nothing rolls, since somebody said so of the workload, of its namespace, or of the whole cluster.

use std::fmt;

use crate::api::annotations::SUSPEND;
use crate::api::published::CONFIG_MAP;

/// Whether rollouts are suspended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Suspension {
    /// They go on.
    #[default]
    No,
    /// They don't.
    Yes,
}

impl From<bool> for Suspension {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// Where it says that a workload is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspendedBy {
    /// On the ConfigMap that the operator publishes: for the whole cluster.
    Cluster,
    /// On its namespace.
    Namespace,
    /// On itself.
    Workload,
}

impl SuspendedBy {
    /// The widest that says so.
    pub fn widest(cluster: Suspension, namespace: Suspension, workload: Suspension) -> Option<Self> {
        let all = [(cluster, Self::Cluster), (namespace, Self::Namespace), (workload, Self::Workload)];
        all.into_iter().find(|(suspension, _)| *suspension == Suspension::Yes).map(|(_, by)| by)
    }
}

impl fmt::Display for SuspendedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => {
                write!(f, "all rollouts are suspended: {SUSPEND} of ConfigMap {CONFIG_MAP} of the operator is \"true\"")
            }
            Self::Namespace => write!(f, "{SUSPEND} of its namespace is \"true\""),
            Self::Workload => write!(f, "{SUSPEND} is \"true\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const NO: Suspension = Suspension::No;
    const YES: Suspension = Suspension::Yes;

    #[rstest]
    #[case::nobody([NO, NO, NO], None)]
    #[case::itself([NO, NO, YES], Some(SuspendedBy::Workload))]
    #[case::the_namespace([NO, YES, YES], Some(SuspendedBy::Namespace))]
    #[case::all([YES, YES, NO], Some(SuspendedBy::Cluster))]
    fn the_widest_is_named(#[case] all: [Suspension; 3], #[case] by: Option<SuspendedBy>) {
        let [cluster, namespace, workload] = all;
        assert_eq!(SuspendedBy::widest(cluster, namespace, workload), by);
    }
}
