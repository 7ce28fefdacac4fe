//! What the operator holds of Helm releases: what each declares of the objects that name it, as of these objects' versions.
//!
//! Nothing is said of an object between its change, or that of its release, and the look at both: what stands in its
//! report stays until then.

use std::collections::{BTreeMap, HashMap};

use super::ReleaseId;
use super::manifest::Keys;
use crate::model::config::Config;
use crate::model::fields::{Fields, Manifest};
use crate::model::last_applied::LastApplied;
use crate::model::names::{ConfigId, ResourceVersion, WorkloadId};
use crate::model::workload::Workload;

/// The Secret with a release's newest revision, at its version.
pub type SecretVersion = (String, ResourceVersion);

/// What is known of an object's release.
#[derive(Debug, Clone, PartialEq)]
pub enum Sight<T> {
    /// It names none that counts, or that one says nothing about it.
    Nothing,
    /// It has to be looked at first.
    Pending,
    /// It declares this.
    Declared(T),
}

/// What a workload was when its release was looked at: where these are the same, so is what was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Basis {
    /// It rises with each change of the spec.
    pub generation: i64,
    /// Its facts without the release, with the times of all who write to its spec.
    fields: Box<Fields>,
}

impl Basis {
    fn of(workload: &Workload) -> Self {
        Self { generation: workload.generation, fields: workload.fields.clone() }
    }
}

/// A look at a release, and at the objects of it that are asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Which release.
    pub release: ReleaseId,
    /// The revision that was read before.
    pub known: Option<SecretVersion>,
    /// The configs, at their versions.
    pub configs: BTreeMap<ConfigId, Option<ResourceVersion>>,
    /// The workloads, as they were.
    pub workloads: BTreeMap<WorkloadId, Basis>,
}

/// What a look found.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// The release is as it was.
    Unchanged,
    /// It says this.
    Declares {
        /// Where; nothing if it says nothing.
        secret: Option<SecretVersion>,
        /// All keys that it declares.
        keys: BTreeMap<ConfigId, Keys>,
        /// How the workloads that were looked at differ, where it declares them.
        fields: BTreeMap<WorkloadId, Fields>,
    },
}

/// The objects that are to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named {
    /// Configs.
    pub configs: Vec<ConfigId>,
    /// Workloads.
    pub workloads: Vec<WorkloadId>,
}

/// The releases.
#[derive(Debug, Default)]
pub struct Held(HashMap<ReleaseId, Entry>);

#[derive(Debug, Default)]
struct Entry {
    secret: Option<SecretVersion>,
    keys: BTreeMap<ConfigId, Keys>,
    configs: BTreeMap<ConfigId, Option<ResourceVersion>>,
    workloads: BTreeMap<WorkloadId, (Basis, Option<Fields>)>,
    due_configs: BTreeMap<ConfigId, Option<ResourceVersion>>,
    due_workloads: BTreeMap<WorkloadId, Basis>,
    under_way: bool,
    /// The release changed while a look was under way: what that one finds may be of before.
    outdated: bool,
}

impl Held {
    /// What the release of a config declares of it; what is not known is due from then on.
    pub fn of_config(&mut self, config: &Config) -> Sight<Keys> {
        let counts = !matches!(config.last_applied, LastApplied::Declares(_));
        let Some(release) = config.release().filter(|_| counts) else { return Sight::Nothing };
        let entry = self.0.entry(release.clone()).or_default();
        if entry.configs.get(&config.id) == Some(&config.resource_version) {
            return entry.keys.get(&config.id).cloned().map_or(Sight::Nothing, Sight::Declared);
        }
        entry.due_configs.insert(config.id.clone(), config.resource_version);
        Sight::Pending
    }

    /// How a workload differs from what its release declares; the same.
    pub fn of_workload(&mut self, workload: &Workload) -> Sight<Fields> {
        let counts = !matches!(workload.fields.manifest, Manifest::Current { .. });
        let Some(release) = workload.release().filter(|_| counts) else { return Sight::Nothing };
        let entry = self.0.entry(release.clone()).or_default();
        let basis = Basis::of(workload);
        match entry.workloads.get(&workload.id) {
            Some((known, fields)) if *known == basis => fields.clone().map_or(Sight::Nothing, Sight::Declared),
            Some(_) | None => {
                entry.due_workloads.insert(workload.id.clone(), basis);
                Sight::Pending
            }
        }
    }

    /// The look that is due at a release, unless one is under way.
    pub fn begin(&mut self, release: &ReleaseId) -> Option<Look> {
        let entry = self.0.get_mut(release)?;
        if entry.under_way || entry.due_configs.is_empty() && entry.due_workloads.is_empty() {
            return None;
        }
        entry.under_way = true;
        Some(Look {
            release: release.clone(),
            known: entry.secret.clone(),
            configs: std::mem::take(&mut entry.due_configs),
            workloads: std::mem::take(&mut entry.due_workloads),
        })
    }

    /// A look failed: it is due still.
    pub fn failed(&mut self, look: Look) {
        let entry = self.0.entry(look.release).or_default();
        (entry.under_way, entry.outdated) = (false, false);
        for (id, version) in look.configs {
            entry.due_configs.entry(id).or_insert(version);
        }
        for (id, basis) in look.workloads {
            entry.due_workloads.entry(id).or_insert(basis);
        }
    }

    /// A look ended; what is to be looked at again because of it.
    pub fn ended(&mut self, look: Look, found: Found) -> Named {
        let entry = self.0.entry(look.release.clone()).or_default();
        if std::mem::take(&mut entry.outdated) {
            self.failed(look);
            return Named::default();
        }
        entry.under_way = false;
        let mut named = Named {
            configs: look.configs.keys().cloned().collect(),
            workloads: look.workloads.keys().cloned().collect(),
        };
        let fields = match found {
            Found::Unchanged => BTreeMap::new(),
            Found::Declares { secret, keys, fields } => {
                if entry.secret != secret {
                    // What was found by another revision counts for nothing.
                    named.configs.extend(entry.configs.keys().cloned());
                    named.workloads.extend(std::mem::take(&mut entry.workloads).into_keys());
                }
                (entry.secret, entry.keys) = (secret, keys);
                fields
            }
        };
        entry.configs.extend(look.configs);
        let of = |(id, basis): (WorkloadId, Basis)| {
            let fields = fields.get(&id).cloned();
            (id, (basis, fields))
        };
        entry.workloads.extend(look.workloads.into_iter().map(of));
        named
    }

    /// A release changed: all that is known of it is due.
    pub fn changed(&mut self, release: &ReleaseId) -> Named {
        let Some(entry) = self.0.get_mut(release) else { return Named::default() };
        entry.outdated = entry.under_way;
        let (configs, workloads) = (std::mem::take(&mut entry.configs), std::mem::take(&mut entry.workloads));
        Named { configs: configs.into_keys().collect(), workloads: workloads.into_keys().collect() }
    }

    /// A config is gone.
    pub fn forget_config(&mut self, id: &ConfigId) {
        self.forget(|entry| {
            entry.configs.remove(id);
            entry.due_configs.remove(id);
        });
    }

    /// A workload is gone.
    pub fn forget_workload(&mut self, id: &WorkloadId) {
        self.forget(|entry| {
            entry.workloads.remove(id);
            entry.due_workloads.remove(id);
        });
    }

    fn forget(&mut self, forget: impl Fn(&mut Entry)) {
        self.0.retain(|_, entry| {
            forget(entry);
            entry.under_way || entry.has_objects()
        });
    }
}

impl Entry {
    fn has_objects(&self) -> bool {
        let Self { configs, workloads, due_configs, due_workloads, .. } = self;
        !(configs.is_empty() && workloads.is_empty() && due_configs.is_empty() && due_workloads.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{deployment, secret};
    use crate::model::source::Origin;

    fn release() -> ReleaseId {
        ReleaseId { namespace: "ns".into(), name: "web".into() }
    }

    fn origin() -> Option<Box<Origin>> {
        Some(Origin { source: None, release: Some(release()) }.into())
    }

    fn config(version: u64) -> Config {
        Config {
            origin: origin(),
            resource_version: Some(ResourceVersion(version)),
            ..secret("s").value("A", "1").build()
        }
    }

    fn workload(generation: i64) -> Workload {
        Workload { origin: origin(), generation, ..deployment("w").build() }
    }

    fn declares(version: u64) -> Found {
        let secret = Some(("v".to_owned(), ResourceVersion(version)));
        let fields = [(workload(1).id, Fields { left_out: 1, ..Fields::default() })];
        Found::Declares { secret, keys: [(config(1).id, Keys::default())].into(), fields: fields.into() }
    }

    /// One that knows of the config and the workload.
    fn held() -> Held {
        let mut held = Held::default();
        assert_eq!(held.of_config(&config(1)), Sight::Pending);
        assert_eq!(held.of_workload(&workload(1)), Sight::Pending);
        let look = held.begin(&release()).unwrap();
        assert_eq!(held.begin(&release()), None);
        let named = Named { configs: vec![config(1).id], workloads: vec![workload(1).id] };
        assert_eq!(held.ended(look, declares(1)), named);
        held
    }

    #[test]
    fn what_was_looked_at_is_known_while_it_is_as_it_was() {
        let mut held = held();
        assert_eq!(held.of_config(&config(1)), Sight::Declared(Keys::default()));
        assert!(matches!(held.of_workload(&workload(1)), Sight::Declared(_)));
        assert_eq!(held.begin(&release()), None);
    }

    #[test]
    fn what_changed_since_has_to_be_looked_at_again() {
        let mut held = held();
        assert_eq!((held.of_config(&config(2)), held.of_workload(&workload(2))), (Sight::Pending, Sight::Pending));
        let look = held.begin(&release()).unwrap();
        assert_eq!(look.known, Some(("v".to_owned(), ResourceVersion(1))));
        // It changes once more meanwhile.
        assert_eq!(held.of_config(&config(3)), Sight::Pending);
        held.ended(look, Found::Unchanged);
        assert_eq!(held.of_config(&config(3)), Sight::Pending);
        assert_eq!(held.of_config(&config(2)), Sight::Declared(Keys::default()));
    }

    #[test]
    fn of_a_release_that_changed_nothing_is_known() {
        let mut held = held();
        let named = Named { configs: vec![config(1).id], workloads: vec![workload(1).id] };
        assert_eq!(held.changed(&release()), named);
        assert_eq!((held.of_config(&config(1)), held.of_workload(&workload(1))), (Sight::Pending, Sight::Pending));
    }

    #[test]
    fn a_look_at_a_release_that_changed_meanwhile_is_due_again() {
        let mut held = held();
        held.of_config(&config(2));
        let look = held.begin(&release()).unwrap();
        held.changed(&release());
        assert_eq!(held.ended(look.clone(), declares(1)), Named::default());
        assert_eq!(held.begin(&release()).map(|look| look.configs), Some(look.configs));
    }

    #[test]
    fn what_another_revision_said_of_other_objects_does_not_count() {
        let mut held = held();
        held.of_config(&config(2));
        let look = held.begin(&release()).unwrap();
        let named = held.ended(look, declares(2));
        assert_eq!(named.workloads, [workload(1).id]);
        assert_eq!(held.of_workload(&workload(1)), Sight::Pending);
    }

    #[test]
    fn a_look_that_failed_is_due_still() {
        let mut held = Held::default();
        held.of_config(&config(1));
        let look = held.begin(&release()).unwrap();
        held.failed(look.clone());
        assert_eq!(held.begin(&release()), Some(look));
    }

    #[test]
    fn what_is_of_no_release_or_was_applied_is_no_affair_of_it() {
        let mut held = Held::default();
        assert_eq!(held.of_config(&secret("s").build()), Sight::Nothing);
        let applied = Config { origin: origin(), ..secret("s").declares(&[]).build() };
        assert_eq!(held.of_config(&applied), Sight::Nothing);
        assert_eq!(held.begin(&release()), None);
    }

    #[test]
    fn nothing_is_held_of_what_is_gone() {
        let mut held = held();
        held.forget_config(&config(1).id);
        held.forget_workload(&workload(1).id);
        assert!(held.0.is_empty());
    }
}
