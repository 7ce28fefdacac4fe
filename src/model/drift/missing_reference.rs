//! `MissingReference`: a container needs a config, or a key of it, that does not exist. The kubelet then starts no
//! container: the pod waits with `CreateContainerConfigError`, or can't mount its volume.

use super::{Finding, WorkloadSight};
use crate::model::names::WorkloadKind;

/// Every reference that keeps new pods from starting.
pub(super) fn find(sight: &WorkloadSight<'_>) -> Vec<Finding> {
    let workload = sight.workload;
    if workload.deleting || !makes_new_pods(workload.id.kind) {
        return Vec::new();
    }
    workload.consumption.missing(sight.configs).into_iter().map(Finding::MissingReference).collect()
}

/// Whether there will be pods that have to start: a Job or a pod has had its own, and may need what it read no more.
fn makes_new_pods(kind: WorkloadKind) -> bool {
    match kind {
        WorkloadKind::Deployment
        | WorkloadKind::StatefulSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::ReplicaSet
        | WorkloadKind::CronJob
        | WorkloadKind::Custom(_) => true,
        WorkloadKind::Job | WorkloadKind::Pod => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{WorkloadBuilder, deployment, secret};
    use crate::model::config::Configs;
    use crate::model::managers::Managers;
    use crate::model::names::ConfigKind;
    use rstest::rstest;

    fn found(workload: WorkloadBuilder, configs: &Configs) -> Vec<String> {
        let workload = workload.build();
        let findings =
            find(&WorkloadSight { workload: &workload, configs, managers: &Managers::default(), autoscaler: None });
        let line = |finding| match finding {
            Finding::MissingReference(missing) => {
                format!("{}[{}]", missing.config.local(), missing.key.map(|key| key.to_string()).unwrap_or_default())
            }
            other => panic!("{other:?}"),
        };
        findings.into_iter().map(line).collect()
    }

    #[rstest]
    #[case::a_config(deployment("w").env_from("Secret/absent"), &["Secret/absent[]"])]
    #[case::a_key(deployment("w").env("Secret/s", "NO"), &["Secret/s[NO]"])]
    #[case::an_optional_one(deployment("w").optional().env_from("Secret/absent"), &[])]
    #[case::all_there(deployment("w").env("Secret/s", "A").env_from("Secret/s"), &[])]
    fn a_reference_that_leads_nowhere_is_found(#[case] workload: WorkloadBuilder, #[case] expected: &[&str]) {
        let configs = Configs::from_iter([secret("s").value("A", "1").build()]);
        assert_eq!(found(workload, &configs), expected);
    }

    #[test]
    fn what_may_exist_is_not_missing() {
        let unknown = Configs::with_unknown([ConfigKind::Secret].into());
        assert_eq!(found(deployment("w").env_from("Secret/absent"), &unknown), [""; 0]);
    }
}
