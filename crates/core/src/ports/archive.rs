//! The archive: every published message with its bytes and attributes, in the order of publication.

use std::time::Duration;

use async_trait::async_trait;
use storybus_protocol::id::{CorrelationId, MessageId, WorkspaceId};

use super::StoreError;
use crate::domain::archived::{Head, Part, Position, Selection, TimeRange};

/// How much a part of a range may be: it ends with the first limit that is met, but holds at least one message if one is
/// selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartLimits {
    /// Messages that are selected.
    pub messages: usize,
    /// Messages that are looked at: a selection that takes little comes back with nothing, and the place to go on from.
    pub scanned: usize,
    /// Bytes of the selected bodies together.
    pub bytes: usize,
}

/// What was published in each workspace.
///
/// The order is that of publication, per correlation id at the least; times never go back in it. A message that was published
/// twice (guarantee F) is there twice. An engine that archives behind the topic may lag by seconds. A message as old as
/// [`retention`](Self::retention) is not in it any more, deleted yet or not.
#[async_trait]
pub trait Archive: Send + Sync {
    /// How long a message is kept.
    fn retention(&self) -> Duration;

    /// The next part of a range, behind `after`. When it says `end`, everything that was published in the range and answered
    /// before the call has been looked at.
    async fn read(
        &self,
        workspace: &WorkspaceId,
        range: TimeRange,
        after: Option<&Position>,
        selection: &Selection,
        limits: PartLimits,
    ) -> Result<Part, StoreError>;

    /// Every publication of a message, oldest first: one, or two by guarantee F.
    async fn find(&self, workspace: &WorkspaceId, message_id: MessageId) -> Result<Vec<Head>, StoreError>;

    /// Up to `limit` messages of a story or of a correlation id, each once, oldest first, behind `after`.
    async fn about(
        &self,
        workspace: &WorkspaceId,
        story: &[u8; 16],
        correlation: Option<CorrelationId>,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError>;

    /// Up to `limit` messages, newest first, older than `before`.
    async fn latest(
        &self,
        workspace: &WorkspaceId,
        before: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError>;

    /// Whether the text is a position of this archive, of any message, there any more or not.
    fn is_position(&self, position: &Position) -> bool;
}
