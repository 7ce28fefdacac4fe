//! The placeholder of a Job that is being made again: so that the Job is never lost, whenever restamp ends.
//!
//! A name can't belong to two Jobs, so the old one has to go before the new one comes. What the new one will be is kept
//! meanwhile in the cluster, by a Job of another name that runs no pods. Each step follows from which of the two
//! are there; it may be taken twice, or by another leader.
//!
//! The other places for the new manifest are worse. A finalizer on the old Job keeps the name taken, so that a
//! moment without any Job remains. A ConfigMap or a report would show literal values of `env` to people who may not
//! read Jobs. A Secret takes more rights, and needs cleaning up by hand. Our memory is gone with a crash. The
//! placeholder takes rights that we need anyway, has the same readers as the Job, and goes with the namespace.
//!
//! The deletion names the version from which the placeholder was made. A placeholder whose Job is at a later
//! version is thus dead: no slow leader can still delete that Job for it, so it may go. One whose Job is gone is
//! the Job. `crashes.rs` tries all orders of that. The annotation is sealed with the hash key: a right to patch
//! Jobs must not become a right to have us make or delete them.
//!
//! "Not found" as the answer to the deletion is no proof that somebody else deleted it: it may be the answer to a
//! repeated request of ours. So the Job is made again. That is the one window that we leave: a Job that somebody
//! deletes by hand between our read and our deletion comes back.

use std::cmp::Ordering;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::api::annotations::RERUN;
use crate::model::digest::{Digest, HashKey, Keyring};
use crate::model::names::{Name, ResourceVersion, Uid, WorkloadId, WorkloadKind};
use crate::model::rerun::name_with_hash;
use crate::model::workload::Workload;

/// A placeholder as the index keeps it: whose it is, without what it keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// Its own name.
    pub name: Name,
    /// Its uid.
    pub uid: Uid,
    /// The Job that it stands for.
    pub original: WorkloadId,
    /// The uid of the one that makes way.
    pub original_uid: Uid,
    /// The version of that one from which the placeholder was made: one that has changed since does not make way for it.
    pub original_version: ResourceVersion,
    /// The installation that made the placeholder, by its namespace.
    pub instance: String,
}

/// What a placeholder's annotation says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// The installation that made the placeholder, by its namespace.
    pub instance: String,
    /// The name of the Job that it stands for.
    pub name: Name,
    /// The uid of the one that makes way.
    pub uid: Uid,
    /// Its version.
    pub version: ResourceVersion,
    /// Why it is made again.
    pub cause: String,
    /// The new Job.
    pub manifest: String,
    /// Made of all this with the installation's key: nobody else can have us make a Job, or delete one.
    pub seal: Digest,
}

/// The parts of an annotation that say whose the placeholder is.
#[derive(Deserialize)]
struct Head {
    instance: String,
    name: Name,
    uid: Uid,
    version: ResourceVersion,
}

impl Placeholder {
    /// Reads a Job that is a placeholder; `None` for any other.
    pub fn of(metadata: &ObjectMeta) -> Option<Self> {
        let head: Head = serde_json::from_str(metadata.annotations.as_ref()?.get(RERUN)?).ok()?;
        let namespace = metadata.namespace.as_deref()?.into();
        Some(Self {
            name: metadata.name.as_deref()?.into(),
            uid: metadata.uid.as_deref()?.into(),
            original: WorkloadId { kind: WorkloadKind::Job, namespace, name: head.name },
            original_uid: head.uid,
            original_version: head.version,
            instance: head.instance,
        })
    }
}

impl Kept {
    /// The same with a seal.
    pub fn sealed(mut self, namespace: &Name, key: &HashKey) -> Self {
        self.seal = self.seal_with(namespace, key);
        self
    }

    /// What a placeholder of this name keeps, if this installation sealed it for there.
    pub fn read(annotation: &str, name: &Name, namespace: &Name, keyring: &Keyring) -> Option<Self> {
        let kept: Self = serde_json::from_str(annotation).ok()?;
        let key = keyring.find(kept.seal.key_id()?)?;
        (kept.seal_with(namespace, key) == kept.seal && *name == name_of(&kept.uid)).then_some(kept)
    }

    fn seal_with(&self, namespace: &Name, key: &HashKey) -> Digest {
        let Self { instance, name, uid, version, cause, manifest, seal: _ } = self;
        let version = version.to_string();
        key.seal(&["rerun", namespace.as_str(), instance, name.as_str(), uid.as_str(), &version, cause, manifest])
    }
}

/// The name of the placeholder of the Job with this uid.
pub fn name_of(original: &Uid) -> Name {
    name_with_hash("restamp-rerun", [original.to_string()].into_iter())
}

/// What is to be done about a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Delete the original: we were interrupted before that.
    Delete,
    /// Wait until the original is gone, whose pods end first, or until the watch shows more.
    Wait,
    /// Make the new Job.
    Create,
    /// Delete the placeholder: the new Job is there, or the original is not what it was and will not make way for this one.
    Discard,
}

/// The next step, by the Job that has the name, as far as the watch shows.
pub fn next(placeholder: &Placeholder, present: Option<&Workload>) -> Step {
    let Some(present) = present else { return Step::Create };
    let is_original = present.uid.as_ref() == Some(&placeholder.original_uid);
    match present.version.cmp(&Some(placeholder.original_version)) {
        Ordering::Equal if is_original => Step::Delete,
        Ordering::Greater if is_original && present.deleting => Step::Wait,
        // Nobody deletes the original for this placeholder any more: whoever tries names its version.
        Ordering::Greater => Step::Discard,
        // A list in progress has shown the placeholder, and not yet the Job.
        Ordering::Less | Ordering::Equal => Step::Wait,
    }
}

#[cfg(test)]
mod crashes;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{hash_key, job, keyring};
    use rstest::rstest;

    fn kept() -> Kept {
        Kept {
            instance: "restamp-system".to_owned(),
            name: "w".into(),
            uid: "u".into(),
            version: ResourceVersion(7),
            cause: "key A of Secret s changed".to_owned(),
            manifest: "{}".to_owned(),
            seal: Digest::from_text(""),
        }
    }

    fn placeholder() -> Placeholder {
        let annotations = [(RERUN.to_owned(), serde_json::to_string(&kept()).unwrap())].into();
        let metadata = ObjectMeta {
            name: Some("c".to_owned()),
            namespace: Some("ns".to_owned()),
            uid: Some("uc".to_owned()),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        };
        Placeholder::of(&metadata).unwrap()
    }

    #[rstest]
    #[case::interrupted_before_the_deletion(Some(job("w").uid("u").at_version(7)), Step::Delete)]
    #[case::on_its_way_out(Some(job("w").uid("u").at_version(8).deleting()), Step::Wait)]
    #[case::gone(None, Step::Create)]
    #[case::made_again(Some(job("w").uid("v").at_version(9)), Step::Discard)]
    #[case::not_shown_yet(Some(job("w").uid("u").at_version(6)), Step::Wait)]
    #[case::an_earlier_one_is_still_shown(Some(job("w").uid("t").at_version(5)), Step::Wait)]
    #[case::changed_since(Some(job("w").uid("u").at_version(8)), Step::Discard)]
    fn each_step_follows_from_what_is_there(
        #[case] present: Option<crate::model::builders::WorkloadBuilder>,
        #[case] expected: Step,
    ) {
        let present = present.map(crate::model::builders::WorkloadBuilder::build);
        assert_eq!(next(&placeholder(), present.as_ref()), expected);
    }

    #[test]
    fn a_copy_says_whose_it_is_and_any_other_job_is_none() {
        let placeholder = placeholder();
        assert_eq!((placeholder.original.to_string(), placeholder.original_uid), ("Job ns/w".to_owned(), "u".into()));
        assert_eq!(Placeholder::of(&ObjectMeta::default()), None);
    }

    #[test]
    fn only_what_the_installation_sealed_for_this_name_and_namespace_is_read() {
        let namespace = Name::from("ns");
        let name = name_of(&"u".into());
        let sealed = kept().sealed(&namespace, keyring().current());
        let read = |kept: &Kept, name: &Name, namespace: &str| {
            Kept::read(&serde_json::to_string(kept).unwrap(), name, &namespace.into(), &keyring())
        };
        assert_eq!(read(&sealed, &name, "ns"), Some(sealed.clone()));
        assert_eq!(read(&sealed, &name, "other"), None);
        assert_eq!(read(&sealed, &"another".into(), "ns"), None);
        assert_eq!(read(&Kept { manifest: "{\"a\": 1}".to_owned(), ..sealed }, &name, "ns"), None);
        assert_eq!(read(&kept().sealed(&namespace, &hash_key("another")), &name, "ns"), None);
    }
}
