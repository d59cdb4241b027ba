//! The audit: every write of an operator, newest first.

use crate::bus::Bus;
use crate::domain::refusal::Refusal;
use crate::ops::refused_by_store;
use crate::ports::audit::{AuditCursor, AuditEntry};

/// What the details of a page weigh together, at most, and some more: it ends behind the entries that were read then.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// How many entries are read at a time: the heaviest has some 260 kB.
const CHUNK: usize = 25;

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
        let mut next = before.map(|text| AuditCursor(text.to_owned()));
        let (mut entries, mut bytes) = (Vec::new(), 0);
        // an entry may be large: the page ends at a number of bytes too
        loop {
            let count = CHUNK.min(limit - entries.len());
            let page = self.ports.audit.list(next.as_ref(), count).await;
            let (found, behind) = page
                .map_err(|e| refused_by_store("audit_list", &e))?
                .ok_or_else(|| {
                    Refusal::request_invalid(
                        "/before",
                        "not a place in the audit; give back what `next` said, or leave it out",
                    )
                })?;
            bytes += found.iter().map(|e| e.details.to_string().len()).sum::<usize>();
            entries.extend(found);
            next = behind;
            if next.is_none() || entries.len() >= limit || bytes >= PAGE_BYTES {
                break;
            }
        }
        Ok(AuditPage {
            entries,
            next: next.map(|cursor| cursor.0),
        })
    }
}
