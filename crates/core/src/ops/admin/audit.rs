//! The audit: every write of an operator, newest first.

use crate::bus::Bus;
use crate::domain::refusal::Refusal;
use crate::ops::refused_by_store;
use crate::ports::audit::{AuditCursor, AuditEntry};

/// A part of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// Newest first.
    pub entries: Vec<AuditEntry>,
    /// Give it back as `before` to read on; `None` when there is no more.
    pub next: Option<String>,
}

impl Bus {
    /// Up to `limit` entries older than the cursor `before`.
    ///
    /// # Errors
    ///
    /// `400 request.invalid` at `/before` when it is not a cursor that the audit gave.
    pub async fn audit_list(&self, before: Option<&str>, limit: usize) -> Result<AuditPage, Refusal> {
        let cursor = before.map(|text| AuditCursor(text.to_owned()));
        let page = self.ports.audit.list(cursor.as_ref(), limit).await;
        let (entries, next) = page
            .map_err(|e| refused_by_store("audit_list", &e))?
            .ok_or_else(|| {
                Refusal::request_invalid(
                    "/before",
                    "not a place in the audit; give back what `next` said, or leave it out",
                )
            })?;
        Ok(AuditPage {
            entries,
            next: next.map(|cursor| cursor.0),
        })
    }
}
