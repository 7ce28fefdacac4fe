//! Whether a Reloader runs in the cluster: two that act on the same annotations roll a workload twice.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::model::lease::LeaseState;
use crate::model::names::{Name, Uid};

/// The labels that a Reloader's Deployment has: by its chart, and by earlier ones and plain manifests.
pub const DEPLOYMENT_LABELS: [&str; 2] = ["app.kubernetes.io/name=reloader", "provider=stakater"];
/// The label of the ConfigMap in which a Reloader publishes how it was started.
pub const META_INFO_LABEL: &str = "reloader.stakater.com/meta-info";
/// The Lease of a Reloader with several replicas.
pub const LEASE: &str = "stakater-reloader-lock";

const NAME: &str = "reloader";

/// A sign that a Reloader runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// Its Deployment wants pods.
    Deployment {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
        /// Its uid.
        uid: Option<Uid>,
    },
    /// Its Lease is held.
    Lease {
        /// Its namespace.
        namespace: Name,
    },
}

impl Sign {
    /// Where it is.
    pub fn namespace(&self) -> &Name {
        match self {
            Self::Deployment { namespace, .. } | Self::Lease { namespace } => namespace,
        }
    }

    /// What is seen, in words.
    pub fn what(&self) -> String {
        match self {
            Self::Deployment { name, .. } => format!("Deployment {name}"),
            Self::Lease { .. } => format!("Lease {LEASE}"),
        }
    }
}

/// The signs in what was found: Deployments with the labels, those that a Reloader named as its own, and Leases.
pub fn signs(labelled: &[Deployment], published: &[Deployment], leases: &[Lease], now: Timestamp) -> BTreeSet<Sign> {
    let named = labelled.iter().filter(|deployment| is_reloader(deployment));
    let deployments = named.chain(published).filter(|deployment| wants_pods(deployment)).filter_map(of_deployment);
    let mut signs: BTreeSet<Sign> = deployments.collect();
    let places: BTreeSet<Name> = signs.iter().map(|sign| sign.namespace().clone()).collect();
    let held = leases
        .iter()
        .filter(|lease| LeaseState::of(lease, now) == LeaseState::Held)
        .filter_map(|lease| lease.metadata.namespace.as_deref());
    // Where its Deployment was seen, the Lease tells of the same one.
    let held = held.map(Name::from).filter(|namespace| !places.contains(namespace));
    signs.extend(held.map(|namespace| Sign::Lease { namespace }));
    signs
}

/// The namespace and the name of the Deployment of the Reloader that published this. The ConfigMap itself stays when
/// a Reloader goes.
pub fn deployment_of(meta_info: &ConfigMap) -> Option<(String, String)> {
    let info: serde_json::Value = serde_json::from_str(meta_info.data.as_ref()?.get("deploymentInfo")?).ok()?;
    let name = info.get("name")?.as_str().filter(|name| !name.is_empty())?;
    Some((meta_info.metadata.namespace.clone()?, name.to_owned()))
}

/// Whether a Deployment with the labels is one: others of the same vendor have some of them.
fn is_reloader(deployment: &Deployment) -> bool {
    let pod = deployment.spec.template.spec.as_ref();
    let images = pod.into_iter().flat_map(|pod| &pod.containers).filter_map(|container| container.image.as_deref());
    let mut programs = images.map(|image| image.rsplit('/').next().unwrap_or(image));
    programs.any(|program| program.starts_with(NAME))
        || deployment.metadata.name.as_deref().is_some_and(|name| name.ends_with(NAME))
}

fn wants_pods(deployment: &Deployment) -> bool {
    deployment.spec.replicas != Some(0)
}

fn of_deployment(deployment: &Deployment) -> Option<Sign> {
    let metadata = &deployment.metadata;
    Some(Sign::Deployment {
        namespace: metadata.namespace.as_deref()?.into(),
        name: metadata.name.as_deref()?.into(),
        uid: metadata.uid.as_deref().map(Uid::from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn deployment(name: &str, image: &str, replicas: i32) -> Deployment {
        let value = json!({
            "metadata": {"name": name, "namespace": "tools", "uid": "u"},
            "spec": {"replicas": replicas, "selector": {},
                "template": {"spec": {"containers": [{"name": "c", "image": image}]}}},
        });
        serde_json::from_value(value).unwrap()
    }

    fn lease(holder: &str, renewed: Value) -> Lease {
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed});
        serde_json::from_value(json!({"metadata": {"name": LEASE, "namespace": "tools"}, "spec": spec})).unwrap()
    }

    fn seen(name: &str) -> Vec<Sign> {
        vec![Sign::Deployment { namespace: "tools".into(), name: name.into(), uid: Some("u".into()) }]
    }

    const IMAGE: &str = "ghcr.io/stakater/reloader:v1.4.16";

    fn noon() -> Timestamp {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    #[rstest]
    #[case::by_its_image(deployment("r", IMAGE, 1), seen("r"))]
    #[case::by_its_image_in_a_mirror(deployment("r", "mirror:5000/x/reloader@sha256:1", 1), seen("r"))]
    #[case::the_enterprise_s(deployment("r", "ghcr.io/stakater/reloader-enterprise", 1), seen("r"))]
    #[case::by_its_name(deployment("my-reloader", "mirror/abc", 1), seen("my-reloader"))]
    #[case::scaled_down(deployment("r", IMAGE, 0), vec![])]
    #[case::another_program_of_the_vendor(deployment("forecastle", "stakater/forecastle:v1", 1), vec![])]
    fn a_deployment_with_the_labels_is_one_by_image_or_name(
        #[case] deployment: Deployment,
        #[case] expected: Vec<Sign>,
    ) {
        assert_eq!(signs(&[deployment], &[], &[], noon()).into_iter().collect::<Vec<_>>(), expected);
    }

    #[rstest]
    #[case::renewed(lease("pod", json!("2026-11-30T11:59:50.000000Z")), true)]
    #[case::long_ago(lease("pod", json!("2026-11-30T11:00:00.000000Z")), false)]
    #[case::given_back(lease("", json!("2026-11-30T11:59:50.000000Z")), false)]
    #[case::never_renewed(lease("pod", Value::Null), false)]
    fn a_lease_is_a_sign_while_it_is_held(#[case] lease: Lease, #[case] expected: bool) {
        let expected: BTreeSet<_> = expected.then(|| Sign::Lease { namespace: "tools".into() }).into_iter().collect();
        assert_eq!(signs(&[], &[], &[lease], noon()), expected);
    }

    #[test]
    fn one_that_shows_all_signs_is_seen_once() {
        let deployment = deployment("r", IMAGE, 1);
        let lease = lease("pod", json!("2026-11-30T11:59:50.000000Z"));
        let signs = signs(std::slice::from_ref(&deployment), std::slice::from_ref(&deployment), &[lease], noon());
        assert_eq!(signs.into_iter().collect::<Vec<_>>(), seen("r"));
    }

    #[rstest]
    #[case::its_own(json!({"deploymentInfo": "{\"name\":\"r\",\"namespace\":\"tools\"}"}), Some("r"))]
    #[case::without_a_name(json!({"deploymentInfo": "{\"namespace\":\"tools\"}"}), None)]
    #[case::an_empty_name(json!({"deploymentInfo": "{\"name\":\"\"}"}), None)]
    #[case::no_json(json!({"deploymentInfo": "x"}), None)]
    #[case::nothing(json!({}), None)]
    fn what_it_publishes_names_its_deployment(#[case] data: Value, #[case] expected: Option<&str>) {
        let value = json!({"metadata": {"name": "reloader-meta-info", "namespace": "tools"}, "data": data});
        let expected = expected.map(|name| ("tools".to_owned(), name.to_owned()));
        assert_eq!(deployment_of(&serde_json::from_value(value).unwrap()), expected);
    }
}
