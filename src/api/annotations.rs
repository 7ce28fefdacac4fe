//! The annotations that users write, by name.

/// On a workload, or on its pod template: whether it rolls when what it consumes changes.
pub const AUTO_RELOAD: &str = "restamp.dev/auto-reload";
/// On a pod template, by restamp: the stamp.
pub const CONFIG_HASH: &str = "restamp.dev/config-hash";
/// On a config: `reload`, `drift` or `all`.
pub const IGNORE: &str = "restamp.dev/ignore";
/// On a config: keys that may be there without being declared.
pub const EXPECTED_KEYS: &str = "restamp.dev/expected-keys";
