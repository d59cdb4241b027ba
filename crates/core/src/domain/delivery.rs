//! A message in a consumer's hands.

use bytes::Bytes;
use storybus_protocol::id::{ConnectionId, MessageId, WorkspaceId};

use super::message::Attributes;
use super::time::Millis;

/// The queue of a consumer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueKey {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The consumer.
    pub consumer: ConnectionId,
}

/// One message, received once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Settles this receive: opaque, good until the visibility ends or the message is received again.
    pub receipt_handle: String,
    /// The message id.
    pub message_id: MessageId,
    /// The producer's bytes, unchanged.
    pub body: Bytes,
    /// What travels beside them.
    pub attributes: Attributes,
    /// How often it has been received, this time included.
    pub receive_count: u32,
    /// When it came into the queue.
    pub enqueued_at: Millis,
    /// `replay:<job>` or `redrive:<job>` for a message that came that way.
    pub redelivery: Option<String>,
}

/// What became of one receipt handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Done, or done before within the same visibility.
    Done,
    /// The handle is unknown or has expired.
    Invalid,
    /// The message is not archived yet; call again (AWS only).
    NotArchived,
}

/// How full a queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueCounts {
    /// Messages that wait: all that are neither hidden by a receive (or a delayed nack) nor dead letters.
    pub visible: u64,
    /// Messages hidden by a receive or by a nack with a delay.
    pub in_flight: u64,
    /// Messages in the dead-letter queue.
    pub dead_lettered: u64,
    /// When the oldest message that is not a dead letter came into the queue.
    pub oldest_at: Option<Millis>,
}
