//! The engine's half for Jobs and CronJobs: makes a Job again step by step, and says aloud what happened.

use jiff::{SignedDuration, Timestamp};
use tracing::{info, warn};

use crate::api::annotations::RERUN;
use crate::api::published::Mode;
use crate::model::index::{Act, StampOrder};
use crate::model::names::WorkloadId;
use crate::model::report;
use crate::model::rerun::placeholder::{Placeholder, Step};
use crate::operator::api_error::ApiError;
use crate::operator::engine::{Again, Engine};
use crate::operator::events::{Notice, Reason};
use crate::operator::rerun::Taken;

/// A step that was decided on an outdated state is taken again only if the watch shows no other one for this long.
const WATCH_DELAY: SignedDuration = SignedDuration::from_secs(5);

impl Engine {
    /// Goes on with a Job that is being made again.
    pub(super) fn take_step(&mut self, id: &WorkloadId, placeholder: Placeholder, step: Step, now: Timestamp) {
        let again = Again::Workload(id.clone());
        // It goes with the Job that it is about. The new Job has one of its own.
        self.reports.forget(&report::key_of_workload(id));
        if self.steps_taken.get(id) == Some(&(placeholder.uid.clone(), step.clone())) {
            return;
        }
        if step == Step::Wait || self.settings.mode == Mode::DryRun {
            return;
        }
        if let Some(until) = self.retries.waits_until(&again, now) {
            return self.alarm(again, until, now);
        }
        self.stamping.insert(id.clone());
        self.writer.step(placeholder, step);
    }

    pub(super) fn step_ended(&mut self, placeholder: &Placeholder, step: Step, answer: Result<Taken, ApiError>) {
        let id = &placeholder.original;
        let now = Timestamp::now();
        self.stamping.remove(id);
        match answer {
            Ok(Taken::NotOurs) => {
                self.tell_foreign_placeholder(placeholder);
                self.retry(Again::Workload(id.clone()));
            }
            Ok(taken) => {
                self.retries.succeeded(&Again::Workload(id.clone()));
                self.failures.remove(id);
                self.steps_taken.insert(id.clone(), (placeholder.uid.clone(), step));
                self.alarm(Again::Workload(id.clone()), now + WATCH_DELAY, now);
                if let Taken::Made { uid, cause } = taken {
                    info!(kind = %id.kind, ns = %id.namespace, name = %id.name, cause, "made again");
                    let note = format!("Reloading: {cause}; the Job was made again");
                    self.writer.event(Notice::on_object(id, Some(&uid), Reason::Reloaded, note));
                }
            }
            Err(error) => {
                self.tell_step_failure(placeholder, &step, &error);
                self.retry(Again::Workload(id.clone()));
            }
        }
    }

    fn tell_step_failure(&mut self, placeholder: &Placeholder, step: &Step, error: &ApiError) {
        let Placeholder { name, original: id, .. } = placeholder;
        let message = match step {
            Step::Create => format!(
                "cannot make {id} again: {error}; its manifest is kept in Job {name}, and this is tried again; \
                 let the API server take it, or make it by hand"
            ),
            Step::Delete | Step::Discard | Step::Wait => {
                format!("cannot go on to make {id} again: {error}; {}", next_step(error))
            }
        };
        if self.failures.insert(id.clone(), message.clone()).is_none() {
            warn!(kind = %id.kind, ns = %id.namespace, name = %id.name, %error, "cannot make a Job again yet");
            let placeholder_id = WorkloadId { name: name.clone(), ..id.clone() };
            self.writer.event(Notice::on_object(
                &placeholder_id,
                Some(&placeholder.uid),
                Reason::ReloadFailed,
                message,
            ));
        }
    }

    fn tell_foreign_placeholder(&mut self, placeholder: &Placeholder) {
        let Placeholder { name, original: id, .. } = placeholder;
        let message = format!(
            "Job {name} says that it keeps {id}, and is not sealed with this installation's hash key; delete it, or make \
             the Job from its annotation {RERUN} first"
        );
        if self.failures.insert(id.clone(), message.clone()).is_none() {
            warn!(kind = %id.kind, ns = %id.namespace, name = %id.name, "{message}");
        }
    }

    /// The Job makes way for the new one, or the CronJob runs.
    pub(super) fn rerun_began(&mut self, order: &StampOrder) {
        self.index.reran(order);
        if let Act::Run(run) = &order.act {
            let note = format!("Reloading: {}; it runs now, as Job {run}", order.cause);
            self.tell_workload(&order.workload, Reason::Reloaded, note);
        }
    }
}

/// Why an act on a Job or CronJob failed, for whoever is on call.
pub(super) fn failure(order: &StampOrder, error: &ApiError) -> String {
    let id = &order.workload;
    match order.act {
        Act::Run(_) => format!("cannot run {id}: {error}; {}", next_step(error)),
        _ => format!("cannot make {id} again: {error}; it stays as it is; {}", next_step(error)),
    }
}

fn next_step(error: &ApiError) -> &'static str {
    match error {
        ApiError::Forbidden(_) => {
            "grant create and delete on jobs (docs/jobs.md), or let the quota have room for one Job more"
        }
        ApiError::NameTaken(_) => "delete that other Job, or make this one again by hand",
        ApiError::Refused(_) => "change what refuses it, or make it again by hand",
        _ => "it is tried again",
    }
}
