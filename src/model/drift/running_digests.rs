//! The digests that the pods of one revision run, by container, and which of them compare.
//!
//! A registry keeps an image of several architectures as an index, with a manifest for each; their digests differ, and
//! none tells what it is of. A runtime reports one or the other. So digests on two nodes may stand for one image: the nodes
//! may be of two architectures, or have two runtimes. On one node they compare: the same name that leads to two digests there was
//! looked up twice, with two answers.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::names::{ImageDigest, ImageText, Name};
use crate::model::pod::{Activity, Pod};

/// What runs, and where.
#[derive(Debug, Default)]
pub(super) struct RunningDigests<'a>(BTreeMap<&'a ImageDigest, Places<'a>>);

#[derive(Debug, Default)]
struct Places<'a> {
    pods: u32,
    nodes: BTreeSet<&'a Name>,
}

impl<'a> RunningDigests<'a> {
    /// What these pods run, by container and by what they ask for.
    pub(super) fn of(pods: impl IntoIterator<Item = &'a Pod>) -> BTreeMap<(&'a Name, &'a ImageText), Self> {
        let mut all: BTreeMap<_, Self> = BTreeMap::new();
        for pod in pods {
            let running = pod.containers.iter().filter(|container| container.activity == Activity::Running);
            for (container, image) in running.filter_map(|container| Some((container, container.image.as_ref()?))) {
                let digests = all.entry((&container.name, &image.text)).or_default();
                let places = digests.0.entry(&image.digest).or_default();
                places.pods += 1;
                places.nodes.extend(&pod.node);
            }
        }
        all
    }

    pub(super) fn is_mixed(&self) -> bool {
        self.0.len() > 1
    }

    /// Whether some node runs two of them.
    pub(super) fn meet_on_a_node(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.0.values().flat_map(|places| &places.nodes).any(|node| !seen.insert(node))
    }

    /// Those that run on a node that runs this one as well.
    pub(super) fn beside(&self, digest: &ImageDigest) -> BTreeMap<ImageDigest, u32> {
        let nodes = self.0.get(digest).map(|places| &places.nodes);
        let beside = self.0.iter().filter(|(other, places)| {
            **other != digest && nodes.is_some_and(|nodes| !nodes.is_disjoint(&places.nodes))
        });
        beside.map(|(digest, places)| ((*digest).clone(), places.pods)).collect()
    }

    /// All of them, and in how many pods each.
    pub(super) fn counts(&self) -> BTreeMap<ImageDigest, u32> {
        self.0.iter().map(|(digest, places)| ((*digest).clone(), places.pods)).collect()
    }
}
