//! What a workload is told, in one scene after the other.

use super::*;
use crate::api::annotations::RELOAD_ON;
use crate::api::drift_report::DriftReportStatus;
use crate::api::opt_in::{Annotations, OptIn};
use crate::api::published::Published;
use crate::api::reload_status::ReloadState;
use crate::model::builders::{WorkloadBuilder, config_map, deployment};
use crate::model::config::Configs;
use crate::model::custom::{self, CustomKind};
use crate::model::explain::Rolls;
use crate::model::explain::operator::tests::{published, well};
use crate::model::participation::{Participation, Reloading, Stakater};
use crate::model::record::Record;
use crate::model::report;
use crate::model::rerun::Reruns;
use crate::model::scope::{Namespaces, Scope};
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
        operator: Operator { published: Sought::Absent, ..well() },
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

    /// The operator says this of itself.
    pub(in crate::model::explain) fn published(mut self, published: Published) -> Self {
        self.operator.published = Sought::Found(published);
        self
    }

    fn watching(self, namespaces: &[&str]) -> Self {
        let names = namespaces.iter().map(|name| Name::from(*name)).collect();
        self.scope(Scope { namespaces: Namespaces::Only(names), ..Scope::default() })
    }

    fn scope(self, scope: Scope) -> Self {
        self.published(Published { scope, ..published() })
    }

    fn taking_part(self, participation: Participation) -> Self {
        self.published(Published { participation, ..published() })
    }

    fn hidden(mut self) -> Self {
        self.operator.published = Sought::Unknown(Unknown::Forbidden);
        self
    }

    pub(in crate::model::explain) fn explain(&self) -> WorkloadExplanation {
        let Self { workload, namespace, known, report, operator } = self;
        of_workload(&WorkloadSight { workload, referrer: None, namespace, known, report, operator })
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

fn rollouts() -> &'static [CustomKind] {
    custom::kinds(&["argoproj.io/v1alpha1/Rollout".parse().unwrap()])
}

fn rollout() -> Scene {
    let kind = rollouts().iter().map(WorkloadKind::Custom).next().unwrap();
    scene(deployment("w").env("ConfigMap/c", "K"))
        .annotated(&[(AUTO_RELOAD, "true"), (RELOAD_ON, "secret/s")])
        .of_kind(kind)
}

fn opted_in() -> Scene {
    scene(deployment("w")).annotated(&[(AUTO_RELOAD, "true")])
}

fn labelled() -> Scope {
    let namespaces = Namespaces::Labelled { labels: "team=x".parse().unwrap(), but: [].into() };
    Scope { namespaces, ..Scope::default() }
}

fn all() -> Participation {
    Participation { unsaid: AutoReload::Everything, ..Participation::default() }
}

fn reload_off() -> Participation {
    Participation { reload: Reloading::Off, ..all() }
}

fn ignoring() -> Participation {
    Participation { ignored: [WorkloadKind::Deployment].into(), ..Participation::default() }
}

#[rstest]
#[case::a_namespace_that_is_not_named(opted_in().watching(&["other"]), Rolls::No, "NamespaceNotWatched")]
#[case::one_that_is_named(opted_in().watching(&["ns"]), Rolls::Yes, "OptedIn")]
#[case::one_without_the_labels(opted_in().scope(labelled()), Rolls::No, "NamespaceNotWatched")]
#[case::one_whose_labels_are_hidden(
    opted_in().scope(labelled()).namespace(Sought::Unknown(Unknown::Forbidden)), Rolls::Unknown, "ScopeUnknown")]
#[case::every_workload_by_a_flag(silent().taking_part(all()), Rolls::Yes, "ByFlag")]
#[case::the_namespace_over_the_flag(silent().taking_part(all()).namespace(asked()), Rolls::Yes, "ByNamespace")]
#[case::every_workload_where_namespaces_are_not_read(silent().published(Published {
    scope: Scope { namespaces: Namespaces::Only(["ns".into()].into()), ..Scope::default() },
    participation: all(), ..published() }), Rolls::Yes, "ByFlag")]
#[case::flags_that_are_hidden(silent().hidden(), Rolls::Unknown, "FlagsUnknown")]
#[case::flags_that_do_not_matter(opted_in().hidden(), Rolls::Yes, "OptedIn")]
#[case::a_kind_that_is_left_out(opted_in().taking_part(ignoring()), Rolls::No, "KindIgnored")]
#[case::nothing_at_all(opted_in().taking_part(reload_off()), Rolls::No, "ReloadOff")]
#[case::a_custom_kind(rollout().scope(Scope { kinds: rollouts(), ..Scope::default() }), Rolls::Yes, "OptedIn")]
#[case::a_custom_kind_without_the_flag(rollout().scope(Scope::default()), Rolls::No, "KindNotWatched")]
#[case::a_custom_kind_where_flags_are_hidden(rollout().hidden(), Rolls::Unknown, "KindUnheard")]
fn what_the_operator_publishes_counts(#[case] scene: Scene, #[case] rolls: Rolls, #[case] reason: &str) {
    let explained = scene.explain();
    assert_eq!((explained.verdict.rolls, explained.verdict.reason), (rolls, reason), "{}", explained.verdict.message);
    assert!(explained.readings.iter().all(|row| row.verdict.rolls == rolls), "{:?}", explained.readings);
}

#[rstest]
#[case::kind(Scope { ignored: [ConfigKind::ConfigMap].into(), ..Scope::default() }, false)]
#[case::labels(Scope { configs: Some("app=x".parse().unwrap()), ..Scope::default() }, true)]
fn a_config_that_the_operator_does_not_look_at_rolls_nothing(#[case] scope: Scope, #[case] is_unselected: bool) {
    let workload = deployment("w").env("ConfigMap/c", "K").env_from("ConfigMap/absent");
    let mut scene = scene(workload).configs(Configs::from_iter([config_map("c").value("K", "1").build()])).scope(scope);
    scene.known.unselected.extend(is_unselected.then(|| config_map("c").build().id));
    let explained = scene.explain();
    let of = |name: &str| explained.readings.iter().find(|row| row.config.to_string() == name).unwrap();
    assert_eq!(of("ConfigMap/c").verdict.reason, "ConfigNotWatched");
}

fn rerunning() -> Participation {
    Participation { reruns: Reruns::Yes, ..Participation::default() }
}

#[rstest]
#[case::left_alone(job(), Rolls::No, "KindDoesNotRoll")]
#[case::made_again(job().taking_part(rerunning()), Rolls::Yes, "OptedIn")]
#[case::left_alone_by_flags(job().taking_part(Participation::default()), Rolls::No, "KindDoesNotRoll")]
#[case::of_a_controller(
    job().owned(Owned::ByController("Database/d".to_owned())).taking_part(rerunning()), Rolls::No, "KindDoesNotRoll")]
#[case::where_flags_are_hidden(job().hidden(), Rolls::Unknown, "KindUnheard")]
#[case::where_flags_are_hidden_and_a_record_is_kept(kept(job()).hidden(), Rolls::Yes, "OptedIn")]
#[case::where_nothing_is_published_and_a_record_is_kept(kept(job()), Rolls::Yes, "OptedIn")]
fn a_job_counts_where_it_is_run_again(#[case] scene: Scene, #[case] rolls: Rolls, #[case] reason: &str) {
    let verdict = scene.explain().verdict;
    assert_eq!((verdict.rolls, verdict.reason), (rolls, reason), "{}", verdict.message);
}

fn job() -> Scene {
    opted_in().of_kind(WorkloadKind::Job)
}

/// The operator keeps a record of it.
fn kept(mut scene: Scene) -> Scene {
    let status = ReloadStatus {
        state: ReloadState::Current,
        message: String::new(),
        instance: "restamp-system".to_owned(),
        last_reload: None,
        record: Record { counting: Counting::everything(), ..Record::default() },
    };
    let status = DriftReportStatus { reload: Some(status), ..DriftReportStatus::default() };
    scene.report = Sought::Found(report::of_workload(&scene.workload, status));
    scene
}

#[test]
fn problems_of_annotations_are_shown() {
    let scene = silent().annotated(&[(AUTO_RELOAD, "yes")]).namespace(Sought::Found(namespace("no".parse().map(Some))));
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

#[rstest]
#[case::nowhere(Stakater::Nowhere, "StakaterDoesNotCount")]
#[case::everywhere(Stakater::Everywhere, "ByStakater")]
#[case::here(Stakater::Labelled("!team".parse().unwrap()), "ByStakater")]
#[case::elsewhere(Stakater::Labelled("team".parse().unwrap()), "StakaterDoesNotCount")]
fn reloaders_annotations_count_as_the_operator_publishes(#[case] stakater: Stakater, #[case] reason: &str) {
    let participation = Participation { stakater, ..Participation::default() };
    let mut scene = scene(deployment("w")).annotated(&[AUTO]).taking_part(participation);
    hear(&mut scene.workload, &scene.namespace, &scene.operator, &scene.report);
    assert_eq!(scene.explain().verdict.reason, reason);
}
