//! Messages that a consumer could not take.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use storybus_protocol::id::{JobId, MessageId};

use super::archived::Position;
use super::message::Attributes;
use super::time::Millis;

/// Why a message is a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It was received as often as its consumer allows, and never acknowledged.
    MaxReceives,
    /// Its consumer rejected it, with this reason.
    Rejected(String),
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its place: they are listed, and redriven, in the order of their arrival in the queue. A message that dies again has
    /// a new one.
    pub position: Position,
    /// The message id.
    pub message_id: MessageId,
    /// The producer's bytes, unchanged.
    pub body: Bytes,
    /// What travels beside them.
    pub attributes: Attributes,
    /// How often it was received.
    pub receive_count: u32,
    /// When it came into the queue.
    pub enqueued_at: Millis,
    /// When it became a dead letter; it is kept for [`RETENTION`](crate::ports::queues::RETENTION) from then on.
    pub dead_at: Millis,
    /// Why.
    pub cause: Cause,
    /// `replay:<job>` or `redrive:<job>` for a message that had come that way.
    pub redelivery: Option<String>,
    /// The redrive that holds it.
    pub taken_by: Option<JobId>,
}
