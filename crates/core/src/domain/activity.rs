//! What happens at the bus, for operators.

use serde::{Deserialize, Serialize};
use storybus_protocol::id::{ConnectionId, WorkspaceId};

use super::refusal::RefusalKind;
use super::time::Millis;

/// A publish that was refused: who, what about, why. Never its payload.
///
/// What is told of the message is as it was sent, checked or not, and cut at [`MAX_TEXT`] characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedPublish {
    /// When.
    pub at: Millis,
    /// The producer's workspace.
    pub workspace: WorkspaceId,
    /// The producer.
    pub producer: ConnectionId,
    /// What kind of refusal.
    pub kind: RefusalKind,
    /// The rules, each once, in the order of the answer; at most [`MAX_RULES`].
    pub rules: Vec<String>,
    /// The envelope's `message_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Its `message_type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_type: Option<String>,
    /// Its `correlation_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Its `originating_system.system_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_id: Option<String>,
    /// Its `payload.story_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story_id: Option<String>,
}

/// The most rules of one entry.
pub const MAX_RULES: usize = 20;
/// The most characters of a text of an entry.
pub const MAX_TEXT: usize = 256;
