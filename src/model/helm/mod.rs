//! What Helm keeps of its releases: which release an object is of, and what that one's manifest declares.
//!
//! Of a manifest no text stays: values become fingerprints while it is read, and a workload's spec lives only until it was
//! compared with the live one. <https://helm.sh/docs/topics/advanced/#storage-backends>

pub mod held;
mod manifest;
mod secret;

pub use manifest::ReleaseManifest;
pub use secret::{NAME_PREFIX, ReleaseSecret, SECRET_TYPE, labels_of, latest, release_of};

use std::collections::BTreeMap;
use std::fmt;

use crate::model::names::{ConfigId, Name, WorkloadId};

/// The label by which Helm tells its objects.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const RELEASE_NAME: &str = "meta.helm.sh/release-name";
const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// Which release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReleaseId {
    /// Where Helm keeps it.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

impl fmt::Display for ReleaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl ReleaseId {
    /// The release that an object names: Helm itself takes an object for its own only with all three.
    pub fn named_by(labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> Option<Self> {
        labels.get(MANAGED_BY).filter(|manager| *manager == "Helm")?;
        let named = |annotation: &str| annotations.get(annotation).filter(|name| is_a_name(name));
        let (namespace, name) = (named(RELEASE_NAMESPACE)?, named(RELEASE_NAME)?);
        Some(Self { namespace: namespace.as_str().into(), name: name.as_str().into() })
    }
}

/// Whether this may name an object: it goes into requests.
fn is_a_name(text: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter);
    (1..=63).contains(&text.len()) && text.chars().all(allowed) && text.starts_with(|first: char| first != '.')
}

/// A release, as far as it could be read.
#[derive(Debug, Clone, PartialEq)]
pub enum Release {
    /// Its newest revision is deployed, and this is its manifest.
    Deployed(ReleaseManifest),
    /// It says nothing: none is there, it may not be read, it is broken; or its newest revision is being deployed or has
    /// failed, so that what is live may be of this one or of that one.
    Silent,
}

/// The releases that were read.
#[derive(Debug, Clone, Default)]
pub struct Releases {
    known: BTreeMap<ReleaseId, (u64, Release)>,
}

impl Releases {
    /// Takes in what one revision says; of a release the newest revision counts.
    pub fn insert(&mut self, id: ReleaseId, revision: u64, release: Release) {
        let newer = self.known.get(&id).is_none_or(|(known, _)| *known <= revision);
        if newer {
            self.known.insert(id, (revision, release));
        }
    }

    /// Whether this one was read, or tried to.
    pub fn knows(&self, id: &ReleaseId) -> bool {
        self.known.contains_key(id)
    }

    /// The manifest of a release.
    pub fn manifest(&self, id: &ReleaseId) -> Option<&ReleaseManifest> {
        match self.known.get(id)? {
            (_, Release::Deployed(manifest)) => Some(manifest),
            (_, Release::Silent) => None,
        }
    }

    /// What the release that a config names declares of its keys.
    pub fn declared_keys(&self, id: &ReleaseId, config: &ConfigId) -> Option<manifest::Keys> {
        self.manifest(id)?.keys_of(config).cloned()
    }

    /// The spec that the release which a workload names declares.
    pub fn declared_spec(&self, id: &ReleaseId, workload: &WorkloadId) -> Option<&manifest::Spec> {
        self.manifest(id)?.spec_of(workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn texts(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[rstest]
    #[case::all("Helm", &[(RELEASE_NAME, "r"), (RELEASE_NAMESPACE, "ns")], true)]
    #[case::another_manager("Tiller", &[(RELEASE_NAME, "r"), (RELEASE_NAMESPACE, "ns")], false)]
    #[case::no_namespace("Helm", &[(RELEASE_NAME, "r")], false)]
    #[case::no_name("Helm", &[(RELEASE_NAME, ""), (RELEASE_NAMESPACE, "ns")], false)]
    #[case::a_path("Helm", &[(RELEASE_NAME, "r"), (RELEASE_NAMESPACE, "../ns")], false)]
    #[case::a_selector("Helm", &[(RELEASE_NAME, "r,a=b"), (RELEASE_NAMESPACE, "ns")], false)]
    fn an_object_is_of_a_release_as_helm_sees_it(
        #[case] manager: &str,
        #[case] annotations: &[(&str, &str)],
        #[case] is_of_one: bool,
    ) {
        let named = ReleaseId::named_by(&texts(&[(MANAGED_BY, manager)]), &texts(annotations));
        let release = ReleaseId { namespace: "ns".into(), name: "r".into() };
        assert_eq!(named, is_of_one.then_some(release));
    }

    #[test]
    fn the_newest_revision_counts_in_any_order() {
        let id = ReleaseId { namespace: "ns".into(), name: "r".into() };
        let mut releases = Releases::default();
        releases.insert(id.clone(), 10, Release::Silent);
        releases.insert(id.clone(), 9, Release::Deployed(ReleaseManifest::default()));
        assert_eq!(releases.manifest(&id), None);
        releases.insert(id.clone(), 11, Release::Deployed(ReleaseManifest::default()));
        assert_eq!(releases.manifest(&id), Some(&ReleaseManifest::default()));
    }
}
