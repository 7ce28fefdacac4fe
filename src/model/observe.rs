//! When entries open: what a workload consumes now, compared with what its record says.
//!
//! Everything follows from the state of the objects, whatever event woke us; a change while nobody watched is seen on
//! the first look after it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::model::adoption::{Adopted, Adoption};
use crate::model::config::Configs;
use crate::model::consumed::{Attention, Consumed, ConsumedConfig, Presence};
use crate::model::counting::Counting;
use crate::model::delivered::{CLOCK_SKEW, active, later};
use crate::model::digest::{HashKey, Keyring};
use crate::model::names::{ConfigId, ConfigKind, ConfigName, KeyName, Name, ResourceVersion, Uid};
use crate::model::pod::{Pod, Started};
use crate::model::policy::{Adopt, Edge, Policy};
use crate::model::provider_class::ProviderClasses;
use crate::model::record::{Answer, Entry, LastStamp, Record, Seen};
use crate::model::rerun::Run;
use crate::model::revision::OwnPods;
use crate::model::stamp::Stamp;
use crate::model::workload::Workload;

/// All that there is to see of an adopted workload at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Its uid.
    pub uid: &'a Uid,
    /// What counts for it.
    pub counting: &'a Counting,
    /// What it consumes.
    pub consumed: &'a Consumed,
    /// All configs.
    pub configs: &'a Configs,
    /// What pods hold of SecretProviderClasses, where that is known.
    pub classes: Option<&'a ProviderClasses>,
    /// Its pods.
    pub pods: &'a [&'a Pod],
    /// The ReplicaSet that its controller works towards, for a Deployment.
    pub replica_set: Option<&'a Uid>,
    /// Whether its namespace is being deleted.
    pub namespace_deleting: bool,
    /// Whether there are pods in its namespace of which only their ReplicaSet tells whose they are, and it is unknown.
    pub has_unplaced_pods: bool,
    /// The latest version that the watch of its pods has shown, of any pod.
    pub pods_seen_to: Option<ResourceVersion>,
    /// Whether this process has looked at it before: from then on it knows of each stamp of its own.
    pub is_followed: bool,
    /// The choices of whoever runs restamp.
    pub policy: &'a Policy,
    /// The time.
    pub now: Timestamp,
}

impl<'a> Sight<'a> {
    /// Its pods.
    pub fn own_pods(&self) -> OwnPods<'a> {
        OwnPods { workload: self.workload, pods: self.pods, replica_set: self.replica_set }
    }
}

/// What a look at a workload brought to light.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// Consumed keys changed: the entry is open. The keys are empty where they can't be named.
    Changed {
        /// The config.
        config: ConfigName,
        /// Its changed keys.
        keys: BTreeSet<KeyName>,
    },
    /// The workload, or some of its entries, can't be compared with a record: what there is now is taken for read.
    Adopted(Adopted),
    /// The stamp is gone from the template while a change is open.
    StampGone,
    /// The opt-in went together with an edit of the template, as by `kubectl rollout undo`, which puts back the
    /// annotations of the earlier revision.
    OptInGone,
}

impl Record {
    /// First sight of a workload: entries with the digests of this moment.
    ///
    /// They are closed, unless the workload was made before our eyes and a config is newer: its pods may have
    /// started on the older one. A required config that appeared after the workload is not: the pods waited for it.
    pub fn adopt(sight: &Sight<'_>, keyring: &Keyring, why: Adoption) -> (Self, Adopted) {
        let stamp = sight.workload.stamp.clone();
        let stamp = stamp.map(|text| match sight.workload.made_for.clone() {
            Some((cause, made)) => LastStamp { cause, ..LastStamp::found(text, made) },
            None => LastStamp::found(text, sight.now),
        });
        let mut record = Self { counting: sight.counting.clone(), stamp, ..Self::default() };
        let mut adopted = Adopted { why, maybe_unread: BTreeSet::new() };
        for (id, config) in sight.consumed.iter() {
            let mut entry = Entry::new(id, config, keyring.current(), sight.now);
            entry.see_class(id, keyring.current(), sight);
            if let Some(version) = newer_than_the_workload(sight, id, config) {
                entry.open(Seen::Happening, sight.now, Some(version), BTreeSet::new());
            } else if let Some(written) = likely_unread(sight, id, config) {
                match sight.policy.adopt {
                    Adopt::CatchUp => entry.open(Seen::Afterwards, written, config.version(), BTreeSet::new()),
                    Adopt::AsIs => drop(adopted.maybe_unread.insert(id.local())),
                }
            }
            record.insert(entry);
        }
        (record, adopted)
    }

    /// Compares the record with what there is, and opens entries.
    pub fn observe(&mut self, sight: &Sight<'_>, keyring: &Keyring) -> Vec<News> {
        let mut news = Vec::new();
        let mut adopted: BTreeMap<Adoption, BTreeSet<ConfigName>> = BTreeMap::new();
        let workload = sight.workload;
        let other_counting = (self.counting != *sight.counting)
            .then(|| Consumed::of(&workload.id.namespace, &workload.consumption, &self.counting, sight.configs));
        let before = other_counting.as_ref().unwrap_or(sight.consumed);
        self.counting = sight.counting.clone();
        let stamp = self.attempt.clone().or_else(|| self.stamp.clone());
        self.drop_what_is_not_consumed(sight);
        for (id, config) in sight.consumed.iter() {
            let counted = before.get(id);
            match self.entry_mut(&id.local()) {
                Some(entry) if id.kind == ConfigKind::SecretProviderClass => {
                    news.extend(entry.observe_class(id, config, keyring.current(), stamp.as_ref(), sight));
                }
                Some(entry) => match entry.observe(id, config, counted, sight, keyring) {
                    Some(News::Adopted(anew)) => adopted.entry(anew.why).or_default().extend(anew.maybe_unread),
                    seen => news.extend(seen),
                },
                None => {
                    let mut entry = Entry::new(id, config, keyring.current(), sight.now);
                    // An edit of the template made the workload consume it, not one of the annotation.
                    let counts = config.attention == Attention::Counts;
                    if entry.digest.is_some() && counted.is_some() && counts {
                        news.push(open(&mut entry, config, sight, BTreeSet::new()));
                    }
                    entry.see_class(id, keyring.current(), sight);
                    self.insert(entry);
                }
            }
        }
        // The template of a Job never changes, and a CronJob is not stamped.
        if sight.workload.run == Run::NotOne {
            news.extend(self.observe_stamp(sight, keyring));
        }
        let adopted = adopted.into_iter().map(|(why, maybe_unread)| News::Adopted(Adopted { why, maybe_unread }));
        news.extend(adopted);
        news
    }

    /// What is unknown is carried over.
    fn drop_what_is_not_consumed(&mut self, sight: &Sight<'_>) {
        self.entries.retain(|entry| {
            let id = entry.config.within(&sight.workload.id.namespace);
            let unknown = sight.configs.is_unknown(&id) && sight.counting.names(&id);
            unknown || sight.consumed.get(&id).is_some()
        });
    }

    /// Compares the record's stamp with the one that the template carries.
    fn observe_stamp(&mut self, sight: &Sight<'_>, keyring: &Keyring) -> Option<News> {
        let generation = sight.workload.generation;
        let live = sight.workload.stamp.as_deref();
        let known = self.stamp.as_ref().map(|stamp| stamp.text.as_str());
        if live == known {
            return None;
        }
        let ours = |text: Option<&str>| text.and_then(read_stamp).filter(|stamp| stamp.was_put_on(generation));
        let (ours_before, ours_now) = (ours(known), ours(live));
        if live.is_some_and(|live| self.confirm(live)) {
            return None;
        }
        match ours_now {
            Some(live) if ours_before.is_none_or(|known| live.is_newer_than(&known)) => {
                self.take_over(&live, sight, keyring);
                None
            }
            _ => self.lose_stamp(),
        }
    }

    /// A stamp of ours that the record does not name: we were interrupted between the two. Where it fits what there is
    /// now, it answers the open changes; otherwise pods may have read what is neither in the record nor there now.
    ///
    /// That holds for a stamp that is later than the record. One that another process put on while we look, or that
    /// was sent before the record's attempt, may be older than a change that led back to the state that it fits.
    fn take_over(&mut self, live: &Stamp, sight: &Sight<'_>, keyring: &Keyring) {
        let key = live.digest.key_id().and_then(|id| keyring.find(id));
        self.stamp = Some(LastStamp::found(live.to_string(), sight.now));
        if sight.is_followed {
            self.open_changes_mut().for_each(|change| change.answer = Answer::None);
            return;
        }
        let sent = self.attempt.as_ref().and_then(|attempt| read_stamp(&attempt.text));
        let is_later = sent.is_none_or(|sent| live.is_newer_than(&sent));
        let Some(key) = key else { return };
        let fits = is_later && sight.consumed.digest(sight.uid, key) == live.digest;
        for entry in &mut self.entries {
            // No digest tells what pods hold of a class; the pods do.
            let is_class = entry.config.kind == ConfigKind::SecretProviderClass;
            match &mut entry.change {
                Some(change) if is_class => change.answer = Answer::None,
                Some(change) if fits => change.answer = Answer::Stamped,
                None if fits || is_class => {}
                Some(_) | None => {
                    let config = sight.consumed.get(&entry.config.within(&sight.workload.id.namespace));
                    let version = config.and_then(ConsumedConfig::version);
                    entry.open(Seen::Afterwards, sight.now, version, BTreeSet::new());
                }
            }
        }
    }

    /// Somebody took the stamp away. Only while a change is open does it matter.
    fn lose_stamp(&mut self) -> Option<News> {
        let mut lost = false;
        for change in self.open_changes_mut().filter(|change| change.answer == Answer::Stamped) {
            change.answer = Answer::None;
            lost = true;
        }
        if !lost {
            return None;
        }
        if let Some(stamp) = &mut self.stamp {
            stamp.stripped = stamp.stripped.saturating_add(1);
        }
        Some(News::StampGone)
    }
}

impl Entry {
    /// `counted` are the keys that count by the record's annotation: one that only counts now was not changed by that.
    fn observe(
        &mut self,
        id: &ConfigId,
        config: &ConsumedConfig,
        counted: Option<&ConsumedConfig>,
        sight: &Sight<'_>,
        keyring: &Keyring,
    ) -> Option<News> {
        if config.presence == Presence::Unknown {
            return None;
        }
        if config.presence == Presence::Absent {
            return self.vanish(config, sight);
        }
        if config.attention == Attention::Ignored {
            self.follow(id, config, keyring.current());
            return None;
        }
        let Some(digest) = &self.digest else {
            return self.appear(id, config, sight, keyring);
        };
        let Some(key) = digest.key_id().and_then(|key| keyring.find(key)) else {
            let why = if digest.key_id().is_some() { Adoption::HashKeyLost } else { Adoption::OtherAlgorithm };
            *self = Self { change: self.change.take(), ..Self::new(id, config, keyring.current(), sight.now) };
            let maybe_unread = likely_unread(sight, id, config).map(|_| id.local()).into_iter().collect();
            return Some(News::Adopted(Adopted { why, maybe_unread }));
        };
        let back_since = self.absent_since.take();
        let changed = if !self.all && counted.is_some_and(|counted| counted.all) {
            // An edit of the template: an earlier one may have consumed keys that are gone since.
            Changed::Keys(BTreeSet::new())
        } else if config.digest(id, key).as_ref() == Some(digest) {
            Changed::Nothing
        } else {
            self.changed_keys(id, config, counted, sight, key)
        };
        self.update(id, config, keyring.current());
        match (changed, back_since) {
            (Changed::Keys(keys), _) => Some(open(self, config, sight, keys)),
            (Changed::Nothing, Some(since)) if config.optional && started_since(sight, id, since) => {
                Some(open(self, config, sight, BTreeSet::new()))
            }
            (Changed::Nothing, _) => None,
        }
    }

    /// A config is gone. By itself that opens nothing: running containers keep what they have read.
    fn vanish(&mut self, config: &ConsumedConfig, sight: &Sight<'_>) -> Option<News> {
        let was_there = self.digest.is_some() && self.absent_since.is_none();
        self.absent_since.get_or_insert(sight.now);
        let counts = config.optional && sight.policy.on_delete == Edge::Roll;
        let keys = self.keys.keys().cloned().collect();
        (was_there && counts).then(|| open(self, config, sight, keys))
    }

    /// A config that was never there before appears. Where it is required the pods waited for it. One that was only
    /// unknown is seen for the first time.
    fn appear(&mut self, id: &ConfigId, config: &ConsumedConfig, sight: &Sight<'_>, keyring: &Keyring) -> Option<News> {
        let was_absent = self.absent_since.is_some();
        *self = Self::new(id, config, keyring.current(), sight.now);
        let optional = config.optional && sight.policy.on_create == Edge::Roll;
        let may_be_unread = was_absent && (optional || !is_as_it_was_made(sight, id) || ran_before(sight, id));
        may_be_unread.then(|| open(self, config, sight, config.keys.keys().cloned().collect()))
    }

    /// Which consumed keys differ from the record. One that is still live and no longer consumed is no change.
    fn changed_keys(
        &self,
        id: &ConfigId,
        config: &ConsumedConfig,
        counted: Option<&ConsumedConfig>,
        sight: &Sight<'_>,
        key: &HashKey,
    ) -> Changed {
        let now = Self::new(id, config, key, sight.now).keys;
        if now.is_empty() != config.keys.is_empty() || self.keys.is_empty() {
            return Changed::Keys(BTreeSet::new());
        }
        let differs = now.iter().filter(|(name, digest)| match self.keys.get(*name) {
            Some(known) => known != *digest,
            None => counted.is_some_and(|counted| counted.keys.contains_key(*name)),
        });
        let differs = differs.map(|(name, _)| name);
        let is_live = |name: &KeyName| sight.configs.values(id).is_some_and(|values| values.contains_key(name));
        let gone = self.keys.keys().filter(|name| !now.contains_key(*name) && !is_live(name));
        let changed: BTreeSet<KeyName> = differs.chain(gone).cloned().collect();
        if changed.is_empty() { Changed::Nothing } else { Changed::Keys(changed) }
    }
}

/// What differs between a record's entry and what there is.
enum Changed {
    Nothing,
    /// These keys; empty where they can't be named.
    Keys(BTreeSet<KeyName>),
}

fn read_stamp(text: &str) -> Option<Stamp> {
    text.parse().ok()
}

fn open(entry: &mut Entry, config: &ConsumedConfig, sight: &Sight<'_>, keys: BTreeSet<KeyName>) -> News {
    let seen = if sight.is_followed { Seen::Happening } else { Seen::Afterwards };
    entry.open(seen, sight.now, config.version(), keys.clone());
    News::Changed { config: entry.config.clone(), keys }
}

/// The config's version, if it was written after the workload was made and pods may have started before that.
fn newer_than_the_workload(sight: &Sight<'_>, id: &ConfigId, config: &ConsumedConfig) -> Option<ResourceVersion> {
    let version = config.version()?;
    if version <= sight.workload.born? || config.attention == Attention::Ignored {
        return None;
    }
    let waited_for = !config.optional && is_as_it_was_made(sight, id);
    (!waited_for).then_some(version)
}

/// When a config was last written, if some container that reads it started before that. managedFields don't tell what was
/// written: a likely change.
fn likely_unread(sight: &Sight<'_>, id: &ConfigId, config: &ConsumedConfig) -> Option<Timestamp> {
    if config.attention == Attention::Ignored {
        return None;
    }
    let live = sight.configs.get(id)?;
    let written = live.last_write_of_values().max(live.created)?;
    let readers = sight.workload.consumption.readers(id, sight.counting);
    let mut containers = active(sight).flat_map(|pod| &pod.containers);
    let started_earlier = |started| matches!(started, Started::At(started) if started < written);
    containers
        .any(|container| readers.contains(&container.name) && started_earlier(container.started))
        .then_some(written)
}

/// Whether this config was seen as it was made, and nobody wrote it since.
fn is_as_it_was_made(sight: &Sight<'_>, config: &ConfigId) -> bool {
    let config = sight.configs.get(config);
    config.is_some_and(|config| config.born.is_some() && config.born == config.resource_version)
}

/// Whether a container that reads this config runs since before it was made: then it has read an earlier one.
fn ran_before(sight: &Sight<'_>, config: &ConfigId) -> bool {
    let made = sight.configs.get(config).and_then(|config| config.created).unwrap_or(sight.now);
    let readers = sight.workload.consumption.readers(config, sight.counting);
    let containers = active(sight).flat_map(|pod| &pod.containers);
    containers.filter(|container| readers.contains(&container.name)).any(|container| match container.started {
        Started::NotYet => false,
        Started::At(started) => later(started, CLOCK_SKEW) < made,
        Started::Unknown => true,
    })
}

/// Whether a container that starts without this config may have done so since then. One that is shown as waiting may
/// have started a moment ago.
fn started_since(sight: &Sight<'_>, config: &ConfigId, since: Timestamp) -> bool {
    let readers = sight.workload.consumption.starts_without(config);
    let shows = |pod: &Pod, name: &Name| pod.containers.iter().any(|container| container.name == *name);
    active(sight).any(|pod| {
        let mut reading = pod.containers.iter().filter(|container| readers.contains(&container.name));
        let is_starting = readers.iter().any(|name| !shows(pod, name));
        is_starting
            || reading.any(|container| match container.started {
                Started::At(started) => later(started, CLOCK_SKEW) >= since,
                Started::NotYet | Started::Unknown => true,
            })
    })
}

#[cfg(test)]
mod tests;
