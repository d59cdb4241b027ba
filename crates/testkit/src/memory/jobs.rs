//! Jobs.

use std::cmp::Reverse;

use async_trait::async_trait;
use storybus_core::domain::job::Job;
use storybus_core::domain::time::Millis;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::jobs::JOB_RETENTION;
use storybus_core::ports::ledger::Written;
use storybus_core::ports::{Jobs, StoreError};
use storybus_protocol::id::{JobId, WorkspaceId};

use super::{Memory, State};

impl State {
    /// What is kept, in the order of their making.
    fn kept_jobs(&self, now: Millis) -> Vec<&Job> {
        let mut jobs: Vec<&Job> = self
            .jobs
            .values()
            .filter(|job| job.finished_at.is_none_or(|at| now < at.plus(JOB_RETENTION)))
            .collect();
        jobs.sort_by_key(|job| (job.created_at, &job.id));
        jobs
    }
}

#[async_trait]
impl Jobs for Memory {
    async fn create(&self, job: &Job, audit: &AuditEntry) -> Result<Written, StoreError> {
        let mut state = self.lock();
        if state.jobs.contains_key(&job.id) {
            return Ok(Written::Lost);
        }
        state.jobs.insert(job.id.clone(), job.clone());
        state.audit.push(audit.clone());
        Ok(Written::Done)
    }

    async fn get(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        let state = self.lock();
        let kept = state.kept_jobs(self.clock.now());
        Ok(kept.into_iter().find(|job| job.id == *id).cloned())
    }

    async fn list(
        &self,
        workspace: &WorkspaceId,
        after: Option<(Millis, &JobId)>,
        limit: usize,
    ) -> Result<Vec<Job>, StoreError> {
        let state = self.lock();
        let mut jobs = state.kept_jobs(self.clock.now());
        jobs.retain(|job| job.workspace == *workspace);
        jobs.retain(|job| after.is_none_or(|after| (job.created_at, &job.id) < after));
        jobs.sort_by_key(|job| Reverse((job.created_at, &job.id)));
        Ok(jobs.into_iter().take(limit).cloned().collect())
    }

    async fn update(&self, job: &Job, audit: Option<&AuditEntry>) -> Result<Written, StoreError> {
        let mut state = self.lock();
        match state.jobs.get_mut(&job.id) {
            Some(stored) if stored.version.checked_add(1) == Some(job.version) => *stored = job.clone(),
            _ => return Ok(Written::Lost),
        }
        state.audit.extend(audit.cloned());
        Ok(Written::Done)
    }

    async fn unfinished(&self, workspace: Option<&WorkspaceId>) -> Result<Vec<JobId>, StoreError> {
        let state = self.lock();
        let jobs = state.kept_jobs(self.clock.now()).into_iter();
        Ok(jobs
            .filter(|job| !job.is_over() && workspace.is_none_or(|w| job.workspace == *w))
            .map(|job| job.id.clone())
            .collect())
    }
}
