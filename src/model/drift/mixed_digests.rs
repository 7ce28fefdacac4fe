//! `MixedDigests`: pods of one revision run different images under one tag. It moved between their starts.

use super::running_digests::RunningDigests;
use super::{Finding, Note, WorkloadSight};
use crate::model::image::ImageReference;
use crate::model::names::{ImageText, Name};
use crate::model::revision;

/// Every container of which one node runs two images under one tag.
pub(super) fn find(sight: &WorkloadSight<'_>) -> Vec<Finding> {
    let mixed = mixed(sight).into_iter().filter(|(_, _, digests)| digests.meet_on_a_node());
    let finding = |(container, image, digests): (&Name, &ImageText, RunningDigests<'_>)| Finding::MixedDigests {
        container: container.clone(),
        image: image.clone(),
        digests: digests.counts(),
    };
    mixed.map(finding).collect()
}

/// Where different digests may stand for one image.
pub(super) fn notes(sight: &WorkloadSight<'_>) -> Vec<Note> {
    let apart = mixed(sight).into_iter().filter(|(_, _, digests)| !digests.meet_on_a_node());
    apart
        .map(|(container, image, _)| Note::DigestsApart { container: container.clone(), image: image.clone() })
        .collect()
}

fn mixed<'a>(sight: &WorkloadSight<'a>) -> Vec<(&'a Name, &'a ImageText, RunningDigests<'a>)> {
    let Some(is_current) = revision::current(&sight.own_pods) else { return Vec::new() };
    let running = RunningDigests::of(sight.active().filter(|pod| is_current(pod)));
    let by_tag = |image: &ImageText| ImageReference::parse(image.as_str()).is_some_and(|image| image.digest.is_none());
    let mixed = running.into_iter().filter(|((_, image), digests)| digests.is_mixed() && by_tag(image));
    mixed.map(|((container, image), digests)| (container, image, digests)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{PodBuilder, Scene, deployment, image_digest, pod_of, scene, stateful_set};
    use crate::model::workload::Revision;
    use rstest::rstest;

    const APP: &str = "localhost/app:stable";

    fn pod(name: &str, digest: char) -> PodBuilder {
        pod_of("rs-1", name).runs(APP, digest)
    }

    fn two(one: PodBuilder, other: PodBuilder) -> Scene {
        scene(deployment("w")).pod(one).pod(other)
    }

    fn said(scene: &Scene) -> (usize, usize) {
        scene.look(|sight| (find(sight).len(), notes(sight).len()))
    }

    #[rstest]
    #[case::two_digests(two(pod("a", 'a'), pod("b", 'b')), (1, 0))]
    #[case::one_digest(two(pod("a", 'a'), pod("b", 'a')), (0, 0))]
    #[case::nodes_that_may_be_of_two_architectures(two(pod("a", 'a'), pod("b", 'b').node("node-2")), (0, 1))]
    #[case::a_third_pod_beside_one_of_them(
        two(pod("a", 'a'), pod("b", 'b').node("node-2")).pod(pod("c", 'a').node("node-2")), (1, 0))]
    #[case::one_of_an_earlier_revision(two(pod("a", 'a'), pod("b", 'b').owner("rs-0")), (0, 0))]
    #[case::one_that_terminates(two(pod("a", 'a'), pod("b", 'b').over()), (0, 0))]
    #[case::one_that_waits(two(pod("a", 'a'), pod("b", 'b').waits("app")), (0, 0))]
    #[case::two_tags(two(pod("a", 'a'), pod_of("rs-1", "b").runs("localhost/app:2", 'b')), (0, 0))]
    #[case::pinned(
        two(pod_of("rs-1", "a").runs(&pinned(), 'a'), pod_of("rs-1", "b").runs(&pinned(), 'b')), (0, 0))]
    #[case::a_broken_name(two(pod_of("rs-1", "a").runs("A B", 'a'), pod_of("rs-1", "b").runs("A B", 'b')), (0, 0))]
    fn pods_of_one_revision_run_one_image(#[case] scene: Scene, #[case] expected: (usize, usize)) {
        assert_eq!(said(&scene), expected);
    }

    fn pinned() -> String {
        format!("localhost/app@{}", image_digest('a'))
    }

    #[test]
    fn revisions_that_cannot_be_told_apart_are_not_compared() {
        let workload = stateful_set("w").revision(Revision::Hash(None));
        let of_it = |name, digest| pod_of("w", name).runs(APP, digest);
        assert_eq!(said(&scene(workload).pod(of_it("a", 'a')).pod(of_it("b", 'b'))), (0, 0));
    }

    #[test]
    fn each_digest_is_counted() {
        let found = two(pod("a", 'a'), pod("b", 'b')).pod(pod("c", 'a')).look(find);
        let digests = [(image_digest('a'), 2), (image_digest('b'), 1)].into();
        assert_eq!(found, [Finding::MixedDigests { container: "app".into(), image: APP.into(), digests }]);
    }
}
