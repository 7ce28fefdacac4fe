//! Who must mend an object that drifts: what it says about where it comes from. Nothing is guessed.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::drift_report::{Source, SourceKind};
use crate::model::helm::ReleaseId;
use crate::model::names::{Name, WorkloadKind};

/// What Argo CD writes on each object, unless it goes by the label: `APPLICATION:GROUP/KIND:NAMESPACE/NAME`.
const ARGO_TRACKING: &str = "argocd.argoproj.io/tracking-id";
/// The label that Argo CD went by before, and which charts write too.
const INSTANCE: &str = "app.kubernetes.io/instance";
/// What Argo CD is called as a field manager.
const ARGO: [&str; 2] = ["argocd-controller", "argocd-application-controller"];
const FLUX_KUSTOMIZATION: &str = "kustomize.toolkit.fluxcd.io";
const FLUX_RELEASE: &str = "helm.toolkit.fluxcd.io";

/// Where an object comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Who must mend it.
    pub source: Option<Source>,
    /// The Helm release that it names.
    pub release: Option<ReleaseId>,
}

/// What an object shows of where it comes from.
#[derive(Debug, Clone, Copy)]
pub struct Marks<'a> {
    /// Its group and version.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Where it is.
    pub namespace: &'a Name,
    /// Its name.
    pub name: &'a Name,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
    /// Its annotations, as far as they tell of this.
    pub annotations: &'a BTreeMap<String, String>,
    /// Who writes to it.
    pub managers: &'a [&'a str],
}

impl Origin {
    /// Where an object with these marks comes from; `None` if it says nothing.
    pub fn of(marks: &Marks<'_>) -> Option<Self> {
        let release = ReleaseId::named_by(marks.labels, marks.annotations);
        let by_helm = release.as_ref().map(|release| Source {
            kind: SourceKind::Release,
            namespace: Some(release.namespace.clone()),
            name: release.name.clone(),
        });
        let source = marks.argo().or_else(|| marks.flux()).or(by_helm);
        (source.is_some() || release.is_some()).then_some(Self { source, release })
    }

    /// Where a workload comes from.
    pub fn of_workload(kind: WorkloadKind, metadata: &ObjectMeta) -> Option<Self> {
        let none = BTreeMap::new();
        let entries = metadata.managed_fields.iter().flatten();
        Self::of(&Marks {
            api_version: kind.api_version(),
            kind: kind.as_str(),
            namespace: &metadata.namespace.as_deref().unwrap_or("default").into(),
            name: &metadata.name.as_deref().unwrap_or_default().into(),
            labels: metadata.labels.as_ref().unwrap_or(&none),
            annotations: metadata.annotations.as_ref().unwrap_or(&none),
            managers: &entries.filter_map(|entry| entry.manager.as_deref()).collect::<Vec<_>>(),
        })
    }
}

impl Marks<'_> {
    /// Argo CD's application: by its own annotation, unless that was copied from another object; else by the label, where
    /// Argo CD writes to the object.
    fn argo(&self) -> Option<Source> {
        let application = match self.annotations.get(ARGO_TRACKING) {
            Some(tracking) => self.tracked(tracking)?,
            None if self.managers.iter().any(|manager| ARGO.contains(manager)) => self.labels.get(INSTANCE)?,
            None => return None,
        };
        // One that is not in Argo CD's own namespace has its own in its name.
        let (namespace, name) = match application.split_once('_') {
            Some((namespace, name)) => (Some(namespace.into()), name),
            None => (None, application),
        };
        (!name.is_empty()).then(|| Source { kind: SourceKind::Application, namespace, name: name.into() })
    }

    fn tracked<'t>(&self, tracking: &'t str) -> Option<&'t str> {
        let (application, object) = tracking.split_once(':')?;
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        let own = format!("{group}/{}:{}/{}", self.kind, self.namespace, self.name);
        (object == own).then_some(application)
    }

    fn flux(&self) -> Option<Source> {
        let named = |group: &str, kind| {
            let label = |name: &str| self.labels.get(&format!("{group}/{name}")).filter(|text| !text.is_empty());
            let (name, namespace) = (label("name")?, label("namespace")?);
            Some(Source { kind, namespace: Some(namespace.as_str().into()), name: name.as_str().into() })
        };
        // A HelmRelease's own objects are never applied by a Kustomization.
        named(FLUX_RELEASE, SourceKind::HelmRelease).or_else(|| named(FLUX_KUSTOMIZATION, SourceKind::Kustomization))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const INSTANCE_SHOP: &[(&str, &str)] = &[(INSTANCE, "shop")];
    const HELM: &[(&str, &str)] = &[("meta.helm.sh/release-name", "web"), ("meta.helm.sh/release-namespace", "ns")];
    const BY_HELM: &[(&str, &str)] = &[("app.kubernetes.io/managed-by", "Helm"), (INSTANCE, "web")];
    const BY_FLUX: &[(&str, &str)] = &[
        ("app.kubernetes.io/managed-by", "Helm"),
        ("helm.toolkit.fluxcd.io/name", "web"),
        ("helm.toolkit.fluxcd.io/namespace", "flux"),
    ];

    fn texts(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[rstest]
    #[case::argo(&[], &[(ARGO_TRACKING, "shop:apps/Deployment:ns/w")], &[], Some("Application shop"))]
    #[case::argo_in_any_namespace(
        &[], &[(ARGO_TRACKING, "team_shop:apps/Deployment:ns/w")], &[], Some("Application team/shop"))]
    #[case::a_copied_annotation(INSTANCE_SHOP, &[(ARGO_TRACKING, "shop:apps/Deployment:ns/other")], &ARGO, None)]
    #[case::argo_by_label(INSTANCE_SHOP, &[], &["argocd-controller"], Some("Application shop"))]
    #[case::a_charts_own_label(INSTANCE_SHOP, &[], &["kubectl"], None)]
    #[case::kustomization(
        &[("kustomize.toolkit.fluxcd.io/name", "apps"), ("kustomize.toolkit.fluxcd.io/namespace", "flux")],
        &[], &[], Some("Kustomization flux/apps"))]
    #[case::half_a_kustomization(&[("kustomize.toolkit.fluxcd.io/name", "apps")], &[], &[], None)]
    #[case::helm_release(BY_FLUX, HELM, &["helm-controller"], Some("HelmRelease flux/web"))]
    #[case::helm(BY_HELM, HELM, &["helm"], Some("Release ns/web"))]
    #[case::annotations_of_helm_alone(&[], HELM, &["helm"], None)]
    #[case::nothing(&[], &[], &["kubectl"], None)]
    fn who_must_mend_it_is_what_it_says_itself(
        #[case] labels: &[(&str, &str)],
        #[case] annotations: &[(&str, &str)],
        #[case] managers: &[&str],
        #[case] expected: Option<&str>,
    ) {
        let origin = Origin::of(&Marks {
            api_version: "apps/v1",
            kind: "Deployment",
            namespace: &"ns".into(),
            name: &"w".into(),
            labels: &texts(labels),
            annotations: &texts(annotations),
            managers,
        });
        let source = origin.and_then(|origin| origin.source).map(|source| source.to_string());
        assert_eq!(source.as_deref(), expected);
    }

    #[test]
    fn a_configs_tracking_has_no_group() {
        let origin = Origin::of(&Marks {
            api_version: "v1",
            kind: "Secret",
            namespace: &"ns".into(),
            name: &"s".into(),
            labels: &BTreeMap::new(),
            annotations: &texts(&[(ARGO_TRACKING, "shop:/Secret:ns/s")]),
            managers: &[],
        });
        assert!(origin.and_then(|origin| origin.source).is_some());
    }
}
