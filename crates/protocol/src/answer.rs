//! The bodies of answers.

use serde::{Deserialize, Serialize};

use crate::Violation;

/// `202`: the message was accepted and published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Always `true`.
    pub accepted: bool,
    /// As sent.
    pub message_id: String,
    /// As sent.
    pub message_type: String,
    /// The schema that the payload was checked against; `null` for a type without one.
    pub family: Option<String>,
    /// What the bus let pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerated: Vec<Violation>,
    /// `true` on a dry run: nothing was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// `200`: the message was published before, with the same content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicate {
    /// Always `true`.
    pub accepted: bool,
    /// Always `true`.
    pub duplicate: bool,
    /// As sent.
    pub message_id: String,
}

/// Every refusal but those of `/oauth/token`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Always `false`.
    pub accepted: bool,
    /// All found at the stage that refused, at least one.
    pub violations: Vec<Violation>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// Recorded and not known published, also after the window.
    InFlight,
    /// Published.
    Published,
    /// It will not be published any more.
    Superseded,
}
