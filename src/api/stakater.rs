//! Reloader's vocabulary, `reloader.stakater.com/*`, read into our own types.
//!
//! Which annotation is looked for where, and what a value means, is as in Reloader 1.4. What differs is said in
//! docs/migrating-from-reloader.md.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use crate::api::auto_reload::{AutoReload, InvalidAnnotation};
use crate::api::opt_in::{Annotations, interval, list, noted};
use crate::api::patterns::{ConfigPattern, Exclusion};
use crate::model::names::{ConfigKind, WorkloadKind};

const AUTO: &str = "reloader.stakater.com/auto";
const SEARCH: &str = "reloader.stakater.com/search";
const PAUSE_PERIOD: &str = "deployment.reloader.stakater.com/pause-period";
/// On an Argo Rollout: whether its pods are replaced by a rollout, or restarted.
pub const ROLLOUT_STRATEGY: &str = "reloader.stakater.com/rollout-strategy";
/// On a config: whether it counts for workloads that search.
pub const MATCH: &str = "reloader.stakater.com/match";
/// On a config: whether its changes roll nothing.
pub const IGNORE: &str = "reloader.stakater.com/ignore";

/// The annotations of Reloader on configs.
pub const ON_CONFIGS: [&str; 2] = [MATCH, IGNORE];

const BOOLEAN: &str = "\"true\" or \"false\"";
const EXPRESSIONS: &str = "a list of regular expressions such as \"app-.*, tls\"";
const NAMES: &str = "a list of names such as \"app, tls\"";

/// The annotations about one kind of config.
struct OfKind {
    auto: &'static str,
    reload: &'static str,
    exclude: &'static str,
}

const CONFIG_MAPS: OfKind = OfKind {
    auto: "configmap.reloader.stakater.com/auto",
    reload: "configmap.reloader.stakater.com/reload",
    exclude: "configmaps.exclude.reloader.stakater.com/reload",
};

const SECRETS: OfKind = OfKind {
    auto: "secret.reloader.stakater.com/auto",
    reload: "secret.reloader.stakater.com/reload",
    exclude: "secrets.exclude.reloader.stakater.com/reload",
};

const PROVIDER_CLASSES: OfKind = OfKind {
    auto: "secretproviderclass.reloader.stakater.com/auto",
    reload: "secretproviderclass.reloader.stakater.com/reload",
    exclude: "secretproviderclasses.exclude.reloader.stakater.com/reload",
};

/// Whether an annotation of this name is one of Reloader's.
pub fn is_one(name: &str) -> bool {
    name.contains("reloader.stakater.com/")
}

/// Whether a config with these annotations counts for workloads that search.
pub fn is_match(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(MATCH).is_some_and(|value| value == "true")
}

/// Whether the changes of a config with these annotations roll nothing.
pub fn is_ignored(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(IGNORE).is_some_and(|value| value == "true")
}

/// What Reloader's annotations say of one workload.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stakater {
    /// Which consumed ConfigMaps count.
    pub config_maps: Wish,
    /// Which consumed Secrets count.
    pub secrets: Wish,
    /// Which consumed SecretProviderClasses count.
    pub provider_classes: Wish,
    /// What counts although no container names it.
    pub reload_on: Vec<ConfigPattern>,
    /// What does not count.
    pub exclude: Vec<Exclusion>,
    /// The shortest time between two rollouts.
    pub min_interval: Option<SignedDuration>,
    /// The annotations that don't parse.
    pub problems: Vec<InvalidAnnotation>,
}

/// Which consumed configs of one kind count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wish {
    /// `auto`, of all kinds or of this one.
    pub auto: Auto,
    /// `search`.
    pub search: Search,
}

/// Whether all that is consumed counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Auto {
    /// Nothing is said.
    #[default]
    Unsaid,
    /// What is said does not parse.
    Unclear,
    /// It does.
    On,
    /// It does not.
    Off,
}

/// Whether configs count that are annotated to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Search {
    /// They do.
    On,
    /// They do not.
    #[default]
    Off,
}

impl Wish {
    /// Which ways to consume count, where this default does. While an annotation does not parse, what counted before
    /// does.
    pub fn or(self, default: AutoReload, before: Option<AutoReload>) -> AutoReload {
        let auto = match self.auto {
            Auto::On => AutoReload::Everything,
            Auto::Off => AutoReload::Off,
            Auto::Unclear => before.unwrap_or(default),
            Auto::Unsaid => default,
        };
        match (auto, self.search) {
            (AutoReload::Off, Search::On) => AutoReload::Matching,
            (auto, _) => auto,
        }
    }

    /// Whether nothing is said.
    pub fn is_silent(self) -> bool {
        self == Self::default()
    }
}

impl Stakater {
    /// Reads the annotations of a workload of this kind.
    pub fn read(kind: WorkloadKind, annotations: &Annotations) -> Self {
        let mut read = Self::default();
        read.config_maps = read.of_kind(ConfigKind::ConfigMap, &CONFIG_MAPS, annotations);
        read.secrets = read.of_kind(ConfigKind::Secret, &SECRETS, annotations);
        read.provider_classes = read.of_kind(ConfigKind::SecretProviderClass, &PROVIDER_CLASSES, annotations);
        if let (WorkloadKind::Deployment, Some(period)) = (kind, said(&annotations.workload, PAUSE_PERIOD)) {
            read.min_interval = noted(interval(PAUSE_PERIOD, period), &mut read.problems);
        }
        read
    }

    fn of_kind(&mut self, kind: ConfigKind, names: &OfKind, annotations: &Annotations) -> Wish {
        let opts_in = |name: &&str| annotations.workload.contains_key(*name);
        let own = [AUTO, SEARCH, names.auto, names.reload].iter().any(opts_in);
        let place = if own { &annotations.workload } else { &annotations.template };
        let named = list(names.reload, said(place, names.reload), EXPRESSIONS, &mut self.problems, |item| {
            ConfigPattern::of_regex(kind, item)
        });
        self.reload_on.extend(named);
        let exclude = said(&annotations.workload, names.exclude);
        let excluded = list(names.exclude, exclude, NAMES, &mut self.problems, |item| Exclusion::of_name(kind, item));
        self.exclude.extend(excluded);
        let search = boolean(SEARCH, place, &mut self.problems);
        Wish {
            auto: boolean(AUTO, place, &mut self.problems).and_also(boolean(names.auto, place, &mut self.problems)),
            search: if search == Auto::On { Search::On } else { Search::Off },
        }
    }
}

impl Auto {
    /// What is said of all kinds together with what is said of one: one `true` is enough.
    fn and_also(self, of_kind: Self) -> Self {
        let both = [self, of_kind];
        let strongest = [Self::On, Self::Unclear, Self::Off].into_iter().find(|auto| both.contains(auto));
        strongest.unwrap_or_default()
    }
}

/// An annotation without a text says nothing.
fn said<'a>(annotations: &'a BTreeMap<String, String>, name: &str) -> Option<&'a String> {
    annotations.get(name).filter(|value| !value.is_empty())
}

/// A value as Go's `strconv.ParseBool` reads it.
fn boolean(name: &'static str, place: &BTreeMap<String, String>, problems: &mut Vec<InvalidAnnotation>) -> Auto {
    match said(place, name).map(String::as_str) {
        None => Auto::Unsaid,
        Some("1" | "t" | "T" | "true" | "True" | "TRUE") => Auto::On,
        Some("0" | "f" | "F" | "false" | "False" | "FALSE") => Auto::Off,
        Some(value) => {
            let problem = InvalidAnnotation::new(name, value, BOOLEAN);
            // What is said of all kinds is read for each of them.
            if !problems.contains(&problem) {
                problems.push(problem);
            }
            Auto::Unclear
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::opt_in::OptIn;
    use crate::model::counting::Counting;
    use proptest::prelude::*;
    use rstest::rstest;

    const CONFIG_MAP_AUTO: &str = CONFIG_MAPS.auto;
    const SECRET_AUTO: &str = SECRETS.auto;
    const SECRET_RELOAD: &str = SECRETS.reload;

    type Said<'a> = &'a [(&'a str, &'a str)];

    fn annotations(workload: Said<'_>, template: Said<'_>) -> Annotations {
        let owned = |all: Said<'_>| all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Annotations { workload: owned(workload), template: owned(template) }
    }

    fn read(workload: Said<'_>, template: Said<'_>) -> Stakater {
        Stakater::read(WorkloadKind::Deployment, &annotations(workload, template))
    }

    fn counting(workload: Said<'_>, default: AutoReload) -> (AutoReload, AutoReload) {
        let counting = OptIn::default().or_stakater(read(workload, &[])).counting(default, None);
        (counting.config_maps, counting.secrets)
    }

    const OFF: AutoReload = AutoReload::Off;
    const ALL: AutoReload = AutoReload::Everything;
    const MATCHING: AutoReload = AutoReload::Matching;

    #[rstest]
    #[case::nothing(&[], OFF, (OFF, OFF))]
    #[case::nothing_where_all_take_part(&[], ALL, (ALL, ALL))]
    #[case::all(&[(AUTO, "true")], OFF, (ALL, ALL))]
    #[case::as_go_reads_it(&[(AUTO, "T")], OFF, (ALL, ALL))]
    #[case::none(&[(AUTO, "false")], ALL, (OFF, OFF))]
    #[case::without_a_text(&[(AUTO, "")], ALL, (ALL, ALL))]
    #[case::secrets(&[(SECRET_AUTO, "true")], OFF, (OFF, ALL))]
    #[case::config_maps(&[(CONFIG_MAP_AUTO, "true")], OFF, (ALL, OFF))]
    #[case::one_true_is_enough(&[(AUTO, "false"), (SECRET_AUTO, "true")], OFF, (OFF, ALL))]
    #[case::one_true_is_enough_the_other_way(&[(AUTO, "true"), (SECRET_AUTO, "false")], OFF, (ALL, ALL))]
    #[case::of_the_other_kind_nothing_is_said(&[(SECRET_AUTO, "false")], ALL, (ALL, OFF))]
    #[case::search(&[(SEARCH, "true")], OFF, (MATCHING, MATCHING))]
    #[case::auto_before_search(&[(AUTO, "true"), (SEARCH, "true")], OFF, (ALL, ALL))]
    #[case::no_auto_and_search(&[(AUTO, "false"), (SEARCH, "true")], ALL, (MATCHING, MATCHING))]
    #[case::auto_of_one_kind_and_search(&[(SECRET_AUTO, "true"), (SEARCH, "true")], OFF, (MATCHING, ALL))]
    #[case::search_where_all_take_part(&[(SEARCH, "true")], ALL, (ALL, ALL))]
    #[case::no_search(&[(SEARCH, "false")], OFF, (OFF, OFF))]
    fn auto_and_search_say_what_counts_of_what_is_consumed(
        #[case] workload: Said<'_>,
        #[case] default: AutoReload,
        #[case] expected: (AutoReload, AutoReload),
    ) {
        assert_eq!(counting(workload, default), expected);
    }

    #[rstest]
    #[case::template_alone(&[], &[(AUTO, "true")], (Auto::On, Auto::On))]
    #[case::workload_before_template(&[(AUTO, "false")], &[(AUTO, "true")], (Auto::Off, Auto::Off))]
    #[case::another_annotation_of_the_workload(&[(SEARCH, "false")], &[(AUTO, "true")], (Auto::Unsaid, Auto::Unsaid))]
    #[case::one_about_the_other_kind(&[(SECRET_RELOAD, "s")], &[(AUTO, "true")], (Auto::On, Auto::Unsaid))]
    #[case::one_that_opts_nothing_in(&[(SECRETS.exclude, "s")], &[(AUTO, "true")], (Auto::On, Auto::On))]
    fn the_template_counts_where_the_workload_says_nothing_of_the_kind(
        #[case] workload: Said<'_>,
        #[case] template: Said<'_>,
        #[case] expected: (Auto, Auto),
    ) {
        let read = read(workload, template);
        assert_eq!((read.config_maps.auto, read.secrets.auto), expected);
    }

    #[rstest]
    #[case::of_all_kinds(&[(AUTO, "true")], ALL)]
    #[case::of_their_own(&[(PROVIDER_CLASSES.auto, "true")], ALL)]
    #[case::of_another_kind(&[(SECRET_AUTO, "true")], OFF)]
    #[case::search(&[(SEARCH, "true")], MATCHING)]
    fn provider_classes_have_annotations_of_their_own(#[case] workload: Said<'_>, #[case] expected: AutoReload) {
        let counting = OptIn::default().or_stakater(read(workload, &[])).counting(OFF, None);
        assert_eq!(counting.provider_classes, expected);
    }

    #[test]
    fn provider_classes_are_named_and_excluded() {
        let read = read(&[(PROVIDER_CLASSES.reload, "vault-.*"), (PROVIDER_CLASSES.exclude, "vault-old")], &[]);
        let class = ConfigKind::SecretProviderClass;
        assert_eq!(read.reload_on, [ConfigPattern::of_regex(class, "vault-.*").unwrap()]);
        assert_eq!(read.exclude, ["secretproviderclass/vault-old".parse().unwrap()]);
    }

    #[test]
    fn a_list_names_configs_by_expressions() {
        let read = read(&[(CONFIG_MAPS.reload, "app-.*, ,web"), (SECRET_RELOAD, "tls")], &[]);
        let pattern = |kind, text| ConfigPattern::of_regex(kind, text).unwrap();
        let (config_map, secret) = (ConfigKind::ConfigMap, ConfigKind::Secret);
        assert_eq!(read.reload_on, [pattern(config_map, "app-.*"), pattern(config_map, "web"), pattern(secret, "tls")]);
    }

    #[test]
    fn what_is_named_counts_beside_a_false() {
        let opt_in = OptIn::default().or_stakater(read(&[(AUTO, "false"), (SECRET_RELOAD, "tls")], &[]));
        let named = vec!["secret/tls".parse().unwrap()];
        assert_eq!(opt_in.counting(ALL, None).reload_on, named);
    }

    #[test]
    fn exclusions_are_names_and_stand_on_the_workload() {
        let excluding = read(&[(CONFIG_MAPS.exclude, "a, b"), (SECRETS.exclude, "c")], &[]);
        let expected: [Exclusion; 3] = ["configmap/a", "configmap/b", "secret/c"].map(|text| text.parse().unwrap());
        assert_eq!(excluding.exclude, expected);
        assert_eq!(read(&[], &[(SECRETS.exclude, "c")]), Stakater::default());
        assert_eq!(read(&[(SECRETS.exclude, "c*")], &[]).problems.len(), 1);
    }

    #[rstest]
    #[case::minutes("5m", Some(SignedDuration::from_mins(5)))]
    #[case::as_go_writes_it("1h30m0s", Some(SignedDuration::from_mins(90)))]
    #[case::negative("-5m", None)]
    #[case::without_a_unit("5", None)]
    fn a_pause_period_is_the_shortest_time_between_rollouts(
        #[case] text: &str,
        #[case] expected: Option<SignedDuration>,
    ) {
        let annotations = annotations(&[(PAUSE_PERIOD, text)], &[]);
        let deployment = Stakater::read(WorkloadKind::Deployment, &annotations);
        assert_eq!((deployment.min_interval, deployment.problems.len()), (expected, usize::from(expected.is_none())));
        assert_eq!(Stakater::read(WorkloadKind::StatefulSet, &annotations), Stakater::default());
    }

    #[test]
    fn what_does_not_parse_is_named_once_and_the_rest_counts() {
        let read = read(&[(AUTO, "yes"), (SECRET_RELOAD, "a(,b.*"), (SEARCH, "true")], &[]);
        assert_eq!(read.reload_on, [ConfigPattern::of_regex(ConfigKind::Secret, "b.*").unwrap()]);
        let problems: Vec<_> = read.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "annotation reloader.stakater.com/auto has the value \"yes\"; write \"true\" or \"false\"",
                "annotation secret.reloader.stakater.com/reload has the value \"a(\"; \
             write a list of regular expressions such as \"app-.*, tls\"",
            ]
        );
    }

    #[test]
    fn while_auto_does_not_parse_what_counted_before_does() {
        let opt_in = OptIn::default().or_stakater(read(&[(AUTO, "yes")], &[]));
        let before = Counting { secrets: AutoReload::Everything, ..Counting::default() };
        assert_eq!(opt_in.counting(OFF, Some(&before)).secrets, ALL);
        assert_eq!(opt_in.counting(OFF, None).secrets, OFF);
    }

    #[test]
    fn a_list_ends_somewhere() {
        let many = vec!["a.*"; 5_000].join(",");
        let read = read(&[(SECRET_RELOAD, &many)], &[]);
        assert_eq!((read.reload_on.len(), read.problems.len()), (100, 1));
    }

    fn name() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            AUTO,
            SEARCH,
            PAUSE_PERIOD,
            CONFIG_MAPS.auto,
            CONFIG_MAPS.reload,
            CONFIG_MAPS.exclude,
            SECRETS.auto,
            SECRETS.reload,
            SECRETS.exclude,
            PROVIDER_CLASSES.auto,
            PROVIDER_CLASSES.reload,
            PROVIDER_CLASSES.exclude,
        ])
    }

    /// Any text, and texts that look like expressions.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            r"[a-z.*+?|()\[\]{},0-9\\^$-]{0,60}",
            r"(\(\?[a-z]+\)|[a-z]\{[0-9],[0-9]{1,9}\}){0,9}"
        ]
    }

    proptest! {
        /// Whatever an annotation says: nothing panics, and what is read survives being written down.
        #[test]
        fn any_text_is_read(said in prop::collection::btree_map(name().prop_map(str::to_owned), text(), 0..5)) {
            let annotations = Annotations { workload: said, template: BTreeMap::new() };
            let opt_in = OptIn::default().or_stakater(Stakater::read(WorkloadKind::Deployment, &annotations));
            let counting = opt_in.counting(OFF, None);
            let written = serde_json::to_string(&counting).unwrap();
            prop_assert_eq!(serde_json::from_str::<Counting>(&written).unwrap(), counting);
        }
    }
}
