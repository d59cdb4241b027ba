//! The stories, to be looked at.

use async_trait::async_trait;
use storybus_protocol::id::WorkspaceId;

use super::StoreError;
use crate::domain::archived::Position;
use crate::domain::record::{Story, StoryKey};
use crate::domain::time::Millis;

/// A story with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedStory {
    /// Its place in the list.
    pub position: Position,
    /// Its id; absent for one that was last written before the bus kept names.
    pub story_id: Option<String>,
    /// When its first snapshot was recorded.
    pub begun_at: Option<Millis>,
    /// What the ledger knows of it.
    pub story: Story,
}

/// The stories that the ledger keeps.
#[async_trait]
pub trait Stories: Send + Sync {
    /// Up to `limit` stories of a workspace behind `after`, the one begun last first.
    async fn list(
        &self,
        workspace: &WorkspaceId,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<NamedStory>, StoreError>;

    /// One.
    async fn get(&self, key: &StoryKey) -> Result<Option<NamedStory>, StoreError>;

    /// Whether the text is a position of this list.
    fn is_position(&self, position: &Position) -> bool;
}
