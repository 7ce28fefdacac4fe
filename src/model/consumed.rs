//! What a workload consumes at this moment: exactly the keys that count, and their fingerprints.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::auto_reload::AutoReload;
use crate::api::ignore::Ignore;
use crate::api::stakater;
use crate::model::config::{Configs, Field};
use crate::model::consumption::{Consumption, Via};
use crate::model::counting::Counting;
use crate::model::digest::{Digest, HashKey};
use crate::model::fingerprint::Fingerprint;
use crate::model::names::{ConfigId, ConfigKind, KeyName, Name, ResourceVersion, Uid};

/// The consumed configs of one workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consumed(BTreeMap<ConfigId, ConsumedConfig>);

/// One consumed config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumedConfig {
    /// Whether it exists.
    pub presence: Presence,
    /// Whether some container starts without it.
    pub optional: bool,
    /// Whether its changes count.
    pub attention: Attention,
    /// Whether whatever keys it has are consumed.
    pub all: bool,
    /// The consumed keys; `None` for one that is named and not there.
    pub keys: BTreeMap<KeyName, Option<Fingerprint>>,
}

/// Whether a config's own annotation lets its changes roll anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// They count.
    Counts,
    /// They are followed, so that nothing counts as changed once they do, and roll nobody.
    Ignored,
}

/// Whether a config exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It does not.
    Absent,
    /// It does, at this version.
    Present(Option<ResourceVersion>),
    /// Nobody knows: only some configs are looked at, and it is none of them.
    Unknown,
}

impl Consumed {
    /// What a workload of this namespace consumes of these configs.
    pub fn of(namespace: &Name, consumption: &Consumption, counting: &Counting, configs: &Configs) -> Self {
        let mut consumed = Self::default();
        for id in consumption.configs_that_count(counting) {
            let optional = !consumption.starts_without(id).is_empty();
            let all = consumption.reads_all(id, counting);
            consumed
                .0
                .insert(id.clone(), ConsumedConfig { optional, all, ..ConsumedConfig::new(id, configs, counting) });
        }
        for read in consumption.reads_and_replaced(configs) {
            if !counting.counts(&read.config, read.via.refresh()) || counting.excludes_key(&read.config, &read.key) {
                continue;
            }
            let Some(config) = consumed.0.get_mut(&read.config) else { continue };
            let value = configs.values(&read.config).and_then(|values| values.get(&read.key));
            let seen = value.filter(|value| value.field == Field::Data || can_be_binary(read.via));
            let seen = seen.map(|value| value.fingerprint);
            let known = config.keys.entry(read.key).or_default();
            *known = known.or(seen);
        }
        consumed.add_named(namespace, counting, configs);
        consumed
    }

    /// Adds what counts although no container names it: all keys.
    fn add_named(&mut self, namespace: &Name, counting: &Counting, configs: &Configs) {
        let literal = counting.reload_on.iter().filter_map(|pattern| pattern.literal(namespace));
        let kinds: BTreeSet<_> = counting.reload_on.iter().map(|pattern| pattern.kind).collect();
        let live = kinds.into_iter().flat_map(|kind| configs.within(kind, namespace)).map(|config| config.id.clone());
        for id in literal.chain(live).filter(|id| counting.names(id)).collect::<BTreeSet<_>>() {
            let config = configs.get(&id);
            let entry = self.0.entry(id.clone()).or_insert_with(|| ConsumedConfig::new(&id, configs, counting));
            entry.all = true;
            let values = config.into_iter().flat_map(|config| &config.values);
            let values = values.filter(|(key, _)| !counting.excludes_key(&id, key));
            entry.keys.extend(values.map(|(key, value)| (key.clone(), Some(value.fingerprint))));
        }
    }

    /// The configs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&ConfigId, &ConsumedConfig)> {
        self.0.iter()
    }

    /// This config, if it is consumed.
    pub fn get(&self, config: &ConfigId) -> Option<&ConsumedConfig> {
        self.0.get(config)
    }

    /// The digest of it all: what a stamp carries.
    pub fn digest(&self, workload: &Uid, key: &HashKey) -> Digest {
        let counting = self.0.iter().filter(|(_, config)| config.attention == Attention::Counts);
        key.digest_state(workload, counting.map(|(id, config)| (id, config.digest(id, key))))
    }
}

impl Attention {
    /// What this config's own annotations say to a workload for which this counts.
    fn to(id: &ConfigId, annotations: &BTreeMap<String, String>, counting: &Counting) -> Self {
        let searches = counting.of_kind(id.kind) == AutoReload::Matching && !counting.names(id);
        let is_passed_over = searches && !stakater::is_match(annotations);
        match is_passed_over || Ignore::stops_reload(annotations, counting.vocabulary) {
            true => Self::Ignored,
            false => Self::Counts,
        }
    }
}

impl ConsumedConfig {
    /// One that no pod waits for, and of which nothing is read yet.
    fn new(id: &ConfigId, configs: &Configs, counting: &Counting) -> Self {
        let config = configs.get(id);
        let presence = match config {
            Some(config) => Presence::Present(config.resource_version),
            None if configs.is_unknown(id) => Presence::Unknown,
            None => Presence::Absent,
        };
        let no_annotations = BTreeMap::new();
        let annotations = match config {
            Some(config) => Some(&config.annotations),
            // Nothing of a class itself is read, so that it never matches.
            None if id.kind == ConfigKind::SecretProviderClass => Some(&no_annotations),
            None => None,
        };
        let attention = annotations.map_or(Attention::Counts, |all| Attention::to(id, all, counting));
        Self { presence, optional: true, all: false, attention, keys: BTreeMap::new() }
    }

    /// The version of its last write. A pod that is younger has read it as it is now.
    pub fn version(&self) -> Option<ResourceVersion> {
        match self.presence {
            Presence::Absent | Presence::Unknown => None,
            Presence::Present(version) => version,
        }
    }

    /// The digest of its consumed keys; `None` while it does not exist, or is unknown.
    pub fn digest(&self, id: &ConfigId, key: &HashKey) -> Option<Digest> {
        match self.presence {
            Presence::Absent | Presence::Unknown => None,
            Presence::Present(_) => Some(key.digest_config(id, self.keys.iter())),
        }
    }
}

/// Whether a container can read `binaryData` like this.
pub(super) fn can_be_binary(via: Via) -> bool {
    matches!(via, Via::Volume | Via::SubPath)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::vocabulary::Vocabulary;
    use crate::model::builders::{WorkloadBuilder, config_map, deployment, hash_key, pod};
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    fn consumed(counting: &Counting, configs: &Configs) -> Consumed {
        let spec = json!({
            "containers": [{"name": "app", "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "A"}}},
                        {"name": "Y", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "NO", "optional": true}}}]}],
            "volumes": [{"name": "v", "configMap": {"name": "files", "optional": true}}]});
        Consumed::of(&"ns".into(), &Consumption::of(&"ns".into(), &pod(spec)), counting, configs)
    }

    fn id(name: &str) -> ConfigId {
        ConfigId { kind: ConfigKind::ConfigMap, namespace: "ns".into(), name: name.into() }
    }

    #[test]
    fn exactly_the_consumed_keys_count() {
        let configs = Configs::from_iter([config_map("c").value("A", "1").value("B", "2").build()]);
        let keys = [("A".into(), Some(Fingerprint::of(b"1"))), ("NO".into(), None)];
        let c = ConsumedConfig {
            presence: Presence::Present(Some(ResourceVersion(1))),
            optional: false,
            attention: Attention::Counts,
            all: false,
            keys: keys.into(),
        };
        let files = ConsumedConfig {
            presence: Presence::Absent,
            optional: true,
            attention: Attention::Counts,
            all: true,
            keys: BTreeMap::new(),
        };
        let expected = Consumed([(id("c"), c), (id("files"), files)].into());
        assert_eq!(consumed(&Counting::everything(), &configs), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Two configs of four keys; a container reads some of them in some way; one byte of the cluster changes.
        #[test]
        fn the_digest_depends_on_exactly_the_consumed_keys(
            single in prop::collection::btree_set((0..2usize, 0..4usize), 0..4),
            all in prop::option::of(0..2usize), mounted in prop::option::of(0..2usize), at_start: bool,
            changed in (0..2usize, 0..4usize), gone: bool,
        ) {
            let mut workload = deployment("w");
            let name = |config: usize| format!("ConfigMap/c{config}");
            workload = all.into_iter().fold(workload, |it, config| it.env_from(&name(config)));
            workload = mounted.into_iter().fold(workload, |it, config| it.volume(&name(config)));
            // Of its own container, so that it shadows nothing.
            let one = |it: WorkloadBuilder, (config, key): &(usize, usize)| {
                it.container(&format!("of{config}{key}")).env(&name(*config), &format!("K{config}{key}"))
            };
            let consumption = single.iter().fold(workload, one).build().consumption;
            let configs = |change: bool| -> Configs {
                let of = |config: usize| (0..4).fold(config_map(&format!("c{config}")), |it, key| {
                    match (change && changed == (config, key), gone) {
                        (false, _) => it.value(&format!("K{config}{key}"), "1"),
                        (true, false) => it.value(&format!("K{config}{key}"), "2"),
                        (true, true) => it,
                    }
                });
                (0..2).map(|config| of(config).build()).collect()
            };
            let mode = if at_start { AutoReload::AtStart } else { AutoReload::Everything };
            let counting = Counting::of(mode);
            let consumed = |change| Consumed::of(&"ns".into(), &consumption, &counting, &configs(change));
            let digest = |change| consumed(change).digest(&"u".into(), &hash_key("k1"));
            let is_mounted = mounted == Some(changed.0) && !at_start;
            let is_consumed = single.contains(&changed) || all == Some(changed.0) || is_mounted;
            prop_assert_eq!(digest(false) != digest(true), is_consumed);
        }
    }

    #[test]
    fn volumes_do_not_count_at_start() {
        let consumed = consumed(&Counting::of(AutoReload::AtStart), &Configs::default());
        assert_eq!(consumed.iter().map(|(id, _)| id).collect::<Vec<_>>(), [&id("c")]);
    }

    const MATCH: &str = "reloader.stakater.com/match";
    const IGNORE: &str = "reloader.stakater.com/ignore";

    fn searching() -> Counting {
        Counting { vocabulary: Vocabulary::WithStakater, ..Counting::of(AutoReload::Matching) }
    }

    fn naming() -> Counting {
        Counting { reload_on: vec!["configmap/c".parse().unwrap()], ..searching() }
    }

    fn all() -> Counting {
        Counting { vocabulary: Vocabulary::WithStakater, ..Counting::everything() }
    }

    #[rstest]
    #[case::without_a_match(searching(), &[], Attention::Ignored)]
    #[case::with_a_match(searching(), &[(MATCH, "true")], Attention::Counts)]
    #[case::with_another_value(searching(), &[(MATCH, "yes")], Attention::Ignored)]
    #[case::named_as_well(naming(), &[], Attention::Counts)]
    #[case::not_searching(all(), &[], Attention::Counts)]
    #[case::ignored(all(), &[(IGNORE, "true")], Attention::Ignored)]
    #[case::ignored_though_it_matches(searching(), &[(MATCH, "true"), (IGNORE, "true")], Attention::Ignored)]
    #[case::ignored_though_it_is_named(naming(), &[(IGNORE, "true")], Attention::Ignored)]
    #[case::ignored_by_an_annotation_that_does_not_count(Counting::everything(), &[(IGNORE, "true")], Attention::Counts)]
    fn a_config_says_itself_whether_it_counts(
        #[case] counting: Counting,
        #[case] annotations: &[(&str, &str)],
        #[case] expected: Attention,
    ) {
        let config = annotations
            .iter()
            .fold(config_map("c").value("A", "1"), |config, (name, value)| config.annotated(name, value));
        let consumed = consumed(&counting, &Configs::from_iter([config.build()]));
        assert_eq!(consumed.get(&id("c")).unwrap().attention, expected);
    }
}
