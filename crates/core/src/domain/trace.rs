//! Where a message is.

use storybus_protocol::id::ConnectionId;

use super::dead_letter::Cause;
use super::time::Millis;

/// What a consumer's queue knows of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueTrace {
    /// The consumer.
    pub consumer: ConnectionId,
    /// Each place where it is, or where it was a moment ago: the original's first, then what jobs delivered.
    pub deliveries: Vec<Trace>,
    /// When the queue was last purged.
    pub purged_at: Option<Millis>,
}

/// One delivery of a message into a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Where it stands.
    pub state: TraceState,
    /// How often it was received.
    pub receive_count: u32,
    /// `replay:<job>` or `redrive:<job>` for one that came that way.
    pub redelivery: Option<String>,
    /// Since when it stands there, as far as that is known.
    pub at: Option<Millis>,
}

/// Where a delivery stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceState {
    /// In the queue.
    Waiting,
    /// Hidden by a receive or by a nack with a delay.
    InFlight,
    /// Acknowledged a moment ago.
    Acknowledged,
    /// A dead letter.
    DeadLettered(Cause),
}
