//! Queues in an operator's hands.

use async_trait::async_trait;
use storybus_core::domain::archived::Position;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::Turn;
use storybus_core::domain::trace::QueueTrace;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::queue_control::{Redelivered, Redelivery};
use storybus_core::ports::{QueueControl, StoreError};
use storybus_protocol::id::{MessageId, WorkspaceId};

use super::{Memory, number};

#[async_trait]
impl QueueControl for Memory {
    async fn redeliver(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        mark: &str,
        messages: &[Redelivery],
    ) -> Result<Redelivered, StoreError> {
        let now = self.clock.now();
        {
            let mut state = self.lock();
            if !state.has_turn(turn) {
                return Ok(Redelivered::Overtaken);
            }
            let first = state.number();
            state.next += messages.len() as u64;
            let Some(queue) = state.queues.get_mut(queue) else {
                return Ok(Redelivered::NoQueue);
            };
            for (message, into) in messages.iter().zip(first..) {
                if queue.is_new(&turn.job, number(&message.position)) {
                    queue.push_again(into, message, mark, now);
                }
            }
        }
        self.changed();
        Ok(Redelivered::Done)
    }

    async fn purge(&self, queue: &QueueKey, audit: &AuditEntry) -> Result<Option<u64>, StoreError> {
        let now = self.clock.now();
        let purged = {
            let mut state = self.lock();
            let Some(queue) = state.queues.get_mut(queue) else {
                return Ok(None);
            };
            let purged = queue.purge(now);
            state.audit.push(audit.clone());
            purged
        };
        self.changed();
        Ok(Some(purged))
    }

    async fn trace(
        &self,
        workspace: &WorkspaceId,
        message_id: MessageId,
        _publications: &[Position],
    ) -> Result<Vec<QueueTrace>, StoreError> {
        let now = self.clock.now();
        let mut state = self.lock();
        let of_workspace = state
            .queues
            .iter_mut()
            .filter(|(key, _)| key.workspace == *workspace);
        Ok(of_workspace
            .map(|(key, queue)| queue.trace(&key.consumer, message_id, now))
            .collect())
    }
}
