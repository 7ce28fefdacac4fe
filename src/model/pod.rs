//! A pod, reduced to what the rules need: when it was made, when its containers started and what they run, and what
//! keeps it from being ready.

mod object;

pub use object::PodObject;

use std::fmt;

use jiff::Timestamp;

use crate::model::image::RunningImage;
use crate::model::names::{Name, ResourceVersion, Uid};

/// What restamp keeps of a pod that a controller owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its uid.
    pub uid: Uid,
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The controller that owns it: a ReplicaSet, StatefulSet or DaemonSet.
    pub owner: Uid,
    /// Whether that is a ReplicaSet, which stands between the pod and its workload.
    pub is_of_replica_set: bool,
    /// When it was created, to the second.
    pub created: Option<Timestamp>,
    /// The version that this was read from.
    pub version: Option<ResourceVersion>,
    /// The latest version at which it was seen without a node: until then nothing in it had started.
    pub born: Option<ResourceVersion>,
    /// The stamp of the template that it was made from.
    pub stamp: Option<String>,
    /// The revision that its controller made it for.
    pub revision: PodRevision,
    /// What it is doing.
    pub phase: Phase,
    /// The node that it is on.
    pub node: Option<Name>,
    /// When its status was last written, by the API server's clock: what it shows was so by then.
    pub status_written: Option<Timestamp>,
    /// Its containers that the kubelet has reported on.
    pub containers: Vec<RunningContainer>,
    /// What keeps it from being ready.
    pub blocked: Option<Blocked>,
}

/// The labels by which the controllers of StatefulSets and DaemonSets tell revisions apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodRevision {
    /// `controller-revision-hash`
    pub hash: Option<String>,
    /// `pod-template-generation`, of a DaemonSet's pods
    pub template_generation: Option<String>,
}

/// Whether a pod still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It runs, or will.
    Active,
    /// It is terminating, or it has finished: nothing in it reads any more.
    Over,
}

/// A container and when it last started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningContainer {
    /// Its name.
    pub name: Name,
    /// When it read what it froze.
    pub started: Started,
    /// Whether it runs.
    pub activity: Activity,
    /// What it runs, where that is known and compares with what others run.
    pub image: Option<RunningImage>,
}

impl RunningContainer {
    /// One that runs since then, or waits; nothing is known of its image.
    pub fn new(name: Name, started: Started) -> Self {
        let activity = if started == Started::NotYet { Activity::Waiting } else { Activity::Running };
        Self { name, started, activity, image: None }
    }
}

/// When a container read what it froze.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// It waits: it reads when it starts.
    NotYet,
    /// At this time, to the second, by the node's clock. A finished init container read when it ran.
    At(Timestamp),
    /// It runs, and nobody says since when.
    Unknown,
}

/// Whether a container runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Not yet, or not again yet.
    Waiting,
    /// It does.
    Running,
    /// It is an init container that has done its work.
    Done,
}

/// A pod that is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Since when.
    pub since: Option<Timestamp>,
    /// Why.
    pub blocker: Blocker,
    /// The container that is to blame.
    pub container: Option<Name>,
}

/// What keeps a pod from being ready; what goes by itself comes last. Of what the kubelet says only known words are
/// kept: its messages may quote values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blocker {
    /// `CreateContainerConfigError`: a config or a key that it needs is missing.
    Config,
    /// `ErrImagePull`, `ImagePullBackOff` and the like.
    Image,
    /// `CreateContainerError`, `RunContainerError`.
    Start,
    /// It ends again and again.
    Crash,
    /// No node takes it.
    Unschedulable,
    /// Its containers are being made, or their volumes mounted.
    Starting,
    /// It runs, and its readiness is not reached.
    NotReady,
}

impl Blocker {
    /// Whether waiting alone does not mend it.
    pub fn is_lasting(self) -> bool {
        match self {
            Self::Config | Self::Image | Self::Start | Self::Crash | Self::Unschedulable => true,
            Self::Starting | Self::NotReady => false,
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Config => "can't start, since a config or key that it needs is missing (CreateContainerConfigError)",
            Self::Image => "can't start, since its image can't be pulled (ImagePullBackOff)",
            Self::Start => "can't start (CreateContainerError or RunContainerError)",
            Self::Crash => "ends again and again (CrashLoopBackOff)",
            Self::Unschedulable => "fits on no node (Unschedulable)",
            Self::Starting => "has not started yet",
            Self::NotReady => "is not ready",
        })
    }
}

impl Pod {
    /// Takes over the texts that another pod has as well, so that they are in memory once.
    pub fn share(&mut self, other: &Self) {
        share(&mut self.namespace, &other.namespace);
        share(&mut self.owner, &other.owner);
        if let (Some(node), Some(others)) = (&mut self.node, &other.node) {
            share(node, others);
        }
        for (container, others) in self.containers.iter_mut().zip(&other.containers) {
            share(&mut container.name, &others.name);
            if let (Some(image), Some(others)) = (&mut container.image, &others.image) {
                share(&mut image.text, &others.text);
                share(&mut image.digest, &others.digest);
            }
        }
    }
}

fn share<T: Clone + PartialEq>(text: &mut T, others: &T) {
    if text == others {
        *text = others.clone();
    }
}
