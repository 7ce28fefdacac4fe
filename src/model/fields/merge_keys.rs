//! By which fields the members of a list are told apart, as the API's schema has it
//! (`x-kubernetes-list-map-keys`). A test compares this table with a real API server's.

/// One list: its name, which means the same wherever it stands in a workload, and the keys of its members by name.
type MergeKeys = (&'static str, &'static [&'static str]);

/// All lists in workloads whose members have keys. Others are written as a whole.
pub const LISTS: [MergeKeys; 18] = [
    ("claims", &["name"]),
    ("conditions", &["type"]),
    ("containers", &["name"]),
    ("env", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("evictionResponders", &["name"]),
    ("healthConditions", &["reason", "status"]),
    ("hostAliases", &["ip"]),
    ("imagePullSecrets", &["name"]),
    ("initContainers", &["name"]),
    ("ownerReferences", &["uid"]),
    ("ports", &["containerPort", "protocol"]),
    ("resourceClaims", &["name"]),
    ("schedulingGates", &["name"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("volumeDevices", &["devicePath"]),
    ("volumeMounts", &["mountPath"]),
    ("volumes", &["name"]),
];

/// The keys of the members of this list; `None` if it is written as a whole.
pub fn of(list: &str) -> Option<&'static [&'static str]> {
    LISTS.iter().find(|(name, _)| *name == list).map(|(_, keys)| *keys)
}

/// What a key is where a member does not say it: only a port's protocol has such a default.
pub fn default_of(key: &str) -> Option<&'static str> {
    (key == "protocol").then_some("TCP")
}
