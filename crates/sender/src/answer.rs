//! What came of one attempt. A transport says it in these words, so that calls, outbox and relay need to know no partner.

use std::time::Duration;

use serde::Serialize;

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The partner has it now.
    Accepted,
    /// The partner had it already.
    Duplicate,
    /// The partner, or something on the way there, said no. [`Answer::retry`] tells whether the same may go through later.
    Refused,
    /// No answer: not reached, cut off, or too slow.
    NetworkError,
    /// No token: the message itself was not sent.
    TokenError,
}

impl Outcome {
    /// As in events and in the outbox.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::Refused => "refused",
            Self::NetworkError => "network_error",
            Self::TokenError => "token_error",
        }
    }

    /// Whether the partner has the message.
    #[must_use]
    pub fn is_yes(self) -> bool {
        match self {
            Self::Accepted | Self::Duplicate => true,
            Self::Refused | Self::NetworkError | Self::TokenError => false,
        }
    }
}

/// Whether one call of a client tries again: the public SDK's rule, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// No: the answer is final for this call.
    No,
    /// After a pause.
    Backoff,
    /// At once, with new credentials, once.
    NewToken,
}

/// What a no is about. It decides what the outbox makes of it, beyond one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum About {
    /// This message alone: others may go through.
    Message,
    /// This sender's credentials or registration: no message of this target will go through before somebody mends it.
    Sender,
    /// This moment: the same bytes may go through later (a throttle, a failure, contention).
    Moment,
}

/// What may be left of an attempt at the partner's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Left {
    /// Surely nothing: it was not sent, or the answer says that nothing was recorded.
    Nothing,
    /// It has it, or nobody knows.
    Maybe,
}

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// How it ended.
    pub outcome: Outcome,
    /// The HTTP status, when there was an answer.
    pub status: Option<u16>,
    /// The first rule of a refusal; `http.<status>` when the answer was not the partner's own.
    pub rule: Option<String>,
    /// For people: what happened. Never a secret, a token or a payload; at most 1,000 characters.
    pub detail: Option<String>,
    /// Whether one call tries again.
    pub retry: Retry,
    /// How long the partner asks to wait.
    pub retry_after: Option<Duration>,
    /// What a no is about.
    pub about: About,
    /// What may be left of it.
    pub left: Left,
}
