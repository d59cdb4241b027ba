//! The queues in an operator's hands.

use std::sync::Arc;

use async_trait::async_trait;
use storybus_core::domain::archived::Position;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::Turn;
use storybus_core::domain::trace::QueueTrace;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::queue_control::{Redelivered, Redelivery};
use storybus_core::ports::{QueueControl, StoreError};
use storybus_protocol::id::{MessageId, WorkspaceId};

use crate::queues::{purge, redeliver, trace};
use crate::rows;
use crate::store::Inner;

/// [`QueueControl`] on SQLite.
#[derive(Clone)]
pub struct SqliteQueueControl {
    inner: Arc<Inner>,
}

impl SqliteQueueControl {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl QueueControl for SqliteQueueControl {
    /// In several transactions, each short enough not to be felt by those who publish. The turn is looked at by the first: the call
    /// is one, and what another runner has delivered meanwhile is passed over by its place.
    async fn redeliver(
        &self,
        key: &QueueKey,
        turn: &Turn,
        mark: &str,
        messages: &[Redelivery],
    ) -> Result<Redelivered, StoreError> {
        let queue = self.inner.registry().queue(key).map(|queue| queue.id());
        // one call at least: it says whether there is a queue
        let mut parts = messages.chunks(redeliver::PART);
        let (mut part, mut check) = (parts.next().unwrap_or_default(), Some(turn));
        loop {
            let step = redeliver::Redeliver::new(queue, key, &turn.job, check.take(), mark, part)?;
            let redelivered = self.inner.writer().call(move |tx| step.run(tx)).await?;
            match parts.next() {
                Some(next) if redelivered == Redelivered::Done => part = next,
                _ => return Ok(redelivered),
            }
        }
    }

    /// In several transactions when there is much: what was purged stays so when a later one fails.
    async fn purge(&self, key: &QueueKey, audit: &AuditEntry) -> Result<Option<u64>, StoreError> {
        let Some(queue) = self.inner.registry().queue(key).map(|queue| queue.id()) else {
            return Ok(None);
        };
        let audit = audit.clone();
        let begun = self
            .inner
            .writer()
            .call(move |tx| purge::begin(tx, queue, &audit))
            .await?;
        let Some(mut part) = begun else {
            return Ok(None);
        };
        let mut purged = part.purged;
        while let Some(below) = part.below {
            part = self
                .inner
                .writer()
                .call(move |tx| purge::step(tx, queue, below))
                .await?;
            purged += part.purged;
        }
        Ok(Some(purged))
    }

    async fn trace(
        &self,
        workspace: &WorkspaceId,
        message_id: MessageId,
        publications: &[Position],
    ) -> Result<Vec<QueueTrace>, StoreError> {
        let now = self.inner.clock().now();
        let queues = self.inner.registry().queues_of(workspace);
        let publications: Vec<i64> = publications.iter().filter_map(rows::place).collect();
        self.inner
            .history()
            .call(move |view| trace::trace(view, &queues, message_id, &publications, now))
            .await
    }
}
