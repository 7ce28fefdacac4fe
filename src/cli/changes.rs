//! `restamp changes`: how far the last changes of configs are with all who read them.

use std::io::Write;

use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;

use crate::api::drift_report::{DriftReport, StoredReport};
use crate::api::reload_status::ReloadStatus;
use crate::cli::Failure;
use crate::cli::live::block_on;
use crate::cli::table;
use crate::connect::{ConnectError, Target};
use crate::model::names::Name;
use crate::model::rollout::changes::{self, ConfigChange};
use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;

/// Say how far the last changes of ConfigMaps and Secrets are: how many workloads that read them have rolled, are rolling, wait,
/// are held or failed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Those of one namespace only [default: of all]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// The form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Output {
    /// For a person.
    #[default]
    Table,
    /// All there is to say, as a list.
    Json,
}

/// Why it is not known how far changes are.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The reports can't be read.
    #[error(
        "cannot list DriftReports: {0}; grant list on driftreports.restamp.dev, and see whether restamp is installed"
    )]
    Reports(ApiError),
}

/// As many reports come at once.
const PAGE: u32 = 500;

/// Prints them.
pub fn run(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let reports = block_on(async { list(args).await.map_err(Failure::from) })?;
    let statuses = reports.iter().map(|(namespace, status)| (namespace, status));
    let now = Timestamp::now();
    let changes = changes::of_reports(statuses, now);
    let written = match args.output {
        Output::Json => {
            serde_json::to_writer_pretty(&mut *out, &changes).map_err(Into::into).and_then(|()| writeln!(out))
        }
        Output::Table if changes.is_empty() => {
            writeln!(out, "no config has changed within a day, as far as the reports tell")
        }
        Output::Table => write!(out, "{}", table_of(&changes, now)),
    };
    written.map_err(Failure::Output)
}

async fn list(args: &Args) -> Result<Vec<(Name, ReloadStatus)>, ChangesError> {
    let client = args.target.connect().await?.client;
    let reports: Api<StoredReport> = match &args.namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let mut statuses = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = in_time(reports.list(&params)).await.map_err(ChangesError::Reports)?;
        statuses.extend(page.items.into_iter().filter_map(|report| status(report.read().0)));
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params = params.continue_token(&next),
            None => return Ok(statuses),
        }
    }
}

fn status(report: DriftReport) -> Option<(Name, ReloadStatus)> {
    Some((report.metadata.namespace.as_deref()?.into(), report.status?.reload?))
}

fn table_of(changes: &[ConfigChange], now: Timestamp) -> String {
    let header = ["NAMESPACE", "CONFIG", "CHANGED", "ROLLED", "ROLLING", "WAITING", "HELD", "FAILED"];
    let rows = changes.iter().map(|change| {
        let counts = [change.rolled, change.rolling, change.waiting, change.held, change.failed];
        let [rolled, rolling, waiting, held, failed] = counts.map(|count| count.to_string());
        let ago = format!("{} ago", table::age(change.seen, now));
        [change.namespace.to_string(), change.config.to_string(), ago, rolled, rolling, waiting, held, failed]
    });
    table::laid_out(header, rows)
}
