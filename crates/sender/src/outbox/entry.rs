//! What operators see of messages.

use serde::Serialize;

use super::State;

/// A message in an outbox, without its payload. Times are milliseconds since 1970, by the database's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its number, in the order of enqueueing.
    pub id: i64,
    /// Whom it is for.
    pub target: String,
    /// What it is known by.
    pub key: String,
    /// What it stands in line behind.
    pub order_group: Option<String>,
    /// The SHA-256 of its bytes in hexadecimal digits; absent while a message that was inserted by plain SQL has not been claimed.
    pub payload_hash: Option<String>,
    /// How many bytes it has.
    pub size: u64,
    /// Their media type.
    pub content_type: Option<String>,
    /// What became of it.
    pub state: State,
    /// Whether an earlier one of its group holds it back.
    pub waiting: bool,
    /// How many attempts were made.
    pub attempts: u64,
    /// Of a pending one: not sent before.
    pub due_at: Option<i64>,
    /// When it was enqueued.
    pub enqueued_at: i64,
    /// When the first attempt began.
    pub first_attempt_at: Option<i64>,
    /// When the last attempt began.
    pub last_attempt_at: Option<i64>,
    /// Since when the partner may have it.
    pub unsure_since: Option<i64>,
    /// When it was delivered, refused or parked.
    pub finished_at: Option<i64>,
    /// Whether a relay is sending it at this moment.
    pub under_way: bool,
    /// The last answer.
    pub last: LastAnswer,
}

/// The last answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LastAnswer {
    /// The HTTP status.
    pub status: Option<u16>,
    /// As in [`crate::answer::Outcome`].
    pub outcome: Option<String>,
    /// The rule of a refusal.
    pub rule: Option<String>,
    /// For people.
    pub detail: Option<String>,
}

/// Which messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Of this state.
    pub state: Option<State>,
    /// For this target.
    pub target: Option<String>,
    /// In the line of this group: what of it is neither delivered nor refused, in the order in which it is sent.
    pub group: Option<String>,
    /// Behind this number, in the list's order.
    pub after: Option<i64>,
    /// The latest first.
    pub newest_first: bool,
}

/// How an outbox stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// How many messages, per target and state; none where there are none.
    pub counts: Vec<Count>,
    /// How long the oldest pending message has been there, in milliseconds.
    pub oldest_pending_ms: Option<u64>,
    /// How many order groups a parked message holds.
    pub held_groups: u64,
}

/// So many of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Whom they are for.
    pub target: String,
    /// Their state.
    pub state: State,
    /// How many.
    pub count: u64,
}

/// A person has looked at the partner's, or accepts that the message may arrive there a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirmed;
