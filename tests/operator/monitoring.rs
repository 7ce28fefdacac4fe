//! `deploy/monitoring/` against a real Prometheus that scrapes the operator, and the runbooks in `docs/alerts/`.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use kube::config::Config;
use serde_json::{Value, json};

use crate::support::cluster::{Cluster, repository};
use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT};
use crate::support::manifests::{deployment, secret};
use crate::support::minder::Minder;
use crate::support::namespace::{Namespace, stamp};
use crate::support::operator::{Operator, free_address, get};
use crate::support::waiting::{PATIENCE, poll};
use crate::support::{shared, shared_operator, turn};

/// A running Prometheus. It is killed when it is dropped, or when this process ends.
struct Prometheus {
    child: Child,
    url: String,
    _minder: Minder,
}

impl Prometheus {
    /// One that asks every second, and whose alerts wait for no longer.
    fn start(cluster: &Cluster, target: SocketAddr, credentials: &Value) -> Self {
        let folder = cluster.dir().join(format!("prometheus-{:08x}", getrandom::u32().unwrap()));
        fs::create_dir(&folder).unwrap();
        let rules = fs::read_to_string(repository("deploy/monitoring/rules.yaml")).unwrap();
        let hurried = |line: &str| if line.trim_start().starts_with("for: ") { "    for: 1s" } else { line }.to_owned();
        let rules: Vec<String> = rules.lines().map(hurried).collect();
        fs::write(folder.join("rules.yaml"), rules.join("\n")).unwrap();
        let mut job = json!({
            "job_name": "restamp", "honor_labels": true, "static_configs": [{"targets": [target.to_string()]}],
        });
        job.as_object_mut().unwrap().extend(credentials.as_object().unwrap().clone());
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"], "scrape_configs": [job],
        });
        fs::write(folder.join("prometheus.yaml"), config.to_string()).unwrap();
        let address = free_address();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.join("prometheus.yaml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .expect("cannot run prometheus: install Debian's package of this name");
        let pid = child.id().to_string();
        let minder = Minder::at_the_end(&["kill".as_ref(), "-KILL".as_ref(), pid.as_ref()]);
        Self { child, url: format!("http://{address}"), _minder: minder }
    }

    /// What this query gives at present; nothing while Prometheus starts.
    fn query(&self, query: &str) -> Vec<Value> {
        let output =
            Command::new("promtool").args(["query", "instant", "--format=json", &self.url, query]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || said.contains("connect") || said.contains("503"), "{query}: {said}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    async fn until(&self, query: &str, what: &str, holds: impl Fn(&[Value]) -> bool) {
        let mut last = vec![];
        let found = poll(PATIENCE, async || {
            last = self.query(query);
            holds(&last)
        });
        assert!(found.await.is_ok(), "{query} does not {what}: {last:?}");
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn has_data(answer: &[Value]) -> bool {
    !answer.is_empty()
}

/// A workload that reads a Secret with one stale key.
async fn with_a_stale_key(word: &str) -> Namespace {
    let ns = shared(word).await;
    ns.apply(&[secret("s", &[("KEPT", "1"), ("REMOVED", "1")]), deployment("w").env_from_secret("s").into()]);
    ns.adopted(DEPLOYMENT, "w").await;
    ns.apply(&[secret("s", &[("KEPT", "1")])]);
    let names_it = |report: &Value| report["status"]["staleKeys"] == json!(["REMOVED"]);
    ns.until(DRIFT_REPORT, "secret-s", "to name the stale key", names_it).await;
    ns
}

#[tokio::test]
async fn the_alert_on_stale_keys_fires_and_resolves_and_the_dashboard_shows_data() {
    let ns = with_a_stale_key("monitoring").await;
    let prometheus = Prometheus::start(ns.cluster(), shared_operator().await.address(), &json!({}));
    let alert = |state: &str| {
        let name = "RestampStaleKeysConsumed";
        format!("ALERTS{{alertname=\"{name}\", alertstate=\"{state}\", namespace=\"{}\", name=\"s\"}}", ns.name())
    };
    prometheus.until(&alert("firing"), "fire", has_data).await;

    // A rollout while Prometheus looks.
    ns.apply(&[secret("s", &[("KEPT", "2")])]);
    let workload = ns.reloaded(DEPLOYMENT, "w", "").await;
    for query in dashboard_queries() {
        prometheus.until(&query, "return data", has_data).await;
    }

    ns.kubectl(&["patch", "secret", "s", "--type=json", "--patch", r#"[{"op":"remove","path":"/data/REMOVED"}]"#]);
    ns.reloaded(DEPLOYMENT, "w", stamp(&workload)).await;
    prometheus.until(&alert("firing"), "resolve", <[Value]>::is_empty).await;
}

/// Every query of the dashboard, as Grafana sends it for all namespaces.
fn dashboard_queries() -> Vec<String> {
    let dashboard: Value =
        serde_json::from_str(&fs::read_to_string(repository("deploy/monitoring/dashboard.json")).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries = targets.map(|target| target["expr"].as_str().unwrap());
    let queries: Vec<String> =
        queries.map(|query| query.replace("$namespace", ".*").replace("$__rate_interval", "1m")).collect();
    assert!(queries.len() > 20 && queries.iter().all(|query| !query.contains('$')), "{queries:?}");
    queries
}

#[tokio::test]
async fn every_command_of_a_runbook_works() {
    let ns = with_a_stale_key("runbooks").await;
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_restamp")).parent().unwrap().to_owned();
    let mut many = 0;
    for page in fs::read_dir(repository("docs/alerts")).unwrap().map(|entry| entry.unwrap().path()) {
        let is_about_a_config = page.file_stem().unwrap() == "RestampStaleKeysConsumed";
        let (kind, name) = if is_about_a_config { ("Secret", "s") } else { ("Deployment", "w") };
        for command in commands(&fs::read_to_string(&page).unwrap()) {
            let kubeconfig = ns.cluster().kubeconfig();
            let variables = format!(
                "export KUBECONFIG='{}' PATH=\"$PATH:{}\" namespace={} kind={kind} name={name}",
                kubeconfig.display(),
                bin.display(),
                ns.name(),
            );
            let output = ns.cluster().shell(&format!("{variables}\n{command}"));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {command}: {said}", page.display());
            many += 1;
        }
    }
    assert!(many > 30, "only {many} commands were found");
}

/// The lines of the blocks for a shell. The pods here are no real ones, and have no logs: that they are found must do.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines).filter(|line| !line.is_empty());
    let possible = |line: &str| match line.strip_prefix("kubectl logs ") {
        Some(rest) => {
            let pods = rest.split(" --tail").next().unwrap();
            format!("kubectl get pods {pods} -o name | grep -q pod/")
        }
        None => line.to_owned(),
    };
    lines.map(possible).collect()
}

#[tokio::test]
async fn metrics_by_tls_are_for_who_may_get_them() {
    let turn = turn().await;
    let cluster = turn.cluster();
    cluster.kubectl(&["apply", "-f", repository("deploy/monitoring/metrics-auth.yaml").to_str().unwrap()]);
    let ns = turn.namespace("scraper").await;
    ns.kubectl(&["create", "serviceaccount", "prometheus"]);
    let account = format!("--serviceaccount={}:prometheus", ns.name());
    let binding = format!("prometheus-{}", ns.name());
    cluster.kubectl(&["create", "clusterrolebinding", &binding, "--clusterrole=restamp-metrics-reader", &account]);
    let token = |name: &str| ns.kubectl(&["create", "token", name]).trim().to_owned();
    let (allowed, forbidden) = (token("prometheus"), token("default"));

    let address = free_address();
    let secure = address.to_string();
    let operator = Operator::spawn(cluster, &["--secure-metrics", &secure, "--lease-seconds", "3"]);
    let leads = async || matches!(&ask(address, Some(&allowed)).await, Ok(text) if text.contains("restamp_leading 1"));
    assert!(poll(PATIENCE, leads).await.is_ok(), "{}", operator.log());

    assert_eq!(ask(address, Some(&forbidden)).await, Err(403));
    assert_eq!(ask(address, Some("nobody's")).await, Err(401));
    assert_eq!(ask(address, None).await, Err(401));
    // What needs no token shows no metric.
    assert_eq!(operator.get("/healthz").unwrap().0, 200);
    assert_eq!(operator.get("/metrics").unwrap().0, 404);

    let file = cluster.dir().join("prometheus.token");
    fs::write(&file, &allowed).unwrap();
    let credentials = json!({
        "scheme": "https", "tls_config": {"insecure_skip_verify": true}, "authorization": {"credentials_file": file},
    });
    let prometheus = Prometheus::start(cluster, address, &credentials);
    prometheus.until("up{job=\"restamp\"} == 1", "hold", has_data).await;
}

/// The metrics, or the status that is in their place.
async fn ask(address: SocketAddr, token: Option<&str>) -> Result<String, u16> {
    let mut config = Config::new(format!("https://{address}").parse().unwrap());
    config.accept_invalid_certs = true;
    config.default_retry = false;
    if let Some(token) = token {
        config.auth_info = serde_json::from_value(json!({"token": token})).unwrap();
    }
    let client = kube::Client::try_from(config).unwrap();
    match client.request_text(http::Request::get("/metrics").body(vec![]).unwrap()).await {
        Ok(text) => Ok(text),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(_) => Err(0),
    }
}

#[tokio::test]
async fn the_index_is_shown_where_that_is_asked_for() {
    let turn = turn().await;
    let ns = turn.namespace("dump").await;
    let address = free_address();
    let operator = turn.operator(&[("--debug-bind", &address.to_string())]).await;
    ns.apply(&[secret("s", &[("K", "hunter2")]), deployment("w").env_from_secret("s").into()]);
    ns.adopted(DEPLOYMENT, "w").await;

    let (status, dump) = get(address, "/debug/index").unwrap();
    assert_eq!((status, dump.contains("hunter2")), (200, false));
    let dump: Value = serde_json::from_str(&dump).unwrap();
    let of = |list: &str, name: &str| {
        let own = |object: &&Value| object["namespace"] == ns.name() && object["name"] == name;
        dump[list].as_array().unwrap().iter().find(own).unwrap().clone()
    };
    let (config, workload) = (of("configs", "s"), of("workloads", "w"));
    assert_eq!((&config["keys"], &config["lastApplied"]), (&json!(["K"]), &json!("declares")));
    assert_eq!((&workload["decision"], &workload["pods"]), (&json!("nothing is due"), &json!(2)));
    assert_eq!(workload["record"][0]["config"], "Secret/s");
    assert_eq!(dump["synced"]["Secret"], true);
    assert_eq!(operator.get("/debug/index").unwrap().0, 404);
}

/// The pages about others, and about Prometheus: each manifest in them is one that the API server takes.
#[tokio::test]
async fn every_manifest_in_the_docs_is_accepted() {
    let ns = shared("snippets").await;
    let mut many = 0;
    for page in ["docs/beside-others.md", "docs/monitoring.md"] {
        let text = fs::read_to_string(repository(page)).unwrap();
        for block in text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
            let mut content: Value = serde_saphyr::from_str(block).unwrap();
            if let Some(jobs) = content["scrape_configs"].as_array_mut() {
                // Debian builds Prometheus without it.
                jobs.iter_mut().for_each(|job| drop(job.as_object_mut().unwrap().remove("kubernetes_sd_configs")));
                check_config(ns.cluster(), &content.to_string());
            } else {
                if content["metadata"]["namespace"].is_string() {
                    content["metadata"]["namespace"] = json!(ns.name());
                }
                ns.cluster().kubectl_reading(&content.to_string(), &["apply", "--dry-run=server", "--filename=-"]);
            }
            many += 1;
        }
    }
    assert!(many >= 5, "only {many} were found");
}

fn check_config(cluster: &Cluster, config: &str) {
    let file = cluster.dir().join(format!("snippet-{:08x}.yaml", getrandom::u32().unwrap()));
    fs::write(&file, config).unwrap();
    let output = Command::new("promtool").args(["check", "config", "--syntax-only"]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{config}: {}", String::from_utf8_lossy(&output.stderr));
}
