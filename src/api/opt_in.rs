//! How a workload is opted in: its own annotations, then those of its pod template, then its namespace's default.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use crate::api::annotations::{
    APPROVE, AUTO_RELOAD, CANARY, IGNORE_FINDINGS, MIN_INTERVAL, PREFIX, RELOAD_EXCLUDE, RELOAD_ON, SUSPEND, WAVE,
    WINDOW,
};
use crate::api::auto_reload::{AutoReload, InvalidAnnotation};
use crate::api::ignore_findings::IgnoredFindings;
use crate::api::patterns::{ConfigPattern, Exclusion};
use crate::api::stakater::{self, Stakater, Wish};
use crate::api::vocabulary::Vocabulary;
use crate::model::counting::Counting;
use crate::model::names::ConfigKind;
use crate::model::rollout::suspension::Suspension;
use crate::model::rollout::wave::Wave;
use crate::model::rollout::window::Windows;

const CONFIGS: &str = "a list such as \"configmap/a, secret/b-*\"";
const EXCLUSIONS: &str = "a list such as \"configmap/x, secret/y:KEY\"";
/// A list holds this many items at most: who may annotate a workload decides how much we keep and compare.
const MOST_ITEMS: usize = 100;
/// What says when it rolls, and nothing of what rolls it.
const AT_ANOTHER_TIME: [&str; 4] = [WAVE, CANARY, SUSPEND, WINDOW];
const FEWER: &str = "100 items at most; this one and those behind it don't count";

/// What a workload's annotations say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OptIn {
    /// `restamp.dev/auto-reload`, where there is one that parses.
    pub auto_reload: Option<AutoReload>,
    /// `restamp.dev/reload-on`: what counts although no container names it.
    pub reload_on: Vec<ConfigPattern>,
    /// `restamp.dev/reload-exclude`: what does not count.
    pub exclude: Vec<Exclusion>,
    /// `restamp.dev/min-interval`: the shortest time between two rollouts.
    pub min_interval: Option<SignedDuration>,
    /// `restamp.dev/wave` and `restamp.dev/canary`: when it gets a change, beside others.
    pub wave: Wave,
    /// `restamp.dev/suspend`: whether it does not roll for now.
    pub suspension: Suspension,
    /// `restamp.dev/window`: when it may roll.
    pub windows: Option<Box<Windows>>,
    /// `restamp.dev/approve`: the hash of what may be rolled.
    pub approved: Option<Box<str>>,
    /// `restamp.dev/ignore-findings`: what is not reported.
    pub ignored: IgnoredFindings,
    /// The annotations that don't parse. What was right of them counts.
    pub problems: Vec<InvalidAnnotation>,
    /// Whose annotations were read.
    pub vocabulary: Vocabulary,
    /// What Reloader's annotations say of ConfigMaps, where `auto_reload` says nothing.
    pub config_maps: Wish,
    /// What Reloader's annotations say of Secrets, where `auto_reload` says nothing.
    pub secrets: Wish,
    /// What Reloader's annotations say of SecretProviderClasses, where `auto_reload` says nothing.
    pub provider_classes: Wish,
}

/// The annotations of a workload and of its pod template, as far as they are ours or Reloader's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Annotations {
    /// The workload's own.
    pub workload: BTreeMap<String, String>,
    /// Those of its pod template.
    pub template: BTreeMap<String, String>,
}

impl Annotations {
    /// Keeps what may have to be read again, since only the namespace tells whether Reloader's annotations count;
    /// nothing if there are none of them.
    pub fn with_stakater(
        workload: Option<&BTreeMap<String, String>>,
        template: Option<&BTreeMap<String, String>>,
    ) -> Option<Self> {
        let all = || [workload, template].into_iter().flatten().flat_map(BTreeMap::keys);
        if !all().any(|name| stakater::is_one(name)) {
            return None;
        }
        let is_read = |(name, _): &(&String, &String)| name.starts_with(PREFIX) || stakater::is_one(name);
        let kept = |annotations: Option<&BTreeMap<String, String>>| {
            let read = annotations.into_iter().flatten().filter(is_read);
            read.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        Some(Self { workload: kept(workload), template: kept(template) })
    }
}

impl OptIn {
    /// Reads a workload's annotations; those of its pod template count where the workload itself has none.
    pub fn read(workload: Option<&BTreeMap<String, String>>, template: Option<&BTreeMap<String, String>>) -> Self {
        let said =
            |name: &str| [workload, template].into_iter().flatten().find_map(|annotations| annotations.get(name));
        let mut problems = Vec::new();
        let auto_reload = said(AUTO_RELOAD).and_then(|value| noted(value.parse(), &mut problems));
        let reload_on = list(RELOAD_ON, said(RELOAD_ON), CONFIGS, &mut problems, str::parse);
        let exclude = list(RELOAD_EXCLUDE, said(RELOAD_EXCLUDE), EXCLUSIONS, &mut problems, str::parse);
        let min_interval = said(MIN_INTERVAL).and_then(|value| noted(interval(MIN_INTERVAL, value), &mut problems));
        let ignored = IgnoredFindings::read(said(IGNORE_FINDINGS), &mut problems);
        let wave = said(WAVE).and_then(|value| noted(wave(value), &mut problems)).unwrap_or_default();
        let canary = said(CANARY).and_then(|value| noted(yes_or_no(CANARY, value), &mut problems));
        let wave = if canary == Some(true) { Wave::CANARY } else { wave };
        let suspension = said(SUSPEND).and_then(|value| noted(suspension(value), &mut problems)).unwrap_or_default();
        let windows = said(WINDOW).and_then(|value| noted(windows(value), &mut problems)).map(Box::new);
        let approved = said(APPROVE).map(|hash| hash.as_str().into());
        Self {
            auto_reload,
            reload_on,
            exclude,
            min_interval,
            wave,
            suspension,
            windows,
            approved,
            ignored,
            problems,
            ..Self::default()
        }
    }

    /// Adds what Reloader's annotations say: to each of what counts, what counts unnamed, what does not, and how often,
    /// where ours say nothing of it.
    pub fn or_stakater(mut self, other: Stakater) -> Self {
        self.vocabulary = Vocabulary::WithStakater;
        if self.is_unsaid(AUTO_RELOAD) && self.auto_reload.is_none() {
            (self.config_maps, self.secrets) = (other.config_maps, other.secrets);
            self.provider_classes = other.provider_classes;
        }
        if self.is_unsaid(RELOAD_ON) && self.reload_on.is_empty() {
            self.reload_on = other.reload_on;
        }
        if self.is_unsaid(RELOAD_EXCLUDE) && self.exclude.is_empty() {
            self.exclude = other.exclude;
        }
        if self.is_unsaid(MIN_INTERVAL) {
            self.min_interval = self.min_interval.or(other.min_interval);
        }
        self.problems.extend(other.problems);
        self
    }

    /// Whether this annotation of ours is not there, or parses.
    fn is_unsaid(&self, name: &str) -> bool {
        !self.problems.iter().any(|problem| problem.name == name)
    }

    /// Whether all parses that is said of reloading.
    pub fn is_clear(&self) -> bool {
        self.problems.iter().all(|problem| AT_ANOTHER_TIME.contains(&problem.name) || problem.name == IGNORE_FINDINGS)
    }

    /// Whether nothing is said of what counts.
    pub fn is_silent(&self) -> bool {
        let wishes = [self.config_maps, self.secrets, self.provider_classes];
        self.auto_reload.is_none() && self.is_clear() && wishes.into_iter().all(Wish::is_silent)
    }

    /// What counts, with this default of the namespace. While `auto-reload` does not parse, what counted before does.
    pub fn counting(&self, default: AutoReload, before: Option<&Counting>) -> Counting {
        let of_kind = |kind, wish: Wish| {
            let before = before.map(|before| before.of_kind(kind));
            match (self.auto_reload, before) {
                (Some(said), _) => said,
                (None, Some(before)) if !self.is_unsaid(AUTO_RELOAD) => before,
                (None, before) => wish.or(default, before),
            }
        };
        let reload_on = match self.auto_reload {
            Some(AutoReload::Off) => Vec::new(),
            _ => self.reload_on.clone(),
        };
        Counting {
            config_maps: of_kind(ConfigKind::ConfigMap, self.config_maps),
            secrets: of_kind(ConfigKind::Secret, self.secrets),
            provider_classes: of_kind(ConfigKind::SecretProviderClass, self.provider_classes),
            reload_on,
            exclude: self.exclude.clone(),
            vocabulary: self.vocabulary,
        }
    }
}

/// What was read, or nothing, where the problem is noted.
pub(crate) fn noted<T>(read: Result<T, InvalidAnnotation>, problems: &mut Vec<InvalidAnnotation>) -> Option<T> {
    read.map_err(|problem| problems.push(problem)).ok()
}

/// The items that parse, with commas between them.
pub(super) fn list<T, E>(
    name: &'static str,
    value: Option<&String>,
    expected: &'static str,
    problems: &mut Vec<InvalidAnnotation>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Vec<T> {
    let items = value.into_iter().flat_map(|value| value.split(',')).map(str::trim);
    let mut items = items.filter(|item| !item.is_empty());
    let read: Vec<T> = items
        .by_ref()
        .take(MOST_ITEMS)
        .filter_map(|item| noted(parse(item).map_err(|_| InvalidAnnotation::new(name, item, expected)), problems))
        .collect();
    if let Some(item) = items.next() {
        problems.push(InvalidAnnotation::new(name, item, FEWER));
    }
    read
}

fn wave(value: &str) -> Result<Wave, InvalidAnnotation> {
    value.parse().map_err(|_| InvalidAnnotation::new(WAVE, value, "a number from \"0\" to \"65535\""))
}

pub(crate) fn suspension(value: &str) -> Result<Suspension, InvalidAnnotation> {
    yes_or_no(SUSPEND, value).map(Suspension::from)
}

pub(crate) fn windows(value: &str) -> Result<Windows, InvalidAnnotation> {
    let expected = "days, a span and a time zone, such as \"Mon-Fri 09:00-17:00 Europe/Berlin\"";
    value.parse().map_err(|_| InvalidAnnotation::new(WINDOW, value, expected))
}

fn yes_or_no(name: &'static str, value: &str) -> Result<bool, InvalidAnnotation> {
    value.parse().map_err(|_| InvalidAnnotation::new(name, value, "\"true\" or \"false\""))
}

/// A duration that is not negative.
pub(super) fn interval(name: &'static str, value: &str) -> Result<SignedDuration, InvalidAnnotation> {
    let read = value.parse::<SignedDuration>().ok().filter(|interval| !interval.is_negative());
    read.ok_or_else(|| InvalidAnnotation::new(name, value, "a duration such as \"10m\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::WorkloadKind;
    use rstest::rstest;

    fn annotations(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn auto_reload(value: Option<&str>) -> BTreeMap<String, String> {
        value.map(|value| (AUTO_RELOAD.to_owned(), value.to_owned())).into_iter().collect()
    }

    /// The table in docs/reloading.md, row by row.
    #[rstest]
    #[case::nothing(None, None, AutoReload::Off, AutoReload::Off)]
    #[case::the_namespace_alone(None, None, AutoReload::Everything, AutoReload::Everything)]
    #[case::the_template_over_the_namespace(None, Some("at-start"), AutoReload::Everything, AutoReload::AtStart)]
    #[case::the_workload_over_the_template(Some("true"), Some("false"), AutoReload::Off, AutoReload::Everything)]
    #[case::false_over_all(Some("false"), Some("true"), AutoReload::Everything, AutoReload::Off)]
    #[case::invalid_says_nothing(Some("yes"), Some("true"), AutoReload::AtStart, AutoReload::AtStart)]
    fn the_nearest_annotation_wins(
        #[case] workload: Option<&str>,
        #[case] template: Option<&str>,
        #[case] default: AutoReload,
        #[case] expected: AutoReload,
    ) {
        let opt_in = OptIn::read(Some(&auto_reload(workload)), Some(&auto_reload(template)));
        let expected = Counting::of(expected);
        assert_eq!(opt_in.counting(default, None), expected);
    }

    #[test]
    fn while_the_annotation_does_not_parse_what_counted_before_does() {
        let opt_in = OptIn::read(Some(&auto_reload(Some("yes"))), None);
        let before = Counting::of(AutoReload::AtStart);
        assert_eq!(opt_in.counting(AutoReload::Off, Some(&before)), before);
        let problem = "annotation restamp.dev/auto-reload has the value \"yes\"; write \"true\", \"at-start\", \"notify\" or \"false\"";
        assert_eq!(opt_in.problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [problem]);
    }

    #[test]
    fn of_a_list_what_is_right_counts_and_what_is_wrong_is_named() {
        let all = annotations(&[(RELOAD_ON, "configmap/a, pod/b,secret/c-*"), (MIN_INTERVAL, "-5m")]);
        let opt_in = OptIn::read(Some(&all), None);
        assert_eq!(opt_in.reload_on, ["configmap/a".parse().unwrap(), "secret/c-*".parse().unwrap()]);
        let names: Vec<_> = opt_in.problems.iter().map(|problem| problem.name).collect();
        assert_eq!(names, [RELOAD_ON, MIN_INTERVAL]);
    }

    #[test]
    fn false_turns_reload_on_off_as_well() {
        let all = annotations(&[(AUTO_RELOAD, "false"), (RELOAD_ON, "configmap/a")]);
        assert!(OptIn::read(Some(&all), None).counting(AutoReload::Everything, None).is_off());
    }

    fn heard(workload: &[(&str, &str)]) -> Counting {
        let annotations = Annotations { workload: annotations(workload), template: BTreeMap::new() };
        let own = OptIn::read(Some(&annotations.workload), None);
        let all = own.or_stakater(Stakater::read(WorkloadKind::Deployment, &annotations));
        all.counting(AutoReload::Off, None)
    }

    fn everything() -> Counting {
        with_stakater(AutoReload::Everything)
    }

    fn with_stakater(auto_reload: AutoReload) -> Counting {
        Counting { vocabulary: Vocabulary::WithStakater, ..Counting::of(auto_reload) }
    }

    /// Each of ours wins over what Reloader's say of the same.
    #[rstest]
    #[case::whether(&[(AUTO_RELOAD, "at-start"), ("reloader.stakater.com/auto", "true")],
        with_stakater(AutoReload::AtStart))]
    #[case::whether_even_if_it_does_not_parse(&[(AUTO_RELOAD, "yes"), ("reloader.stakater.com/auto", "true")],
        with_stakater(AutoReload::Off))]
    #[case::false_ends_it_all(&[(AUTO_RELOAD, "false"), ("secret.reloader.stakater.com/reload", "a")],
        with_stakater(AutoReload::Off))]
    #[case::what_beside(&[(RELOAD_ON, "secret/b"), ("secret.reloader.stakater.com/reload", "a"),
            ("reloader.stakater.com/auto", "true")],
        Counting { reload_on: vec!["secret/b".parse().unwrap()], ..everything() })]
    #[case::what_not(&[(RELOAD_EXCLUDE, "secret/b"), ("secrets.exclude.reloader.stakater.com/reload", "a"),
            ("reloader.stakater.com/auto", "true")],
        Counting { exclude: vec!["secret/b".parse().unwrap()], ..everything() })]
    #[case::each_by_itself(&[(RELOAD_EXCLUDE, "secret/b"), ("secret.reloader.stakater.com/reload", "a"),
            ("reloader.stakater.com/auto", "true")],
        Counting { exclude: vec!["secret/b".parse().unwrap()], reload_on: vec!["secret/a".parse().unwrap()],
            ..everything() })]
    fn ours_win_over_reloaders(#[case] workload: &[(&str, &str)], #[case] expected: Counting) {
        assert_eq!(heard(workload), expected);
    }

    #[rstest]
    #[case::ours(&[(MIN_INTERVAL, "1m"), ("deployment.reloader.stakater.com/pause-period", "5m")], Some(1))]
    #[case::reloaders(&[("deployment.reloader.stakater.com/pause-period", "5m")], Some(5))]
    #[case::ours_does_not_parse(
        &[(MIN_INTERVAL, "x"), ("deployment.reloader.stakater.com/pause-period", "5m")], None)]
    fn our_interval_wins_over_reloaders(#[case] workload: &[(&str, &str)], #[case] minutes: Option<i64>) {
        let annotations = Annotations { workload: annotations(workload), template: BTreeMap::new() };
        let own = OptIn::read(Some(&annotations.workload), None);
        let all = own.or_stakater(Stakater::read(WorkloadKind::Deployment, &annotations));
        assert_eq!(all.min_interval, minutes.map(SignedDuration::from_mins));
    }

    #[test]
    fn annotations_are_kept_only_where_some_are_reloaders() {
        let ours = annotations(&[(AUTO_RELOAD, "true"), ("other", "x")]);
        assert_eq!(Annotations::with_stakater(Some(&ours), None), None);
        let theirs = annotations(&[("secret.reloader.stakater.com/auto", "true"), ("other", "x")]);
        let kept = Annotations::with_stakater(Some(&ours), Some(&theirs)).unwrap();
        assert_eq!((kept.workload.len(), kept.template.len()), (1, 1));
    }
}
