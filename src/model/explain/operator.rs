//! What is known of the operator, and what of that keeps it from rolling a workload: the commonest reasons why nothing
//! happens.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use jiff::Timestamp;
use semver::Version;
use serde::Serialize;

use super::sought::{Sought, Unknown};
use crate::api::published::{CONFIG_MAP, LEASE, Mode, Published};
use crate::model::custom::CustomKind;
use crate::model::lease::LeaseState;
use crate::model::names::ConfigKind;
use crate::model::scope::Scope;
use crate::model::selector::LabelSelector;
use crate::model::unread::{Unread, WhyUnread};
use crate::model::watched::Watched;
use crate::model::workload::Workload;

/// What is known of the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// The namespace that it was looked for in.
    pub namespace: String,
    /// What it says of itself there.
    pub published: Sought<Published>,
    /// How its Lease stands.
    pub lease: Sought<LeaseState>,
    /// The version of restamp that wrote the custom resource definition, as far as that says so.
    pub crd: Sought<Option<String>>,
}

/// What there is to say about the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorExplanation {
    /// The namespace that it was looked for in.
    pub namespace: String,
    /// Its version.
    pub version: Option<String>,
    /// Whether it runs.
    pub running: Running,
    /// What keeps it from rolling the workload, and what is not known of it.
    pub remarks: Vec<Remark>,
}

/// Whether the operator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Running {
    /// Some replica holds the Lease.
    Yes,
    /// None does.
    No,
    /// That is not known.
    Unknown,
}

impl Running {
    /// For a person.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "running",
            Self::No => "not running",
            Self::Unknown => "unknown whether it is running",
        }
    }
}

/// Something that keeps the operator from rolling the workload, or that is not known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Remark {
    /// In one word.
    pub reason: RemarkReason,
    /// In words, with the next step.
    pub message: String,
}

/// The kinds of remark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum RemarkReason {
    /// There is no trace of an operator.
    NotInstalled,
    /// No replica holds the Lease.
    NotRunning,
    /// It does not say what it watches.
    NotPublished,
    /// It can't read a kind that the workload needs.
    NotRead,
    /// It is older than the custom resource definition.
    OlderThanCrd,
    /// It is newer than the custom resource definition.
    NewerThanCrd,
    /// It writes no stamps.
    DryRun,
    /// Whether it runs is not known.
    RunningUnknown,
    /// What it watches is not known.
    ScopeUnknown,
    /// Whether it fits the custom resource definition is not known.
    CrdUnknown,
}

impl Operator {
    /// An operator of which nothing is known, as in files.
    pub fn unknown(unknown: Unknown) -> Self {
        Self {
            namespace: String::new(),
            published: Sought::Unknown(unknown),
            lease: Sought::Unknown(unknown),
            crd: Sought::Unknown(unknown),
        }
    }

    /// What it watches, where that is known.
    pub(super) fn scope(&self) -> Option<&Scope> {
        Some(&self.published()?.scope)
    }

    /// The custom kinds that it watches, as far as that is known.
    pub fn watched_kinds(&self) -> &'static [CustomKind] {
        self.scope().map_or(&[], |scope| scope.kinds)
    }

    /// The labels of the configs that it looks at, if it does not look at all, as far as that is known.
    pub fn config_labels(&self) -> Option<&LabelSelector> {
        self.scope()?.configs.as_ref()
    }

    /// The kinds of config of which it does not see all that there are.
    pub fn partly_seen(&self) -> BTreeSet<ConfigKind> {
        self.scope().map(Scope::partly_seen).unwrap_or_default()
    }

    /// What it says of itself, where that is known.
    pub(super) fn published(&self) -> Option<&Published> {
        match &self.published {
            Sought::Found(published) => Some(published),
            Sought::Absent | Sought::NoSuchKind | Sought::Unknown(_) => None,
        }
    }

    /// What there is to say about it, as to this workload. Of files there is nothing.
    pub(super) fn explain(&self, workload: &Workload) -> Option<OperatorExplanation> {
        if self.lease == Sought::Unknown(Unknown::NotInFiles) {
            return None;
        }
        let mut remarks = Vec::new();
        remarks.extend(self.of_lease());
        remarks.extend(self.of_published());
        remarks.extend(self.unread(workload).map(|unread| self.of_unread(unread)));
        remarks.extend(self.of_crd());
        Some(OperatorExplanation {
            namespace: self.namespace.clone(),
            version: self.published().map(|published| published.version.clone()),
            running: self.running(),
            remarks,
        })
    }

    fn running(&self) -> Running {
        match &self.lease {
            Sought::Found(LeaseState::Held) => Running::Yes,
            Sought::Found(LeaseState::RunOut(_) | LeaseState::Free) | Sought::Absent | Sought::NoSuchKind => {
                Running::No
            }
            Sought::Unknown(_) => Running::Unknown,
        }
    }

    fn of_lease(&self) -> Option<Remark> {
        let Self { namespace, .. } = self;
        let look = format!("see kubectl get pods --namespace {namespace}");
        Some(match &self.lease {
            Sought::Found(LeaseState::Held) => return None,
            Sought::Found(LeaseState::Free) => remark(
                RemarkReason::NotRunning,
                format!("it was stopped: nobody holds Lease {namespace}/{LEASE}; {look}"),
            ),
            Sought::Found(LeaseState::RunOut(since)) => {
                let since = to_the_second(*since);
                let message =
                    format!("it is gone: Lease {namespace}/{LEASE} has not been renewed since {since}; {look}");
                remark(RemarkReason::NotRunning, message)
            }
            Sought::Absent | Sought::NoSuchKind => remark(
                RemarkReason::NotInstalled,
                format!(
                    "no operator was ever started in namespace {namespace}, where there is no Lease {LEASE}; install it, \
                     or name its namespace with --operator-namespace"
                ),
            ),
            Sought::Unknown(unknown) => remark(
                RemarkReason::RunningUnknown,
                format!("whether it runs is unknown: Lease {namespace}/{LEASE}: {unknown}"),
            ),
        })
    }

    fn of_published(&self) -> Option<Remark> {
        let Self { namespace, .. } = self;
        Some(match &self.published {
            Sought::Found(Published { mode: Mode::DryRun, .. }) => {
                remark(RemarkReason::DryRun, "it runs with --dry-run: it writes no stamp and no record".to_owned())
            }
            Sought::Found(_) => return None,
            // Said already.
            Sought::Absent | Sought::NoSuchKind if matches!(self.lease, Sought::Absent | Sought::NoSuchKind) => {
                return None;
            }
            Sought::Absent | Sought::NoSuchKind => remark(
                RemarkReason::NotPublished,
                format!(
                    "what it watches is unknown: there is no ConfigMap {namespace}/{CONFIG_MAP}, in which it says that; see \
                     kubectl logs --namespace {namespace} deployment/restamp"
                ),
            ),
            Sought::Unknown(unknown) => remark(
                RemarkReason::ScopeUnknown,
                format!("what it watches is unknown: ConfigMap {namespace}/{CONFIG_MAP}: {unknown}"),
            ),
        })
    }

    /// What the workload needs, and the operator can't read.
    fn unread<'a>(&'a self, workload: &'a Workload) -> impl Iterator<Item = &'a Unread> {
        let unread = self.published().into_iter().flat_map(|published| &published.unread);
        let watches_namespaces = self.scope().is_some_and(Scope::watches_namespaces);
        // Where there is no CSI driver, nothing waits for it, and nothing of it is seen either.
        let consumed = || workload.consumption.configs().into_iter().map(|id| Watched::Config(id.kind));
        let more = watches_namespaces.then_some(Watched::Namespace).into_iter().chain([Watched::Autoscaler]);
        let needs = move || workload.needs().chain(consumed()).chain(more.clone());
        unread.filter(move |unread| needs().any(|kind| unread.hides(kind, &workload.id.namespace)))
    }

    fn of_unread(&self, unread: &Unread) -> Remark {
        let Unread { kind, namespace, why } = unread;
        let place = namespace.as_ref().map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default();
        let message = match why {
            WhyUnread::Forbidden => format!(
                "it may not read objects of kind {kind}{place}; grant its ServiceAccount get, list and watch on them, as in \
                 deploy/install.yaml"
            ),
            WhyUnread::NotInstalled => {
                format!("kind {kind} is not installed, so it can't watch it{place}; install its CRD")
            }
            WhyUnread::Failing => format!(
                "its watch of kind {kind}{place} fails; see kubectl logs --namespace {} deployment/restamp",
                self.namespace
            ),
        };
        // It keeps nothing from rolling.
        let effect = if kind == Watched::Autoscaler.as_str() {
            "; until then nothing is claimed of numbers of pods"
        } else {
            ""
        };
        remark(RemarkReason::NotRead, format!("{message}{effect}"))
    }

    /// Whether it knows all that the custom resource definition has, and the other way round.
    fn of_crd(&self) -> Option<Remark> {
        let own = &self.published()?.version;
        let crd = match &self.crd {
            Sought::Found(Some(crd)) => crd,
            Sought::Found(None) => {
                let message = "whether it fits the custom resource definition driftreports.restamp.dev is unknown: that does \
                               not say which version wrote it; apply the output of `restamp crd`";
                return Some(remark(RemarkReason::CrdUnknown, message.to_owned()));
            }
            // The record says that it is not installed.
            Sought::Absent | Sought::NoSuchKind => return None,
            Sought::Unknown(unknown) => {
                let message = format!(
                    "whether it fits the custom resource definition driftreports.restamp.dev is unknown: {unknown}"
                );
                return Some(remark(RemarkReason::CrdUnknown, message));
            }
        };
        let (Ok(own_version), Ok(crd_version)) = (own.parse::<Version>(), crd.parse::<Version>()) else {
            let message = format!("whether its version {own} fits the custom resource definition's, {crd}, is unknown");
            return Some(remark(RemarkReason::CrdUnknown, message));
        };
        match own_version.cmp_precedence(&crd_version) {
            Ordering::Equal => None,
            Ordering::Less => Some(remark(
                RemarkReason::OlderThanCrd,
                format!(
                    "its version {own} is older than the custom resource definition's, {crd}: it doesn't know all that \
                     reports may say; upgrade it"
                ),
            )),
            Ordering::Greater => Some(remark(
                RemarkReason::NewerThanCrd,
                format!(
                    "its version {own} is newer than the custom resource definition's, {crd}: the API server drops what \
                     that doesn't know; apply the output of `restamp crd`"
                ),
            )),
        }
    }
}

fn remark(reason: RemarkReason, message: String) -> Remark {
    Remark { reason, message }
}

fn to_the_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::builders::deployment;
    use crate::model::drift_scope::DriftScope;
    use crate::model::participation::Participation;
    use crate::model::scope::{Extent, Namespaces};
    use rstest::rstest;

    pub(in crate::model::explain) fn published() -> Published {
        Published {
            version: "0.2.0".to_owned(),
            scope: Scope::default(),
            participation: Participation::default(),
            drift: DriftScope::default(),
            mode: Mode::Live,
            unread: [].into(),
        }
    }

    /// One that runs, says so, and fits the CRD.
    pub(in crate::model::explain) fn well() -> Operator {
        Operator {
            namespace: "restamp-system".to_owned(),
            published: Sought::Found(published()),
            lease: Sought::Found(LeaseState::Held),
            crd: Sought::Found(Some("0.2.0".to_owned())),
        }
    }

    fn said(published: Published) -> Operator {
        Operator { published: Sought::Found(published), ..well() }
    }

    fn lease(lease: Sought<LeaseState>) -> Operator {
        Operator { lease, ..well() }
    }

    fn crd(crd: &str) -> Operator {
        Operator { crd: Sought::Found(Some(crd.to_owned())), ..well() }
    }

    fn unread(kind: Watched, extent: Extent, why: WhyUnread) -> Operator {
        said(Published { unread: [Unread::new(kind, &extent, why)].into(), ..published() })
    }

    fn run_out() -> Sought<LeaseState> {
        Sought::Found(LeaseState::RunOut("2026-11-30T12:00:00.5Z".parse().unwrap()))
    }

    const FORBIDDEN: Unknown = Unknown::Forbidden;
    const SECRET: Watched = Watched::Config(ConfigKind::Secret);

    #[rstest]
    #[case::well(well(), Running::Yes, None, "")]
    #[case::stopped(
        lease(Sought::Found(LeaseState::Free)),
        Running::No,
        Some(RemarkReason::NotRunning),
        "it was stopped: nobody holds Lease restamp-system/restamp-leader; see kubectl get pods --namespace restamp-system"
    )]
    #[case::gone(
        lease(run_out()),
        Running::No,
        Some(RemarkReason::NotRunning),
        "not been renewed since 2026-11-30T12:00:00Z;"
    )]
    #[case::never_there(Operator { published: Sought::Absent, ..lease(Sought::Absent) }, Running::No,
        Some(RemarkReason::NotInstalled), "name its namespace with --operator-namespace")]
    #[case::hidden(
        lease(Sought::Unknown(FORBIDDEN)),
        Running::Unknown,
        Some(RemarkReason::RunningUnknown),
        "whether it runs is unknown: Lease restamp-system/restamp-leader: you may not read it"
    )]
    #[case::silent(Operator { published: Sought::Absent, ..well() }, Running::Yes, Some(RemarkReason::NotPublished),
        "there is no ConfigMap restamp-system/restamp-scope")]
    #[case::with_a_hidden_scope(Operator { published: Sought::Unknown(FORBIDDEN), ..well() }, Running::Yes,
        Some(RemarkReason::ScopeUnknown), "ConfigMap restamp-system/restamp-scope: you may not read it")]
    #[case::with_a_scope_of_another_version(Operator { published: Sought::Unknown(Unknown::Unreadable), ..well() }, Running::Yes,
        Some(RemarkReason::ScopeUnknown), "this version of restamp can't read it")]
    #[case::dry_run(said(Published { mode: Mode::DryRun, ..published() }), Running::Yes, Some(RemarkReason::DryRun), "--dry-run")]
    #[case::without_a_right(
        unread(SECRET, Extent::Cluster, WhyUnread::Forbidden),
        Running::Yes,
        Some(RemarkReason::NotRead),
        "it may not read objects of kind Secret; grant its ServiceAccount get, list and watch"
    )]
    #[case::without_a_right_here(unread(SECRET, Extent::Namespace("ns".into()), WhyUnread::Forbidden), Running::Yes,
        Some(RemarkReason::NotRead), "it may not read objects of kind Secret in namespace ns;")]
    #[case::without_a_right_elsewhere(
        unread(SECRET, Extent::Namespace("other".into()), WhyUnread::Forbidden), Running::Yes, None, "")]
    #[case::without_a_right_that_this_one_does_not_need(
        unread(Watched::Config(ConfigKind::ConfigMap), Extent::Cluster, WhyUnread::Forbidden),
        Running::Yes,
        None,
        ""
    )]
    #[case::without_the_right_to_see_autoscalers(
        unread(Watched::Autoscaler, Extent::Cluster, WhyUnread::Forbidden),
        Running::Yes,
        Some(RemarkReason::NotRead),
        "as in deploy/install.yaml; until then nothing is claimed of numbers of pods"
    )]
    #[case::with_a_failing_watch(
        unread(Watched::Report, Extent::Cluster, WhyUnread::Failing),
        Running::Yes,
        Some(RemarkReason::NotRead),
        "its watch of kind DriftReport fails; see kubectl logs"
    )]
    #[case::that_sees_no_namespaces(
        unread(Watched::Namespace, Extent::Cluster, WhyUnread::Failing),
        Running::Yes,
        Some(RemarkReason::NotRead),
        "its watch of kind Namespace fails"
    )]
    #[case::older(crd("0.10.0"), Running::Yes, Some(RemarkReason::OlderThanCrd), "upgrade it")]
    #[case::older_than_a_final_version(crd("0.2.1-rc.1"), Running::Yes, Some(RemarkReason::OlderThanCrd), "0.2.1-rc.1")]
    #[case::another_build(crd("0.2.0+1"), Running::Yes, None, "")]
    #[case::newer(crd("0.1.9"), Running::Yes, Some(RemarkReason::NewerThanCrd), "apply the output of `restamp crd`")]
    #[case::no_version(crd("newest"), Running::Yes, Some(RemarkReason::CrdUnknown), "is unknown")]
    #[case::a_crd_without_a_version(Operator { crd: Sought::Found(None), ..well() }, Running::Yes,
        Some(RemarkReason::CrdUnknown), "does not say which version wrote it")]
    #[case::a_hidden_crd(Operator { crd: Sought::Unknown(FORBIDDEN), ..well() }, Running::Yes, Some(RemarkReason::CrdUnknown),
        "driftreports.restamp.dev is unknown: you may not read it")]
    fn it_says_what_keeps_the_operator_from_rolling(
        #[case] operator: Operator,
        #[case] running: Running,
        #[case] reason: Option<RemarkReason>,
        #[case] says: &str,
    ) {
        let explained = operator.explain(&deployment("w").env_from("Secret/s").build()).unwrap();
        let reasons: Vec<_> = explained.remarks.iter().map(|remark| remark.reason).collect();
        assert_eq!((explained.running, reasons), (running, reason.into_iter().collect()), "{:?}", explained.remarks);
        assert!(explained.remarks.iter().all(|remark| remark.message.contains(says)), "{:?}", explained.remarks);
    }

    #[test]
    fn of_files_nothing_is_said() {
        let operator = Operator::unknown(Unknown::NotInFiles);
        assert_eq!(operator.explain(&deployment("w").build()), None);
    }

    #[test]
    fn where_namespaces_are_named_they_are_not_read_and_not_missed() {
        let scope = Scope { namespaces: Namespaces::Only(["ns".into()].into()), ..Scope::default() };
        let unread = [Unread::new(Watched::Namespace, &Extent::Cluster, WhyUnread::Failing)].into();
        let operator = said(Published { scope, unread, ..published() });
        assert_eq!(operator.explain(&deployment("w").build()).unwrap().remarks, []);
    }
}
