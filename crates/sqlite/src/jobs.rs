//! The jobs.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{OptionalExtension as _, Row};
use storybus_core::domain::job::{Job, Turn};
use storybus_core::domain::time::Millis;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::jobs::JOB_RETENTION;
use storybus_core::ports::ledger::Written;
use storybus_core::ports::{Jobs, StoreError};
use storybus_protocol::id::{JobId, WorkspaceId};

use crate::audit;
use crate::error::Failure;
use crate::rows::{self, Rows};
use crate::store::Inner;
use crate::writer::Tx;

/// [`Jobs`] on SQLite.
#[derive(Clone)]
pub struct SqliteJobs {
    inner: Arc<Inner>,
}

impl SqliteJobs {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// Jobs that ended by then are gone.
    fn cutoff(&self) -> Millis {
        rows::before(self.inner.clock().now(), JOB_RETENTION)
    }
}

#[async_trait]
impl Jobs for SqliteJobs {
    async fn create(&self, job: &Job, audit: &AuditEntry) -> Result<Written, StoreError> {
        let (job, audit) = (job.clone(), audit.clone());
        self.inner.writer().call(move |tx| create(tx, &job, &audit)).await
    }

    async fn get(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        let (id, cutoff) = (id.clone(), self.cutoff());
        let sql = "SELECT entry FROM job WHERE id = ?1 AND (finished_at IS NULL OR finished_at > ?2)";
        self.inner
            .reader()
            .call(move |view| {
                view.find(sql, (id.as_str(), cutoff.0), entry)?
                    .as_deref()
                    .map(parse)
                    .transpose()
            })
            .await
    }

    async fn list(
        &self,
        workspace: &WorkspaceId,
        after: Option<(Millis, &JobId)>,
        limit: usize,
    ) -> Result<Vec<Job>, StoreError> {
        let (workspace, cutoff) = (workspace.clone(), self.cutoff());
        // no job has the empty id, which is before all others
        let (at, id) = after.map_or((i64::MAX, String::new()), |(at, id)| (at.0, id.to_string()));
        let sql = "SELECT entry FROM job INDEXED BY job_list
             WHERE workspace = ?1 AND (created_at, id) < (?2, ?3) AND (finished_at IS NULL OR finished_at > ?4)
             ORDER BY created_at DESC, id DESC LIMIT ?5";
        self.inner
            .history()
            .call(move |view| {
                let params = (workspace.as_str(), at, id, cutoff.0, rows::limit(limit));
                view.all(sql, params, entry)?
                    .iter()
                    .map(|entry| parse(entry))
                    .collect()
            })
            .await
    }

    async fn update(&self, job: &Job, audit: Option<&AuditEntry>) -> Result<Written, StoreError> {
        let (job, audit) = (job.clone(), audit.cloned());
        self.inner
            .writer()
            .call(move |tx| update(tx, &job, audit.as_ref()))
            .await
    }

    async fn unfinished(&self, workspace: Option<&WorkspaceId>) -> Result<Vec<JobId>, StoreError> {
        let workspace = workspace.cloned();
        let sql = "SELECT id FROM job INDEXED BY job_unfinished
             WHERE finished_at IS NULL AND (?1 IS NULL OR workspace = ?1) ORDER BY created_at, id";
        self.inner
            .reader()
            .call(move |view| {
                view.all(sql, [workspace.as_ref().map(WorkspaceId::as_str)], |row| {
                    rows::parsed(row, 0)
                })
            })
            .await
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<String> {
    row.get(0)
}

fn parse(entry: &str) -> Result<Job, Failure> {
    Ok(serde_json::from_str(entry)?)
}

/// When it ended; what is over and does not say when is as old as it can be.
fn finished_at(job: &Job) -> Option<i64> {
    job.is_over().then(|| job.finished_at.unwrap_or(job.created_at).0)
}

fn create(tx: &Tx<'_>, job: &Job, audit: &AuditEntry) -> Result<Written, Failure> {
    let added = tx.execute(
        "INSERT INTO job (id, workspace, created_at, finished_at, version, entry) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (id) DO NOTHING",
        (
            job.id.as_str(),
            job.workspace.as_str(),
            job.created_at.0,
            finished_at(job),
            job.version.cast_signed(),
            serde_json::to_string(job)?,
        ),
    )?;
    if added == 0 {
        return Ok(Written::Lost);
    }
    audit::write(tx, audit)?;
    Ok(Written::Done)
}

fn update(tx: &Tx<'_>, job: &Job, audit: Option<&AuditEntry>) -> Result<Written, Failure> {
    let changed = tx.execute(
        "UPDATE job SET finished_at = ?2, version = ?3, entry = ?4 WHERE id = ?1 AND version = ?3 - 1",
        (
            job.id.as_str(),
            finished_at(job),
            job.version.cast_signed(),
            serde_json::to_string(job)?,
        ),
    )?;
    if changed == 0 {
        return Ok(Written::Lost);
    }
    if let Some(audit) = audit {
        audit::write(tx, audit)?;
    }
    Ok(Written::Done)
}

/// Whether the job still is as it was read.
pub(crate) fn has_turn(tx: &Tx<'_>, turn: &Turn) -> Result<bool, Failure> {
    let sql = "SELECT 1 FROM job WHERE id = ?1 AND version = ?2";
    let found = tx
        .prepare(sql)?
        .query_row((turn.job.as_str(), turn.version.cast_signed()), |_| Ok(()));
    Ok(found.optional()?.is_some())
}

/// Removes jobs that ended long ago, up to a number; whether there may be more.
pub(crate) fn sweep(tx: &Tx<'_>, budget: usize) -> Result<bool, Failure> {
    let gone = tx.execute(
        "DELETE FROM job WHERE number IN (SELECT number FROM job INDEXED BY job_finished
         WHERE finished_at IS NOT NULL AND finished_at <= ?1 ORDER BY finished_at LIMIT ?2)",
        (rows::before(tx.now(), JOB_RETENTION).0, rows::limit(budget)),
    )?;
    Ok(gone == budget)
}
