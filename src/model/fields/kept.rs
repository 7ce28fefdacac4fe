//! Declared fields that an API server keeps as they are sent: where one is not live, somebody took it out.
//!
//! Of others this can't be told. An API server drops what is empty, what its version does not know, and fields whose
//! feature is off; what is not here was behind a feature gate in Kubernetes 1.25 or later, or is never absent, since
//! it has a default.

use serde_json::Value;

use super::compare::{is_a_restart, is_empty};
use super::path::{Path, Step};

/// The lists of which a declared member that is not live was taken out.
const LISTS: [&str; 10] = [
    "containers",
    "env",
    "hostAliases",
    "imagePullSecrets",
    "initContainers",
    "ports",
    "topologySpreadConstraints",
    "volumeDevices",
    "volumeMounts",
    "volumes",
];

/// Maps with keys of any name, which keep an empty value too.
const MAPS: [&str; 5] = ["annotations", "labels", "limits", "nodeSelector", "requests"];

/// Fields that are kept also if they are `false` or zero, and that mean something else than none.
const ALSO_EMPTY: [&str; 8] = [
    "allowPrivilegeEscalation",
    "automountServiceAccountToken",
    "fsGroup",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "startingDeadlineSeconds",
    "ttlSecondsAfterFinished",
];

/// Fields that are kept unless they are empty; of an object, those below that are here too.
const FIELDS: [&str; 80] = [
    "activeDeadlineSeconds",
    "add",
    "affinity",
    "args",
    "capabilities",
    "command",
    "configMapKeyRef",
    "dnsConfig",
    "drop",
    "envFrom",
    "exec",
    "fieldPath",
    "fieldRef",
    "fsGroupChangePolicy",
    "host",
    "hostIP",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "hostname",
    "hostnames",
    "httpGet",
    "httpHeaders",
    "initialDelaySeconds",
    "items",
    "key",
    "level",
    "lifecycle",
    "livenessProbe",
    "localhostProfile",
    "medium",
    "minReadySeconds",
    "name",
    "nameservers",
    "nodeAffinity",
    "nodeSelectorTerms",
    "optional",
    "options",
    "path",
    "paused",
    "podAffinity",
    "podAntiAffinity",
    "port",
    "postStart",
    "preStop",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "priorityClassName",
    "privileged",
    "readOnly",
    "readOnlyRootFilesystem",
    "readinessProbe",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "resource",
    "resourceFieldRef",
    "resources",
    "role",
    "runtimeClassName",
    "seLinuxOptions",
    "searches",
    "seccompProfile",
    "secretKeyRef",
    "securityContext",
    "serviceAccountName",
    "shareProcessNamespace",
    "startupProbe",
    "stdin",
    "subPath",
    "subPathExpr",
    "subdomain",
    "supplementalGroups",
    "sysctls",
    "tcpSocket",
    "tolerations",
    "tty",
    "type",
    "user",
    "value",
    "valueFrom",
    "workingDir",
];

/// Whether an API server keeps this declared field.
pub(super) fn field(path: &Path<'_>, declared: &Value) -> bool {
    let mut upwards = path.upwards();
    let Some(Step::Field(name)) = upwards.next() else { return false };
    let is_in_map = matches!(upwards.next(), Some(Step::Field(map)) if MAPS.contains(&map));
    if is_in_map || ALSO_EMPTY.contains(&name) {
        return !declared.is_null();
    }
    match declared {
        _ if !FIELDS.contains(&name) && !MAPS.contains(&name) => false,
        Value::Object(below) => {
            let mut below = below.iter().filter(|(name, _)| !is_a_restart(path, name));
            below.any(|(name, declared)| field(&path.field(name), declared))
        }
        declared => !is_empty(declared),
    }
}

/// Whether an API server keeps this member of a list.
pub(super) fn member(path: &Path<'_>) -> bool {
    matches!(path.upwards().nth(1), Some(Step::Field(list)) if LISTS.contains(&list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::a_list("command", json!(["a"]), true)]
    #[case::an_empty_list("command", json!([]), false)]
    #[case::a_false_that_means_something("automountServiceAccountToken", json!(false), true)]
    #[case::a_false_that_means_nothing("readOnlyRootFilesystem", json!(false), false)]
    #[case::a_null("runAsUser", json!(null), false)]
    #[case::the_zero_user("runAsUser", json!(0), true)]
    #[case::an_object_with_something_in_it("securityContext", json!({"capabilities": {"drop": ["ALL"]}}), true)]
    #[case::an_object_of_nothing("securityContext", json!({"capabilities": {"drop": []}, "privileged": false}), false)]
    #[case::an_object_of_a_gated_field("securityContext", json!({"procMount": "Unmasked"}), false)]
    #[case::a_handler_behind_a_gate("livenessProbe", json!({"grpc": {"port": 80}}), false)]
    #[case::a_handler("livenessProbe", json!({"httpGet": {"port": 80}}), true)]
    #[case::a_limit_of_nothing("limits", json!({"cpu": "0"}), true)]
    #[case::an_empty_label("labels", json!({"a.b/c": ""}), true)]
    #[case::no_label("labels", json!({}), false)]
    #[case::a_reference("valueFrom", json!({"configMapKeyRef": {"name": "c", "key": "k"}}), true)]
    #[case::a_reference_behind_a_gate("valueFrom", json!({"fileKeyRef": {"path": "p", "key": "k"}}), false)]
    #[case::what_has_a_default("dnsPolicy", json!("None"), false)]
    fn what_is_sent_stays_where_no_feature_decides(
        #[case] name: &str,
        #[case] declared: Value,
        #[case] expected: bool,
    ) {
        assert_eq!(field(&Path::root("spec").field(name), &declared), expected);
    }
}
