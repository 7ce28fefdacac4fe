//! The annotations that users write, by name.

/// What the names of all of them begin with.
pub const PREFIX: &str = "restamp.dev/";
/// On a workload, on its pod template, or as a default on its namespace: whether it rolls when what it consumes changes.
pub const AUTO_RELOAD: &str = "restamp.dev/auto-reload";
/// On a workload, or on its pod template: configs that count even if no container names them.
pub const RELOAD_ON: &str = "restamp.dev/reload-on";
/// On a workload, or on its pod template: configs and keys that don't count.
pub const RELOAD_EXCLUDE: &str = "restamp.dev/reload-exclude";
/// On a workload, or on its pod template: the shortest time between two rollouts.
pub const MIN_INTERVAL: &str = "restamp.dev/min-interval";
/// On an Argo Rollout: whether its pods are replaced by a rollout with its steps, or restarted.
pub const ROLLOUT_STRATEGY: &str = "restamp.dev/rollout-strategy";
/// On a pod template, by restamp: the stamp.
pub const CONFIG_HASH: &str = "restamp.dev/config-hash";
/// On the custom resource definition, by `restamp crd`: the version of restamp that wrote it.
pub const VERSION: &str = "restamp.dev/version";
/// On a Job that restamp made while it makes another one again: what that one will be.
pub const RERUN: &str = "restamp.dev/rerun";
/// On a Job that restamp made again: the installation that did, by its namespace. Its report went with the earlier Job.
pub const MADE_BY: &str = "restamp.dev/made-by";
/// On a Job that restamp made again: why. The record of that went with the earlier Job.
pub const MADE_FOR: &str = "restamp.dev/made-for";
/// On a config: `reload`, `drift` or `all`.
pub const IGNORE: &str = "restamp.dev/ignore";
/// On a config: keys that may be there without being declared.
pub const EXPECTED_KEYS: &str = "restamp.dev/expected-keys";
/// On a workload, on its pod template, or on a config: findings that are not reported.
pub const IGNORE_FINDINGS: &str = "restamp.dev/ignore-findings";

/// What an annotation means, for the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub on: &'static str,
    /// What may be written.
    pub values: &'static str,
    /// What it does.
    pub does: &'static str,
}

/// Every annotation that users write.
pub const ALL: [Meaning; 8] = [
    Meaning {
        name: AUTO_RELOAD,
        on: "workload, pod template, namespace",
        values: "`\"true\"`, `\"at-start\"`, `\"false\"`",
        does: "Rolls the workload when a key changes that its containers read. `at-start`: files of a mounted volume, which the \
               kubelet swaps in place, don't count.",
    },
    Meaning {
        name: RELOAD_ON,
        on: "workload, pod template",
        values: "a list: `configmap/a, secret/b-*, secretproviderclass/c`",
        does: "These count too, with all their keys, even if no container names them.",
    },
    Meaning {
        name: RELOAD_EXCLUDE,
        on: "workload, pod template",
        values: "a list: `configmap/x, secret/y:KEY`",
        does: "These configs, or these keys of them, don't count.",
    },
    Meaning {
        name: MIN_INTERVAL,
        on: "workload, pod template",
        values: "a duration: `10m`",
        does: "Two rollouts by restamp are at least this far apart.",
    },
    Meaning {
        name: ROLLOUT_STRATEGY,
        on: "Argo Rollout",
        values: "`rollout`, `restart`",
        does: "Whether its pods are replaced by a rollout with its steps, or restarted one after the other in the same revision.",
    },
    Meaning {
        name: IGNORE,
        on: "ConfigMap, Secret",
        values: "`reload`, `drift`, `all`",
        does: "Its changes roll nothing, its drift is not reported, or both.",
    },
    Meaning {
        name: EXPECTED_KEYS,
        on: "ConfigMap, Secret",
        values: "a list: `ca.crt, cache-*`",
        does: "These keys may be live without being declared.",
    },
    Meaning {
        name: IGNORE_FINDINGS,
        on: "workload, pod template, ConfigMap, Secret",
        values: "a list: `RevertsOnApply:spec.replicas, StaleKey:CACHE_*`",
        does: "These findings are not reported: all of a type, or those at a key, a field, an object or a container.",
    },
];
