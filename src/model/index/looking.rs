//! Looking at one workload: adopting it, comparing its record with what there is, and deciding.

use jiff::Timestamp;

use crate::model::adoption::Adoption;
use crate::model::consumed::Consumed;
use crate::model::counting::Counting;
use crate::model::decide::{self, Decision, Hold};
use crate::model::index::{Index, Tracked, Work};
use crate::model::names::{ConfigKind, WorkloadId, WorkloadKind};
use crate::model::observe::{News, Sight};
use crate::model::record::Record;
use crate::model::rerun::Reruns;
use crate::model::rerun::placeholder::{self, Placeholder, Step};
use crate::model::stamp::Stamp;
use crate::model::watched::Watched;
use crate::model::workload::Workload;

const STATUSES: Watched = Watched::Config(ConfigKind::SecretProviderClass);

impl Index {
    /// Looks at one workload: adopts it, or compares its record with what there is.
    pub(super) fn look(&mut self, id: &WorkloadId, now: Timestamp, work: &mut Work) {
        let Some(mut tracked) = self.workloads.remove(id) else { return self.note_standing(id, None, now) };
        work.workloads.insert(id.clone());
        self.load_record(id, &mut tracked);
        let before = tracked.record.take();
        let counting = self.counting(&tracked.workload, before.as_ref().map(|record| &record.counting));
        let rolls = tracked.workload.template_in.is_none() && !counting.is_off();
        if rolls && tracked.other_instance.is_none() {
            tracked.record = match self.unsynced(&tracked.workload) {
                Some(_) => before,
                None => self.with_sight(&tracked, &counting, now, |sight| match before {
                    None => {
                        let (record, adopted) = Record::adopt(sight, &self.keyring, self.why_anew(&tracked.workload));
                        work.news.push((id.clone(), News::Adopted(adopted)));
                        Some(record)
                    }
                    Some(mut record) => {
                        let news = record.observe(sight, &self.keyring);
                        work.news.extend(news.into_iter().map(|news| (id.clone(), news)));
                        Some(record)
                    }
                }),
            };
            tracked.is_followed = self.unsynced(&tracked.workload).is_none();
        }
        self.workloads.insert(id.clone(), tracked);
        // Before anybody is decided: who is to wait must know for whom.
        self.note_standing(id, None, now);
    }

    /// Why a workload has no record.
    fn why_anew(&self, workload: &Workload) -> Adoption {
        let stored = self.stored.get(&workload.id).filter(|stored| Some(&stored.uid) == workload.uid.as_ref());
        let stamp = workload.stamp.as_deref().and_then(|text| text.parse::<Stamp>().ok());
        match stamp {
            _ if stored.is_some() => Adoption::RecordUnreadable,
            Some(stamp) if stamp.was_put_on(workload.generation) => Adoption::RecordGone,
            _ => Adoption::FirstSight,
        }
    }

    /// Whether nothing counts for a workload; not while it is unknown what its annotations or its namespace want.
    pub fn is_opted_out(&self, tracked: &Tracked) -> bool {
        let workload = &tracked.workload;
        workload.opt_in.is_clear()
            && self.unsynced(workload).is_none()
            && !self.may_be_referred_to(workload)
            && !self.may_count(workload)
    }

    /// Takes the record from the workload's report, if there is none yet; unless the report is another installation's.
    pub(super) fn load_record(&self, id: &WorkloadId, tracked: &mut Tracked) {
        let stored = self.stored.get(id).filter(|stored| Some(&stored.uid) == tracked.workload.uid.as_ref());
        let others = stored.filter(|stored| stored.instance != self.instance);
        let made_by = tracked.workload.made_by.as_ref().filter(|_| stored.is_none());
        let other = others.map(|stored| &stored.instance).or(made_by.filter(|by| **by != self.instance));
        tracked.other_instance = other.cloned();
        if tracked.other_instance.is_some() {
            tracked.record = None;
        } else if let (None, Some(stored)) = (&tracked.record, stored) {
            tracked.record = stored.record.clone();
            tracked.is_followed = false;
        }
    }

    /// A watch that this workload needs and that is not synced.
    pub(super) fn unsynced(&self, workload: &Workload) -> Option<Watched> {
        let namespace = &workload.id.namespace;
        let unsynced = workload.needs().find(|kind| !self.lists.is_synced_in(*kind, namespace));
        unsynced.or_else(|| self.lacks_namespace(workload).then_some(Watched::Namespace))
    }

    pub(super) fn with_sight<R>(
        &self,
        tracked: &Tracked,
        counting: &Counting,
        now: Timestamp,
        look: impl FnOnce(&Sight<'_>) -> Option<R>,
    ) -> Option<R> {
        let workload = &tracked.workload;
        let consumed = Consumed::of(&workload.id.namespace, &workload.consumption, counting, &self.configs);
        let uid = workload.uid.as_ref()?;
        look(&Sight {
            workload,
            uid,
            counting,
            consumed: &consumed,
            configs: &self.configs,
            classes: self.lists.is_synced_in(STATUSES, &workload.id.namespace).then_some(&self.classes),
            pods: &self.pods_of_workload(&workload.id, uid),
            replica_set: self.current_replica_set(workload),
            namespace_deleting: self.is_namespace_deleting(&workload.id.namespace),
            has_unplaced_pods: self.has_unplaced_pods(workload),
            pods_seen_to: self.lists.pods_seen_to(&workload.id.namespace),
            is_followed: tracked.is_followed,
            policy: &self.policy,
            now,
        })
    }

    /// What is due for an adopted workload by itself; `None` if it is not one.
    pub(in crate::model) fn decide_alone(&self, id: &WorkloadId, now: Timestamp) -> Option<Decision> {
        let tracked = self.workloads.get(id)?;
        if let Some(instance) = &tracked.other_instance {
            return Some(Decision::Hold(Hold::OtherInstance { instance: instance.clone() }));
        }
        let record = tracked.record.as_ref()?;
        if let Some(kind) = self.unsynced(&tracked.workload) {
            return Some(Decision::Hold(Hold::NotSynced { kind: kind.as_str() }));
        }
        self.with_sight(tracked, &record.counting, now, |sight| Some(decide::decide(record, sight)))
    }

    /// The placeholder of a Job that is to be made again, and what is to be done about it. Nothing while Jobs are not all known.
    pub fn rerun_step(&self, id: &WorkloadId) -> Option<(&Placeholder, Step)> {
        let is_known = self.lists.is_synced_in(Watched::Workload(WorkloadKind::Job), &id.namespace);
        if self.participation.reruns == Reruns::No || !is_known {
            return None;
        }
        let ours = |placeholder: &&Placeholder| placeholder.original == *id && placeholder.instance == self.instance;
        let placeholder = self.placeholders.values().find(ours)?;
        Some((placeholder, placeholder::next(placeholder, self.workloads.get(id).map(|tracked| &tracked.workload))))
    }

    /// Every open change of this workload is delivered.
    pub fn close(&mut self, id: &WorkloadId) {
        if let Some(record) = self.workloads.get_mut(id).and_then(|tracked| tracked.record.as_mut()) {
            record.close();
        }
    }
}
