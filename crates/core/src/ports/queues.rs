//! The consumers' queues: first in, first out per correlation id, at least once.
//!
//! The rules are those of SQS FIFO queues. A receive takes messages of groups that have nothing hidden, oldest group
//! first, several of one group in order; what it takes is hidden for the visibility, and nothing more of those groups
//! comes out until all of it is acknowledged or visible again. A message that has been received `max_receives` times goes
//! to the dead letters instead of being received once more. Messages are kept for 14 days.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html>

use std::time::Duration;

use async_trait::async_trait;

use super::StoreError;
use crate::domain::delivery::{Delivery, QueueCounts, QueueKey, Settled};

/// How long a receive can be repeated with its attempt id.
pub const RECEIVE_ATTEMPT_LIFETIME: Duration = Duration::from_secs(300);
/// How long a message can stay hidden, counted from its receive.
pub const MAX_VISIBILITY: Duration = Duration::from_secs(43_200);
/// How long a message waits.
pub const RETENTION: Duration = Duration::from_secs(14 * 24 * 3600);

/// What a receive asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receive {
    /// At most so many, 1–10.
    pub max: usize,
    /// How long to wait for the first, at most 20 s. Comes back as soon as there is one.
    pub wait: Duration,
    /// How long what is received stays hidden.
    pub visibility: Duration,
    /// After so many receives a message goes to the dead letters.
    pub max_receives: u32,
    /// Names this receive: again with the same id within 5 minutes it returns the same messages with the same handles,
    /// hidden anew, until one of them was settled or came back. One that is newer ends those of the same id that still wait:
    /// their clients have gone, and the newest gets what comes.
    pub attempt: Option<String>,
}

/// The queues of all consumers.
#[async_trait]
pub trait Queues: Send + Sync {
    /// Receives. Empty when nothing came within the wait, or at once when the queue was closed meanwhile.
    ///
    /// The consumer counts as it is, not as it was when the receive began: one that is disabled receives nothing, and its
    /// receives that wait end at once with an empty list; while one is paused its receives wait, and hand out nothing.
    ///
    /// *The same attempt again:* a receive ends an older one of the same attempt that still waits; that one answers an empty
    /// list at once. When both look at the same moment, both may get the same messages, but what one of them has hidden is
    /// never kept from the newest.
    async fn receive(&self, queue: &QueueKey, receive: &Receive) -> Result<Vec<Delivery>, StoreError>;

    /// Deletes what the handles stand for: an answer each, in order. Again within the visibility is `Done`.
    async fn acknowledge(&self, queue: &QueueKey, handles: &[String]) -> Result<Vec<Settled>, StoreError>;

    /// Makes them visible again after `delay`, cut so that a message is hidden at most [`MAX_VISIBILITY`] from its receive.
    async fn release(
        &self,
        queue: &QueueKey,
        handles: &[String],
        delay: Duration,
    ) -> Result<Vec<Settled>, StoreError>;

    /// Moves them to the dead letters at once, with the reason.
    async fn reject(
        &self,
        queue: &QueueKey,
        handles: &[String],
        reason: &str,
    ) -> Result<Vec<Settled>, StoreError>;

    /// How full it is.
    async fn counts(&self, queue: &QueueKey) -> Result<QueueCounts, StoreError>;
}
