//! The record: what restamp knows of a workload's configs. It lives in the status of the workload's DriftReport.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::cause::Cause;
use crate::model::consumed::{ConsumedConfig, Presence};
use crate::model::counting::Counting;
use crate::model::digest::{Digest, HashKey, KeyDigest};
use crate::model::names::{ConfigId, ConfigName, KeyName, ResourceVersion};

/// The record of one workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// What counted when the entries were made.
    #[serde(default)]
    pub counting: Counting,
    /// An entry for each consumed config, in the order of their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Entry>,
    /// The last stamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<LastStamp>,
    /// The stamp that was sent last, until it is seen. A record that is written meanwhile has it too: what changed
    /// after it was sent is not answered by it, also after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<LastStamp>,
}

/// What is known of one consumed config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The config, as `Kind/name`.
    pub config: ConfigName,
    /// The digest of its consumed keys; none while it was never seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Whether whatever keys it has are consumed.
    #[serde(default)]
    pub all: bool,
    /// The consumed keys, each with a short digest; empty where there are too many to name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<KeyName, KeyDigest>,
    /// When it last changed, as far as restamp saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_changed: Option<Timestamp>,
    /// Since when it does not exist; none while it is out of restamp's scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_since: Option<Timestamp>,
    /// Of a SecretProviderClass: the version up to which what pods hold was taken for read, or is the open change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_to: Option<ResourceVersion>,
    /// The change that is not delivered yet: while there is one, the entry is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
}

/// A change that some running container may not have read yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// When restamp saw the first change that no stamp answers.
    pub first_seen: Timestamp,
    /// When restamp saw the last one.
    pub last_seen: Timestamp,
    /// The config's version when restamp saw the last one: that one, or a later write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ResourceVersion>,
    /// The keys that changed; empty where they can't be named.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub keys: BTreeSet<KeyName>,
    /// Whether the record's last stamp was made for it.
    #[serde(default)]
    pub answer: Answer,
    /// Whether restamp saw the last one as it happened.
    #[serde(default)]
    pub seen: Seen,
}

/// Whether restamp saw a change as it happened: only then is it certain that it came after what had started before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Seen {
    /// It found it when it came back, or for the first time.
    #[default]
    Afterwards,
    /// It did.
    Happening,
}

/// What restamp did about a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Answer {
    /// Nothing yet.
    #[default]
    None,
    /// A stamp was sent, and it is not known yet what became of it.
    Asked,
    /// The record's last stamp was made after it, and for the state that it led to.
    Stamped,
}

/// The last stamp that restamp put on the workload's pod template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastStamp {
    /// Its text.
    pub text: String,
    /// When it was made.
    pub time: Timestamp,
    /// Why; empty for one that was found on the template, and that the record did not name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// How often somebody took it away while a change was open.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "i32")]
    pub stripped: u8,
    /// How the rollout before it stood.
    #[serde(default, skip_serializing_if = "Before::is_unsettled")]
    pub before: Before,
}

/// How the rollout before a stamp stood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Before {
    /// It was in progress, or stalled; or that is not known.
    #[default]
    Unsettled,
    /// Its pods all ran.
    Settled,
}

impl Before {
    fn is_unsettled(&self) -> bool {
        *self == Self::Unsettled
    }
}

impl LastStamp {
    /// One that the template carries and that no record names.
    pub fn found(text: String, time: Timestamp) -> Self {
        Self { text, time, cause: String::new(), stripped: 0, before: Before::default() }
    }
}

fn is_zero(count: &u8) -> bool {
    *count == 0
}

/// An entry names its keys up to this many; the digest over all of them is there in any case.
const MOST_KEYS_NAMED: usize = 500;

impl Record {
    /// The entry of this config.
    pub fn entry(&self, config: &ConfigName) -> Option<&Entry> {
        self.position(config).ok().and_then(|index| self.entries.get(index))
    }

    /// The entry of this config, to be changed.
    pub fn entry_mut(&mut self, config: &ConfigName) -> Option<&mut Entry> {
        self.position(config).ok().and_then(|index| self.entries.get_mut(index))
    }

    /// Puts an entry in its place.
    pub fn insert(&mut self, entry: Entry) {
        match self.position(&entry.config) {
            Ok(index) => {
                if let Some(place) = self.entries.get_mut(index) {
                    *place = entry;
                }
            }
            Err(index) => self.entries.insert(index, entry),
        }
    }

    /// The entries with a change that is not delivered yet.
    pub fn open_entries(&self) -> impl Iterator<Item = (&Entry, &Change)> {
        self.entries.iter().filter_map(|entry| Some((entry, entry.change.as_ref()?)))
    }

    /// The changes that are not delivered yet, to be changed.
    pub fn open_changes_mut(&mut self) -> impl Iterator<Item = &mut Change> {
        self.entries.iter_mut().filter_map(|entry| entry.change.as_mut())
    }

    /// The changes that the last stamp does not answer.
    pub fn unanswered(&self) -> impl Iterator<Item = &Change> {
        self.open_entries().map(|(_, change)| change).filter(|change| change.answer != Answer::Stamped)
    }

    /// Whether the last stamp answers every open change.
    pub fn is_answered(&self) -> bool {
        self.unanswered().next().is_none()
    }

    /// Every open change is delivered.
    pub fn close(&mut self) {
        for entry in &mut self.entries {
            entry.change = None;
        }
        if let Some(stamp) = &mut self.stamp {
            stamp.stripped = 0;
        }
    }

    /// A stamp for the open changes is being sent.
    pub fn ask(&mut self, text: String, time: Timestamp) -> &mut LastStamp {
        self.open_changes_mut().for_each(|change| change.answer = Answer::Asked);
        let cause = Cause::of(self).to_string();
        self.attempt.insert(LastStamp { cause, ..LastStamp::found(text, time) })
    }

    /// The stamp with this text was put on, if it is the one that was sent last: it answers the changes that it was
    /// sent for, and none that came after. Returns whether it was.
    pub fn confirm(&mut self, text: &str) -> bool {
        let Some(attempt) = self.attempt.take_if(|attempt| attempt.text == text) else { return false };
        let asked = self.open_changes_mut().filter(|change| change.answer == Answer::Asked);
        asked.for_each(|change| change.answer = Answer::Stamped);
        let stripped = self.stamp.as_ref().map_or(0, |stamp| stamp.stripped);
        self.stamp = Some(LastStamp { stripped, ..attempt });
        true
    }

    /// The stamp that was sent last is known not to be on the workload.
    pub fn refuse(&mut self, text: &str) {
        if self.attempt.take_if(|attempt| attempt.text == text).is_some() {
            let asked = self.open_changes_mut().filter(|change| change.answer == Answer::Asked);
            asked.for_each(|change| change.answer = Answer::None);
        }
    }

    fn position(&self, config: &ConfigName) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.config.cmp(config))
    }
}

impl Entry {
    /// A closed entry with the digests of this moment.
    pub fn new(id: &ConfigId, config: &ConsumedConfig, key: &HashKey, now: Timestamp) -> Self {
        let digest = config.digest(id, key);
        Self {
            config: id.local(),
            absent_since: (config.presence == Presence::Absent).then_some(now),
            digest,
            all: config.all,
            keys: name_keys(id, config, key),
            last_changed: None,
            seen_to: None,
            change: None,
        }
    }

    /// Takes over the digests of this moment.
    pub fn update(&mut self, id: &ConfigId, config: &ConsumedConfig, key: &HashKey) {
        self.digest = config.digest(id, key);
        self.all = config.all;
        self.keys = name_keys(id, config, key);
    }

    /// Takes over the digests of this moment, and forgets what is not delivered: its changes roll nobody.
    pub fn follow(&mut self, id: &ConfigId, config: &ConsumedConfig, key: &HashKey) {
        self.update(id, config, key);
        self.absent_since = None;
        self.change = None;
    }

    /// Opens it, or notes one more change of an open one.
    pub fn open(&mut self, seen: Seen, now: Timestamp, version: Option<ResourceVersion>, keys: BTreeSet<KeyName>) {
        self.last_changed = Some(now);
        let before = self.change.take();
        let waiting = before.as_ref().filter(|change| change.answer != Answer::Stamped);
        let first_seen = waiting.map_or(now, |change| change.first_seen);
        let earlier = before.into_iter().flat_map(|change| change.keys);
        let keys = earlier.chain(keys).take(MOST_KEYS_NAMED).collect();
        self.change = Some(Change { first_seen, last_seen: now, version, keys, answer: Answer::None, seen });
    }
}

fn name_keys(id: &ConfigId, config: &ConsumedConfig, key: &HashKey) -> BTreeMap<KeyName, KeyDigest> {
    if config.keys.len() > MOST_KEYS_NAMED {
        return BTreeMap::new();
    }
    let digest = |(name, value): (&KeyName, &Option<_>)| (name.clone(), key.digest_key(id, name, value.as_ref()));
    config.keys.iter().map(digest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn entry(name: &str) -> Entry {
        Entry {
            config: format!("Secret/{name}").try_into().unwrap(),
            digest: None,
            all: false,
            keys: BTreeMap::new(),
            last_changed: None,
            absent_since: None,
            seen_to: None,
            change: None,
        }
    }

    #[test]
    fn entries_stand_in_order_and_once() {
        let mut record = Record::default();
        for name in ["b", "a", "b"] {
            record.insert(entry(name));
        }
        assert_eq!(record.entries, [entry("a"), entry("b")]);
    }

    #[test]
    fn a_stamp_answers_the_changes_that_it_was_sent_for() {
        let mut record = Record { entries: vec![entry("early"), entry("late")], ..Record::default() };
        let [early, late] = ["early", "late"].map(|name| entry(name).config);
        record.entry_mut(&early).unwrap().open(Seen::Happening, at(1), None, BTreeSet::new());
        record.ask("s".to_owned(), at(2));
        record.entry_mut(&late).unwrap().open(Seen::Happening, at(2), None, BTreeSet::new());
        assert!(!record.confirm("another"));
        assert!(record.confirm("s"));
        let answers: Vec<_> = record.open_entries().map(|(_, change)| change.answer).collect();
        assert_eq!(answers, [Answer::Stamped, Answer::None]);
        assert!(!record.is_answered());
    }

    #[test]
    fn a_change_again_is_not_answered_by_the_earlier_stamp() {
        let mut record = Record { entries: vec![entry("a")], ..Record::default() };
        let a = entry("a").config;
        record.entry_mut(&a).unwrap().open(Seen::Happening, at(1), None, ["A".into()].into());
        record.ask("s".to_owned(), at(2));
        record.confirm("s");
        record.entry_mut(&a).unwrap().open(Seen::Happening, at(3), None, ["B".into()].into());
        let change = record.entry(&a).unwrap().change.clone().unwrap();
        let expected = Change {
            first_seen: at(3),
            last_seen: at(3),
            version: None,
            keys: ["A".into(), "B".into()].into(),
            answer: Answer::None,
            seen: Seen::Happening,
        };
        assert_eq!(change, expected);
    }
}
