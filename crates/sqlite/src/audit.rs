//! The audit.

use std::sync::Arc;

use async_trait::async_trait;
use storybus_core::ports::audit::{AuditCursor, AuditEntry};
use storybus_core::ports::{AuditLog, StoreError};

use crate::error::Failure;
use crate::reader::View;
use crate::rows::{self, Rows as _};
use crate::store::Inner;
use crate::writer::Tx;

/// [`AuditLog`] on SQLite. A cursor is the id of an entry's row.
#[derive(Clone)]
pub struct SqliteAuditLog {
    inner: Arc<Inner>,
}

impl SqliteAuditLog {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl AuditLog for SqliteAuditLog {
    async fn list(
        &self,
        before: Option<&AuditCursor>,
        limit: usize,
    ) -> Result<Option<(Vec<AuditEntry>, Option<AuditCursor>)>, StoreError> {
        let before = match before {
            None => i64::MAX,
            Some(AuditCursor(text)) => match text.parse() {
                Ok(id) if format!("{id}") == *text => id,
                _ => return Ok(None),
            },
        };
        self.inner
            .reader()
            .call(move |view| page(view, before, limit))
            .await
    }
}

type Page = (Vec<AuditEntry>, Option<AuditCursor>);

fn page(view: &View<'_>, before: i64, limit: usize) -> Result<Option<Page>, Failure> {
    if before != i64::MAX
        && view
            .find("SELECT 1 FROM audit WHERE id = ?1", [before], |_| Ok(()))?
            .is_none()
    {
        return Ok(None);
    }
    let read = view.all(
        "SELECT id, at, actor, action, subject, details FROM audit WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
        (before, rows::limit(limit.saturating_add(1))),
        |row| {
            let texts = (row.get::<_, String>(4)?, row.get::<_, String>(5)?);
            Ok((
                row.get::<_, i64>(0)?,
                rows::millis(row, 1)?,
                row.get(2)?,
                row.get(3)?,
                texts,
            ))
        },
    )?;
    let more = read.len() > limit;
    let mut entries = Vec::with_capacity(read.len().min(limit));
    let mut cursor = None;
    for (id, at, actor, action, (subject, details)) in read.into_iter().take(limit) {
        let (subject, details) = (serde_json::from_str(&subject)?, serde_json::from_str(&details)?);
        entries.push(AuditEntry {
            at,
            actor,
            action,
            subject,
            details,
        });
        cursor = Some(AuditCursor(id.to_string()));
    }
    Ok(Some((entries, cursor.filter(|_| more))))
}

/// Adds an entry, in the transaction of the write it tells of.
pub(crate) fn write(tx: &Tx<'_>, entry: &AuditEntry) -> Result<(), Failure> {
    tx.execute(
        "INSERT INTO audit (at, actor, action, subject, details) VALUES (?1, ?2, ?3, ?4, ?5)",
        (
            entry.at.0,
            &entry.actor,
            &entry.action,
            serde_json::to_string(&entry.subject)?,
            serde_json::to_string(&entry.details)?,
        ),
    )?;
    Ok(())
}
