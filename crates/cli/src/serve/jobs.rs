//! Who works at the jobs: one step of each job that is not over, in turn, for as long as there are any.
//!
//! A step delivers at most a hundred messages, and after each one the runner rests as long as it took: live traffic
//! has the store for at least half of the time, and several jobs go on side by side. What a step does is safe to do again,
//! so nothing is remembered here: a start looks for what is not over and goes on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::Bus;
use storybus_core::domain::job::Job;
use storybus_core::domain::time::Millis;
use storybus_core::ops::jobs::Stepped;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::ledger::Written;
use storybus_core::ports::{Jobs, StoreError};
use storybus_protocol::id::{JobId, WorkspaceId};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// How long the runner sleeps when there is nothing to do and nobody wakes it.
const IDLE: Duration = Duration::from_secs(5);
/// The longest rest after a step.
const LONGEST_REST: Duration = Duration::from_millis(500);
/// The first pause of a job whose step failed, doubled each time, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Jobs that wake the runner when one is made or changed.
pub(super) struct WakingJobs<J> {
    /// The jobs.
    pub inner: J,
    /// Wakes the runner.
    pub wake: Arc<Notify>,
}

#[async_trait]
impl<J: Jobs> Jobs for WakingJobs<J> {
    async fn create(&self, job: &Job, audit: &AuditEntry) -> Result<Written, StoreError> {
        let written = self.inner.create(job, audit).await;
        self.wake.notify_one();
        written
    }

    async fn get(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.inner.get(id).await
    }

    async fn list(
        &self,
        workspace: &WorkspaceId,
        after: Option<(Millis, &JobId)>,
        limit: usize,
    ) -> Result<Vec<Job>, StoreError> {
        self.inner.list(workspace, after, limit).await
    }

    async fn update(&self, job: &Job, audit: Option<&AuditEntry>) -> Result<Written, StoreError> {
        self.inner.update(job, audit).await
    }

    async fn unfinished(&self, workspace: Option<&WorkspaceId>) -> Result<Vec<JobId>, StoreError> {
        self.inner.unfinished(workspace).await
    }
}

/// Starts the runner. It ends after the step that is under way once `stopping` is true.
pub(super) fn start(bus: Bus, wake: Arc<Notify>, stopping: watch::Receiver<bool>) -> JoinHandle<()> {
    let runner = Runner {
        bus,
        wake,
        stopping,
        failed: HashMap::new(),
    };
    tokio::spawn(runner.run())
}

struct Runner {
    bus: Bus,
    wake: Arc<Notify>,
    stopping: watch::Receiver<bool>,
    /// Jobs whose last step failed: the pause, and when it ends.
    failed: HashMap<JobId, (Duration, Instant)>,
}

impl Runner {
    async fn run(mut self) {
        loop {
            let worked = self.round().await;
            if self.is_stopping() {
                return;
            }
            if !worked {
                let pause = self.shortest_pause();
                let mut stopping = self.stopping.clone();
                tokio::select! {
                    biased;
                    _ = stopping.wait_for(|stopping| *stopping) => return,
                    _ = timeout(pause, self.wake.notified()) => {}
                }
            }
        }
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// One step of each job; whether there was any to take.
    async fn round(&mut self) -> bool {
        // what was refused is in the log
        let unfinished = self.bus.jobs_unfinished().await.unwrap_or_default();
        self.failed.retain(|id, _| unfinished.contains(id));
        let mut worked = false;
        for id in unfinished {
            let now = Instant::now();
            if self.failed.get(&id).is_some_and(|(_, until)| now < *until) {
                continue;
            }
            if self.is_stopping() {
                return worked;
            }
            worked = true;
            match self.bus.job_step(&id).await {
                Ok(Stepped::Over) => tracing::info!(job_id = %id, "job is over"),
                Ok(Stepped::Goes) => {
                    self.failed.remove(&id);
                }
                Err(error) => {
                    let pause = self
                        .failed
                        .get(&id)
                        .map_or(FIRST_PAUSE, |(last, _)| (*last * 2).min(LONGEST_PAUSE));
                    tracing::error!(job_id = %id, %error, pause_ms = pause.as_millis(), "a job's step failed; it is taken again");
                    self.failed.insert(id, (pause, Instant::now() + pause));
                }
            }
            self.bus
                .ports()
                .clock
                .sleep(now.elapsed().min(LONGEST_REST))
                .await;
        }
        worked
    }

    /// Until the next job may be tried again.
    fn shortest_pause(&self) -> Duration {
        let now = Instant::now();
        let pauses = self.failed.values().map(|(_, until)| *until - now);
        pauses.min().unwrap_or(IDLE).min(IDLE)
    }
}
