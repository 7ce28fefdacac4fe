//! What the tests stand on: clusters, operators, namespaces, and waiting.
//!
//! Most tests share a cluster on which one operator is at work, and have a namespace each. An operator leads a whole
//! cluster, so those that start and end operators take turns on other ones.

pub mod cluster;
pub mod history;
pub mod kind;
pub mod manifests;
mod minder;
pub mod namespace;
pub mod operator;
pub mod waiting;

use futures::future::select_all;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use cluster::Cluster;
use namespace::Namespace;
use operator::Operator;

/// A flag of the operator and its value, which is empty where it takes none.
pub type Flag<'a> = (&'a str, &'a str);

/// How the operators of the tests run: as by default, only in less time, and so that no test waits for the rollouts of
/// another one.
const HURRIED: [Flag<'static>; 4] =
    [("--settle", "1s"), ("--report-after", "2s"), ("--log", "restamp=debug"), ("--max-concurrent-rollouts", "0")];

/// A namespace on the cluster where one operator is at work for all tests.
pub async fn shared(word: &str) -> Namespace {
    shared_operator().await;
    Namespace::create(cluster::shared(), word).await
}

/// The operator that is at work there. It is never dropped: its minder kills it.
pub async fn shared_operator() -> &'static Operator {
    static OPERATOR: OnceCell<Operator> = OnceCell::const_new();
    OPERATOR.get_or_init(async || Operator::start(cluster::shared(), &arguments(&[])).await).await
}

/// A cluster where a test starts and ends operators of its own.
pub struct Turn {
    cluster: MutexGuard<'static, Option<&'static Cluster>>,
}

/// Waits for this test's turn on one of the clusters that such tests have.
pub async fn turn() -> Turn {
    static CLUSTERS: [Mutex<Option<&'static Cluster>>; 3] = [const { Mutex::const_new(None) }; 3];
    let (mut free, ..) = select_all(CLUSTERS.iter().map(|cluster| Box::pin(cluster.lock()))).await;
    let cluster = *free.get_or_insert_with(|| Box::leak(Box::new(Cluster::start())));
    // The test before may have killed its operator, whose lease would have to run out first.
    cluster.kubectl(&["delete", "lease", "restamp-leader", "--namespace=restamp-system", "--ignore-not-found"]);
    Turn { cluster: free }
}

impl Turn {
    pub fn cluster(&self) -> &'static Cluster {
        self.cluster.unwrap()
    }

    pub async fn namespace(&self, word: &str) -> Namespace {
        Namespace::create(self.cluster(), word).await
    }

    /// Starts an operator in a hurry, and with these flags.
    pub async fn operator(&self, flags: &[Flag<'_>]) -> Operator {
        self.spawn(flags).ready().await
    }

    /// The same beside one that leads.
    pub async fn standby(&self, flags: &[Flag<'_>]) -> Operator {
        self.spawn(flags).standing_by().await
    }

    fn spawn(&self, flags: &[Flag<'_>]) -> Operator {
        // A killed one's lease must run out soon.
        let lease = [("--lease-seconds", "3")];
        let lease = if flags.iter().any(|(name, _)| *name == lease[0].0) { &[][..] } else { &lease };
        Operator::spawn(self.cluster(), &arguments(&[lease, flags].concat()))
    }

    /// The same as another ServiceAccount.
    pub async fn operator_as(&self, account: &str, flags: &[Flag<'_>]) -> Operator {
        Operator::spawn_as(account, self.cluster(), &arguments(flags)).ready().await
    }
}

/// These flags, and where they say nothing, those of an operator in a hurry.
fn arguments<'a>(flags: &[Flag<'a>]) -> Vec<&'a str> {
    let unsaid = HURRIED.iter().filter(|(name, _)| flags.iter().all(|(said, _)| said != name));
    unsaid.chain(flags).flat_map(|(name, value)| [*name, *value]).filter(|word| !word.is_empty()).collect()
}
