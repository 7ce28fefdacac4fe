//! Images: what a template asks for, and what a container runtime says that it runs. Whatever does not have the
//! documented form says nothing.
//!
//! <https://github.com/distribution/reference/blob/main/reference.go>

use k8s_openapi::api::core::v1::PodSpec;

use crate::model::names::{ImageDigest, ImageText, Name};

/// An image by its name: `[host/]repository[:tag][@digest]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageReference {
    /// The repository in full, as in `docker.io/library/nginx`.
    pub repository: String,
    /// The tag.
    pub tag: Option<String>,
    /// The digest that pins it.
    pub digest: Option<ImageDigest>,
}

impl ImageReference {
    /// Reads a name, and completes it as container runtimes do; `None` for a broken one.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(read_digest(digest)?)),
            None => (text, None),
        };
        // A colon before the last slash is of the host's port.
        let (repository, tag) = match name.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
            _ => (name, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return None;
        }
        Some(Self { repository: complete(repository)?, tag: tag.map(str::to_owned), digest })
    }

    /// Whether it is `latest`, named or by default, and no digest pins it.
    pub fn is_latest(&self) -> bool {
        self.digest.is_none() && self.tag.as_deref().is_none_or(|tag| tag == "latest")
    }
}

/// The repository with its host, and `library/` where it is one of Docker's own.
fn complete(repository: &str) -> Option<String> {
    let (host, path) = match repository.split_once('/') {
        Some((host, path)) if host == "localhost" || host.contains(['.', ':']) => (host, path),
        _ => ("docker.io", repository),
    };
    let is_host = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | ':' | '[' | ']');
    if !host.chars().all(is_host) || !path.split('/').all(is_component) {
        return None;
    }
    match host {
        "docker.io" | "index.docker.io" if !path.contains('/') => Some(format!("docker.io/library/{path}")),
        "index.docker.io" => Some(format!("docker.io/{path}")),
        _ => Some(format!("{host}/{path}")),
    }
}

fn is_component(part: &str) -> bool {
    let is_edge =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    let is_inner =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '.' | '_' | '-');
    is_edge(part.chars().next()) && is_edge(part.chars().next_back()) && part.chars().all(is_inner)
}

fn is_tag(tag: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    tag.starts_with(is_letter)
        && tag.len() <= 128
        && tag.chars().all(|letter| is_letter(letter) || matches!(letter, '.' | '-'))
}

fn read_digest(text: &str) -> Option<ImageDigest> {
    let (algorithm, hex) = text.split_once(':')?;
    let length = match algorithm {
        "sha256" => 64,
        "sha512" => 128,
        _ => return None,
    };
    let is_hex = hex.len() == length && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| text.into())
}

/// The image that a container runs, by the digest under which it was pulled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningImage {
    /// What its pod asks for.
    pub text: ImageText,
    /// What runs.
    pub digest: ImageDigest,
}

impl RunningImage {
    /// From what a pod asks for, and the `imageID` in its status.
    ///
    /// The forms of containerd and CRI-O (`docker.io/library/app@sha256:…`) and of Docker (`docker-pullable://…`) are
    /// digests of manifests. An image that was loaded rather than pulled has none: `sha256:…`, `docker://sha256:…` and
    /// the bare number are local ids, and compare with nothing. So does a digest of another repository: a node that knows
    /// an image by several names shows any of them.
    pub fn read(asked: &str, image_id: &str) -> Option<Self> {
        let shown = ImageReference::parse(image_id.strip_prefix("docker-pullable://").unwrap_or(image_id))?;
        let asked_for = ImageReference::parse(asked)?;
        let digest = shown.digest.filter(|_| shown.repository == asked_for.repository)?;
        Some(Self { text: asked.into(), digest })
    }
}

/// When the kubelet asks the registry what a tag stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullPolicy {
    /// At each start; also where nothing is said of `latest`.
    Always,
    /// Once for each node, or never.
    Kept,
}

/// A container of a pod template, and the image that it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateImage {
    /// The container.
    pub container: Name,
    /// The image, as it is written.
    pub text: ImageText,
    /// When its tag is looked up.
    pub pull: PullPolicy,
}

impl TemplateImage {
    /// The images that a pod template asks for.
    pub fn all_of(pod: &PodSpec) -> Vec<Self> {
        let containers = pod.init_containers.iter().flatten().chain(&pod.containers);
        let images = containers.filter_map(|container| {
            let pull = match container.image_pull_policy.as_deref() {
                None | Some("Always") => PullPolicy::Always,
                Some(_) => PullPolicy::Kept,
            };
            Some(Self { container: container.name.as_str().into(), text: container.image.as_deref()?.into(), pull })
        });
        images.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn digest(letter: char) -> String {
        format!("sha256:{}", letter.to_string().repeat(64))
    }

    #[rstest]
    #[case::short("nginx", "docker.io/library/nginx", None)]
    #[case::of_a_user("team/app:1.2", "docker.io/team/app", Some("1.2"))]
    #[case::of_a_host("registry.example/app", "registry.example/app", None)]
    #[case::of_a_port("registry:5000/a/b:v1", "registry:5000/a/b", Some("v1"))]
    #[case::local("localhost/app:1", "localhost/app", Some("1"))]
    #[case::by_the_old_name("index.docker.io/library/nginx:1", "docker.io/library/nginx", Some("1"))]
    fn a_name_is_completed(#[case] text: &str, #[case] repository: &str, #[case] tag: Option<&str>) {
        let reference = ImageReference::parse(text).unwrap();
        assert_eq!((reference.repository.as_str(), reference.tag.as_deref()), (repository, tag));
    }

    #[rstest]
    #[case::no_tag("app", true)]
    #[case::latest("registry:5000/app:latest", true)]
    #[case::another_tag("app:1", false)]
    #[case::pinned("app:latest@sha256:0000000000000000000000000000000000000000000000000000000000000000", false)]
    fn latest_is_what_nothing_else_is_said_of(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(ImageReference::parse(text).unwrap().is_latest(), expected);
    }

    #[rstest]
    #[case::empty("")]
    #[case::upper_case("App")]
    #[case::no_path("localhost/")]
    #[case::empty_tag("app:")]
    #[case::empty_digest("app@")]
    #[case::short_digest("app@sha256:00")]
    #[case::unknown_algorithm("app@md5:00000000000000000000000000000000")]
    #[case::upper_case_digest("app@sha256:A000000000000000000000000000000000000000000000000000000000000000")]
    #[case::two_digests("app@sha256:00@sha256:00")]
    #[case::slashes("a//b")]
    #[case::space("a b")]
    fn a_broken_name_is_none(#[case] text: &str) {
        assert_eq!(ImageReference::parse(text), None);
    }

    #[rstest]
    #[case::containerd("app:1", "docker.io/library/app@{a}", true)]
    #[case::docker("app:1", "docker-pullable://app@{a}", true)]
    #[case::pinned("registry.example/app@{b}", "registry.example/app@{a}", true)]
    #[case::a_local_id("app:1", "{a}", false)]
    #[case::dockers_local_id("app:1", "docker://{a}", false)]
    #[case::a_bare_number("app:1", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false)]
    #[case::another_repository("app:1", "docker.io/library/import-2026-11-30@{a}", false)]
    #[case::nothing_yet("app:1", "", false)]
    #[case::a_broken_name("App:1", "docker.io/library/app@{a}", false)]
    fn only_a_digest_of_the_same_repository_counts(#[case] asked: &str, #[case] shown: &str, #[case] counts: bool) {
        let fill = |text: &str| text.replace("{a}", &digest('a')).replace("{b}", &digest('b'));
        let (asked, shown) = (fill(asked), fill(shown));
        let expected =
            counts.then(|| RunningImage { text: asked.as_str().into(), digest: digest('a').as_str().into() });
        assert_eq!(RunningImage::read(&asked, &shown), expected);
    }

    /// Text that is nearly what it should be, and any other.
    fn texts() -> impl Strategy<Value = String> {
        let nearly = "(docker-pullable://|docker://)?[a-zA-Z.:/_@ \u{e4}-]{0,12}(@sha256:[0-9a-fA-F]{62,66})?";
        prop_oneof![any::<String>(), nearly.prop_map(|text: String| text)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_shown_is_read_in_full_or_not_at_all(asked in texts(), shown in texts()) {
            if let Some(image) = RunningImage::read(&asked, &shown) {
                prop_assert_eq!(read_digest(image.digest.as_str()), Some(image.digest.clone()));
                prop_assert!(shown.ends_with(image.digest.as_str()), "{} {:?}", shown, image);
                prop_assert!(ImageReference::parse(&asked).is_some());
            }
        }
    }
}
