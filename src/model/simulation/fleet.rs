//! Many workloads that read the same configs, with a budget, waves, and values that break whoever reads them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;

use super::cluster::{INSTANCE, time};
use crate::model::builders::{config_map, keyring, pod_of, policy, stateful_set};
use crate::model::decide::Decision;
use crate::model::digest::ChangeId;
use crate::model::index::{Event, Index, Object, StampOrder, StoredRecord};
use crate::model::names::{ConfigId, ConfigKind, Name, ResourceVersion, WorkloadId, WorkloadKind};
use crate::model::pod::{Blocked, Blocker};
use crate::model::policy::Policy;
use crate::model::record::{Answer, Before, Record};
use crate::model::rollout::budget::Budget;
use crate::model::rollout::halt::HaltAfter;
use crate::model::rollout::outcome::Outcome;
use crate::model::rollout::wave::Wave;
use crate::model::scope::Extent;
use crate::model::watched::Watched;
use crate::model::workload::{Deadline, Progress, Revision};

const NAMESPACES: [&str; 2] = ["a", "b"];
/// Namespace by namespace.
const MEMBERS: [usize; 8] = [0, 0, 0, 0, 0, 1, 1, 1];
const CLUSTER: usize = 3;
const NAMESPACE: usize = 2;
const FAILURES: u32 = 2;
const STATEFUL_SET: Watched = Watched::Workload(WorkloadKind::StatefulSet);
const POD: Watched = Watched::Workload(WorkloadKind::Pod);
const CONFIG_MAP: Watched = Watched::Config(ConfigKind::ConfigMap);
const KINDS: [Watched; 4] = [Watched::Report, CONFIG_MAP, STATEFUL_SET, POD];
const KEPT_FOR: i64 = 30_000;
const SLOT_AT_MOST: i64 = 15 * 60_000;

/// Odd values break whoever reads them.
fn is_bad(value: u8) -> bool {
    value % 2 == 1
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Write { namespace: usize, value: u8 },
    Roll(usize),
    Deliver { kind: usize, events: usize },
    DeliverAll,
    Land { stamp: usize, answer: bool },
    Pass(i64),
    WriteReports,
    Restart,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..2usize, 0..6u8).prop_map(|(namespace, value)| Step::Write { namespace, value }),
        8 => (0..MEMBERS.len()).prop_map(Step::Roll),
        3 => (0..4usize, 1..9usize).prop_map(|(kind, events)| Step::Deliver { kind, events }),
        6 => Just(Step::DeliverAll),
        8 => (0..4usize, prop::bool::weighted(0.9)).prop_map(|(stamp, answer)| Step::Land { stamp, answer }),
        5 => prop_oneof![3 => Just(5_100i64), 2 => Just(31_000), 1 => Just(200_000)].prop_map(Step::Pass),
        2 => Just(Step::WriteReports),
        1 => Just(Step::Restart),
    ]
}

fn waves() -> impl Strategy<Value = Vec<Wave>> {
    let wave = prop_oneof![
        4 => Just(Wave::default()), 2 => Just("1".parse().unwrap()), 1 => Just("2".parse().unwrap()), 1 => Just(Wave::CANARY)
    ];
    prop::collection::vec(wave, MEMBERS.len())
}

/// A StatefulSet with one pod.
#[derive(Debug)]
struct Member {
    id: WorkloadId,
    wave: Wave,
    version: u64,
    generation: i64,
    stamp: Option<String>,
    stamped: i64,
    pod: Pod,
    report: Option<String>,
}

#[derive(Debug, Clone)]
struct Pod {
    stamp: Option<String>,
    value: u8,
    born: u64,
    started: i64,
}

#[derive(Debug)]
struct Operator {
    index: Index,
    waits_for: BTreeMap<WorkloadId, StampOrder>,
    /// The next for each.
    alarms: BTreeMap<WorkloadId, Timestamp>,
    /// The versions that were refused as outdated.
    outdated: BTreeMap<WorkloadId, ResourceVersion>,
}

#[derive(Debug)]
struct Fleet {
    now: i64,
    version: u64,
    values: [u8; 2],
    members: Vec<Member>,
    streams: BTreeMap<usize, VecDeque<Event>>,
    operator: Operator,
    on_their_way: Vec<(StampOrder, i64)>,
    touched: BTreeSet<(usize, u8)>,
}

fn config_id(namespace: usize) -> ConfigId {
    ConfigId { kind: ConfigKind::ConfigMap, namespace: NAMESPACES[namespace].into(), name: "c".into() }
}

fn new_operator() -> Operator {
    let budget = Budget::of(u32::try_from(CLUSTER).unwrap(), u32::try_from(NAMESPACE).unwrap());
    let policy = Policy { budget, halt_after: HaltAfter::of(FAILURES), ..policy() };
    let mut index = Index::new(Arc::new(keyring()), policy, INSTANCE);
    index.apply(Event::ListBegins(Watched::Namespace, Extent::Cluster), Timestamp::UNIX_EPOCH);
    index.apply(Event::ListEnds(Watched::Namespace, Extent::Cluster), Timestamp::UNIX_EPOCH);
    Operator { index, waits_for: BTreeMap::new(), alarms: BTreeMap::new(), outdated: BTreeMap::new() }
}

impl Fleet {
    fn new(waves: &[Wave]) -> Self {
        let member = |(number, namespace): (usize, &usize)| Member {
            id: WorkloadId {
                kind: WorkloadKind::StatefulSet,
                namespace: NAMESPACES[*namespace].into(),
                name: Name::from(format!("w{number}").as_str()),
            },
            wave: waves[number],
            version: 1,
            generation: 1,
            stamp: None,
            stamped: 0,
            pod: Pod { stamp: None, value: 0, born: 1, started: 0 },
            report: None,
        };
        let members = MEMBERS.iter().enumerate().map(member).collect();
        let (streams, operator) = (BTreeMap::new(), new_operator());
        let now = 1_000_000_000;
        let mut fleet = Self {
            now,
            version: 10,
            values: [0, 0],
            members,
            streams,
            operator,
            on_their_way: Vec::new(),
            touched: BTreeSet::new(),
        };
        fleet.list();
        fleet.deliver_all();
        fleet.write_reports();
        fleet
    }

    // The cluster

    fn next(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn config(&self, namespace: usize) -> Object {
        let mut config =
            config_map("c").value("A", &self.values[namespace].to_string()).at_version(self.version).build();
        config.id = config_id(namespace);
        config.uid = Some(format!("config-{namespace}").as_str().into());
        Object::Config(config)
    }

    fn workload(&self, number: usize) -> Object {
        let member = &self.members[number];
        let is_new = member.pod.stamp == member.stamp;
        let workload = stateful_set(member.id.name.as_str())
            .within(member.id.namespace.as_str())
            .uid(&format!("uid-{number}"))
            .env_from("ConfigMap/c")
            .at_version(member.version)
            .generation(member.generation)
            .progress(if is_new { Progress::Complete { pods: 1 } } else { Progress::InProgress })
            .deadline(if is_new { Deadline::Kept } else { Deadline::Absent })
            .revision(Revision::Hash(Some(member.generation.to_string())));
        let workload = member.stamp.iter().fold(workload, |workload, stamp| workload.stamp(stamp));
        let mut workload = workload.build();
        workload.opt_in.wave = member.wave;
        Object::from(workload)
    }

    fn pod(&self, number: usize) -> Object {
        let Member { id, pod, generation, .. } = &self.members[number];
        // The builders count from there.
        let second = pod.started / 1000 - 1_000_000;
        let built = pod_of("w", &format!("pod-{number}-{}", pod.born)).hash(&generation.to_string());
        let built = built.at_version(self.version).made(second, pod.born);
        let built = built.started("app", second);
        let built = pod.stamp.iter().fold(built, |built, stamp| built.stamp(stamp));
        let mut built = built.build();
        built.namespace = id.namespace.clone();
        built.owner = format!("uid-{number}").as_str().into();
        built.blocked = is_bad(pod.value).then(|| Blocked {
            since: Some(time(pod.started)),
            blocker: Blocker::Crash,
            container: None,
        });
        Object::Pod(built)
    }

    fn report(&self, number: usize) -> Option<Object> {
        let Member { id, report, .. } = &self.members[number];
        Some(Object::Report(StoredRecord {
            workload: id.clone(),
            uid: format!("uid-{number}").as_str().into(),
            instance: INSTANCE.to_owned(),
            record: serde_json::from_str(report.as_ref()?).unwrap(),
        }))
    }

    fn objects(&self, kind: Watched) -> Vec<Object> {
        let members = 0..self.members.len();
        match kind {
            CONFIG_MAP => (0..2).map(|namespace| self.config(namespace)).collect(),
            STATEFUL_SET => members.map(|number| self.workload(number)).collect(),
            POD => members.map(|number| self.pod(number)).collect(),
            _ => members.filter_map(|number| self.report(number)).collect(),
        }
    }

    fn list(&mut self) {
        for (index, kind) in KINDS.into_iter().enumerate() {
            let listed = self.objects(kind).into_iter().map(|object| Event::Listed(kind, Extent::Cluster, object));
            let begin = std::iter::once(Event::ListBegins(kind, Extent::Cluster));
            let stream = begin.chain(listed).chain([Event::ListEnds(kind, Extent::Cluster)]).collect();
            self.streams.insert(index, stream);
        }
    }

    fn push(&mut self, kind: usize, event: Event) {
        self.streams.entry(kind).or_default().push_back(event);
    }

    /// The controller and the kubelet replace its pod, if that is due.
    fn roll(&mut self, number: usize) {
        if self.members[number].pod.stamp == self.members[number].stamp {
            return;
        }
        let gone = self.pod(number);
        let born = self.next();
        self.push(3, Event::Deleted(POD, gone));
        let value = self.values[MEMBERS[number]];
        let member = &mut self.members[number];
        member.pod = Pod { stamp: member.stamp.clone(), value, born, started: self.now };
        self.touched.insert((number, value));
        let pod = self.pod(number);
        self.push(3, Event::Applied(POD, pod));
        self.members[number].version = self.next();
        let workload = self.workload(number);
        self.push(2, Event::Applied(STATEFUL_SET, workload));
    }

    fn land(&mut self, stamp: usize, answer: bool) {
        if self.on_their_way.is_empty() {
            return;
        }
        let (order, sent) = self.on_their_way.remove(stamp % self.on_their_way.len());
        let number = self.members.iter().position(|member| member.id == order.workload).unwrap();
        let landed = self.members[number].version == order.version.0;
        if landed {
            let version = self.next();
            let member = &mut self.members[number];
            member.stamp = Some(order.text.clone());
            (member.version, member.stamped) = (version, sent);
            member.generation += 1;
            let workload = self.workload(number);
            self.push(2, Event::Applied(STATEFUL_SET, workload));
        }
        if self.operator.waits_for.get(&order.workload) != Some(&order) {
            return;
        }
        self.operator.waits_for.remove(&order.workload);
        let member = &self.members[number];
        let (version, generation) = (ResourceVersion(member.version), member.generation);
        if landed && answer {
            self.operator.index.stamped(&order, version, generation);
        } else if answer {
            self.operator.index.refused(&order);
            self.operator.outdated.insert(order.workload.clone(), order.version);
        }
        let soon = time(self.now + 1_000);
        self.alarm(&order.workload, soon);
        self.review(&order.workload);
        self.go_on();
    }

    /// The rollouts that are not finished, and the stamps that are on their way.
    fn unfinished(&self, namespace: Option<usize>) -> usize {
        let is_there = |number: usize| namespace.is_none_or(|namespace| MEMBERS[number] == namespace);
        (0..self.members.len()).filter(|number| is_there(*number) && self.is_unfinished(*number)).count()
    }

    fn is_unfinished(&self, number: usize) -> bool {
        let member = &self.members[number];
        let is_new = member.pod.stamp == member.stamp;
        let ended = is_new && (!is_bad(member.pod.value) || member.pod.started + KEPT_FOR <= self.now);
        let on_its_way = self.on_their_way.iter().any(|(order, _)| order.workload == member.id);
        on_its_way || (member.stamp.is_some() && !ended && member.stamped + SLOT_AT_MOST > self.now)
    }

    // The operator

    fn review(&mut self, id: &WorkloadId) {
        let now = time(self.now);
        if self.operator.waits_for.contains_key(id) {
            return;
        }
        match self.operator.index.decide(id, now) {
            Some(Decision::Close) => self.operator.index.close(id),
            Some(Decision::Wait { until, .. }) => self.alarm(id, until),
            Some(Decision::Stamp) => self.send(id),
            _ => {}
        }
        let looks = self.operator.index.next_look(id, now);
        let record = self.operator.index.workload(id).and_then(|tracked| tracked.record.as_ref());
        let waiting = record.and_then(crate::model::delivered::waiting_counts_from).filter(|at| *at > now);
        looks.into_iter().chain(waiting).for_each(|at| self.alarm(id, at));
    }

    fn alarm(&mut self, id: &WorkloadId, at: Timestamp) {
        let alarm = self.operator.alarms.entry(id.clone()).or_insert(at);
        *alarm = at.min(*alarm);
    }

    fn send(&mut self, id: &WorkloadId) {
        let version = self.operator.index.workload(id).and_then(|tracked| tracked.workload.version);
        if version == self.operator.outdated.get(id).copied() {
            return self.operator.index.step_back(id);
        }
        self.check_order(id);
        match self.operator.index.begin_stamp(id, time(self.now)) {
            Some(order) => {
                self.operator.waits_for.insert(id.clone(), order.clone());
                self.on_their_way.push((order, self.now));
            }
            None => self.operator.index.step_back(id),
        }
    }

    /// No lower wave has this change before it, and it failed nowhere too often.
    fn check_order(&self, id: &WorkloadId) {
        let index = &self.operator.index;
        let record_of = |member: &Member| index.workload(&member.id).and_then(|tracked| tracked.record.clone());
        let this = self.members.iter().find(|member| member.id == *id).unwrap();
        let others = self.members.iter().filter(|member| member.id.namespace == id.namespace && member.id != *id);
        let records: Vec<(&Member, Record)> = others.filter_map(|it| Some((it, record_of(it)?))).collect();
        let namespace = NAMESPACES.iter().position(|name| *name == id.namespace.as_str()).unwrap();
        let change = self.change_in_view(namespace);
        let mut failures = 0;
        for (member, record) in &records {
            let unanswered = record.open_entries().any(|(_, change)| change.answer != Answer::Stamped);
            let is_before = member.wave < this.wave
                || (this.wave == Wave::CANARY && member.wave == this.wave && member.id < this.id);
            let goes_on = self.is_unfinished(self.members.iter().position(|it| it.id == member.id).unwrap());
            assert!(!is_before || !(unanswered || goes_on), "{id} overtakes {}", member.id);
            let Some(stamp) = &record.stamp else { continue };
            let failed = stamp.outcome == Outcome::Failed && stamp.before == Before::Settled;
            if failed && stamp.changes.iter().any(|it| Some(&it.id) == change.as_ref()) {
                failures += 1;
                assert!(member.wave != Wave::CANARY, "{id} gets what failed in the canary {}", member.id);
            }
        }
        assert!(failures < FAILURES, "{id} gets what failed in {failures} others");
    }

    fn change_in_view(&self, namespace: usize) -> Option<ChangeId> {
        let id = config_id(namespace);
        let values = self.operator.index.configs().values(&id)?;
        let values = values.iter().map(|(key, value)| (key, &value.fingerprint));
        Some(keyring().current().change_id(&id, Some(values)))
    }

    fn go_on(&mut self) {
        while let Some(id) = self.operator.index.next_stirred(time(self.now)) {
            self.review(&id);
        }
    }

    fn deliver(&mut self, kind: usize, events: usize) {
        for _ in 0..events {
            let Some(event) = self.streams.get_mut(&kind).and_then(VecDeque::pop_front) else { return };
            let work = self.operator.index.apply(event, time(self.now));
            for id in &work.workloads {
                self.review(id);
            }
            self.go_on();
        }
    }

    fn deliver_all(&mut self) {
        (0..KINDS.len()).for_each(|kind| self.deliver(kind, usize::MAX));
    }

    fn pass(&mut self, millis: i64) {
        self.now += millis;
        while self.on_their_way.first().is_some_and(|(_, sent)| sent + 300_000 < self.now) {
            self.land(0, true);
        }
        let now = time(self.now);
        let due: Vec<WorkloadId> =
            self.operator.alarms.iter().filter(|(_, at)| **at <= now).map(|(id, _)| id.clone()).collect();
        for id in due {
            self.operator.alarms.remove(&id);
            self.operator.outdated.remove(&id);
            self.review(&id);
        }
        self.go_on();
    }

    fn write_reports(&mut self) {
        for number in 0..self.members.len() {
            let tracked = self.operator.index.workload(&self.members[number].id);
            let record = tracked.and_then(|tracked| tracked.record.as_ref());
            let record = record.map(|record| serde_json::to_string(record).unwrap());
            if record.is_some() && record != self.members[number].report {
                self.members[number].report = record;
            }
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write { namespace, value } if self.values[namespace] != value => {
                self.next();
                self.values[namespace] = value;
                let config = self.config(namespace);
                self.push(1, Event::Applied(CONFIG_MAP, config));
            }
            Step::Write { .. } => {}
            Step::Roll(number) => self.roll(number),
            Step::Deliver { kind, events } => self.deliver(kind, events),
            Step::DeliverAll => self.deliver_all(),
            Step::Land { stamp, answer } => self.land(stamp, answer),
            Step::Pass(millis) => self.pass(millis),
            Step::WriteReports => self.write_reports(),
            Step::Restart => {
                // Whatever was sent has arrived before another one leads.
                self.operator = new_operator();
                while !self.on_their_way.is_empty() {
                    self.land(0, false);
                }
                self.list();
            }
        }
    }

    /// Everything moves until nothing does any more.
    fn come_to_rest(&mut self) {
        for _ in 0..100 {
            self.deliver_all();
            while !self.on_their_way.is_empty() {
                self.land(0, true);
                self.deliver_all();
            }
            (0..self.members.len()).for_each(|number| self.roll(number));
            self.deliver_all();
            self.write_reports();
            self.check_budget();
            if self.on_their_way.is_empty() {
                let Some(next) = self.operator.alarms.values().min().copied() else { return };
                self.pass((next.as_millisecond() - self.now).max(0) + 1);
            }
        }
    }

    fn check_budget(&self) {
        let all = self.unfinished(None);
        assert!(all <= CLUSTER, "{all} rollouts at once");
        for namespace in 0..2 {
            let within = self.unfinished(Some(namespace));
            assert!(within <= NAMESPACE, "{within} rollouts at once in one namespace");
        }
    }

    /// Who runs with something else than there is now.
    fn outdated(&self) -> Vec<String> {
        let numbers = 0..self.members.len();
        let is = |number: &usize| self.members[*number].pod.value != self.values[MEMBERS[*number]];
        let say = |number: usize| {
            let id = &self.members[number].id;
            let record = self.operator.index.workload(id).and_then(|tracked| tracked.record.as_ref());
            format!("{id} {:?} {record:#?}", self.operator.index.decide_alone(id, time(self.now)))
        };
        numbers.filter(is).map(say).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 96, ..ProptestConfig::default() })]

    /// Whatever happens in whatever order: the budget is never exceeded, waves never overlap, and what failed too often
    /// reaches nobody else. In the end, a fix reaches all.
    #[test]
    fn changes_get_to_all_in_order_and_not_at_once(waves in waves(), steps in prop::collection::vec(steps(), 0..80)) {
        let mut fleet = Fleet::new(&waves);
        for step in steps {
            fleet.step(step);
            fleet.check_budget();
        }
        fleet.step(Step::Write { namespace: 0, value: 100 });
        fleet.step(Step::Write { namespace: 1, value: 100 });
        fleet.come_to_rest();
        prop_assert_eq!(fleet.outdated(), [""; 0]);
    }

    /// A bad value reaches as many as there are slots, and those that were begun until enough had failed.
    #[test]
    fn a_bad_value_spares_most(waves in waves(), pauses in prop::collection::vec(1..40_000i64, 0..8)) {
        let mut fleet = Fleet::new(&waves);
        fleet.step(Step::Write { namespace: 0, value: 1 });
        fleet.deliver_all();
        for pause in pauses {
            fleet.pass(pause);
            fleet.land(0, true);
            (0..fleet.members.len()).for_each(|number| fleet.roll(number));
            fleet.deliver_all();
            fleet.check_budget();
        }
        fleet.come_to_rest();
        let touched = fleet.touched.iter().filter(|(_, value)| is_bad(*value)).count();
        prop_assert!(touched <= NAMESPACE + FAILURES as usize, "{} were touched", touched);
    }
}
