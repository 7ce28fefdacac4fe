//! The kinds that the tests read.

use kube::api::{ApiResource, GroupVersionKind};

/// A kind of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub group: &'static str,
    pub version: &'static str,
    pub name: &'static str,
    pub plural: &'static str,
}

pub const CONFIG_MAP: Kind = core("ConfigMap", "configmaps");
pub const SECRET: Kind = core("Secret", "secrets");
pub const POD: Kind = core("Pod", "pods");
pub const DEPLOYMENT: Kind = apps("Deployment", "deployments");
pub const STATEFUL_SET: Kind = apps("StatefulSet", "statefulsets");
pub const DAEMON_SET: Kind = apps("DaemonSet", "daemonsets");
pub const JOB: Kind = Kind { group: "batch", version: "v1", name: "Job", plural: "jobs" };
pub const CRON_JOB: Kind = Kind { group: "batch", version: "v1", name: "CronJob", plural: "cronjobs" };
pub const DRIFT_REPORT: Kind =
    Kind { group: "restamp.dev", version: "v1alpha1", name: "DriftReport", plural: "driftreports" };
pub const CLASS_STATUS: Kind = Kind {
    group: "secrets-store.csi.x-k8s.io",
    version: "v1",
    name: "SecretProviderClassPodStatus",
    plural: "secretproviderclasspodstatuses",
};
pub const EVENT: Kind = Kind { group: "events.k8s.io", version: "v1", name: "Event", plural: "events" };

const fn core(name: &'static str, plural: &'static str) -> Kind {
    Kind { group: "", version: "v1", name, plural }
}

const fn apps(name: &'static str, plural: &'static str) -> Kind {
    Kind { group: "apps", version: "v1", name, plural }
}

impl Kind {
    pub fn resource(self) -> ApiResource {
        let gvk = GroupVersionKind::gvk(self.group, self.version, self.name);
        ApiResource::from_gvk_with_plural(&gvk, self.plural)
    }

    pub fn api_version(self) -> String {
        self.resource().api_version
    }
}
