//! The jobs and how far they are.

use async_trait::async_trait;
use storybus_protocol::id::{JobId, WorkspaceId};

use super::StoreError;
use super::audit::AuditEntry;
use super::ledger::Written;
use crate::domain::job::Job;
use crate::domain::time::Millis;

/// How long a job is kept after its end: 30 days.
pub const JOB_RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);

/// The jobs of all workspaces. Each write is atomic, with its audit entry when it has one.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Adds one; its id is new (else `Lost`). What is published after this call came back has no earlier time of publication
    /// than what was published before it was made, so a range that ends with the time before the call is closed from then on.
    async fn create(&self, job: &Job, audit: &AuditEntry) -> Result<Written, StoreError>;

    /// One by its id.
    async fn get(&self, id: &JobId) -> Result<Option<Job>, StoreError>;

    /// Up to `limit` jobs of a workspace, in the order of their making and their ids, the last first, behind `after` (which
    /// need not be there any more).
    async fn list(
        &self,
        workspace: &WorkspaceId,
        after: Option<(Millis, &JobId)>,
        limit: usize,
    ) -> Result<Vec<Job>, StoreError>;

    /// Replaces one whose stored version is `job.version - 1`, else `Lost`.
    async fn update(&self, job: &Job, audit: Option<&AuditEntry>) -> Result<Written, StoreError>;

    /// The ids of the jobs that are not over, oldest first, of all workspaces or of one.
    async fn unfinished(&self, workspace: Option<&WorkspaceId>) -> Result<Vec<JobId>, StoreError>;
}
