//! How a workload is opted in: its own annotations, then those of its pod template, then its namespace's default.

use std::collections::BTreeMap;
use std::str::FromStr;

use jiff::SignedDuration;

use crate::api::annotations::{AUTO_RELOAD, MIN_INTERVAL, RELOAD_EXCLUDE, RELOAD_ON};
use crate::api::auto_reload::{AutoReload, InvalidAnnotation};
use crate::api::patterns::{ConfigPattern, Exclusion};
use crate::model::counting::Counting;

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
    /// The annotations that don't parse. What was right of them counts.
    pub problems: Vec<InvalidAnnotation>,
}

impl OptIn {
    /// Reads a workload's annotations; those of its pod template count where the workload itself has none.
    pub fn read(workload: Option<&BTreeMap<String, String>>, template: Option<&BTreeMap<String, String>>) -> Self {
        let said =
            |name: &str| [workload, template].into_iter().flatten().find_map(|annotations| annotations.get(name));
        let mut problems = Vec::new();
        let auto_reload = said(AUTO_RELOAD).and_then(|value| noted(value.parse(), &mut problems));
        let reload_on = list(RELOAD_ON, said(RELOAD_ON), "a list such as \"configmap/a, secret/b-*\"", &mut problems);
        let exclude =
            list(RELOAD_EXCLUDE, said(RELOAD_EXCLUDE), "a list such as \"configmap/x, secret/y:KEY\"", &mut problems);
        let min_interval = said(MIN_INTERVAL).and_then(|value| noted(interval(value), &mut problems));
        Self { auto_reload, reload_on, exclude, min_interval, problems }
    }

    /// What counts, with this default of the namespace. While `auto-reload` does not parse, what counted before does.
    pub fn counting(&self, default: AutoReload, before: Option<&Counting>) -> Counting {
        let (config_maps, secrets) = match (self.auto_reload, before) {
            (Some(said), _) => (said, said),
            (None, Some(before)) if self.problems.iter().any(|problem| problem.name == AUTO_RELOAD) => {
                (before.config_maps, before.secrets)
            }
            (None, _) => (default, default),
        };
        let reload_on = match self.auto_reload {
            Some(AutoReload::Off) => Vec::new(),
            _ => self.reload_on.clone(),
        };
        Counting { config_maps, secrets, reload_on, exclude: self.exclude.clone() }
    }
}

fn noted<T>(read: Result<T, InvalidAnnotation>, problems: &mut Vec<InvalidAnnotation>) -> Option<T> {
    read.map_err(|problem| problems.push(problem)).ok()
}

/// The items that parse, with commas between them.
fn list<T: FromStr>(
    name: &'static str,
    value: Option<&String>,
    expected: &'static str,
    problems: &mut Vec<InvalidAnnotation>,
) -> Vec<T> {
    let items = value.into_iter().flat_map(|value| value.split(',')).map(str::trim).filter(|item| !item.is_empty());
    let read = items
        .filter_map(|item| noted(item.parse().map_err(|_| InvalidAnnotation::new(name, item, expected)), problems));
    read.collect()
}

fn interval(value: &str) -> Result<SignedDuration, InvalidAnnotation> {
    let read = value.parse::<SignedDuration>().ok().filter(|interval| !interval.is_negative());
    read.ok_or_else(|| InvalidAnnotation::new(MIN_INTERVAL, value, "a duration such as \"10m\""))
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let expected = Counting { config_maps: expected, secrets: expected, ..Counting::default() };
        assert_eq!(opt_in.counting(default, None), expected);
    }

    #[test]
    fn while_the_annotation_does_not_parse_what_counted_before_does() {
        let opt_in = OptIn::read(Some(&auto_reload(Some("yes"))), None);
        let before = Counting { config_maps: AutoReload::AtStart, secrets: AutoReload::AtStart, ..Counting::default() };
        assert_eq!(opt_in.counting(AutoReload::Off, Some(&before)), before);
        let problem =
            "annotation restamp.dev/auto-reload has the value \"yes\"; write \"true\", \"at-start\" or \"false\"";
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
}
