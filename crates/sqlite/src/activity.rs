//! The log of refused publishes.
//!
//! Nobody waits for it: a note goes into a buffer, and the writer empties that between its batches, every so often and before it
//! is read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use storybus_core::domain::activity::RefusedPublish;
use storybus_core::domain::archived::Position;
use storybus_core::ports::activity::ACTIVITY_RETENTION;
use storybus_core::ports::{ActivityLog, StoreError};
use storybus_protocol::id::WorkspaceId;

use crate::error::Failure;
use crate::rows::{self, Rows as _};
use crate::store::Inner;
use crate::writer::Tx;

/// The most notes that wait to be written; what comes above is dropped.
const MOST_WAITING: usize = 10_000;
/// The most entries that are kept, of all workspaces.
const MOST_KEPT: i64 = 1_000_000;

/// [`ActivityLog`] on SQLite. A position is the number of an entry's row.
#[derive(Clone)]
pub struct SqliteActivityLog {
    inner: Arc<Inner>,
}

impl SqliteActivityLog {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl ActivityLog for SqliteActivityLog {
    fn note(&self, refusal: RefusedPublish) {
        self.inner.notes().put(refusal);
    }

    /// Has everything that was noted in this process before the call.
    async fn list(
        &self,
        workspace: &WorkspaceId,
        before: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<(Position, RefusedPublish)>, StoreError> {
        self.inner.notes().ask();
        self.inner.writer().call(|_| Ok(())).await?;
        let workspace = workspace.clone();
        let before = before.and_then(rows::place).unwrap_or(i64::MAX);
        let cutoff = rows::before(self.inner.clock().now(), ACTIVITY_RETENTION);
        self.inner
            .history()
            .call(move |view| {
                let number = view.known_number(&workspace)?;
                let found = view.all(
                    "SELECT id, entry FROM refusal INDEXED BY refusal_workspace
                     WHERE workspace = ?1 AND id < ?2 AND at > ?3 ORDER BY id DESC LIMIT ?4",
                    (number, before, cutoff.0, rows::limit(limit)),
                    |row| Ok((row.get(0)?, row.get::<_, String>(1)?)),
                )?;
                let parsed =
                    |(id, entry): (i64, String)| Ok((rows::position(id), serde_json::from_str(&entry)?));
                found.into_iter().map(parsed).collect()
            })
            .await
    }

    fn is_position(&self, position: &Position) -> bool {
        rows::place(position).is_some()
    }
}

/// What was noted and is not written yet.
#[derive(Default)]
pub(crate) struct Notes {
    waiting: Mutex<VecDeque<RefusedPublish>>,
    dropped: AtomicU64,
    asked: AtomicBool,
}

impl Notes {
    fn put(&self, refusal: RefusedPublish) {
        let mut waiting = self.waiting();
        if waiting.len() < MOST_WAITING {
            waiting.push_back(refusal);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Before the next command is run, all that is noted by now is written.
    fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Whether that was asked for.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting().len()
    }

    /// The oldest, which stay until they are [`written`](Self::written).
    pub(crate) fn oldest(&self, most: usize) -> Vec<RefusedPublish> {
        self.waiting().iter().take(most).cloned().collect()
    }

    pub(crate) fn written(&self, count: usize) {
        let mut waiting = self.waiting();
        let count = count.min(waiting.len());
        waiting.drain(..count);
        drop(waiting);
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "more publishes were refused than the log of refusals could take"
            );
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<RefusedPublish>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds entries.
pub(crate) fn write(tx: &mut Tx<'_>, refusals: &[RefusedPublish]) -> Result<(), Failure> {
    for refusal in refusals {
        let workspace = tx.number(&refusal.workspace)?;
        tx.execute(
            "INSERT INTO refusal (workspace, at, entry) VALUES (?1, ?2, ?3)",
            (workspace, refusal.at.0, serde_json::to_string(refusal)?),
        )?;
    }
    Ok(())
}

/// Removes what is too old and what is too much, oldest first, up to a number; whether there may be more.
pub(crate) fn sweep(tx: &Tx<'_>, budget: usize) -> Result<bool, Failure> {
    let last: i64 = tx
        .find("SELECT max(id) FROM refusal", [], |row| {
            row.get::<_, Option<i64>>(0)
        })?
        .flatten()
        .unwrap_or_default();
    let cutoff = rows::before(tx.now(), ACTIVITY_RETENTION);
    let first = tx.all(
        "SELECT id, at FROM refusal ORDER BY id LIMIT ?1",
        [rows::limit(budget)],
        |row| Ok((row.get::<_, i64>(0)?, rows::millis(row, 1)?)),
    )?;
    let over = first
        .iter()
        .take_while(|(id, at)| *at <= cutoff || last - id >= MOST_KEPT);
    let Some((through, _)) = over.clone().last() else {
        return Ok(false);
    };
    tx.execute("DELETE FROM refusal WHERE id <= ?1", [through])?;
    Ok(over.count() == budget)
}
