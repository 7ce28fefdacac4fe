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
use crate::api::opt_in::OptIn;
use crate::api::reload_status::ReloadStatus;
use crate::api::vocabulary::Vocabulary;
use crate::model::counting::Counting;
use crate::model::decide::Hold;
use crate::model::names::{ConfigKind, Name, WorkloadId};
use crate::model::namespace::{Barred, Namespace, NamespaceDefault};
use crate::model::workload::{Owned, Workload};

/// All that is looked at for one workload.
#[derive(Debug)]
pub struct WorkloadSight<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Its namespace.
    pub namespace: &'a Sought<Namespace>,
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
        problems: case.problems(),
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
    namespace: &'a Sought<Namespace>,
    default: NamespaceDefault,
    before: Option<&'a Counting>,
}

impl<'a> Case<'a> {
    pub(super) fn new(sight: &'a WorkloadSight<'a>) -> Self {
        let before = reported(sight.report).map(|reload| &reload.record.counting);
        let WorkloadSight { workload, known, namespace, operator, .. } = *sight;
        let default = match namespace {
            _ if operator.watches_named_namespaces() => NamespaceDefault::Barred(Barred::NamedNamespaces),
            Sought::Found(namespace) => NamespaceDefault::of(workload, Some(namespace)),
            Sought::Absent | Sought::NoSuchKind | Sought::Unknown(_) => NamespaceDefault::of(workload, None),
        };
        let counting = workload.opt_in.counting(default.or(AutoReload::Off, before), before);
        Self { workload, known, counting, namespace, default, before }
    }

    /// Whether changes roll the workload at all; a config that it names may count all the same.
    pub(super) fn why_at_all(&self) -> Why {
        let Workload { id, owned, opt_in, .. } = self.workload;
        if let Owned::ByWorkload(owner) = owned {
            return Why::CountsAs(owner.clone());
        }
        // A record is kept of a Job only where the operator runs with --rerun-jobs.
        if !id.kind.rolls_by_template() && self.before.is_none() {
            return Why::KindDoesNotRoll(id.kind);
        }
        let unreadable = opt_in.problems.iter().any(|problem| problem.name == AUTO_RELOAD);
        let most = ConfigKind::ALL.map(|kind| self.auto_reload(kind)).into_iter().find(|most| *most != AutoReload::Off);
        match (opt_in.auto_reload, most) {
            (None, _) if unreadable && self.before.is_none() => Why::UnreadableAnnotation,
            (Some(AutoReload::Off), _) => Why::OptedOut,
            (Some(_), Some(most)) => Why::OptedIn(most),
            (None, Some(most)) if unreadable => Why::OptedIn(most),
            (None, Some(most)) if self.is_opted_in_by_stakater() => Why::ByStakater(most),
            (None, Some(most)) => Why::ByNamespace(most),
            (_, None) if !self.counting.reload_on.is_empty() => Why::Named,
            (_, None) if self.would_count_if_heard() => Why::StakaterUnheard,
            (_, None) => self.why_not_by_namespace(),
        }
    }

    /// Whether Reloader's annotations opt it in, whatever its namespace says.
    fn is_opted_in_by_stakater(&self) -> bool {
        let OptIn { config_maps, secrets, provider_classes, .. } = &self.workload.opt_in;
        [config_maps, secrets, provider_classes]
            .into_iter()
            .any(|auto| auto.or(AutoReload::Off, None) != AutoReload::Off)
    }

    /// Whether Reloader's annotations opt it in, and were not heard.
    fn would_count_if_heard(&self) -> bool {
        let mut heard = self.workload.clone();
        heard.hear(Vocabulary::WithStakater);
        self.workload.opt_in.vocabulary.is_own() && !heard.opt_in.counting(AutoReload::Off, None).is_off()
    }

    /// Why the namespace doesn't opt the workload in.
    fn why_not_by_namespace(&self) -> Why {
        match (&self.default, self.namespace) {
            (NamespaceDefault::Barred(barred), _) if self.asks_in_vain() => Why::NamespaceBarred(barred.clone()),
            (NamespaceDefault::Unknown, Sought::Unknown(unknown)) if self.before.is_none() => {
                Why::NamespaceUnknown(*unknown)
            }
            (NamespaceDefault::Unreadable, _) if self.before.is_none() => Why::UnreadableAnnotation,
            _ => Why::NotOptedIn,
        }
    }

    /// Whether the namespace asks for something.
    fn asks_in_vain(&self) -> bool {
        matches!(self.namespace, Sought::Found(Namespace { auto_reload: Ok(Some(asked)), .. }) if *asked != AutoReload::Off)
    }

    /// What the annotations of the workload, or of its namespace, have wrong.
    fn problems(&self) -> Vec<String> {
        let own = self.workload.opt_in.problems.iter().map(ToString::to_string);
        let of_namespace = match self.namespace {
            Sought::Found(Namespace { name, auto_reload: Err(problem), .. }) => {
                Some(format!("of namespace {name}: {problem}"))
            }
            Sought::Found(_) | Sought::Absent | Sought::NoSuchKind | Sought::Unknown(_) => None,
        };
        own.chain(of_namespace).collect()
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
pub(super) mod tests {
    use super::*;
    use crate::api::annotations::RELOAD_ON;
    use crate::api::drift_report::DriftReportStatus;
    use crate::api::opt_in::{Annotations, OptIn};
    use crate::api::reload_status::ReloadState;
    use crate::model::builders::{WorkloadBuilder, config_map, deployment};
    use crate::model::config::Configs;
    use crate::model::explain::{Rolls, Unknown};
    use crate::model::names::WorkloadKind;
    use crate::model::record::Record;
    use crate::model::report;
    use rstest::rstest;

    /// What is looked at, of which a test changes what it is about.
    pub(in crate::model::explain) struct Scene {
        pub(in crate::model::explain) workload: Workload,
        pub(in crate::model::explain) namespace: Sought<Namespace>,
        pub(in crate::model::explain) known: Known,
        pub(in crate::model::explain) report: Sought<DriftReport>,
        pub(in crate::model::explain) operator: Operator,
    }

    /// An opted-in workload without a report, in a namespace that says nothing.
    pub(in crate::model::explain) fn scene(workload: WorkloadBuilder) -> Scene {
        Scene {
            workload: workload.build(),
            namespace: Sought::Found(namespace(Ok(None))),
            known: Known::default(),
            report: Sought::Absent,
            operator: Operator { namespace: "restamp-system".to_owned(), published: Sought::Absent },
        }
    }

    impl Scene {
        pub(in crate::model::explain) fn configs(mut self, configs: Configs) -> Self {
            self.known.configs = configs;
            self
        }

        fn annotated(mut self, annotations: &[(&str, &str)]) -> Self {
            let all = annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            self.workload.opt_in = OptIn::read(Some(&all), None);
            self.workload.annotations = Annotations::with_stakater(Some(&all), None).map(Box::new);
            self
        }

        fn heard(mut self, vocabulary: Vocabulary) -> Self {
            self.workload.hear(vocabulary);
            self
        }

        fn of_kind(mut self, kind: WorkloadKind) -> Self {
            self.workload.id.kind = kind;
            self
        }

        fn owned(mut self, owned: Owned) -> Self {
            self.workload.owned = owned;
            self
        }

        fn namespace(mut self, namespace: Sought<Namespace>) -> Self {
            self.namespace = namespace;
            self
        }

        fn watching(mut self, namespaces: &[&str]) -> Self {
            let namespaces = namespaces.iter().map(|name| (*name).to_owned()).collect();
            self.operator.published = Sought::Found(crate::model::explain::operator::tests::published(namespaces));
            self
        }

        pub(in crate::model::explain) fn explain(&self) -> WorkloadExplanation {
            let Self { workload, namespace, known, report, operator } = self;
            of_workload(&WorkloadSight { workload, namespace, known, report, operator })
        }
    }

    fn namespace(auto_reload: Result<Option<AutoReload>, crate::api::auto_reload::InvalidAnnotation>) -> Namespace {
        Namespace { name: "ns".into(), uid: None, labels: [].into(), auto_reload, deleting: false }
    }

    fn silent() -> Scene {
        scene(deployment("w")).annotated(&[])
    }

    fn asked() -> Sought<Namespace> {
        Sought::Found(namespace(Ok(Some(AutoReload::AtStart))))
    }

    #[rstest]
    #[case::opted_in(silent().annotated(&[(AUTO_RELOAD, "true")]), Rolls::Yes, "OptedIn")]
    #[case::opted_out(silent().annotated(&[(AUTO_RELOAD, "false"), (RELOAD_ON, "secret/s")]), Rolls::No, "OptedOut")]
    #[case::silent(silent(), Rolls::No, "NotOptedIn")]
    #[case::what_it_names(silent().annotated(&[(RELOAD_ON, "secret/s")]), Rolls::Yes, "Named")]
    #[case::a_typo(silent().annotated(&[(AUTO_RELOAD, "yes")]), Rolls::Unknown, "UnreadableAnnotation")]
    #[case::by_its_namespace(silent().namespace(asked()), Rolls::Yes, "ByNamespace")]
    #[case::a_namespace_that_is_hidden(
        silent().namespace(Sought::Unknown(Unknown::Forbidden)), Rolls::Unknown, "NamespaceUnknown")]
    #[case::a_typo_of_its_namespace(
        silent().namespace(Sought::Found(namespace("yes".parse().map(Some)))), Rolls::Unknown, "UnreadableAnnotation")]
    #[case::a_namespace_that_no_longer_counts(
        silent().namespace(asked()).owned(Owned::ByController("Database/d".to_owned())), Rolls::No, "NamespaceDoesNotCount")]
    #[case::a_namespace_that_is_not_read(
        silent().namespace(asked()).watching(&["ns"]), Rolls::No, "NamespaceDoesNotCount")]
    #[case::a_job(silent().of_kind(WorkloadKind::Job), Rolls::No, "KindDoesNotRoll")]
    #[case::a_cron_job(silent().of_kind(WorkloadKind::CronJob), Rolls::No, "KindDoesNotRoll")]
    #[case::a_pod(silent().of_kind(WorkloadKind::Pod), Rolls::No, "KindDoesNotRoll")]
    #[case::a_replica_set(silent().of_kind(WorkloadKind::ReplicaSet), Rolls::No, "KindDoesNotRoll")]
    #[case::one_with_an_owner(silent().owned(Owned::ByWorkload("Deployment/w".to_owned())), Rolls::No, "CountsAsItsOwner")]
    fn it_says_whether_changes_roll_it_at_all(#[case] scene: Scene, #[case] rolls: Rolls, #[case] reason: &str) {
        let verdict = scene.explain().verdict;
        assert_eq!((verdict.rolls, verdict.reason), (rolls, reason), "{}", verdict.message);
    }

    #[test]
    fn a_job_counts_where_a_record_of_it_is_kept() {
        let mut scene = silent().annotated(&[(AUTO_RELOAD, "true")]).of_kind(WorkloadKind::Job);
        assert_eq!(scene.explain().verdict.reason, "KindDoesNotRoll");
        let status = ReloadStatus {
            state: ReloadState::Current,
            message: String::new(),
            instance: "restamp-system".to_owned(),
            last_reload: None,
            record: Record { counting: Counting::everything(), ..Record::default() },
        };
        let status = DriftReportStatus { reload: Some(status), ..DriftReportStatus::default() };
        scene.report = Sought::Found(report::of_workload(&scene.workload, status));
        assert_eq!(scene.explain().verdict.reason, "OptedIn");
    }

    #[test]
    fn problems_of_annotations_are_shown() {
        let scene =
            silent().annotated(&[(AUTO_RELOAD, "yes")]).namespace(Sought::Found(namespace("no".parse().map(Some))));
        let problems = scene.explain().problems;
        assert!(problems[0].starts_with("annotation restamp.dev/auto-reload has the value \"yes\""), "{problems:?}");
        assert!(problems[1].starts_with("of namespace ns: annotation restamp.dev/auto-reload"), "{problems:?}");
    }

    #[test]
    fn what_keeps_pods_from_starting_is_said_unless_nobody_knows() {
        let reader = deployment("w").env_from("Secret/absent").env_from("Secret/hidden").env("ConfigMap/c", "K");
        let mut scene = scene(reader).configs(Configs::from_iter([config_map("c").build()]));
        let hidden = "Secret/hidden".to_owned();
        let hidden = crate::model::names::ConfigName::try_from(hidden).unwrap().within(&"ns".into());
        scene.known.unknown.insert(hidden, Unknown::Forbidden);
        let expected = [
            "required key K of ConfigMap c does not exist, new pods could not start; add it",
            "required Secret absent does not exist, new pods could not start; create it",
        ];
        assert_eq!(scene.explain().missing, expected);
    }

    const AUTO: (&str, &str) = ("reloader.stakater.com/auto", "true");
    const SEARCH: (&str, &str) = ("reloader.stakater.com/search", "true");
    const IGNORE: (&str, &str) = ("reloader.stakater.com/ignore", "true");

    /// The workload has the first annotation, and its config the others.
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
        let config =
            config.iter().fold(config_map("c").value("A", "1"), |config, (name, value)| config.annotated(name, value));
        let scene = scene(deployment("w").env_from("ConfigMap/c")).annotated(&[own]).heard(vocabulary);
        let explained = scene.configs(Configs::from_iter([config.build()])).explain();
        assert_eq!([explained.verdict.reason, explained.readings[0].verdict.reason], expected);
    }
}
