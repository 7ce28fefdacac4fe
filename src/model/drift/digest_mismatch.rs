//! `DigestMismatch`: the template pins a digest, and a pod made from it runs another one.
//!
//! A runtime pulls what is pinned, so there are two ways to another digest: somebody changed the pod's own image, or the
//! runtime reports the image by another of its digests. The second is no drift, and looks the same, unless the runtime on that node
//! reports the pinned one as it is pinned.

use std::collections::BTreeMap;

use super::running_digests::RunningDigests;
use super::{Finding, Note, WorkloadSight};
use crate::model::image::ImageReference;
use crate::model::names::{ImageDigest, ImageText, Name};
use crate::model::revision;

/// Every container that runs something else than what the template pins.
pub(super) fn find(sight: &WorkloadSight<'_>) -> Vec<Finding> {
    let mismatches = pins(sight).into_iter().filter(|pin| !pin.others.is_empty());
    let finding = |pin: Pin<'_>| Finding::DigestMismatch {
        container: pin.container.clone(),
        image: pin.image.clone(),
        digests: pin.others,
    };
    mismatches.map(finding).collect()
}

/// Where another digest may stand for the pinned one.
pub(super) fn notes(sight: &WorkloadSight<'_>) -> Vec<Note> {
    let unclear = pins(sight).into_iter().filter(|pin| pin.others.is_empty() && pin.unclear);
    unclear.map(|pin| Note::DigestsApart { container: pin.container.clone(), image: pin.image.clone() }).collect()
}

/// A container whose image is pinned.
struct Pin<'a> {
    container: &'a Name,
    image: &'a ImageText,
    /// Other digests, which can't be the same image.
    others: BTreeMap<ImageDigest, u32>,
    /// Whether there are some that may be.
    unclear: bool,
}

fn pins<'a>(sight: &WorkloadSight<'a>) -> Vec<Pin<'a>> {
    let Some(is_of_it) = revision::of_the_template(&sight.own_pods) else { return Vec::new() };
    let running = RunningDigests::of(sight.active().filter(|pod| is_of_it(pod)));
    let pinned = sight.workload.images.iter().filter_map(|image| {
        let digest = ImageReference::parse(image.text.as_str())?.digest?;
        Some((&image.container, &image.text, digest))
    });
    let pin = |(container, image, digest): (&'a Name, &'a ImageText, ImageDigest)| {
        let of_it = || running.iter().filter(|((name, _), _)| *name == container);
        let mut others = BTreeMap::new();
        for ((_, asked), digests) in of_it() {
            let different = if *asked == image { digests.beside(&digest) } else { digests.counts() };
            others.extend(different.into_iter().filter(|(other, _)| *other != digest));
        }
        let mut all = of_it().flat_map(|(_, digests)| digests.counts().into_keys());
        let unclear = all.any(|other| other != digest);
        Pin { container, image, others, unclear }
    };
    pinned.map(pin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{PodBuilder, Scene, deployment, image_digest, pod_of, scene};
    use crate::model::image::PullPolicy;
    use rstest::rstest;

    fn pinned() -> String {
        format!("localhost/app:1@{}", image_digest('a'))
    }

    fn workload() -> Scene {
        scene(deployment("w").image(&pinned(), PullPolicy::Kept))
    }

    fn pod(name: &str, digest: char) -> PodBuilder {
        pod_of("rs-1", name).runs(&pinned(), digest)
    }

    fn edited(name: &str) -> PodBuilder {
        pod_of("rs-1", name).runs("localhost/app:2", 'b')
    }

    #[rstest]
    #[case::as_pinned(workload().pod(pod("a", 'a')), (0, 0))]
    #[case::by_another_digest_of_the_index(workload().pod(pod("a", 'b')), (0, 1))]
    #[case::by_another_digest_on_another_node(
        workload().pod(pod("a", 'a')).pod(pod("b", 'b').node("node-2")), (0, 1))]
    #[case::beside_one_as_pinned(workload().pod(pod("a", 'a')).pod(pod("b", 'b')), (1, 0))]
    #[case::an_edited_pod(workload().pod(pod("a", 'a')).pod(edited("b").node("node-2")), (1, 0))]
    #[case::an_edited_pod_of_an_earlier_revision(workload().pod(edited("b").owner("rs-0")), (0, 0))]
    #[case::one_that_terminates(workload().pod(edited("b").over()), (0, 0))]
    #[case::not_pinned(
        scene(deployment("w").image("localhost/app:1", PullPolicy::Kept)).pod(edited("b")), (0, 0))]
    #[case::a_paused_rollout(
        scene(deployment("w").by_hand().image(&pinned(), PullPolicy::Kept)).pod(edited("b")), (0, 0))]
    fn pods_run_what_is_pinned(#[case] scene: Scene, #[case] expected: (usize, usize)) {
        assert_eq!(scene.look(|sight| (find(sight).len(), notes(sight).len())), expected);
    }
}
