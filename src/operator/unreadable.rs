//! The objects of one watch that can't be read: the metric tells how many there are at present.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::runtime::watcher;

use crate::model::watched::Watched;
use crate::operator::metrics::Metrics;

/// What tells an object from others of its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    namespace: Option<String>,
    name: Option<String>,
}

impl ObjectName {
    /// The one with this metadata.
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self { namespace: metadata.namespace.clone(), name: metadata.name.clone() }
    }
}

/// Those that can't be read at present.
#[derive(Debug)]
pub struct Unreadables {
    kind: Watched,
    metrics: Metrics,
    /// Changed by the one task of its watch alone.
    now: Mutex<BTreeSet<ObjectName>>,
}

impl Unreadables {
    /// None is known yet.
    pub fn new(kind: Watched, metrics: Metrics) -> Self {
        Self { kind, metrics, now: Mutex::default() }
    }

    /// Reads an event; nothing is left of one about an object that can't be read. A list that begins knows of none.
    pub fn passed_over<K: Resource, T>(
        &self,
        event: watcher::Event<K>,
        read: impl FnOnce(watcher::Event<K>) -> Result<Option<T>, ObjectName>,
    ) -> Option<T> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let before = now.len();
        let is_gone = matches!(event, watcher::Event::Delete(_));
        match &event {
            watcher::Event::Init => now.clear(),
            watcher::Event::InitDone => {}
            // Most of the time there is none, and no name is copied.
            watcher::Event::InitApply(object) | watcher::Event::Apply(object) | watcher::Event::Delete(object) => {
                if !now.is_empty() {
                    now.remove(&ObjectName::of(object.meta()));
                }
            }
        }
        let left = read(event).unwrap_or_else(|unreadable| {
            if !is_gone {
                now.insert(unreadable);
            }
            None
        });
        let change = i64::try_from(now.len()).unwrap_or_default() - i64::try_from(before).unwrap_or_default();
        if change != 0 {
            self.metrics.unreadable(self.kind, change);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::ConfigKind;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::watcher::Event;

    fn object(name: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            ..ConfigMap::default()
        }
    }

    #[test]
    fn an_object_counts_until_it_can_be_read_or_is_gone() {
        let metrics = Metrics::new().unwrap();
        let unreadables = Unreadables::new(Watched::Config(ConfigKind::ConfigMap), metrics.clone());
        let sees = |event: Event<ConfigMap>, can_be_read: bool| {
            let name = match &event {
                Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => {
                    ObjectName::of(&object.metadata)
                }
                Event::Init | Event::InitDone => ObjectName { namespace: None, name: None },
            };
            let read = |_| if can_be_read { Ok(Some(())) } else { Err(name) };
            assert_eq!(unreadables.passed_over(event, read).is_some(), can_be_read);
            let text = metrics.render().unwrap();
            let line =
                text.lines().find_map(|line| line.strip_prefix("restamp_unreadable_objects{kind=\"ConfigMap\"} "));
            line.map(str::to_owned)
        };
        let count = |many: &str| Some(many.to_owned());
        assert_eq!(sees(Event::Apply(object("a")), true), None);
        assert_eq!(sees(Event::Apply(object("a")), false), count("1"));
        assert_eq!(sees(Event::Apply(object("a")), false), count("1"));
        assert_eq!(sees(Event::Apply(object("b")), false), count("2"));
        assert_eq!(sees(Event::Apply(object("b")), true), count("1"));
        assert_eq!(sees(Event::Delete(object("a")), false), count("0"));
        assert_eq!(sees(Event::Apply(object("c")), false), count("1"));
        assert_eq!(sees(Event::Init, true), count("0"));
    }
}
