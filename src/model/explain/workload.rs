//! What there is to say about one workload.

use serde::Serialize;

use super::operator::Operator;
use super::readings::Reading;
use super::reload::{NoReload, Reload, reload_of};
use super::sought::{Known, Sought};
use super::why::{Verdict, Why};
use crate::api::annotations::AUTO_RELOAD;
use crate::api::auto_reload::AutoReload;
use crate::api::drift_report::DriftReport;
use crate::api::reload_status::ReloadStatus;
use crate::api::vocabulary::Vocabulary;
use crate::model::counting::Counting;
use crate::model::decide::Hold;
use crate::model::names::{ConfigKind, Name, WorkloadId};
use crate::model::workload::{Owned, Workload};

/// All that is looked at for one workload.
#[derive(Debug)]
pub struct WorkloadSight<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// What its namespace asks for.
    pub default: AutoReload,
    /// The configs of its namespace.
    pub known: &'a Known,
    /// Its DriftReport.
    pub report: &'a Sought<DriftReport>,
    /// What the operator publishes of itself.
    pub operator: &'a Operator,
}

/// Which object an explanation is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

/// Reads its annotations in the vocabulary that they were read in when its report was written.
pub fn hear_as_reported(workload: &mut Workload, report: &Sought<DriftReport>) {
    if let Some(reload) = reported(report) {
        workload.hear(reload.record.counting.vocabulary);
    }
}

fn reported(report: &Sought<DriftReport>) -> Option<&ReloadStatus> {
    match report {
        Sought::Found(report) => report.status.as_ref()?.reload.as_ref(),
        Sought::Absent | Sought::NoSuchKind | Sought::Unknown(_) => None,
    }
}

/// What there is to say about one workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadExplanation {
    /// Which one.
    pub subject: Subject,
    /// Whether changes roll it at all, and why.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What its annotations have wrong.
    pub problems: Vec<String>,
    /// What would keep its new pods from starting: while there is any, a rollout is held.
    pub missing: Vec<String>,
    /// What its containers read.
    pub readings: Vec<Reading>,
    /// How reloading stands, by its DriftReport.
    pub reload: Option<Reload>,
    /// Why that is not known, where it is not.
    pub no_reload: Option<NoReload>,
}

/// Explains a workload.
pub fn of_workload(sight: &WorkloadSight<'_>) -> WorkloadExplanation {
    let case = Case::new(sight);
    let why = case.why_at_all();
    let (reload, no_reload) = reload_of(sight, &why);
    WorkloadExplanation {
        subject: Subject::from(&sight.workload.id),
        verdict: Verdict::from(&why),
        problems: sight.workload.opt_in.problems.iter().map(ToString::to_string).collect(),
        missing: case.missing(),
        readings: case.readings(),
        reload,
        no_reload,
    }
}

/// A workload under a look, with what counts for it.
pub(super) struct Case<'a> {
    pub(super) workload: &'a Workload,
    pub(super) known: &'a Known,
    pub(super) counting: Counting,
    before: Option<&'a Counting>,
}

impl<'a> Case<'a> {
    pub(super) fn new(sight: &'a WorkloadSight<'a>) -> Self {
        let before = reported(sight.report).map(|reload| &reload.record.counting);
        let counting = sight.workload.opt_in.counting(sight.default, before);
        Self { workload: sight.workload, known: sight.known, counting, before }
    }

    /// Whether changes roll the workload at all; a config that it names may count all the same.
    pub(super) fn why_at_all(&self) -> Why {
        let Workload { id, owned, opt_in, .. } = self.workload;
        if let Owned::ByWorkload(owner) = owned {
            return Why::CountsAs(owner.clone());
        }
        if !id.kind.rolls_by_template() {
            return Why::KindDoesNotRoll(id.kind);
        }
        let unreadable = opt_in.problems.iter().any(|problem| problem.name == AUTO_RELOAD);
        let most = ConfigKind::ALL.map(|kind| self.auto_reload(kind)).into_iter().find(|most| *most != AutoReload::Off);
        match (opt_in.auto_reload, most) {
            (None, _) if unreadable && self.before.is_none() => Why::UnreadableAnnotation,
            (Some(AutoReload::Off), _) => Why::OptedOut,
            (Some(_), Some(most)) => Why::OptedIn(most),
            (None, Some(most)) if unreadable => Why::OptedIn(most),
            (None, Some(most)) if !opt_in.is_silent() => Why::ByStakater(most),
            (None, Some(most)) => Why::ByNamespace(most),
            (_, None) if !self.counting.reload_on.is_empty() => Why::Named,
            (_, None) if self.would_count_if_heard() => Why::StakaterUnheard,
            (_, None) => Why::NotOptedIn,
        }
    }

    /// Whether Reloader's annotations opt it in, and were not heard.
    fn would_count_if_heard(&self) -> bool {
        let mut heard = self.workload.clone();
        heard.hear(Vocabulary::WithStakater);
        self.workload.opt_in.vocabulary.is_own() && !heard.opt_in.counting(AutoReload::Off, None).is_off()
    }

    /// What new pods could not start without.
    fn missing(&self) -> Vec<String> {
        let missing = self.workload.consumption.missing(&self.known.configs).into_iter();
        let known = missing.filter(|missing| !self.known.unknown.contains_key(&missing.config));
        known.map(|missing| Hold::Missing(missing).to_string()).collect()
    }
}

impl From<&WorkloadId> for Subject {
    fn from(id: &WorkloadId) -> Self {
        Self { kind: id.kind.as_str(), namespace: id.namespace.clone(), name: id.name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::opt_in::{Annotations, OptIn};
    use crate::model::builders::{config_map, deployment};
    use crate::model::config::Configs;
    use rstest::rstest;

    const AUTO: (&str, &str) = ("reloader.stakater.com/auto", "true");
    const SEARCH: (&str, &str) = ("reloader.stakater.com/search", "true");
    const IGNORE: (&str, &str) = ("reloader.stakater.com/ignore", "true");

    /// Why a change would roll a workload with this annotation, and why one of its config with these would.
    fn explained(vocabulary: Vocabulary, own: (&str, &str), config: &[(&str, &str)]) -> [&'static str; 2] {
        let own = [(own.0.to_owned(), own.1.to_owned())].into();
        let annotations = Annotations::with_stakater(Some(&own), None).map(Box::new);
        let read = deployment("w").env_from("ConfigMap/c").build();
        let mut workload = Workload { opt_in: OptIn::read(Some(&own), None), annotations, ..read };
        workload.hear(vocabulary);
        let all = config.iter().fold(config_map("c").value("A", "1"), |all, (name, value)| all.annotated(name, value));
        let known = Known { configs: Configs::from_iter([all.build()]), ..Known::default() };
        let operator = Operator { namespace: String::new(), published: Sought::Absent };
        let sight = WorkloadSight {
            workload: &workload,
            default: AutoReload::Off,
            known: &known,
            report: &Sought::Absent,
            operator: &operator,
        };
        let explanation = of_workload(&sight);
        [explanation.verdict.reason, explanation.readings[0].verdict.reason]
    }

    #[rstest]
    #[case::heard(Vocabulary::WithStakater, AUTO, &[], ["ByStakater", "ByStakater"])]
    #[case::not_heard(Vocabulary::Own, AUTO, &[], ["StakaterUnheard", "StakaterUnheard"])]
    #[case::ignored(Vocabulary::WithStakater, AUTO, &[IGNORE], ["ByStakater", "IgnoredByStakater"])]
    #[case::without_a_match(Vocabulary::WithStakater, SEARCH, &[], ["ByStakater", "NotMatching"])]
    #[case::nothing_that_opts_in(Vocabulary::Own, IGNORE, &[], ["NotOptedIn", "NotOptedIn"])]
    fn reloaders_annotations_are_explained(
        #[case] vocabulary: Vocabulary,
        #[case] own: (&str, &str),
        #[case] config: &[(&str, &str)],
        #[case] expected: [&str; 2],
    ) {
        assert_eq!(explained(vocabulary, own, config), expected);
    }
}
