//! What a workload's containers read, row by row, and whether a change of it would roll the workload.

use std::collections::BTreeSet;

use serde::Serialize;

use super::sought::Known;
use super::why::{Rolls, Verdict, Why};
use super::workload::Case;
use crate::api::auto_reload::AutoReload;
use crate::api::ignore::Ignore;
use crate::api::stakater;
use crate::model::config::Field;
use crate::model::consumed::can_be_binary;
use crate::model::consumption::{Read, Reference, Refresh, Via};
use crate::model::names::{ConfigId, ConfigKind, ConfigName, KeyName, Name};

/// One container's reading of one key, and what a change of it would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reading {
    /// The container; none where only an annotation names the config.
    pub container: Option<Name>,
    /// The config.
    pub config: ConfigName,
    /// The key; none where the config has none, or is not known.
    pub key: Option<KeyName>,
    /// How it is read.
    pub via: Option<Via>,
    /// When a container sees a change.
    pub refresh: Option<Refresh>,
    /// As what the container sees it: the variable's name, or the file's path.
    pub r#as: Option<String>,
    /// Whether it is there.
    pub existence: Existence,
    /// Whether a change would roll the workload.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Whether what is read is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Existence {
    /// It is.
    Live,
    /// It is not, and pods start without it.
    OptionalMissing,
    /// It is not, and new pods can't start without it.
    Missing,
    /// That is not known.
    Unknown,
}

impl Existence {
    /// What there is to add in words, if anything.
    pub fn remark(self, rolls: Rolls) -> Option<&'static str> {
        match (self, rolls) {
            (Self::Live | Self::Unknown, _) => None,
            (Self::OptionalMissing, Rolls::Yes) => Some("optional and missing: it counts once it is there"),
            (Self::OptionalMissing, _) => Some("optional and missing"),
            (Self::Missing, Rolls::Yes) => {
                Some("missing: new pods can't start, so a rollout is held until it is there")
            }
            (Self::Missing, _) => Some("missing: new pods can't start"),
        }
    }
}

impl Case<'_> {
    /// Every reading, by container, config and key; then what only an annotation names.
    pub(super) fn readings(&self) -> Vec<Reading> {
        let reads = self.workload.consumption.reads_and_replaced(&self.known.configs);
        let mut readings: Vec<Reading> = reads.iter().map(|read| self.of_read(read)).collect();
        let unread = self.workload.consumption.references().filter(|reference| self.shows_no_key(reference, &reads));
        readings.extend(unread.map(|reference| self.of_reference(&reference)));
        readings
            .sort_by(|a, b| (&a.container, &a.config, &a.key, a.via).cmp(&(&b.container, &b.config, &b.key, b.via)));
        readings.dedup();
        readings.extend(self.only_named(&reads));
        readings
    }

    fn of_read(&self, read: &Read) -> Reading {
        let why = self.why(&read.config, Some(&read.key), Some(read.via.refresh()));
        Reading {
            container: Some(read.container.clone()),
            config: read.config.local(),
            key: Some(read.key.clone()),
            via: Some(read.via),
            refresh: Some(read.via.refresh()),
            r#as: Some(read.seen_as.clone()),
            existence: self.existence_of(read),
            verdict: Verdict::from(&why),
        }
    }

    fn existence_of(&self, read: &Read) -> Existence {
        if self.known.unknown.contains_key(&read.config) {
            return Existence::Unknown;
        }
        let values = self.known.configs.values(&read.config);
        let value = values.and_then(|values| values.get(&read.key));
        if value.is_some_and(|value| value.field == Field::Data || can_be_binary(read.via)) {
            return Existence::Live;
        }
        let needs = |reference: &Reference<'_>| {
            let named = reference.keys.contains(&&read.key) || (values.is_none() && reference.keys.is_empty());
            named && !reference.optional
        };
        let mut references = self.workload.consumption.references();
        let same =
            |reference: &Reference<'_>| (reference.container, reference.config) == (&read.container, &read.config);
        if references.any(|reference| same(&reference) && needs(&reference)) {
            Existence::Missing
        } else {
            Existence::OptionalMissing
        }
    }

    /// Whether no row is about this reference, since the config is not there, not known, or has no keys. Where it has
    /// some, none of them can be a variable.
    fn shows_no_key(&self, reference: &Reference<'_>, reads: &BTreeSet<Read>) -> bool {
        let is_read = |read: &Read| {
            (&read.container, &read.config, read.via) == (reference.container, reference.config, reference.via)
        };
        let values = self.known.configs.values(reference.config);
        values.is_none_or(|values| values.is_empty()) && !reads.iter().any(is_read)
    }

    fn of_reference(&self, reference: &Reference<'_>) -> Reading {
        let refresh = reference.via.refresh();
        let why = self.why(reference.config, None, Some(refresh));
        let existence = match self.known.configs.get(reference.config) {
            Some(_) => Existence::Live,
            None if self.is_unknown(reference.config) => Existence::Unknown,
            None if reference.optional => Existence::OptionalMissing,
            None => Existence::Missing,
        };
        Reading {
            container: Some(reference.container.clone()),
            config: reference.config.local(),
            key: None,
            via: Some(reference.via),
            refresh: Some(refresh),
            r#as: None,
            existence,
            verdict: Verdict::from(&why),
        }
    }

    /// What counts although no container reads it: every key of what an annotation names.
    fn only_named(&self, reads: &BTreeSet<Read>) -> Vec<Reading> {
        let namespace = &self.workload.id.namespace;
        let named = |id: &ConfigId| self.counting.names(id);
        let kinds = ConfigKind::ALL.into_iter();
        let live = kinds.flat_map(|kind| self.known.configs.within(kind, namespace)).map(|config| &config.id);
        let literal = self.counting.reload_on.iter().filter_map(|pattern| pattern.literal(namespace));
        let ids: BTreeSet<ConfigId> = live.cloned().chain(literal).filter(named).collect();
        ids.iter().flat_map(|id| self.only_named_of(id, reads)).collect()
    }

    fn only_named_of(&self, id: &ConfigId, reads: &BTreeSet<Read>) -> Vec<Reading> {
        let row = |key: Option<&KeyName>, existence| Reading {
            container: None,
            config: id.local(),
            key: key.cloned(),
            via: None,
            refresh: None,
            r#as: None,
            existence,
            verdict: Verdict::from(&self.why(id, key, None)),
        };
        let Some(values) = self.known.configs.values(id) else {
            let read = self.workload.consumption.configs().contains(id);
            let existence = if self.is_unknown(id) { Existence::Unknown } else { Existence::OptionalMissing };
            return if read { Vec::new() } else { vec![row(None, existence)] };
        };
        let is_read = |key: &KeyName| reads.iter().any(|read| read.config == *id && read.key == *key);
        values.keys().filter(|key| !is_read(key)).map(|key| row(Some(key), Existence::Live)).collect()
    }

    /// Whether a change of this key, or of the config as a whole, would roll the workload, and why. It is read like this,
    /// or by no container.
    fn why(&self, config: &ConfigId, key: Option<&KeyName>, refresh: Option<Refresh>) -> Why {
        let as_a_whole = self.why_at_all();
        match as_a_whole.rolls() {
            Rolls::No => return as_a_whole,
            Rolls::Unknown if !self.counting.names(config) || as_a_whole.is_of_scope() => return as_a_whole,
            Rolls::Unknown | Rolls::Yes => {}
        }
        let excludes_key = key.is_some_and(|key| self.counting.excludes_key(config, key));
        if self.counting.excludes(config) || excludes_key {
            return Why::Excluded;
        }
        let counts_by_itself = refresh.is_some_and(|refresh| self.auto_reload(config.kind).counts(refresh));
        match self.of_the_config_itself(config) {
            _ if !counts_by_itself && !self.counting.names(config) => self.why_not_like_this(config.kind),
            Some(why) => why,
            None if counts_by_itself => as_a_whole,
            None => Why::Named,
        }
    }

    fn why_not_like_this(&self, kind: ConfigKind) -> Why {
        match self.auto_reload(kind) {
            AutoReload::AtStart => Why::ReadInPlace,
            AutoReload::Off | AutoReload::Everything | AutoReload::Notify | AutoReload::Matching => Why::NotOptedIn,
        }
    }

    /// What the config has to say about it.
    fn of_the_config_itself(&self, id: &ConfigId) -> Option<Why> {
        let Known { configs, unknown, unselected } = self.known;
        let ignored = self.operator.scope().is_some_and(|scope| scope.ignored.contains(&id.kind));
        if ignored || unselected.contains(id) {
            return Some(Why::ConfigNotWatched);
        }
        if let Some(unknown) = unknown.get(id) {
            return Some(Why::ConfigUnknown(*unknown));
        }
        let searches = self.auto_reload(id.kind) == AutoReload::Matching && !self.counting.names(id);
        if id.kind == ConfigKind::SecretProviderClass {
            return searches.then_some(Why::NotMatching);
        }
        let annotations = &configs.get(id)?.annotations;
        if let Some(ignore) = Ignore::read(annotations).ok().flatten().filter(|ignore| ignore.covers_reload()) {
            return Some(Why::Ignored(ignore));
        }
        if Ignore::stops_reload(annotations, self.counting.vocabulary) {
            return Some(Why::IgnoredByStakater);
        }
        (searches && !stakater::is_match(annotations)).then_some(Why::NotMatching)
    }

    pub(super) fn auto_reload(&self, kind: ConfigKind) -> AutoReload {
        self.counting.of_kind(kind)
    }

    /// Whether nothing is known of a config itself.
    fn is_unknown(&self, id: &ConfigId) -> bool {
        self.known.unknown.contains_key(id) || self.known.configs.is_unknown(id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::tests::{Scene, scene};
    use super::*;
    use crate::model::builders::{WorkloadBuilder, config_map, deployment, named, secret};
    use crate::model::config::Configs;
    use crate::model::explain::Unknown;
    use crate::model::names::WorkloadKind;
    use rstest::rstest;

    fn configs() -> Configs {
        Configs::from_iter([
            secret("s").value("A", "1").value("B", "2").build(),
            config_map("c").value("A", "3").build(),
            config_map("ignored").value("K", "4").annotated("restamp.dev/ignore", "reload").build(),
            config_map("binary").binary("K", "5").build(),
            secret("empty").build(),
        ])
    }

    /// Container, config, key, way, and what a change does, of every row.
    fn rows(scene: &Scene) -> Vec<String> {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let row = |row: &Reading| {
            let container = or_dash(row.container.as_ref().map(ToString::to_string));
            let (key, via) =
                (or_dash(row.key.as_ref().map(ToString::to_string)), or_dash(row.via.map(|via| via.to_string())));
            let Verdict { rolls, reason, .. } = row.verdict;
            format!("{container} {}[{key}] {via} {:?}: {rolls}, {reason}", row.config, row.existence)
        };
        scene.explain().readings.iter().map(row).collect()
    }

    #[rstest]
    #[case::everything(deployment("w").env_from("Secret/s"),
        &["app Secret/s[A] envFrom Live: yes, OptedIn", "app Secret/s[B] envFrom Live: yes, OptedIn"])]
    #[case::not_opted_in(deployment("w").auto_reload(AutoReload::Off).env("Secret/s", "A"),
        &["app Secret/s[A] env Live: no, OptedOut"])]
    #[case::files_at_start(deployment("w").auto_reload(AutoReload::AtStart).volume("ConfigMap/c").env("Secret/s", "A"),
        &["app ConfigMap/c[A] volume Live: no, ReadInPlace", "app Secret/s[A] env Live: yes, OptedIn"])]
    #[case::files_that_are_named(deployment("w").auto_reload(AutoReload::AtStart).on("configmap/c").volume("ConfigMap/c"),
        &["app ConfigMap/c[A] volume Live: yes, Named"])]
    #[case::excluded(deployment("w").excluding("secret/s:A").excluding("configmap/*").env_from("Secret/s").volume("ConfigMap/c"),
        &["app ConfigMap/c[A] volume Live: no, Excluded", "app Secret/s[A] envFrom Live: no, Excluded",
            "app Secret/s[B] envFrom Live: yes, OptedIn"])]
    #[case::ignored(deployment("w").env_from("ConfigMap/ignored"),
        &["app ConfigMap/ignored[K] envFrom Live: no, Ignored"])]
    #[case::missing(deployment("w").env("Secret/s", "NO").env_from("Secret/absent"),
        &["app Secret/absent[-] envFrom Missing: yes, OptedIn", "app Secret/s[NO] env Missing: yes, OptedIn"])]
    #[case::optional(deployment("w").optional().env("Secret/s", "NO").volume("Secret/absent"),
        &["app Secret/absent[-] volume OptionalMissing: yes, OptedIn", "app Secret/s[NO] env OptionalMissing: yes, OptedIn"])]
    #[case::binary_is_no_variable(deployment("w").env("ConfigMap/binary", "K").env_from("ConfigMap/binary"),
        &["app ConfigMap/binary[K] env Missing: yes, OptedIn"])]
    #[case::no_keys_yet(deployment("w").env_from("Secret/empty"), &["app Secret/empty[-] envFrom Live: yes, OptedIn"])]
    #[case::shadowed(deployment("w").env_from("Secret/s").env("ConfigMap/c", "A"),
        &["app ConfigMap/c[A] env Live: yes, OptedIn", "app Secret/s[A] envFrom Live: yes, OptedIn",
            "app Secret/s[B] envFrom Live: yes, OptedIn"])]
    #[case::only_named(deployment("w").on("secret/s").on("secret/absent").env("Secret/s", "A"),
        &["app Secret/s[A] env Live: yes, OptedIn", "- Secret/absent[-] - OptionalMissing: yes, Named",
            "- Secret/s[B] - Live: yes, Named"])]
    #[case::of_a_class(deployment("w").volume("SecretProviderClass/vault"),
        &["app SecretProviderClass/vault[-] csi Unknown: yes, OptedIn"])]
    #[case::of_a_class_at_start(deployment("w").auto_reload(AutoReload::AtStart).volume("SecretProviderClass/vault"),
        &["app SecretProviderClass/vault[-] csi Unknown: no, ReadInPlace"])]
    #[case::a_class_that_is_only_named(deployment("w").on("secretproviderclass/vault"),
        &["- SecretProviderClass/vault[-] - Unknown: yes, Named"])]
    #[case::nothing(deployment("w"), &[])]
    fn a_row_says_what_a_change_does(#[case] workload: WorkloadBuilder, #[case] expected: &[&str]) {
        assert_eq!(rows(&scene(workload).configs(configs())), expected);
    }

    #[test]
    fn what_is_named_does_not_roll_what_never_rolls() {
        let mut job = scene(deployment("w").on("secret/s").env("Secret/s", "A")).configs(configs());
        job.workload.id.kind = WorkloadKind::Job;
        let expected = ["app Secret/s[A] env Live: no, KindDoesNotRoll", "- Secret/s[B] - Live: no, KindDoesNotRoll"];
        assert_eq!(rows(&job), expected);
    }

    #[test]
    fn of_what_is_not_known_nothing_is_said() {
        let mut scene =
            scene(deployment("w").env("Secret/hidden", "A").env_from("Secret/hidden").excluding("secret/hidden:B"));
        scene.known.unknown.insert(named("Secret/hidden").within(&"ns".into()), Unknown::Forbidden);
        let expected = [
            "app Secret/hidden[-] envFrom Unknown: unknown, ConfigUnknown",
            "app Secret/hidden[A] env Unknown: unknown, ConfigUnknown",
        ];
        assert_eq!(rows(&scene), expected);
    }

    /// The operator consumes exactly what is said to roll the workload.
    #[rstest]
    #[case(deployment("w").env_from("Secret/s").volume("ConfigMap/c").env_from("ConfigMap/ignored"))]
    #[case(deployment("w").auto_reload(AutoReload::AtStart).env_from("Secret/s").volume("ConfigMap/c").on("configmap/binary"))]
    #[case(deployment("w").excluding("secret/s:A").env_from("Secret/s").env("Secret/s", "NO").excluding("configmap/c").volume("ConfigMap/c"))]
    fn what_rolls_is_what_is_hashed(#[case] workload: WorkloadBuilder) {
        use crate::model::consumed::{Attention, Consumed};
        let scene = scene(workload).configs(configs());
        let counting = scene.workload.opt_in.counting(AutoReload::Off, None);
        let consumed = Consumed::of(&"ns".into(), &scene.workload.consumption, &counting, &scene.known.configs);
        let hashed: BTreeSet<_> = consumed
            .iter()
            .filter(|(_, config)| config.attention == Attention::Counts)
            .flat_map(|(id, config)| config.keys.keys().map(|key| (id.local(), key.clone())))
            .collect();
        let rolling = scene.explain().readings.into_iter().filter(|row| row.verdict.rolls == Rolls::Yes);
        let rolling: BTreeSet<_> = rolling.filter_map(|row| Some((row.config, row.key?))).collect();
        assert_eq!(rolling, hashed);
    }
}
