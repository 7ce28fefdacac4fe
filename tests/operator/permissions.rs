//! `deploy/`: enough for the operator, and no more.

use crate::support::cluster::shared as shared_cluster;
use crate::support::kind::{DEPLOYMENT, SECRET};
use crate::support::manifests::{config_map, deployment, secret};
use crate::support::waiting::{PATIENCE, poll};
use crate::support::{shared, shared_operator};
use rstest::rstest;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[tokio::test]
async fn nothing_that_it_does_is_forbidden_to_it() {
    let ns = shared("allowed").await;
    ns.apply(&[
        secret("s", &[("KEPT", "1"), ("REMOVED", "1")]),
        config_map("c", &[("K", "1")]),
        deployment("w").env_from_secret("s").env_from_config_map("c").into(),
    ]);
    ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&[secret("s", &[("KEPT", "2")])]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    ns.until(crate::support::kind::DRIFT_REPORT, "secret-s", "to be there", |_| true).await;
    ns.operator_has_caught_up().await;
    assert_eq!(ns.events(SECRET, "s", "ConfigChanged").await.len(), 1);

    let log = shared_operator().await.log();
    let refused: Vec<&str> = log.lines().filter(|line| line.to_lowercase().contains("forbidden")).collect();
    assert_eq!(refused, [""; 0]);
}

#[tokio::test]
async fn it_publishes_what_it_watches() {
    shared_operator().await;
    let cluster = shared_cluster();
    let scope = ["get", "configmap", "restamp-scope", "-nrestamp-system", "--output=jsonpath={.data.version}"];
    let published = async || cluster.kubectl_with(&cluster.kubeconfig(), &scope, "").stdout == VERSION.as_bytes();
    assert!(poll(PATIENCE, published).await.is_ok(), "{}", shared_operator().await.log());
}

#[rstest]
#[case("list secrets --all-namespaces", "yes")]
#[case("patch deployments.apps --all-namespaces", "yes")]
#[case("get secrets/restamp-hash-key -nrestamp-system", "yes")]
#[case("patch secrets/restamp-hash-key -nrestamp-system", "no")]
#[case("create secrets -ndefault", "no")]
#[case("patch secrets -ndefault", "no")]
#[case("delete secrets -nrestamp-system", "no")]
#[case("patch configmaps -ndefault", "no")]
#[case("delete pods -ndefault", "no")]
#[case("create deployments.apps -ndefault", "no")]
#[case("delete deployments.apps -ndefault", "no")]
#[case("create jobs.batch -ndefault", "no")]
#[case("delete jobs.batch -ndefault", "no")]
#[case("patch deployments.apps --subresource=scale -ndefault", "no")]
#[case("create leases.coordination.k8s.io -ndefault", "no")]
#[case("patch customresourcedefinitions.apiextensions.k8s.io --all-namespaces", "no")]
#[case("create clusterrolebindings.rbac.authorization.k8s.io --all-namespaces", "no")]
fn its_role_says(#[case] question: &str, #[case] expected: &str) {
    let cluster = shared_cluster();
    let words: Vec<&str> = question.split(' ').collect();
    let question = [&["auth", "can-i", "--as=system:serviceaccount:restamp-system:restamp"], &words[..]].concat();
    let answer = cluster.kubectl_with(&cluster.kubeconfig(), &question, "");
    assert_eq!(String::from_utf8(answer.stdout).unwrap().trim(), expected);
}

#[test]
fn its_pod_is_admitted_to_a_namespace_that_enforces_the_restricted_standard() {
    shared_cluster().kubectl(&["rollout", "status", "deployment/restamp", "-nrestamp-system", "--timeout=90s"]);
}
