//! The cluster and the operator, and what may happen to them.

use std::fmt::Write as _;

use super::cluster::{CONFIGS, Cluster, Content, IMAGES, KEYS, POD, READING_COUNT, Reads, Template, time};
use super::operator::{Operator, Seen};
use crate::model::decide::Decision;
use crate::model::index::StampOrder;
use crate::model::names::{Uid, WorkloadKind};
use crate::model::watched::Watched;

/// One thing that happens. Numbers are taken modulo what there is.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    // By users
    Write {
        config: usize,
        key: usize,
        value: u8,
    },
    RemoveKey {
        config: usize,
        key: usize,
    },
    Label {
        config: usize,
    },
    WriteUnread {
        config: usize,
        value: u8,
    },
    Delete {
        config: usize,
    },
    Image(u8),
    Reading(usize),
    Undo,
    Strip,
    Scale(usize),
    Pause,
    CreateWorkload,
    DeleteWorkload,
    // By the cluster
    Control(u8),
    RunPod(usize),
    RestartContainer(usize),
    /// All of the cluster moves for a while, and all watches show it but those that lag (a bit for each).
    Flow {
        rounds: u8,
        millis: i64,
        lagging: u8,
    },
    // On the way to the operator
    Deliver {
        kind: usize,
        events: u8,
    },
    Relist {
        kind: usize,
    },
    Wait {
        millis: i64,
    },
    SetClock {
        seconds: i64,
    },
    // In the operator
    Start,
    Crash,
    WriteReport,
    /// The stamp arrives at the API server; and the answer may be lost.
    Land {
        stamp: usize,
        answer: bool,
    },
    /// The operator gives up waiting for an answer; the stamp may still arrive.
    TimeOut,
}

/// A stamp that was sent and has not arrived.
#[derive(Debug)]
struct OnItsWay {
    order: StampOrder,
    sender: usize,
    seen: Seen,
}

#[derive(Debug)]
pub struct World {
    pub cluster: Cluster,
    kind: WorkloadKind,
    operator: Option<Operator>,
    /// Counts the operator's lives.
    life: usize,
    on_their_way: Vec<OnItsWay>,
    /// What the record that is written down knows of.
    durable: (Option<Uid>, Seen),
    /// What the stamp with this text was made for, of the workload with this uid.
    stamped: Option<(Uid, String, Seen)>,
    clock_skew: i64,
    kinds: Vec<Watched>,
    /// As many stamps as may be: changes, and moments at which their order is unclear.
    pub allowed: usize,
    pub log: String,
}

fn content(config: usize) -> Content {
    KEYS[config].iter().map(|key| (*key, 0)).collect()
}

impl World {
    pub fn new(kind: WorkloadKind, reading: usize) -> Self {
        let mut cluster = Cluster::new();
        for config in 0..CONFIGS.len() {
            cluster.write_config(config, content(config));
        }
        cluster.create_workload(kind, Template { image: 0, reading: reading % READING_COUNT, stamp: None }, 2);
        let mut world = Self {
            cluster,
            kind,
            operator: None,
            life: 0,
            on_their_way: Vec::new(),
            durable: (None, Seen::new()),
            stamped: None,
            clock_skew: 700,
            kinds: Cluster::watched(kind),
            allowed: 0,
            log: String::new(),
        };
        world.run_cluster();
        world
    }

    fn now(&self) -> jiff::Timestamp {
        time(self.cluster.now + self.clock_skew)
    }

    /// The controllers and the kubelet have done what there is to do.
    pub fn run_cluster(&mut self) {
        for _ in 0..200 {
            let mut moved = self.cluster.control();
            for pod in (0..self.cluster.pods.len()).rev() {
                moved |= self.cluster.run_pod(pod);
            }
            if !moved {
                return;
            }
        }
        panic!("the controllers never rest");
    }

    fn start(&mut self) {
        if self.operator.is_none() {
            self.life += 1;
            let mut seen = self.durable.clone();
            // A stamp tells of what it was made for, while it is there.
            let live = self.cluster.workload.as_ref().and_then(|workload| workload.template.stamp.as_deref());
            let stamped =
                self.stamped.iter().filter(|(uid, text, _)| seen.0.as_ref() == Some(uid) && live == Some(text));
            seen.1.extend(stamped.flat_map(|(_, _, its)| its.iter().copied()).collect::<Vec<_>>());
            self.operator = Some(Operator::new(self.kind, seen));
        }
    }

    fn is_up(&self) -> bool {
        self.operator.is_some()
    }

    fn deliver(&mut self, kind: Watched, events: usize) {
        for _ in 0..events {
            let Some((_, event)) = self.cluster.streams.get_mut(&kind).and_then(std::collections::VecDeque::pop_front)
            else {
                return;
            };
            let now = self.now();
            let Some(operator) = &mut self.operator else { return };
            let order = operator.take(event, &self.cluster, now);
            self.send(order);
        }
    }

    /// Everything that the watches have to show.
    pub fn deliver_all(&mut self) {
        self.deliver_all_from(0);
    }

    /// The same, one kind after the other, in one of the orders that there are.
    pub fn deliver_all_from(&mut self, order: u64) {
        let mut kinds = self.kinds.clone();
        let mut order = usize::try_from(order % 720).unwrap_or_default();
        while !kinds.is_empty() {
            let kind = kinds.remove(order % kinds.len());
            order /= kinds.len() + 1;
            self.deliver_of(&[kind]);
        }
    }

    fn deliver_of(&mut self, kinds: &[Watched]) {
        for kind in kinds.iter().copied() {
            if self.operator.is_none() {
                return;
            }
            if !self.cluster.streams.contains_key(&kind) {
                self.cluster.list(kind);
            }
            self.deliver(kind, usize::MAX);
        }
    }

    fn send(&mut self, order: Option<StampOrder>) {
        if let Some(order) = order {
            self.note(&format!("  sends {}", order.text));
            let seen = self.operator.as_ref().map(|operator| operator.seen.1.clone()).unwrap_or_default();
            self.on_their_way.push(OnItsWay { order, sender: self.life, seen });
        }
    }

    fn land(&mut self, stamp: usize, answer: bool) {
        if self.on_their_way.is_empty() {
            return;
        }
        let OnItsWay { order, sender, seen } = self.on_their_way.remove(stamp % self.on_their_way.len());
        let landed = self.cluster.stamp(&order);
        if landed.is_some() {
            self.stamped = Some((order.uid.clone(), order.text.clone(), seen));
        }
        self.note(&format!("  lands {}: {}", order.text, landed.is_some()));
        let now = self.now();
        let Some(operator) = self.operator.as_mut().filter(|_| sender == self.life) else { return };
        if operator.waits_for.as_ref() != Some(&order) {
            return;
        }
        if !answer {
            self.allowed += 1;
            return operator.retry(now);
        }
        let Some((version, generation)) = landed else {
            operator.index.refused(&order);
            return operator.retry(now);
        };
        operator.waits_for = None;
        operator.index.stamped(&order, version, generation);
        let order = operator.review(now);
        self.send(order);
    }

    fn write_report(&mut self) {
        let Some(operator) = &self.operator else { return };
        if let Some((uid, record)) = operator.record() {
            self.cluster.write_report(&uid, record);
            self.durable = operator.seen.clone();
        }
    }

    pub fn pass(&mut self, millis: i64) {
        let until = self.cluster.now + millis;
        loop {
            let next = self.cluster.next_status().filter(|next| *next <= until).unwrap_or(until);
            self.cluster.now = next.max(self.cluster.now);
            self.cluster.write_statuses();
            // Where statuses are late, the watch of pods is not.
            if self.cluster.status_delay > 0 && self.is_up() && self.cluster.streams.contains_key(&POD) {
                self.deliver(POD, usize::MAX);
            }
            if next == until {
                break;
            }
        }
        let now = self.now();
        let order = self.operator.as_mut().and_then(|operator| operator.wake(now));
        self.send(order);
    }

    fn note(&mut self, what: &str) {
        let _ = writeln!(self.log, "{:>8} {what}", self.cluster.now - 1_000_000_000);
    }

    pub fn step(&mut self, step: Step) {
        self.note(&format!("{step:?}"));
        match step {
            Step::Write { config, key, value } => {
                let config = config % CONFIGS.len();
                let mut content =
                    self.cluster.configs[config].as_ref().map_or_else(Content::new, |it| it.content.clone());
                if content.insert(KEYS[config][key % 2], value) != Some(value) {
                    self.allowed += 1;
                }
                self.cluster.write_config(config, content);
            }
            Step::RemoveKey { config, key } => {
                let config = config % CONFIGS.len();
                let Some(object) = &self.cluster.configs[config] else { return };
                let mut content = object.content.clone();
                if content.remove(KEYS[config][key % 2]).is_some() {
                    self.allowed += 1;
                    self.cluster.write_config(config, content);
                }
            }
            Step::Label { config } => {
                let config = config % CONFIGS.len();
                if let Some(object) = &self.cluster.configs[config] {
                    self.cluster.write_config(config, object.content.clone());
                }
            }
            Step::WriteUnread { config, value } => {
                // Only where one key alone is read.
                let is_unread = self.cluster.workload.as_ref().is_some_and(|it| it.template.reading == 1);
                let config = config % CONFIGS.len();
                if let (true, Some(object)) = (is_unread, &self.cluster.configs[config]) {
                    let mut content = object.content.clone();
                    content.insert(KEYS[config][1], value);
                    self.cluster.write_config(config, content);
                }
            }
            Step::Delete { config } => {
                self.allowed += usize::from(self.cluster.delete_config(config % CONFIGS.len()));
            }
            Step::Image(image) => {
                self.cluster.edit(|workload| workload.template.image = image % IMAGES);
            }
            Step::Reading(reading) => {
                self.allowed += 1;
                self.cluster.edit(|workload| workload.template.reading = reading % READING_COUNT);
            }
            Step::Undo => {
                if let Some(template) = self.cluster.former_template() {
                    self.allowed += 1;
                    self.cluster.edit(|workload| workload.template = template);
                }
            }
            Step::Strip => {
                self.allowed += 1;
                self.cluster.edit(|workload| workload.template.stamp = None);
            }
            Step::Scale(replicas) => self.cluster.edit(|workload| workload.replicas = replicas % 4),
            Step::Pause => self.cluster.edit(|workload| workload.paused = !workload.paused),
            Step::CreateWorkload => {
                if self.cluster.workload.is_none() {
                    self.allowed += 1;
                    self.cluster.create_workload(self.kind, Template { image: 0, reading: 0, stamp: None }, 2);
                }
            }
            Step::DeleteWorkload => self.cluster.delete_workload(),
            Step::Control(steps) => (0..steps % 8).for_each(|_| {
                self.cluster.control();
            }),
            Step::RunPod(pod) => {
                if let Some(pod) = pod.checked_rem(self.cluster.pods.len()) {
                    self.cluster.run_pod(pod);
                }
            }
            Step::RestartContainer(pod) => {
                if let Some(pod) = pod.checked_rem(self.cluster.pods.len()) {
                    self.cluster.restart_container(pod);
                }
            }
            Step::Flow { rounds, millis, lagging } => {
                for _ in 0..rounds {
                    self.cluster.control();
                    (0..self.cluster.pods.len()).rev().for_each(|pod| {
                        self.cluster.run_pod(pod);
                    });
                }
                let kinds = self.kinds.clone().into_iter().enumerate();
                let prompt = kinds.filter(|(bit, _)| lagging & (1 << bit) == 0).map(|(_, kind)| kind);
                let prompt: Vec<Watched> = prompt.collect();
                self.deliver_of(&prompt);
                self.pass(millis);
                self.deliver_of(&prompt);
            }
            Step::Deliver { kind, events } => {
                let kind = self.kinds[kind % self.kinds.len()];
                if self.is_up() && !self.cluster.streams.contains_key(&kind) {
                    self.cluster.list(kind);
                }
                self.deliver(kind, events.into());
            }
            Step::Relist { kind } => {
                let kind = self.kinds[kind % self.kinds.len()];
                if self.is_up() {
                    self.allowed += 1;
                    self.cluster.list(kind);
                }
            }
            Step::Wait { millis } => self.pass(millis),
            Step::SetClock { seconds } => {
                self.clock_skew = seconds * 1000;
                let now = self.now();
                if let Some(operator) = &mut self.operator {
                    operator.clock_was_set(now);
                }
            }
            Step::Start => self.start(),
            Step::Crash => {
                if self.operator.take().is_some() {
                    self.allowed += 1;
                    self.cluster.streams.clear();
                }
            }
            Step::WriteReport => self.write_report(),
            Step::Land { stamp, answer } => self.land(stamp, answer),
            Step::TimeOut => {
                let now = self.now();
                if let Some(operator) = self.operator.as_mut().filter(|operator| operator.waits_for.is_some()) {
                    operator.retry(now);
                    self.allowed += 1;
                }
            }
        }
    }

    /// All that is under way arrives, time passes, until nothing moves any more.
    pub fn come_to_rest(&mut self) {
        self.start();
        for _ in 0..300 {
            self.cluster.write_statuses();
            self.run_cluster();
            self.deliver_all();
            while !self.on_their_way.is_empty() {
                self.land(0, true);
            }
            self.run_cluster();
            self.deliver_all();
            self.write_report();
            self.deliver_all();
            if !self.on_their_way.is_empty() {
                continue;
            }
            let alarm =
                self.operator.as_ref().and_then(Operator::alarm).map(|at| at.as_millisecond() - self.clock_skew);
            let Some(next) = [alarm, self.cluster.next_status()].into_iter().flatten().min() else { return };
            self.pass((next - self.cluster.now).max(0) + 1);
        }
        panic!("it never comes to rest\n{}", self.log);
    }

    pub fn decision(&self) -> Option<Decision> {
        self.operator.as_ref()?.decision(self.cluster.now + self.clock_skew)
    }

    /// A config's content, as far as it is read: one key, or all.
    fn read(&self, config: usize, key: Option<&str>, content: usize) -> Option<Content> {
        let mut content = self.cluster.history[config][content].clone()?;
        content.retain(|it, _| key.is_none_or(|only| only == *it));
        Some(content)
    }

    /// Whether what a container holds was in view at some time, so that its end is a change that was seen.
    fn was_seen(&self, config: usize, key: Option<&str>, held: usize) -> bool {
        let Some(operator) = &self.operator else { return false };
        let same = |content: &usize| self.read(config, key, *content) == self.read(config, key, held);
        let before = (0..=held).rev().take_while(same);
        let after = (held..self.cluster.history[config].len()).take_while(same);
        before.chain(after).any(|content| operator.seen.1.contains(&(config, content)))
    }

    /// The containers that run with something else than what there is now, of what the template reads.
    pub fn outdated(&self) -> Vec<String> {
        let mut outdated = Vec::new();
        let Some(workload) = &self.cluster.workload else { return outdated };
        for pod in self.cluster.pods.iter().filter(|pod| !pod.terminating) {
            for reads in workload.template.reads() {
                // What a pod of an earlier template reads as well.
                let as_well = |its: &&Reads| its.container == reads.container && its.config == reads.config;
                let Some(its) = pod.template.reads().iter().find(as_well) else { continue };
                let (config, key) = (reads.config, reads.key.or(its.key));
                // Deletion by itself is no change.
                let Some(now) = self.read(config, key, self.cluster.history[config].len() - 1) else { continue };
                let held = pod.started.get(reads.container).into_iter().flat_map(|(_, held)| held);
                for held in held.filter(|held| held.config == config) {
                    let reads = self.read(config, key, held.content);
                    if reads.as_ref() != Some(&now) && self.was_seen(config, key, held.content) {
                        outdated.push(format!("{its:?} of {pod:?} holds {reads:?}, there is {now:?}"));
                    }
                }
            }
        }
        outdated
    }

    /// Whether a rollout gets to its end: nobody paused it, and new pods start and get ready.
    pub fn rolls(&self) -> bool {
        self.cluster.workload.as_ref().is_some_and(|it| {
            let starts = it.template.containers().iter().all(|name| self.cluster.can_start(&it.template, name));
            it.template.image < 2 && !it.paused && starts
        })
    }
}
