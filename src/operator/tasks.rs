//! The writes under way: each a task of its own, so that a slow one delays no other.

use std::sync::Arc;

use kube::Client;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tracing::error;

use crate::api::drift_report::DriftReport;
use crate::model::digest::Keyring;
use crate::model::helm::held::{Found, Look};
use crate::model::index::{Act, StampOrder};
use crate::model::report::ReportKey;
use crate::model::rerun::placeholder::{Placeholder, Step};
use crate::operator::api_error::ApiError;
use crate::operator::events::{self, Notice};
use crate::operator::pace::{Pace, Urgency};
use crate::operator::releases;
use crate::operator::reports::{Order, Written};
use crate::operator::rerun::{Rerunner, Taken};
use crate::operator::vigil::Vigil;
use crate::operator::write::{self, ChangeCause, Stamped};

/// A write that ended.
#[derive(Debug)]
pub enum Done {
    /// A stamp, or what takes its place.
    Stamp(StampOrder, Result<Acted, ApiError>),
    /// A step of making a Job again.
    Step(Placeholder, Step, Result<Taken, ApiError>),
    /// A report.
    Report(ReportKey, Result<Written, ApiError>),
    /// A look at a Helm release.
    Release(Look, Result<Found, ApiError>),
    /// An Event.
    Event(Result<(), ApiError>),
}

/// What was done to a workload, so that it reads a change.
#[derive(Debug)]
pub enum Acted {
    /// It has a stamp.
    Stamped(Stamped),
    /// A Job makes way for the new one, or a CronJob runs.
    Reran,
}

/// As many stamps are on their way at once; the rest waits its turn.
const STAMPS: usize = 16;

/// As many reports are, in lanes of their own: few, so that they don't take the API server's time from the stamps.
const REPORTS: usize = 4;

/// As many Events are.
const EVENTS: usize = 2;

/// As many releases are read at once: each may take some MiB while it is read.
const LOOKS: usize = 2;

/// The way to the API server for writes of one urgency.
#[derive(Clone)]
struct Lanes {
    free: Arc<Semaphore>,
    pace: Arc<Pace>,
    urgency: Urgency,
    vigil: Arc<Vigil>,
}

impl Lanes {
    /// Waits for a free lane and a token, and then until it is sure that we lead: that must be true at the last moment.
    async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        let lane = self.free.acquire().await.ok();
        self.pace.token(self.urgency).await;
        self.vigil.is_over().await;
        lane
    }
}

/// Starts writes and hands over what became of them.
pub struct Writer {
    client: Client,
    instance: Arc<str>,
    change_cause: ChangeCause,
    rerunner: Rerunner,
    stamps: Lanes,
    reports: Lanes,
    events: Lanes,
    looks: Arc<Semaphore>,
    tasks: JoinSet<Done>,
}

impl Writer {
    /// A writer for the installation of this name, that writes while it is sure to be the leader.
    pub fn new(
        client: Client,
        instance: &str,
        change_cause: ChangeCause,
        vigil: Arc<Vigil>,
        keyring: Arc<Keyring>,
        pace: Arc<Pace>,
    ) -> Self {
        let lanes = |many, urgency| Lanes {
            free: Arc::new(Semaphore::new(many)),
            pace: pace.clone(),
            urgency,
            vigil: vigil.clone(),
        };
        Self {
            rerunner: Rerunner::new(client.clone(), instance, keyring),
            client,
            instance: instance.into(),
            change_cause,
            stamps: lanes(STAMPS, Urgency::Now),
            reports: lanes(REPORTS, Urgency::Later),
            events: lanes(EVENTS, Urgency::Later),
            looks: Arc::new(Semaphore::new(LOOKS)),
            tasks: JoinSet::new(),
        }
    }

    /// The next write that ended; `None` while none is under way.
    pub async fn done(&mut self) -> Option<Done> {
        match self.tasks.join_next().await? {
            Ok(done) => Some(done),
            Err(failure) => {
                // A write that broke down is made again by the next look at its object.
                error!(%failure, "a write broke down by a defect of restamp");
                None
            }
        }
    }

    /// Starts a stamp, or what takes its place.
    pub fn stamp(&mut self, order: StampOrder) {
        let (client, change_cause) = (self.client.clone(), self.change_cause);
        let rerunner = self.rerunner.clone();
        self.start(self.stamps.clone(), async move || {
            let answer = match &order.act {
                Act::Stamp | Act::RestartAt(_) => write::stamp(&client, &order, change_cause).await.map(Acted::Stamped),
                Act::MakeAgain => rerunner.make_again(&order).await.map(|()| Acted::Reran),
                Act::Run(name) => rerunner.run(&order, name).await.map(|()| Acted::Reran),
            };
            Done::Stamp(order, answer)
        });
    }

    /// Starts a step of making a Job again.
    pub fn step(&mut self, placeholder: Placeholder, step: Step) {
        let rerunner = self.rerunner.clone();
        self.start(self.stamps.clone(), async move || {
            let answer = rerunner.take(&placeholder, &step).await;
            Done::Step(placeholder, step, answer)
        });
    }

    /// Starts the write of a report.
    pub fn report(&mut self, key: ReportKey, order: Order) {
        let client = self.client.clone();
        self.start(self.reports.clone(), async move || {
            let answer = write_report(&client, &key, order).await;
            Done::Report(key, answer)
        });
    }

    /// Starts a look at a Helm release, which writes nothing.
    pub fn look(&mut self, look: Look) {
        let (client, free) = (self.client.clone(), self.looks.clone());
        self.tasks.spawn(async move {
            let _lane = free.acquire().await.ok();
            let found = Box::pin(releases::look(&client, &look)).await;
            Done::Release(look, found)
        });
    }

    /// Starts an Event.
    pub fn event(&mut self, notice: Notice) {
        let (client, instance) = (self.client.clone(), self.instance.clone());
        self.start(self.events.clone(), async move || Done::Event(events::publish(&client, &instance, notice).await));
    }

    /// Starts this once a lane is free.
    fn start<F: Future<Output = Done> + Send>(&mut self, lanes: Lanes, write: impl FnOnce() -> F + Send + 'static) {
        self.tasks.spawn(async move {
            let _lane = lanes.enter().await;
            // A write takes much memory while it is under way, and very many may wait for a lane.
            Box::pin(write()).await
        });
    }
}

async fn write_report(client: &Client, key: &ReportKey, order: Order) -> Result<Written, ApiError> {
    match order {
        Order::Create(report) => {
            let place = write::create_report(client, &report).await?;
            let bare = DriftReport { status: None, ..*report };
            Ok(Written::Stands(Box::new(bare), place))
        }
        Order::Update(report, place) => {
            let status = report.status.clone().unwrap_or_default();
            let place = write::write_status(client, &report.metadata, &status, &place).await?;
            Ok(Written::Stands(report, place))
        }
        Order::Delete(place) => {
            write::delete_report(client, key.0.as_str(), &key.1, &place).await.map(|()| Written::Gone)
        }
    }
}
