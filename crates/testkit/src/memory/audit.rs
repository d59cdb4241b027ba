//! The audit.

use async_trait::async_trait;
use storybus_core::ports::audit::{AuditCursor, AuditEntry};
use storybus_core::ports::{AuditLog, StoreError};

use super::Memory;

#[async_trait]
impl AuditLog for Memory {
    async fn list(
        &self,
        before: Option<&AuditCursor>,
        limit: usize,
    ) -> Result<Option<(Vec<AuditEntry>, Option<AuditCursor>)>, StoreError> {
        let state = self.lock();
        // a cursor is the place of its entry
        let end = match before {
            None => state.audit.len(),
            Some(cursor) => match cursor.0.parse::<usize>() {
                Ok(place) if place < state.audit.len() => place,
                Ok(_) | Err(_) => return Ok(None),
            },
        };
        let start = end.saturating_sub(limit);
        let entries = state.audit[start..end].iter().rev().cloned().collect();
        let next = (start > 0 && start < end).then(|| AuditCursor(start.to_string()));
        Ok(Some((entries, next)))
    }
}
