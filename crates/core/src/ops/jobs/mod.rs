//! JOBS: replays and redrives (contract §6): asked for, looked at, cancelled, and worked at, one step after the other.
//!
//! `replay` and `redrive` say what is wrong with what was asked for and make the job; `step` is the work.

mod redrive;
mod replay;
mod step;

use storybus_protocol::id::{JobId, WorkspaceId};
use storybus_protocol::rule;

use super::admin::{Actor, Gathering, Page};
use super::refused_by_store;
use crate::bus::Bus;
use crate::domain::connection::Connection;
use crate::domain::job::{Job, JobState, Work};
use crate::domain::refusal::{Refusal, RefusalKind};
use crate::domain::time::Millis;
use crate::ports::ledger::Written;

pub use redrive::{MAX_MESSAGE_IDS, RedriveMembers};
pub use replay::{MAX_SELECTED, ReplayMembers};
pub use step::{StepFailed, Stepped};

/// How many jobs of a workspace may be unfinished.
pub const MAX_UNFINISHED: usize = 100;
/// How often a write is tried when others are faster.
const MAX_ATTEMPTS: usize = 8;
/// When a workspace with too many jobs may ask again, in seconds.
const TOO_MANY_AFTER: u64 = 10;

fn not_found() -> Refusal {
    Refusal::policy(
        RefusalKind::NotFound,
        rule::JOB_NOT_FOUND,
        "there is no such job in this workspace, or it ended more than 30 days ago",
    )
}

impl Bus {
    /// One job.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`, `404 job.not_found`.
    pub async fn job_get(&self, tenant: &str, job: &str) -> Result<Job, Refusal> {
        let workspace = self.tenant_get(tenant).await?.id;
        let id: JobId = job.parse().map_err(|_| not_found())?;
        self.job_find(&workspace, &id).await
    }

    async fn job_find(&self, workspace: &WorkspaceId, id: &JobId) -> Result<Job, Refusal> {
        let found = self.ports.jobs.get(id).await;
        found
            .map_err(|e| refused_by_store("job_get", &e))?
            .filter(|job| job.workspace == *workspace)
            .ok_or_else(not_found)
    }

    /// Up to `limit` jobs of a workspace, newest first, behind the place `after`.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`; `400 request.invalid` at `/after`.
    pub async fn job_list(
        &self,
        tenant: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<Job>, Refusal> {
        let workspace = self.tenant_get(tenant).await?.id;
        let after = after.map(place).transpose()?;
        let from = after.as_ref().map(|(at, id)| (*at, id));
        let mut page = Gathering::new(limit);
        while let Some(count) = page.next() {
            let behind = page.last().map(|job: &Job| (job.created_at, &job.id));
            let found = self.ports.jobs.list(&workspace, behind.or(from), count).await;
            page.add(found.map_err(|e| refused_by_store("job_list", &e))?, weight);
        }
        Ok(page.page(|job| format!("{}.{}", job.created_at.0, job.id)))
    }

    /// Asks a job to end. What its step under way delivers still counts.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`, `404 job.not_found`, `409 job.finished`.
    pub async fn job_cancel(&self, actor: &Actor, tenant: &str, job: &str) -> Result<Job, Refusal> {
        let mut job = self.job_get(tenant, job).await?;
        for _ in 0..MAX_ATTEMPTS {
            if job.is_over() {
                return Err(Refusal::policy(
                    RefusalKind::Conflict,
                    rule::JOB_FINISHED,
                    "the job is over; there is nothing to cancel",
                ));
            }
            if job.cancel_requested {
                return Ok(job);
            }
            job.cancel_requested = true;
            job.version += 1;
            let subject = vec![
                job.workspace.to_string(),
                job.consumer.to_string(),
                job.id.to_string(),
            ];
            let entry = self.audit_entry(actor, "job.cancel", subject, serde_json::json!({}));
            match self.ports.jobs.update(&job, Some(&entry)).await {
                Ok(Written::Done) => return Ok(job),
                Ok(Written::Lost) => job = self.job_find(&job.workspace, &job.id).await?,
                Err(error) => return Err(super::admin::refused_by_registry("job_cancel", &error)),
            }
        }
        Err(super::admin::overtaken())
    }

    /// Makes a job for a consumer.
    async fn job_start(
        &self,
        actor: &Actor,
        consumer: &Connection,
        work: Work,
        total: Option<u64>,
        details: serde_json::Value,
        now: Millis,
    ) -> Result<Job, Refusal> {
        let workspace = consumer.workspace.clone().ok_or_else(Refusal::internal)?;
        let unfinished = self.ports.jobs.unfinished(Some(&workspace)).await;
        let unfinished = unfinished.map_err(|e| refused_by_store("job_start", &e))?;
        if unfinished.len() >= MAX_UNFINISHED {
            return Err(Refusal::policy(
                RefusalKind::RateExceeded,
                rule::RATE_EXCEEDED,
                format!("{MAX_UNFINISHED} jobs of this workspace are not over yet; wait for some of them, or cancel some"),
            )
            .after(TOO_MANY_AFTER));
        }
        let unmet = match &work {
            Work::Redrive { message_ids } => message_ids.clone().unwrap_or_default(),
            Work::Replay { .. } => Vec::new(),
        };
        let mut job = Job {
            id: self.fresh_id('j')?,
            workspace,
            consumer: consumer.id.clone(),
            work,
            created_by: actor.name().to_owned(),
            created_at: now,
            started_at: None,
            finished_at: None,
            state: JobState::Queued,
            error: None,
            cancel_requested: false,
            scanned: 0,
            moved: 0,
            total,
            position: None,
            position_at: None,
            steps: 0,
            unremoved: Vec::new(),
            exhausted: false,
            unmet,
            version: 1,
        };
        for _ in 0..MAX_ATTEMPTS {
            let subject = vec![
                job.workspace.to_string(),
                job.consumer.to_string(),
                job.id.to_string(),
            ];
            let action = format!("{}.create", job.kind());
            let entry = self.audit_entry(actor, &action, subject, details.clone());
            match self.ports.jobs.create(&job, &entry).await {
                Ok(Written::Done) => return Ok(job),
                Ok(Written::Lost) => job.id = self.fresh_id('j')?,
                Err(error) => return Err(super::admin::refused_by_registry("job_start", &error)),
            }
        }
        Err(super::admin::overtaken())
    }

    /// The jobs that are not over, of all workspaces, oldest first: whoever runs them takes their steps.
    ///
    /// # Errors
    ///
    /// `503 bus.unavailable`.
    pub async fn jobs_unfinished(&self) -> Result<Vec<JobId>, Refusal> {
        let unfinished = self.ports.jobs.unfinished(None).await;
        unfinished.map_err(|e| refused_by_store("jobs_unfinished", &e))
    }
}

/// The place that a page of jobs gave as `next`.
fn place(text: &str) -> Result<(Millis, JobId), Refusal> {
    text.split_once('.')
        .and_then(|(at, id)| Some((Millis(at.parse().ok()?), id.parse().ok()?)))
        .ok_or_else(super::admin::not_a_place)
}

/// What a job weighs in a page: its lists may be long.
fn weight(job: &Job) -> usize {
    const ID: usize = 40;
    let lists = match &job.work {
        Work::Redrive { message_ids } => ID * (message_ids.as_ref().map_or(0, Vec::len) + job.unmet.len()),
        Work::Replay {
            message_types,
            story_ids,
            correlation_ids,
            ..
        } => {
            let stories: usize = story_ids.iter().map(|id| id.len() + 3).sum();
            stories + ID * (correlation_ids.len() + message_types.len())
        }
    };
    600 + lists
}
