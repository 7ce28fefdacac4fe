//! Which pods are of the revision that a workload's controller works towards.

use crate::model::names::Uid;
use crate::model::pod::Pod;
use crate::model::workload::{Progress, Revision, Strategy, Workload};

/// A workload's pods, and by what their revisions are told.
#[derive(Debug, Clone, Copy)]
pub struct OwnPods<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Its pods.
    pub pods: &'a [&'a Pod],
    /// The ReplicaSet that its controller works towards, for a Deployment.
    pub replica_set: Option<&'a Uid>,
}

/// Tells the pods of that revision; `None` if they can't be told.
pub fn current<'a>(own: &OwnPods<'a>) -> Option<impl Fn(&Pod) -> bool + use<'a>> {
    let hash_of_generation = |generation: &str| {
        let of_it = |pod: &&&Pod| pod.revision.template_generation.as_deref() == Some(generation);
        own.pods.iter().find(of_it).and_then(|pod| pod.revision.hash.as_deref())
    };
    let (owner, hash) = match &own.workload.revision {
        Revision::OfReplicaSet(_) => (Some(own.replica_set?), None),
        Revision::Hash(hash) => (None, Some(hash.as_deref()?)),
        // As long as no pod of it is there, none of those that are there is known to stay.
        Revision::TemplateGeneration(generation) => (None, hash_of_generation(generation.as_deref()?)),
        Revision::Unknown => return None,
    };
    Some(move |pod: &Pod| match owner {
        Some(owner) => pod.owner == *owner,
        None => hash.is_some() && pod.revision.hash.as_deref() == hash,
    })
}

/// Tells the pods that were made from the present template: the controller has seen it, and works towards it. That of a
/// paused Deployment makes no ReplicaSet of the template that it sees.
pub fn of_the_template<'a>(own: &OwnPods<'a>) -> Option<impl Fn(&Pod) -> bool + use<'a>> {
    let Workload { progress, strategy, .. } = own.workload;
    current(own).filter(|_| *progress != Progress::Unobserved && *strategy == Strategy::Rolling)
}
