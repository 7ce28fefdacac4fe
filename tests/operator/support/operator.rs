//! The operator as a process: the built binary, with a token of its own ServiceAccount.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::cluster::Cluster;
use super::minder::Minder;
use super::waiting::{PATIENCE, poll};

/// A running operator. It is killed when it is dropped, or when this process ends.
pub struct Operator {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
    _minder: Minder,
}

/// The built binary, with nothing of our own environment that would change what it does.
pub fn restamp(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restamp"));
    command.args(args).env_remove("KUBECONFIG").env_remove("POD_NAMESPACE").env_remove("RUST_LOG");
    command
}

impl Operator {
    /// Starts one on this cluster, and waits until it leads.
    pub async fn start(cluster: &Cluster, flags: &[&str]) -> Self {
        Self::spawn(cluster, flags).ready().await
    }

    /// Waits until it leads and sees all that it needs. One that stands by is ready too, and sees nothing that happens.
    pub async fn ready(self) -> Self {
        self.until("lead", |operator| operator.is_leading() && operator.is_ready()).await
    }

    /// Waits until it stands by.
    pub async fn standing_by(self) -> Self {
        let operator = self.until("stand by", Self::is_ready).await;
        assert!(!operator.is_leading(), "there are two leaders; its log:\n{}", operator.log());
        operator
    }

    async fn until(mut self, goal: &str, is_there: impl Fn(&Self) -> bool) -> Self {
        let operator = &mut self;
        let there = poll(PATIENCE, async || is_there(operator)).await;
        assert!(there.is_ok(), "the operator does not {goal}; its log:\n{}", operator.log());
        assert!(operator.child.try_wait().unwrap().is_none(), "it has ended; its log:\n{}", operator.log());
        self
    }

    fn is_ready(&self) -> bool {
        self.get("/readyz").is_some_and(|(status, _)| status == 200)
    }

    /// Only a leader watches.
    fn is_leading(&self) -> bool {
        self.get("/metrics").is_some_and(|(_, metrics)| metrics.contains("restamp_watch_synced{"))
    }

    /// Starts one, and doesn't wait.
    pub fn spawn(cluster: &Cluster, flags: &[&str]) -> Self {
        Self::spawn_as("restamp", cluster, flags)
    }

    /// The same as another ServiceAccount.
    pub fn spawn_as(account: &str, cluster: &Cluster, flags: &[&str]) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = cluster.dir().join(format!("log/restamp-{number}.log"));
        let address = free_address();
        let file = File::create(&log).unwrap();
        let child = restamp(&["run", "--bind", &address.to_string()])
            .args(flags)
            .env("KUBECONFIG", cluster.kubeconfig_of(account))
            // As the Deployment sets it.
            .env("POD_NAMESPACE", "restamp-system")
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        let pid = child.id().to_string();
        let minder = Minder::at_the_end(&["kill".as_ref(), "-KILL".as_ref(), pid.as_ref()]);
        Self { child, address, log, _minder: minder }
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// What it answers on this path: the status and the body.
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        get(self.address, path)
    }

    /// Ends it as a crash does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as the kubelet does: it must go by itself, and soon.
    pub async fn stop(mut self) {
        self.signal("-TERM");
        let status = self.ended().await;
        assert_eq!(status.code(), Some(0), "its log:\n{}", self.log());
    }

    /// Keeps it from running, as a machine does that is overloaded or put to sleep.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Lets it run again.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Waits until it ends by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        let ended = poll(Duration::from_secs(20), async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let ended = ended.await;
        assert!(ended.is_ok(), "the operator goes on; its log:\n{}", self.log());
        status.unwrap()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The end of what the operators of a cluster logged: what mentions this text, and the last lines of all.
pub fn log_tail(cluster: &Cluster, mentioning: &str) -> String {
    let ours = operator_logs(cluster).into_iter();
    let newest = ours.max_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok());
    let log = newest.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let mentioned: Vec<&str> = lines.iter().filter(|line| line.contains(mentioning)).copied().collect();
    let tail = |lines: &[&str], many: usize| lines[lines.len().saturating_sub(many)..].join("\n");
    format!("{}\n--- and in all\n{}", tail(&mentioned, 30), tail(&lines, 15))
}

/// The logs of operators as processes, or in pods.
fn operator_logs(cluster: &Cluster) -> Vec<PathBuf> {
    let entries = |folder: PathBuf, prefix: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.filter(|path| file_name(path).starts_with(prefix)).collect::<Vec<_>>()
    };
    let of_pods = entries(cluster.dir().join("log/pods"), "restamp-system_restamp-");
    let of_pods = of_pods.into_iter().flat_map(|pod| entries(pod.join("restamp"), ""));
    of_pods.chain(entries(cluster.dir().join("log"), "restamp-")).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// One that nobody listens on.
pub fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: restamp\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}
