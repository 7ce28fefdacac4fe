//! Keys of a config, kept tightly: there are many configs in a cluster, and most of them have few keys.

use std::collections::{BTreeMap, BTreeSet};

use litemap::LiteMap;

use crate::model::names::KeyName;

/// Something about each key, in the keys' order.
pub type KeyMap<V> = LiteMap<KeyName, V>;

/// The same, without room for more.
pub fn tight<V>(map: BTreeMap<KeyName, V>) -> KeyMap<V> {
    LiteMap::from_sorted_store_unchecked(map.into_iter().collect())
}

/// Some keys, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeySet(KeyMap<()>);

impl KeySet {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this key is one of them.
    pub fn contains(&self, key: &KeyName) -> bool {
        self.0.contains_key(key)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &KeyName> {
        self.0.keys()
    }
}

impl From<BTreeSet<KeyName>> for KeySet {
    fn from(keys: BTreeSet<KeyName>) -> Self {
        Self(LiteMap::from_sorted_store_unchecked(keys.into_iter().map(|key| (key, ())).collect()))
    }
}
