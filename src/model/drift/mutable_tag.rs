//! The note `MutableTag`: an image without a tag, or `latest`, that is looked up at each start: two starts may run two images.

use super::{Note, WorkloadSight};
use crate::model::image::{ImageReference, PullPolicy};

/// One note for each such container.
pub(super) fn notes(sight: &WorkloadSight<'_>) -> Vec<Note> {
    let images = sight.workload.images.iter().filter(|image| image.pull == PullPolicy::Always);
    let mutable =
        images.filter(|image| ImageReference::parse(image.text.as_str()).is_some_and(|image| image.is_latest()));
    mutable.map(|image| Note::MutableTag { container: image.container.clone(), image: image.text.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{deployment, scene};
    use rstest::rstest;

    #[rstest]
    #[case::latest("app:latest", PullPolicy::Always, 1)]
    #[case::no_tag("app", PullPolicy::Always, 1)]
    #[case::kept_on_the_node("app:latest", PullPolicy::Kept, 0)]
    #[case::a_version("app:1.2", PullPolicy::Always, 0)]
    #[case::a_broken_name("a b", PullPolicy::Always, 0)]
    fn a_tag_that_moves_is_noted(#[case] image: &str, #[case] pull: PullPolicy, #[case] expected: usize) {
        assert_eq!(scene(deployment("w").image(image, pull)).look(|sight| notes(sight).len()), expected);
    }
}
