//! The audit of the operators' writes.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::domain::time::Millis;

/// One write: who, when, what. Never a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When.
    pub at: Millis,
    /// Who: an operator's id, or `storybus` for what the bus did itself.
    pub actor: String,
    /// What, such as `consumer.create`.
    pub action: String,
    /// To what: ids, outermost first, such as `["w1", "c2"]`.
    pub subject: Vec<String>,
    /// Which members were given, with their values, but for secrets.
    pub details: serde_json::Value,
}

/// Where a page of the audit ends; give it back to read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCursor(pub String);

/// The audit, newest first.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Up to `limit` entries older than `before`, and the cursor of the last of them when there may be more. A cursor that
    /// is not one of the log's own is `None`.
    async fn list(
        &self,
        before: Option<&AuditCursor>,
        limit: usize,
    ) -> Result<Option<(Vec<AuditEntry>, Option<AuditCursor>)>, StoreError>;
}
