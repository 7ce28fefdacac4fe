//! A Job that is made again by leaders which are slow, see an earlier state, or end between any two writes.

use proptest::prelude::*;

use super::{Placeholder, Step, next};
use crate::model::builders::job;
use crate::model::names::ResourceVersion;
use crate::model::workload::Workload;

/// The Job of the name, as the API server has it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Present {
    uid: u64,
    version: u64,
    deleting: bool,
}

/// The placeholder, as the API server has it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Held {
    uid: u64,
    original: u64,
    version: u64,
}

/// What a leader has decided, and not written yet.
#[derive(Debug, Clone)]
enum Intent {
    Keep { uid: u64, version: u64 },
    Delete { uid: u64, version: u64 },
    Create,
    Discard { placeholder: u64 },
}

/// The API server, and all writes that are still on their way.
struct World {
    clock: u64,
    /// Every state that the Job had, the newest at the end.
    job: Vec<Option<Present>>,
    placeholder: Option<Held>,
    intents: Vec<Intent>,
    made: u64,
}

#[derive(Debug, Clone, Copy)]
enum Happening {
    /// Its status is written, or somebody labels it.
    Touched,
    /// The pods of a Job on its way out are gone.
    Ended,
    /// A leader finds the change open, as it sees the Job this many states ago.
    Due(usize),
    /// A leader sees the placeholder, and the Job as it was this many states ago.
    Looks(usize),
    /// A write that was decided on arrives, or never does.
    Arrives(usize),
    Lost(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        1 => Just(Happening::Touched),
        2 => Just(Happening::Ended),
        2 => (0..3usize).prop_map(Happening::Due),
        3 => (0..3usize).prop_map(Happening::Looks),
        5 => (0..4usize).prop_map(Happening::Arrives),
        1 => (0..4usize).prop_map(Happening::Lost),
    ]
}

impl World {
    fn new() -> Self {
        let first = Present { uid: 1, version: 1, deleting: false };
        Self { clock: 1, job: vec![Some(first)], placeholder: None, intents: Vec::new(), made: 1 }
    }

    fn now(&self) -> Option<Present> {
        *self.job.last().unwrap()
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn seen(&self, states_ago: usize) -> Option<Present> {
        self.job[self.job.len().saturating_sub(states_ago + 1)]
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::Touched => {
                if let Some(job) = self.now() {
                    let version = self.tick();
                    self.job.push(Some(Present { version, ..job }));
                }
            }
            Happening::Ended => {
                if self.now().is_some_and(|job| job.deleting) {
                    self.job.push(None);
                }
            }
            Happening::Due(states_ago) => {
                if let Some(Present { uid, version, deleting: false }) = self.seen(states_ago) {
                    self.intents.push(Intent::Keep { uid, version });
                }
            }
            Happening::Looks(states_ago) => self.look(states_ago),
            Happening::Arrives(which) if which < self.intents.len() => {
                let intent = self.intents.remove(which);
                self.write(&intent);
            }
            Happening::Lost(which) if which < self.intents.len() => drop(self.intents.remove(which)),
            Happening::Arrives(_) | Happening::Lost(_) => {}
        }
    }

    fn look(&mut self, states_ago: usize) {
        let Some(held) = self.placeholder else { return };
        // A watch shows the end of a Job only after all that came before, so that an absent one is absent by now.
        let seen = self.seen(states_ago).or(self.now());
        let seen = seen.map(|seen| workload(&seen));
        let placeholder = Placeholder {
            name: "p".into(),
            uid: held.uid.to_string().into(),
            original: job("w").build().id,
            original_uid: held.original.to_string().into(),
            original_version: ResourceVersion(held.version),
            instance: String::new(),
        };
        match next(&placeholder, seen.as_ref()) {
            Step::Wait => {}
            Step::Delete => self.intents.push(Intent::Delete { uid: held.original, version: held.version }),
            Step::Create => self.intents.push(Intent::Create),
            Step::Discard => self.intents.push(Intent::Discard { placeholder: held.uid }),
        }
    }

    /// What the API server makes of a write.
    fn write(&mut self, intent: &Intent) {
        match *intent {
            Intent::Keep { uid, version } => {
                // The Job was read before, and may be another one by now.
                if self.placeholder.is_none() {
                    let placeholder = self.tick();
                    self.placeholder = Some(Held { uid: placeholder, original: uid, version });
                    self.intents.push(Intent::Delete { uid, version });
                }
            }
            Intent::Delete { uid, version } => {
                if let Some(job) = self.now().filter(|job| job.uid == uid && job.version == version) {
                    let version = self.tick();
                    self.job.push(Some(Present { version, deleting: true, ..job }));
                }
            }
            Intent::Create => {
                // The manifest is the placeholder's, which is read right before.
                if self.now().is_none() && self.placeholder.is_some() {
                    let version = self.tick();
                    self.made += 1;
                    self.job.push(Some(Present { uid: self.made, version, deleting: false }));
                }
            }
            Intent::Discard { placeholder } => {
                self.placeholder = self.placeholder.filter(|held| held.uid != placeholder);
            }
        }
    }
}

fn workload(present: &Present) -> Workload {
    let builder = job("w").uid(&present.uid.to_string()).at_version(present.version);
    if present.deleting { builder.deleting().build() } else { builder.build() }
}

proptest! {
    #[test]
    fn a_job_is_never_lost_and_stands_there_once_in_the_end(
        happenings in prop::collection::vec(happening(), 0..60),
    ) {
        let mut world = World::new();
        for happening in happenings {
            world.happens(happening);
            prop_assert!(world.now().is_some() || world.placeholder.is_some(), "it is lost");
        }
        // A leader that is well.
        world.intents.clear();
        for _ in 0..6 {
            for happening in [Happening::Looks(0), Happening::Arrives(0), Happening::Ended] {
                world.happens(happening);
            }
        }
        prop_assert!(world.now().is_some_and(|job| !job.deleting));
        prop_assert_eq!(world.placeholder, None);
    }
}
