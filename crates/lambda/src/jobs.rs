//! Jobs in a function: one step after the other until the job is over or the function's time is, then a message to itself.
//!
//! A message of a job's queue names the job, no more: how far it is stands in the table. Its group is the job's id, so a job has one
//! runner. Whatever happens, the job goes on: a function that dies leaves its message, which comes back after its visibility; one
//! that cannot send the next message reports its own as failed; and unfinished jobs that nobody works at are told again by the
//! sweeper.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use storybus_core::Bus;
use storybus_core::domain::job::Job;
use storybus_core::domain::time::Millis;
use storybus_core::ops::jobs::Stepped;
use storybus_core::ports::StoreError;
use storybus_protocol::id::JobId;

use crate::metrics::Meter;

/// How much of the function's time is left for the step under way and the message after it.
const MARGIN: Duration = Duration::from_secs(20);
/// How long a job rests that waits for the archive.
const REST: Duration = Duration::from_secs(1);
/// How often a step is tried before the message goes back to its queue.
const TRIES: u32 = 3;

/// Sends a job's next message.
#[async_trait]
pub trait Onward: Send + Sync {
    /// To the queue of the job's kind; the same job after as many steps is one message.
    async fn send(&self, job: &Job) -> Result<(), StoreError>;
}

/// What a message of a job's queue says.
#[derive(Debug, Deserialize)]
struct Told {
    job_id: JobId,
}

/// The message has to come back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobFailed {
    /// It names no job.
    #[error("the message names no job")]
    Unreadable,
    /// A step was tried and failed.
    #[error("{0}")]
    Step(String),
    /// The store failed beside a step.
    #[error("{0}")]
    Store(String),
}

impl From<StoreError> for JobFailed {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

/// Works at jobs.
pub struct JobRunner {
    bus: Bus,
    onward: Arc<dyn Onward>,
    meter: Arc<Meter>,
}

impl JobRunner {
    /// A runner.
    #[must_use]
    pub fn new(bus: Bus, onward: Arc<dyn Onward>, meter: Arc<Meter>) -> Self {
        Self { bus, onward, meter }
    }

    /// Works at the job that a message names, until it is over or the time is.
    ///
    /// # Errors
    ///
    /// The message has to come back.
    pub async fn go_on(&self, message: &str, deadline: Millis) -> Result<(), JobFailed> {
        let Told { job_id } = serde_json::from_str(message).map_err(|_| JobFailed::Unreadable)?;
        let (jobs, clock) = (&self.bus.ports().jobs, &self.bus.ports().clock);
        let end = deadline.minus(MARGIN);
        let Some(mut before) = jobs.get(&job_id).await? else {
            return Ok(());
        };
        let mut failures = 0;
        loop {
            let stepped = match self.bus.job_step(&job_id).await {
                Ok(stepped) => stepped,
                Err(error) => {
                    failures += 1;
                    self.meter.count("JobStepsFailed", 1);
                    tracing::error!(job_id = %job_id, %error, failures, "a job's step failed; it is taken again");
                    if failures >= TRIES || clock.now().plus(REST) >= end {
                        return Err(JobFailed::Step(error.to_string()));
                    }
                    clock.sleep(REST * failures).await;
                    continue;
                }
            };
            failures = 0;
            let Some(after) = jobs.get(&job_id).await? else {
                return Ok(());
            };
            self.count(&before, &after);
            if stepped == Stepped::Over || after.is_over() {
                tracing::info!(job_id = %job_id, kind = after.kind(), moved = after.moved, "job is over");
                return Ok(());
            }
            let waits = !moved_on(&before, &after);
            before = after;
            if clock.now() >= end {
                return Ok(self.onward.send(&before).await?);
            }
            if waits {
                clock.sleep(REST).await;
            }
        }
    }

    fn count(&self, before: &Job, after: &Job) {
        let number = |more: u64| usize::try_from(more).unwrap_or(usize::MAX);
        self.meter
            .count("JobSteps", number(after.steps.saturating_sub(before.steps)));
        self.meter
            .count("JobMoved", number(after.moved.saturating_sub(before.moved)));
        self.meter
            .count("JobScanned", number(after.scanned.saturating_sub(before.scanned)));
    }
}

/// Whether a step has done something: one that finds the archive not yet complete has not.
fn moved_on(before: &Job, after: &Job) -> bool {
    before.scanned != after.scanned
        || before.moved != after.moved
        || before.position != after.position
        || before.unremoved != after.unremoved
        || before.exhausted != after.exhausted
}
