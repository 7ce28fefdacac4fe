//! How a custom workload's controller is made to replace its pods.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::api::annotations::ROLLOUT_STRATEGY;
use crate::api::auto_reload::InvalidAnnotation;
use crate::api::stakater;
use crate::api::vocabulary::Vocabulary;
use crate::model::delivered::later;
use crate::model::pod::Pod;

/// How a workload's controller is made to replace its pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lever {
    /// By a stamp in the pod template: a rollout with all its steps.
    #[default]
    Template,
    /// By `spec.restartAt`, as `kubectl argo rollouts restart` does: the pods go one after the other, in the same
    /// revision, past the steps of a canary. The stamp stands on the object itself.
    RestartAt,
}

impl Lever {
    /// From when on the pods are to be restarted: all that there are, however far its clock is from ours.
    pub fn restart_at(self, pods: &[&Pod], now: Timestamp) -> Option<Timestamp> {
        let newest = pods.iter().filter_map(|pod| pod.created).max();
        let after_all = newest.map_or(now, |newest| later(newest, SignedDuration::from_secs(1)).max(now));
        let in_whole_seconds = Timestamp::from_second(after_all.as_second().saturating_add(1)).ok();
        match self {
            Self::Template => None,
            Self::RestartAt => in_whole_seconds,
        }
    }

    /// What the annotations of an Argo Rollout ask for: ours, or Reloader's where those count.
    pub fn read(annotations: &BTreeMap<String, String>, vocabulary: Vocabulary) -> Result<Self, InvalidAnnotation> {
        let names: &[&'static str] = match vocabulary {
            Vocabulary::Own => &[ROLLOUT_STRATEGY],
            Vocabulary::WithStakater => &[ROLLOUT_STRATEGY, stakater::ROLLOUT_STRATEGY],
        };
        let said = names.iter().find_map(|name| Some((*name, annotations.get(*name)?.as_str())));
        match said {
            None | Some((_, "rollout")) => Ok(Self::Template),
            Some((_, "restart")) => Ok(Self::RestartAt),
            Some((name, value)) => Err(InvalidAnnotation::new(name, value, "\"rollout\" or \"restart\"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{at, pod_of};
    use rstest::rstest;

    #[rstest]
    #[case::no_pods(None, 11)]
    #[case::older_pods(Some(-100), 11)]
    #[case::a_clock_that_is_ahead(Some(60), 62)]
    fn a_restart_is_from_after_all_pods_that_there_are(#[case] created: Option<i64>, #[case] expected: i64) {
        let pods: Vec<Pod> = created.into_iter().map(|second| pod_of("rs-1", "p").made(second, 1).build()).collect();
        let pods: Vec<&Pod> = pods.iter().collect();
        assert_eq!(Lever::RestartAt.restart_at(&pods, at(10)), Some(at(expected)));
        assert_eq!(Lever::Template.restart_at(&pods, at(10)), None);
    }

    #[rstest]
    #[case::nothing(&[], Vocabulary::WithStakater, Ok(Lever::Template))]
    #[case::ours(&[("restamp.dev/rollout-strategy", "restart")], Vocabulary::Own, Ok(Lever::RestartAt))]
    #[case::reloaders(
        &[("reloader.stakater.com/rollout-strategy", "restart")], Vocabulary::WithStakater, Ok(Lever::RestartAt))]
    #[case::reloaders_where_they_do_not_count(
        &[("reloader.stakater.com/rollout-strategy", "restart")], Vocabulary::Own, Ok(Lever::Template))]
    #[case::ours_first(
        &[("restamp.dev/rollout-strategy", "rollout"), ("reloader.stakater.com/rollout-strategy", "restart")],
        Vocabulary::WithStakater,
        Ok(Lever::Template)
    )]
    #[case::something_else(
        &[("restamp.dev/rollout-strategy", "recreate")],
        Vocabulary::Own,
        Err(InvalidAnnotation::new("restamp.dev/rollout-strategy", "recreate", "\"rollout\" or \"restart\""))
    )]
    fn an_annotation_chooses_how_pods_are_replaced(
        #[case] annotations: &[(&str, &str)],
        #[case] vocabulary: Vocabulary,
        #[case] expected: Result<Lever, InvalidAnnotation>,
    ) {
        let annotations = annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(Lever::read(&annotations, vocabulary), expected);
    }
}
