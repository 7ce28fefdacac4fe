//! Volumes of the Secrets Store CSI driver: which versions of external secrets each pod holds, by its
//! SecretProviderClassPodStatus, and whether its processes may have read older ones.
//!
//! Versions have no order, and some stores give each pod one of its own. So there is no value of a class to compare with;
//! a pod is *behind* its class where
//! - the driver put other versions into its volume after its containers had started (a rotation), or
//! - two other pods hold a version that nobody held until well after this pod got its own: the store has a newer one,
//!   and rotation is off or has not come to this pod yet.
//!
//! A pod that merely starts mounts what is newest, and is behind nothing. That is why a rollout ends it, and why no
//! rollout can cause another one.

pub mod object;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use crate::model::consumed::{Attention, ConsumedConfig};
use crate::model::delivered::{CLOCK_SKEW, active, later};
use crate::model::digest::{Digest, HashKey};
use crate::model::fingerprint::Fingerprint;
use crate::model::names::{ConfigId, ConfigKind, KeyName, Name, ResourceVersion, Uid};
use crate::model::observe::{News, Sight};
use crate::model::pod::{Pod, Started};
use crate::model::policy::Adopt;
use crate::model::record::{Answer, Entry, LastStamp};

/// The driver, as volumes name it.
pub const DRIVER: &str = "secrets-store.csi.k8s.io";
/// The attribute of a volume that names its class.
pub const CLASS_ATTRIBUTE: &str = "secretProviderClass";

/// Which status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatusId {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

/// What one pod holds of one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodStatus {
    /// Which one.
    pub id: StatusId,
    /// The class.
    pub class: ConfigId,
    /// The pod.
    pub pod: Uid,
    created: Timestamp,
    /// The version at which it got to hold this, as far as that was seen.
    pub version: ResourceVersion,
    /// When it got to hold this, by the API server's clock.
    since: Timestamp,
    got: Got,
    objects: BTreeMap<KeyName, Fingerprint>,
}

/// How a pod got what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Got {
    /// Before anything in it started.
    AtMount,
    /// The driver swapped these while the pod was there; none where they can't be named.
    InPlace(BTreeSet<KeyName>),
}

impl PodStatus {
    fn digest(&self, key: &HashKey) -> Digest {
        let objects: BTreeMap<&KeyName, Option<Fingerprint>> =
            self.objects.iter().map(|(name, version)| (name, Some(*version))).collect();
        key.digest_config(&self.class, objects.iter().map(|(name, version)| (*name, version)))
    }

    /// The same, in the light of what was seen before.
    fn after(self, before: Option<&Self>) -> Self {
        match before {
            None => self,
            Some(before) if (&before.pod, &before.class) != (&self.pod, &self.class) => {
                // A StatefulSet's pod takes over the status of the one before it.
                Self { got: Got::AtMount, ..self }
            }
            Some(before) if before.objects == self.objects => {
                Self { got: before.got.clone(), since: before.since, version: before.version, ..self }
            }
            Some(before) => {
                let differ = |key: &&KeyName| before.objects.get(*key) != self.objects.get(*key);
                let keys = before.objects.keys().chain(self.objects.keys()).filter(differ).cloned().collect();
                Self { got: Got::InPlace(keys), ..self }
            }
        }
    }
}

/// All statuses.
#[derive(Debug, Default)]
pub struct ProviderClasses {
    statuses: BTreeMap<StatusId, PodStatus>,
    of_class: HashMap<ConfigId, BTreeSet<StatusId>>,
}

impl ProviderClasses {
    /// Puts a status in its place. The class that it is about comes back.
    pub fn insert(&mut self, status: PodStatus) -> ConfigId {
        let before = self.remove(&status.id);
        let status = status.after(before.as_ref());
        let class = status.class.clone();
        self.of_class.entry(class.clone()).or_default().insert(status.id.clone());
        self.statuses.insert(status.id.clone(), status);
        class
    }

    /// Takes a status out.
    pub fn remove(&mut self, id: &StatusId) -> Option<PodStatus> {
        let gone = self.statuses.remove(id)?;
        if let Some(of_class) = self.of_class.get_mut(&gone.class) {
            of_class.remove(id);
            if of_class.is_empty() {
                self.of_class.remove(&gone.class);
            }
        }
        Some(gone)
    }

    /// All of them, by their ids.
    pub fn ids(&self) -> impl Iterator<Item = &StatusId> {
        self.statuses.keys()
    }

    /// The last rotation of a class, in whatever pod.
    fn last_rotation(&self, class: &ConfigId) -> Option<&PodStatus> {
        self.of(class).filter(|status| matches!(status.got, Got::InPlace(_))).max_by_key(|status| status.version)
    }

    /// How far the statuses of a class were seen.
    pub fn seen_to(&self, class: &ConfigId) -> ResourceVersion {
        self.of(class).map(|status| status.version).max().unwrap_or(ResourceVersion(0))
    }

    fn of(&self, class: &ConfigId) -> impl Iterator<Item = &PodStatus> {
        self.of_class.get(class).into_iter().flatten().filter_map(|id| self.statuses.get(id))
    }

    fn of_pod(&self, class: &ConfigId, pod: &Uid) -> Option<&PodStatus> {
        self.of(class).find(|status| status.pod == *pod)
    }

    /// The objects of which two other pods hold a version that came up well after this pod got its own, and the version
    /// at which that was to be seen.
    fn superseded(&self, own: &PodStatus) -> Option<Behind> {
        let newer = own.objects.iter().filter_map(|(key, held)| {
            let mut others: BTreeMap<&[u8; 32], Vec<&PodStatus>> = BTreeMap::new();
            for (status, other) in self.of(&own.class).filter_map(|status| Some((status, status.objects.get(key)?))) {
                others.entry(other.as_bytes()).or_default().push(status);
            }
            others.remove(held.as_bytes());
            let seen = others.into_values().filter_map(|holders| {
                let first = holders.iter().map(|holder| holder.since).min()?;
                let mut versions: Vec<ResourceVersion> = holders.iter().map(|holder| holder.version).collect();
                versions.sort_unstable();
                // The second holder shows that pods share the versions of this object.
                versions.get(1).copied().filter(|_| first > later(own.since, CLOCK_SKEW))
            });
            Some(Behind { version: seen.max()?, keys: [key.clone()].into() })
        });
        newer.reduce(Behind::and)
    }
}

/// What a pod's processes may not have read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// The version of the status that shows it.
    pub version: ResourceVersion,
    /// The objects; none where they can't be named.
    pub keys: BTreeSet<KeyName>,
}

impl Behind {
    /// Both together.
    pub fn and(self, other: Self) -> Self {
        let can_be_named = !self.keys.is_empty() && !other.keys.is_empty();
        let keys = self.keys.into_iter().chain(other.keys).filter(|_| can_be_named).collect();
        Self { version: self.version.max(other.version), keys }
    }
}

/// What this pod's processes may not have read yet of a class.
pub fn behind(pod: &Pod, class: &ConfigId, sight: &Sight<'_>) -> Option<Behind> {
    let classes = sight.classes?;
    let Some(own) = classes.of_pod(class, &pod.uid) else {
        // Its owner named a class that it does not mount: the last rotation in any pod counts.
        return if mounts(class, sight) { None } else { behind_others(pod, classes.last_rotation(class)?) };
    };
    let rotated = match &own.got {
        Got::InPlace(keys) if !started_since(pod, class, own, sight) => Some(keys),
        Got::InPlace(_) | Got::AtMount => None,
    };
    let rotated = rotated.map(|keys| Behind { version: own.version, keys: keys.clone() });
    rotated.into_iter().chain(classes.superseded(own)).reduce(Behind::and)
}

fn behind_others(pod: &Pod, last: &PodStatus) -> Option<Behind> {
    let keys = match &last.got {
        Got::InPlace(keys) => keys.clone(),
        Got::AtMount => BTreeSet::new(),
    };
    let is_older = pod.created.is_none_or(|created| created < last.since);
    let mut started = pod.containers.iter().map(|container| container.started);
    let started_before = started.any(|started| match started {
        Started::NotYet => false,
        Started::At(started) => started < last.since,
        Started::Unknown => true,
    });
    (is_older && started_before).then_some(Behind { version: last.version, keys })
}

/// Whether this pod has read what the change of a class was about; `None` where its status does not tell.
pub fn has_read(pod: &Pod, class: &ConfigId, sight: &Sight<'_>) -> Option<bool> {
    if sight.classes?.of_pod(class, &pod.uid).is_some() {
        return Some(behind(pod, class, sight).is_none());
    }
    // It has mounted nothing yet, and what it will mount is newer.
    let waits = pod.containers.iter().all(|container| container.started == Started::NotYet);
    (mounts(class, sight) && waits).then_some(true)
}

/// What the last rotation in any pod led to, of a class that the workload only names.
fn rotated_to(class: &ConfigId, key: &HashKey, classes: &ProviderClasses, sight: &Sight<'_>) -> Option<Digest> {
    let last = classes.last_rotation(class).filter(|_| !mounts(class, sight));
    last.map(|status| status.digest(key))
}

fn mounts(class: &ConfigId, sight: &Sight<'_>) -> bool {
    sight.workload.consumption.configs().contains(class)
}

/// Whether its containers have started since its volume holds this.
fn started_since(pod: &Pod, class: &ConfigId, own: &PodStatus, sight: &Sight<'_>) -> bool {
    let readers = sight.workload.consumption.readers(class, sight.counting);
    let reads = |name: &Name| readers.is_empty() || readers.contains(name);
    // A status that is older than its pod was taken over at the mount, which is before any start.
    let is_taken_over = pod.created.is_some_and(|created| own.created < created);
    let from = if is_taken_over { own.since } else { later(own.since, CLOCK_SKEW) };
    let mut reading = pod.containers.iter().filter(|container| reads(&container.name));
    reading.all(|container| match container.started {
        Started::NotYet => true,
        Started::At(started) => started >= from,
        Started::Unknown => false,
    })
}

impl Entry {
    /// Takes what pods hold of a class for read, the first time that this is known.
    pub fn see_class(&mut self, id: &ConfigId, key: &HashKey, sight: &Sight<'_>) {
        let Some(classes) = sight.classes.filter(|_| id.kind == ConfigKind::SecretProviderClass) else { return };
        match sight.policy.adopt {
            Adopt::AsIs => self.follow_class(id, key, classes, sight),
            Adopt::CatchUp => self.seen_to = Some(ResourceVersion(0)),
        }
    }

    fn follow_class(&mut self, id: &ConfigId, key: &HashKey, classes: &ProviderClasses, sight: &Sight<'_>) {
        self.seen_to = Some(classes.seen_to(id));
        self.digest = rotated_to(id, key, classes, sight);
    }

    /// Opens where pods are behind a class for something that was not seen before. Behind a stamp that answers the open
    /// change only its own pods count: the others are going away.
    pub fn observe_class(
        &mut self,
        id: &ConfigId,
        config: &ConsumedConfig,
        key: &HashKey,
        stamp: Option<&LastStamp>,
        sight: &Sight<'_>,
    ) -> Option<News> {
        let classes = sight.classes?;
        if config.attention == Attention::Ignored {
            self.follow_class(id, key, classes, sight);
            self.change = None;
            return None;
        }
        let Some(seen_to) = self.seen_to else {
            self.see_class(id, key, sight);
            return None;
        };
        // Others' pods are rotated one after the other, to the same versions.
        let rotated_to = rotated_to(id, key, classes, sight);
        if rotated_to.is_some() && rotated_to == self.digest {
            return None;
        }
        let is_answered = self.change.as_ref().is_some_and(|change| change.answer != Answer::None);
        let made_from = |stamp: &LastStamp, pod: &Pod| {
            pod.stamp.as_ref() == Some(&stamp.text) || pod.created.is_some_and(|created| created >= stamp.time)
        };
        let counts = |pod: &&Pod| !is_answered || stamp.is_some_and(|stamp| made_from(stamp, pod));
        let behind = active(sight).filter(counts).filter_map(|pod| behind(pod, id, sight));
        let behind = behind.filter(|behind| behind.version > seen_to).reduce(Behind::and)?;
        self.seen_to = Some(behind.version);
        self.digest = rotated_to;
        self.open(sight.now, Some(behind.version), behind.keys.clone());
        Some(News::Changed { config: id.local(), keys: behind.keys })
    }
}

#[cfg(test)]
mod tests;
