//! A real control plane with what `deploy/install.yaml` installs, for one test or for many.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use super::minder::Minder;

/// A cluster, which stops when it is dropped, or when this process ends.
pub struct Cluster {
    dir: PathBuf,
    bin: PathBuf,
    _minder: Minder,
}

/// What a cluster holds before a test begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// All that is in `deploy/install.yaml`, with the policies for the operator's account.
    Everything,
    /// The CRD is missing.
    NoCrd,
    /// Nothing.
    Nothing,
}

impl Cluster {
    /// One with a node.
    pub fn start() -> Self {
        Self::start_with(&["--kwok"], Installed::Everything)
    }

    /// One without nodes: its pods stay pending.
    pub fn start_without_nodes(installed: Installed) -> Self {
        Self::start_with(&[], installed)
    }

    /// One with a real node, whose pods are containers on this machine. Nothing is installed.
    pub fn start_with_a_real_node() -> Self {
        Self::start_with(&["--node"], Installed::Nothing)
    }

    /// One whose API server streams no lists, as those before 1.34. It has no node.
    pub fn start_without_streamed_lists() -> Self {
        Self::start_with(&["--feature-gates=WatchList=false"], Installed::Everything)
    }

    fn start_with(flags: &[&str], installed: Installed) -> Self {
        let dir = tempfile::Builder::new().prefix("restamp-cluster-").tempdir().unwrap().keep();
        let minder = Minder::at_the_end(&[script().as_ref(), "stop".as_ref(), dir.as_ref()]);
        tool(&["start", dir.to_str().unwrap()], flags);
        let bin = tool(&["bin"], &[]);
        let cluster = Self { dir, bin: bin.trim().into(), _minder: minder };
        if installed != Installed::Nothing {
            let is_wanted = |kind: &str| installed == Installed::Everything || kind != "CustomResourceDefinition";
            cluster.kubectl_reading(&install_yaml(is_wanted), &["apply", "--filename=-"]);
        }
        if installed == Installed::Everything {
            cluster.kubectl(&["wait", "--for=condition=Established", "crd/driftreports.restamp.dev"]);
        }
        cluster
    }

    /// The folder of all its files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// A kubeconfig that holds nothing but a token of this ServiceAccount in the operator's namespace.
    pub fn kubeconfig_of(&self, account: &str) -> PathBuf {
        static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let path = self.dir.join(format!("{account}.kubeconfig"));
        if !path.exists() {
            let token = self.kubectl(&["create", "token", account, "--namespace=restamp-system", "--duration=24h"]);
            let partial = self.dir.join(format!("{account}.kubeconfig.partial"));
            std::fs::copy(self.kubeconfig(), &partial).unwrap();
            let config = |args: &[&str]| {
                let output = self.kubectl_with(&partial, &[&["config"], args].concat(), "");
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            };
            config(&["unset", "users"]);
            config(&["set-credentials", "restamp", &format!("--token={}", token.trim())]);
            config(&["set-context", "--current", "--user=restamp"]);
            std::fs::rename(partial, &path).unwrap();
        }
        path
    }

    /// Copies an image into the registry of the real node: one of its own, or what skopeo reads.
    pub fn push(&self, image: &str, name: &str) {
        tool(&["push", self.dir.to_str().unwrap(), image, name], &[]);
    }

    /// Kills a component of the control plane. It stays away until it is restarted.
    pub fn kill(&self, component: &str) {
        tool(&["kill", self.dir.to_str().unwrap(), component], &[]);
    }

    /// Ends a component of the control plane and starts it again, with the same address.
    pub fn restart(&self, component: &str) {
        tool(&["restart", self.dir.to_str().unwrap(), component], &[]);
    }

    /// Runs kubectl as the administrator; what it prints.
    pub fn kubectl(&self, args: &[&str]) -> String {
        self.kubectl_reading("", args)
    }

    /// The same, with this on its standard input.
    pub fn kubectl_reading(&self, input: &str, args: &[&str]) -> String {
        let output = self.kubectl_with(&self.kubeconfig(), args, input);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {args:?}: {stderr}\nwith {input}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What the chart makes in one template, with these values.
    pub fn rendered(&self, template: &str, values: &[&str]) -> String {
        let show = format!("--show-only=templates/{template}.yaml");
        let values = values.iter().map(|value| format!("--set={value}"));
        let output =
            self.helm().args(["template", "restamp", "deploy/helm/restamp", &show]).args(values).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The real helm, in the operator's namespace and in the repository's folder.
    pub fn helm(&self) -> Command {
        let mut helm = Command::new(self.bin.join("helm"));
        // None of what the user has, nor of other tests.
        helm.env("HELM_CACHE_HOME", self.dir.join("helm")).env("HELM_CONFIG_HOME", self.dir.join("helm"));
        helm.env("HELM_DATA_HOME", self.dir.join("helm")).env("KUBECONFIG", self.kubeconfig());
        helm.args(["--namespace", "restamp-system"]).current_dir(repository("")).stdin(Stdio::null());
        helm
    }

    /// The folder of the programs.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// Runs a command in a shell, as a person does who has kubectl.
    pub fn shell(&self, command: &str) -> Output {
        let own = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(self.bin.clone()).chain(std::env::split_paths(&own))).unwrap();
        Command::new("sh").args(["-c", command]).env("PATH", path).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs kubectl, which may fail.
    pub fn kubectl_with(&self, kubeconfig: &Path, args: &[&str], input: &str) -> Output {
        let mut child = Command::new(self.bin.join("kubectl"))
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--request-timeout=90s")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Dropped at once, so that kubectl sees the end.
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = Command::new(script()).arg("stop").arg(&self.dir).status();
    }
}

/// The cluster that most tests share. It is never dropped: its minder stops it.
pub fn shared() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(Cluster::start)
}

/// Whether the clusters are of the oldest Kubernetes that we support, as in `make compat`.
pub fn is_oldest() -> bool {
    std::env::var("RESTAMP_KUBERNETES").is_ok_and(|which| which == "oldest")
}

fn script() -> PathBuf {
    repository("tests/cluster/cluster")
}

/// The objects of these kinds in `deploy/install.yaml`.
pub fn install_yaml(is_wanted: impl Fn(&str) -> bool) -> String {
    let all = std::fs::read_to_string(repository("deploy/install.yaml")).unwrap();
    let kind = |object: &str| object.lines().find_map(|line| line.strip_prefix("kind: ").map(str::to_owned)).unwrap();
    all.split("\n---\n").filter(|object| is_wanted(&kind(object))).collect::<Vec<_>>().join("\n---\n")
}

pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs the cluster tool. What it says about its progress goes to the terminal: a first build takes minutes.
fn tool(args: &[&str], flags: &[&str]) -> String {
    let output = Command::new(script()).args(args).args(flags).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "tests/cluster/cluster {args:?} failed: its messages are above");
    String::from_utf8(output.stdout).unwrap()
}
