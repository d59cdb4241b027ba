//! The log of refused publishes.

use async_trait::async_trait;
use storybus_protocol::id::WorkspaceId;

use super::StoreError;
use crate::domain::activity::RefusedPublish;
use crate::domain::archived::Position;

/// How long a refusal is kept.
pub const ACTIVITY_RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);

/// What was refused, newest first. It is for people: entries may come late, and be lost in a crash or under a flood.
#[async_trait]
pub trait ActivityLog: Send + Sync {
    /// Notes a refusal. Never waits: what there is no room for is dropped.
    fn note(&self, refusal: RefusedPublish);

    /// Up to `limit` refusals of a workspace older than `before`, with their places.
    async fn list(
        &self,
        workspace: &WorkspaceId,
        before: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<(Position, RefusedPublish)>, StoreError>;

    /// Whether the text is a position of this log.
    fn is_position(&self, position: &Position) -> bool;
}
