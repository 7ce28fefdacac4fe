//! The annotations that users write, by name.

/// What the names of all of them begin with.
pub const PREFIX: &str = "restamp.dev/";
/// On a workload, or on its pod template: whether it rolls when what it consumes changes.
pub const AUTO_RELOAD: &str = "restamp.dev/auto-reload";
/// On a workload, or on its pod template: configs that count even if no container names them.
pub const RELOAD_ON: &str = "restamp.dev/reload-on";
/// On a workload, or on its pod template: configs and keys that don't count.
pub const RELOAD_EXCLUDE: &str = "restamp.dev/reload-exclude";
/// On a workload, or on its pod template: the shortest time between two rollouts.
pub const MIN_INTERVAL: &str = "restamp.dev/min-interval";
/// On a pod template, by restamp: the stamp.
pub const CONFIG_HASH: &str = "restamp.dev/config-hash";
/// On a config: `reload`, `drift` or `all`.
pub const IGNORE: &str = "restamp.dev/ignore";
/// On a config: keys that may be there without being declared.
pub const EXPECTED_KEYS: &str = "restamp.dev/expected-keys";
