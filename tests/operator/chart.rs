//! `deploy/helm` and `deploy/kustomize`: what they make is taken by a real API server, and a wrong value by nobody.

use std::path::PathBuf;
use std::process::Output;
use std::sync::OnceLock;

use rstest::rstest;

use crate::scope::grant_role;
use crate::support::cluster::{Cluster, Installed, repository, shared as shared_cluster};
use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT};
use crate::support::manifests::{config_map, deployment, secret};
use crate::support::operator::Operator;
use crate::support::{Flag, turn};

const CHART: &str = "deploy/helm/restamp";

/// Runs helm, which may fail.
fn helm(cluster: &Cluster, args: &[&str]) -> Output {
    cluster.helm().args(args).output().unwrap()
}

fn done(output: Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Has the API server take these objects, and make nothing.
fn try_out(manifests: &str) {
    static MONITORS: OnceLock<()> = OnceLock::new();
    let cluster = shared_cluster();
    MONITORS.get_or_init(|| {
        let crds = cluster.bin().join("prometheus-operator/");
        // They are too long for the annotation of `kubectl apply`.
        cluster.kubectl(&["apply", "--server-side", "--filename", crds.to_str().unwrap()]);
        for kind in ["podmonitors", "servicemonitors", "prometheusrules"] {
            cluster.kubectl(&["wait", "--for=condition=Established", &format!("crd/{kind}.monitoring.coreos.com")]);
        }
        cluster.kubectl(&["create", "namespace", "team-a"]);
    });
    let apply = ["apply", "--dry-run=server", "--validate=strict", "--filename=-"];
    let said = cluster.kubectl_with(&cluster.kubeconfig(), &apply, manifests);
    let stderr = text(&said.stderr);
    assert!(said.status.success() && !stderr.contains("Warning"), "{stderr}");
}

/// The files of values that the chart is tried with.
fn values() -> Vec<PathBuf> {
    let files = std::fs::read_dir(repository(CHART).join("ci")).unwrap();
    files.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_api_server_takes_what_the_chart_makes() {
    let cluster = shared_cluster();
    let with: Vec<Vec<String>> =
        values().iter().map(|file| vec![format!("--values={}", file.display())]).chain([vec![]]).collect();
    assert!(with.len() > 4);
    for flags in with {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        done(helm(cluster, &[&["lint", "--strict", CHART][..], &flags].concat()));
        // Under another name than what is installed, so that the API server looks at whole objects.
        try_out(&done(helm(cluster, &[&["template", "other", CHART][..], &flags].concat())));
    }
}

#[rstest]
#[case("deploy/kustomize/base")]
#[case("deploy/kustomize/overlays/namespaced")]
#[case("deploy/kustomize/overlays/monitoring")]
#[case("deploy/policies/string-data")]
fn the_api_server_takes_what_kustomize_makes(#[case] folder: &str) {
    try_out(&shared_cluster().kubectl(&["kustomize", repository(folder).to_str().unwrap()]));
}

#[rstest]
#[case::a_flag_that_is_none("run.settel=5s", "'settel'")]
#[case::a_value_that_is_none("replica=2", "'replica'")]
#[case::a_word("run.onCreate=perhaps", "/run/onCreate")]
#[case::a_duration("run.settle=soon", "/run/settle")]
#[case::a_number("replicas=two", "/replicas")]
#[case::a_short_lease("run.leaseSeconds=2", "/run/leaseSeconds")]
#[case::a_yes("run.dryRun=maybe", "/run/dryRun")]
#[case::a_namespace("run.namespace={A_B}", "/run/namespace/0")]
#[case::a_kind_without_its_resource("run.workloadKind[0].kind=a.b/v1/C", "'resource'")]
#[case::a_digest("image.digest=latest", "/image/digest")]
#[case::an_action("policies.operator=Warn", "/policies/operator")]
#[case::a_monitor("monitoring.monitor=yes", "/monitoring/monitor")]
#[case::nothing_to_do("run.reload=off,run.drift=off", "nothing is left to do")]
#[case::two_scopes(
    "run.namespace={a},run.excludeNamespace={b}",
    "run.namespace and run.excludeNamespace exclude each other"
)]
#[case::a_selector_of_nothing("run.stakaterNamespaceSelector=a=b", "needs run.stakaterAnnotations")]
#[case::jobs_without_reloads("run.rerunJobs=true,run.reload=off", "run.rerunJobs needs run.reload")]
fn a_wrong_value_is_refused_with_its_name(#[case] values: &str, #[case] said: &str) {
    let refused = helm(shared_cluster(), &["template", "restamp", CHART, "--set", values]);
    let stderr = text(&refused.stderr);
    assert!(!refused.status.success() && stderr.contains(said), "{stderr}");
}

/// Proves that reports, the hash key and their definition outlive the release, and that it can be installed again.
#[tokio::test]
async fn a_release_is_installed_upgraded_and_uninstalled_without_the_loss_of_a_report() {
    let cluster = Cluster::start_without_nodes(Installed::Nothing);
    let kubectl = |args: &str| cluster.kubectl(&args.split(' ').collect::<Vec<_>>());
    done(helm(&cluster, &["install", "restamp", CHART, "--create-namespace"]));
    kubectl("wait --for=condition=Established crd/driftreports.restamp.dev");
    let operator = Operator::start(&cluster, &["--settle", "1s"]).await;
    let uids = || {
        let key = kubectl("get secret restamp-hash-key -nrestamp-system -ojsonpath={.metadata.uid}");
        (key, kubectl("get crd driftreports.restamp.dev -ojsonpath={.metadata.uid}"))
    };
    let before = uids();
    let report = r#"{"apiVersion": "restamp.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "configmap-c"},
        "spec": {"subject": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}}}"#;
    operator.stop().await;
    cluster.kubectl_reading(report, &["create", "--filename=-"]);

    kubectl("annotate crd driftreports.restamp.dev restamp.dev/version=0.0.1 --overwrite");
    done(helm(&cluster, &["upgrade", "restamp", CHART, "--set=run.settle=9s", "--force-conflicts"]));
    assert!(kubectl("get deployment restamp -nrestamp-system -ojsonpath={..args}").contains("--settle=9s"));
    let version = kubectl(r"get crd driftreports.restamp.dev -ojsonpath={.metadata.annotations.restamp\.dev/version}");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));

    done(helm(&cluster, &["uninstall", "restamp", "--wait"]));
    let left = || {
        kubectl(
            "get clusterroles,clusterrolebindings,validatingadmissionpolicies,deployments -A -oname -lapp.kubernetes.io/name=restamp",
        )
    };
    assert_eq!((uids(), left()), (before.clone(), String::new()));
    done(helm(&cluster, &["install", "restamp", CHART]));
    assert_eq!(uids(), before);
    done(helm(&cluster, &["uninstall", "restamp", "--wait"]));

    // The same of plain YAML, as docs/install.md says.
    let file = format!("--filename={}", repository("deploy/install.yaml").display());
    cluster.kubectl(&["apply", &file]);
    cluster.kubectl(&["delete", &file, "--selector=restamp.dev/uninstall!=keep"]);
    assert_eq!((uids(), left()), (before, String::new()));
    assert!(kubectl("get driftreports -oname").contains("configmap-c"));
}

/// Has an operator with these flags, and with the rights that the chart grants for these values, in one namespace; in
/// which it is asked for both.
async fn with_rights(flag: Flag<'static>, value: &str, proof: impl AsyncFn(&crate::support::namespace::Namespace)) {
    let turn = turn().await;
    let ns = turn.namespace("rights").await;
    let account = &format!("rights-{}", ns.name());
    crate::scope::grant_own_namespace(turn.cluster(), account);
    grant_role(turn.cluster(), account, &ns, "roles", &[value]);
    let operator = turn.operator_as(account, &[flag, ("--namespace", ns.name())]).await;
    ns.apply(&[
        secret("s", &[("KEPT", "1"), ("REMOVED", "1")]),
        config_map("c", &[("K", "1")]),
        deployment("w").env_from_secret("s").env_from_config_map("c").into(),
    ]);
    proof(&ns).await;
    let log = operator.log();
    let refused: Vec<&str> = log.lines().filter(|line| line.to_lowercase().contains("forbidden")).collect();
    assert_eq!(refused, [""; 0]);
}

#[tokio::test]
async fn without_drift_the_rights_for_rollouts_are_enough() {
    with_rights(("--drift", "off"), "run.drift=off", async |ns| {
        ns.adopted(DEPLOYMENT, "w").await;
        ns.apply(&[config_map("c", &[("K", "2")])]);
        ns.reloaded(DEPLOYMENT, "w", "").await;
    })
    .await;
}

#[tokio::test]
async fn without_reloads_the_rights_for_reports_are_enough_and_nothing_rolls() {
    with_rights(("--reload", "off"), "run.reload=off", async |ns| {
        let before = ns.get(DEPLOYMENT, "w").await.unwrap();
        ns.apply(&[secret("s", &[("KEPT", "2")]), config_map("c", &[("K", "2")])]);
        ns.until(DRIFT_REPORT, "secret-s", "to be there", |_| true).await;
        let after = ns.get(DEPLOYMENT, "w").await.unwrap();
        assert_eq!(after["spec"], before["spec"]);
        let report = ns.get(DRIFT_REPORT, "deployment-w").await.unwrap_or_default();
        assert!(report["status"]["reload"].is_null(), "{report:#}");
    })
    .await;
}

#[rstest]
#[case::drift("run.drift=off", "resources: [jobs, cronjobs]")]
#[case::drift_of_replicas("run.drift=off", "horizontalpodautoscalers")]
#[case::reload("run.reload=off", "verbs: [get, list, watch, patch]")]
#[case::reload_by_drivers("run.reload=off", "secrets-store.csi.x-k8s.io")]
#[case::a_dry_run("run.dryRun=true", "verbs: [get, list, watch, patch]")]
#[case::no_secrets("run.ignoreConfigKind=Secret", "secrets, ")]
fn a_right_that_nothing_needs_is_not_granted(#[case] value: &str, #[case] right: &str) {
    let rules = |values: &[&str]| shared_cluster().rendered("clusterrole", values);
    assert!(rules(&[]).contains(right));
    assert!(!rules(&[value]).contains(right));
}
