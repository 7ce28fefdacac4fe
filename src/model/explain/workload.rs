//! What there is to say about one workload.

use serde::Serialize;

use super::no_drift::NoDrift;
use super::operator::{Operator, OperatorExplanation};
use super::readings::Reading;
use super::reload::{NoReload, Reload, reload_of};
use super::sought::{Known, Sought, Unknown};
use super::why::{Verdict, Why};
use crate::api::annotations::AUTO_RELOAD;
use crate::api::auto_reload::AutoReload;
use crate::api::drift_report::{DriftReport, Source};
use crate::api::opt_in::OptIn;
use crate::api::reload_status::ReloadStatus;
use crate::api::vocabulary::Vocabulary;
use crate::model::counting::Counting;
use crate::model::decide::Hold;
use crate::model::fields::Manifest;
use crate::model::names::{ConfigKind, Name, WorkloadId, WorkloadKind};
use crate::model::namespace::{Barred, Namespace, NamespaceDefault};
use crate::model::participation::Reloading;
use crate::model::rerun::Reruns;
use crate::model::scope::Membership;
use crate::model::workload::{Owned, Strategy, Workload};

/// All that is looked at for one workload.
#[derive(Debug)]
pub struct WorkloadSight<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The one that takes its pod template from it, if one does.
    pub referrer: Option<&'a WorkloadId>,
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

/// Reads its annotations in the vocabulary that counts in its namespace, as the operator publishes; else in the one that
/// they were read in when its report was written.
pub fn hear(workload: &mut Workload, namespace: &Sought<Namespace>, operator: &Operator, report: &Sought<DriftReport>) {
    let labels = match namespace {
        Sought::Found(namespace) => Some(&namespace.labels),
        Sought::Absent | Sought::NoSuchKind | Sought::Unknown(_) => None,
    };
    let published = operator.published().and_then(|published| published.participation.stakater.vocabulary(labels));
    let reported = || reported(report).map(|reload| reload.record.counting.vocabulary);
    if let Some(vocabulary) = published.or_else(reported) {
        workload.hear(vocabulary);
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
    /// Which other workload takes its pod template from it: this one is stamped in that one's place.
    pub template_of: Option<Subject>,
    /// Whether changes roll it at all, and why.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Why its pods stay when it rolls, until somebody acts, if they do.
    pub pods_stay: Option<String>,
    /// Who must mend it where it drifts, if it says so.
    pub source: Option<Source>,
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
    /// Why the operator reports no drift of it, where its flags say so.
    pub no_drift: Option<NoDrift>,
    /// Why its fields are compared with nothing, though a Helm release declares them.
    pub not_compared: Option<String>,
    /// What there is to say about the operator; nothing where files are explained.
    pub operator: Option<OperatorExplanation>,
}

/// Explains a workload.
pub fn of_workload(sight: &WorkloadSight<'_>) -> WorkloadExplanation {
    let case = Case::new(sight);
    let why = case.why_at_all();
    let operator = sight.operator.explain(sight.workload);
    let (reload, no_reload) = reload_of(sight, &why, operator.as_ref());
    WorkloadExplanation {
        subject: Subject::from(&sight.workload.id),
        template_of: sight.referrer.map(Subject::from),
        verdict: Verdict::from(&why),
        pods_stay: pods_stay(sight.workload),
        source: sight.workload.origin.as_ref().and_then(|origin| origin.source.clone()),
        problems: case.problems(),
        missing: case.missing(),
        readings: case.readings(),
        reload,
        no_reload,
        not_compared: not_compared(sight.workload),
        no_drift: NoDrift::of(&sight.operator.published, &sight.workload.id.namespace, sight.namespace),
        operator,
    }
}

/// The manifests of releases are read for the kinds that are built in.
fn not_compared(workload: &Workload) -> Option<String> {
    let is_custom = matches!(workload.id.kind, WorkloadKind::Custom(_));
    let has_manifest = matches!(workload.fields.manifest, Manifest::Current { .. });
    let release = workload.release().filter(|_| is_custom && !has_manifest)?;
    Some(format!(
        "Helm release {release} declares it, and custom kinds are not compared with a release; see helm get manifest {} \
         --namespace {}",
        release.name, release.namespace
    ))
}

fn pods_stay(workload: &Workload) -> Option<String> {
    match workload.strategy {
        Strategy::Rolling => None,
        Strategy::ByHand(by_hand) => Some(by_hand.to_string()),
    }
}

/// A workload under a look, with what counts for it.
pub(super) struct Case<'a> {
    pub(super) workload: &'a Workload,
    pub(super) known: &'a Known,
    pub(super) counting: Counting,
    pub(super) operator: &'a Operator,
    namespace: &'a Sought<Namespace>,
    default: NamespaceDefault,
    before: Option<&'a Counting>,
}

impl<'a> Case<'a> {
    pub(super) fn new(sight: &'a WorkloadSight<'a>) -> Self {
        let before = reported(sight.report).map(|reload| &reload.record.counting);
        let WorkloadSight { workload, known, namespace, operator, .. } = *sight;
        let default = match namespace {
            _ if operator.scope().is_some_and(|scope| !scope.watches_namespaces()) => {
                NamespaceDefault::Barred(Barred::NamedNamespaces)
            }
            Sought::Found(namespace) => NamespaceDefault::of(workload, Some(namespace)),
            Sought::Absent | Sought::NoSuchKind | Sought::Unknown(_) => NamespaceDefault::of(workload, None),
        };
        let unsaid = operator.published().map_or(AutoReload::Off, |published| published.participation.unsaid);
        let counting = workload.opt_in.counting(default.or(unsaid, before), before);
        Self { workload, known, counting, operator, namespace, default, before }
    }

    /// Whether changes roll the workload at all; a config that it names may count all the same.
    pub(super) fn why_at_all(&self) -> Why {
        let Workload { owned, opt_in, .. } = self.workload;
        if let Owned::ByWorkload(owner) = owned {
            return Why::CountsAs(owner.clone());
        }
        if !self.reruns().may_run(self.workload) {
            return self.why_kind_does_not_roll();
        }
        if let Some(why) = self.why_not_watched() {
            return why;
        }
        let unreadable = opt_in.problems.iter().any(|problem| problem.name == AUTO_RELOAD);
        let most = ConfigKind::ALL.map(|kind| self.auto_reload(kind)).into_iter().find(|most| *most != AutoReload::Off);
        match (opt_in.auto_reload, most) {
            (None, _) if unreadable && self.before.is_none() => Why::UnreadableAnnotation,
            (Some(AutoReload::Off), _) => Why::OptedOut,
            (Some(_), Some(most)) => Why::OptedIn(most),
            (None, Some(most)) if unreadable => Why::OptedIn(most),
            (None, Some(most)) if self.is_opted_in_by_stakater() => Why::ByStakater(most),
            (None, Some(most)) if self.is_silent() => Why::ByFlag(most),
            (None, Some(most)) => Why::ByNamespace(most),
            (_, None) if !self.counting.reload_on.is_empty() => Why::Named,
            (_, None) if self.would_count_if_heard() => match self.operator.published() {
                Some(_) => Why::StakaterDoesNotCount,
                None => Why::StakaterUnheard,
            },
            (_, None) => self.why_not_by_namespace(),
        }
    }

    /// What becomes of Jobs; where that is not published, a record is kept of one only if they are run again.
    fn reruns(&self) -> Reruns {
        match (self.operator.published(), self.before) {
            (Some(published), _) => published.participation.reruns,
            (None, Some(_)) => Reruns::Yes,
            (None, None) => Reruns::No,
        }
    }

    fn why_kind_does_not_roll(&self) -> Why {
        match self.operator.published {
            Sought::Unknown(unknown) if unknown != Unknown::NotInFiles && Reruns::Yes.may_run(self.workload) => {
                Why::KindUnheard("--rerun-jobs".to_owned())
            }
            _ => Why::KindDoesNotRoll(self.workload.id.kind),
        }
    }

    /// Why the operator does not look at the workload, or why it is not known whether it does.
    fn why_not_watched(&self) -> Option<Why> {
        let id = &self.workload.id;
        let published = match (self.operator.published(), id.kind) {
            (Some(published), _) => published,
            (None, WorkloadKind::Custom(kind)) if self.before.is_none() => {
                return Some(Why::KindUnheard(format!("--workload-kind {kind}")));
            }
            (None, _) => return None,
        };
        let (labels, unknown) = match self.namespace {
            Sought::Found(namespace) => (Some(&namespace.labels), Unknown::Forbidden),
            Sought::Unknown(unknown) => (None, *unknown),
            Sought::Absent | Sought::NoSuchKind => (None, Unknown::Forbidden),
        };
        match published.scope.watches(&id.namespace, labels) {
            Membership::In => {}
            Membership::Out => return Some(Why::NamespaceNotWatched(self.operator.namespace.clone())),
            Membership::Unknown => {
                let labels = published.scope.namespace_labels().map(ToString::to_string).unwrap_or_default();
                return Some(Why::ScopeUnknown(labels, unknown));
            }
        }
        if let WorkloadKind::Custom(kind) = id.kind
            && published.scope.workload_kind(&kind.api_version, &kind.kind).is_none()
        {
            return Some(Why::KindNotWatched(kind.to_string()));
        }
        if published.participation.reload == Reloading::Off {
            return Some(Why::ReloadOff);
        }
        published.participation.ignored.contains(&id.kind).then_some(Why::KindIgnored(id.kind))
    }

    /// Whether its namespace is known to say nothing, or does not count for what the operator's flags say.
    fn is_silent(&self) -> bool {
        matches!(self.default, NamespaceDefault::Silent | NamespaceDefault::Barred(Barred::NamedNamespaces))
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
            _ => match self.operator.published {
                Sought::Unknown(unknown) if unknown != Unknown::NotInFiles && self.is_silent() => {
                    Why::FlagsUnknown(unknown)
                }
                _ => Why::NotOptedIn,
            },
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
pub(super) mod tests;
