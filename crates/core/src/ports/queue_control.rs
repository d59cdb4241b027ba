//! The consumers' queues in an operator's hands: what jobs put in, what a purge takes out, where a message is.

use async_trait::async_trait;
use bytes::Bytes;
use storybus_protocol::id::{CorrelationId, MessageId, WorkspaceId};

use super::StoreError;
use super::audit::AuditEntry;
use crate::domain::archived::Position;
use crate::domain::delivery::QueueKey;
use crate::domain::job::Turn;
use crate::domain::message::Attributes;
use crate::domain::trace::QueueTrace;

/// The most messages of one [`redeliver`](QueueControl::redeliver).
pub const MAX_REDELIVERIES: usize = 100;

/// A message that a job delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redelivery {
    /// Its place where the job has it from: in the archive, or among the dead letters of this queue.
    pub position: Position,
    /// The message id.
    pub message_id: MessageId,
    /// The correlation id: the order group.
    pub correlation_id: CorrelationId,
    /// The producer's bytes, unchanged.
    pub body: Bytes,
    /// What travels beside them.
    pub attributes: Attributes,
}

/// What a redelivery came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redelivered {
    /// All are in the queue, by this call or by an earlier one.
    Done,
    /// There is no such queue (any more).
    NoQueue,
    /// The turn is over; nothing was put in.
    Overtaken,
}

/// Queues, as jobs and operators use them.
#[async_trait]
pub trait QueueControl: Send + Sync {
    /// Puts at most [`MAX_REDELIVERIES`] messages behind all that waits, in this order, each marked with `mark` as its
    /// `redelivery`, with a receive count of none. A job delivers in the order of positions: what is not behind the last position
    /// that the queue took from it is passed over, so a call that is repeated after a lost answer, or after the process died,
    /// changes nothing, whatever became of the messages since. (On AWS that holds for 5 minutes.) When the call fails, some of its
    /// messages may have arrived, the first before the later ones.
    ///
    /// The turn is looked at by the job's version, in the transaction of the first messages: an engine may put them in by several, and
    /// what another runner has delivered by then is passed over. (Not on AWS: a job has one runner there.)
    ///
    /// The queue's own deduplication of publications does not concern them.
    async fn redeliver(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        mark: &str,
        messages: &[Redelivery],
    ) -> Result<Redelivered, StoreError>;

    /// Deletes everything that waits or is in flight, not the dead letters, and says how many that were; `None` when there is no
    /// such queue. What is published while it works may stay or go.
    async fn purge(&self, queue: &QueueKey, audit: &AuditEntry) -> Result<Option<u64>, StoreError>;

    /// Whether [`trace`](Self::trace) sees what waits and what is in flight. Where it does not, a message that was put into a queue and
    /// is no dead letter may still be there.
    fn sees_waiting(&self) -> bool {
        true
    }

    /// Where a consumer's program in AWS finds the queue; none where only the bus reads it.
    fn queue_url(&self, _queue: &QueueKey) -> Option<String> {
        None
    }

    /// Where the publications of a message are, in each queue of the workspace, as far as the engine knows.
    /// `publications` are their positions in the archive.
    async fn trace(
        &self,
        workspace: &WorkspaceId,
        message_id: MessageId,
        publications: &[Position],
    ) -> Result<Vec<QueueTrace>, StoreError>;
}
