//! A message on its way through the bus.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use storybus_json::Value;
use storybus_protocol::id::{ConnectionId, CorrelationId, MessageId, WorkspaceId};

use super::record::{Token, story_digest};
use super::time::Millis;

/// The largest body, in bytes.
pub const MAX_BODY: usize = 240_000;
/// The largest body and attributes together, in bytes: what one SNS message carries.
/// <https://docs.aws.amazon.com/sns/latest/api/API_Publish.html>
pub const MAX_WITH_ATTRIBUTES: usize = 262_144;
/// How deep arrays and objects may nest.
pub const MAX_DEPTH: usize = 128;

/// What travels beside the body, for filters and for consumers that do not want to parse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// The envelope's `message_type`.
    pub message_type: String,
    /// The schema the payload was checked against; absent for a type without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// The envelope's `topic`.
    pub topic: String,
    /// The envelope's `correlation_id`, as sent.
    pub correlation_id: String,
    /// The connection that published.
    pub producer_id: ConnectionId,
    /// The envelope's `originating_system.system_id`.
    pub system_id: String,
    /// The envelope's `som_version`.
    pub som_version: String,
}

impl Attributes {
    /// Names and values, in the order of the contract.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.members()
            .into_iter()
            .filter_map(|(name, value)| value.map(|v| (name, v)))
    }

    fn members(&self) -> [(&'static str, Option<&str>); 7] {
        [
            ("message_type", Some(self.message_type.as_str())),
            ("family", self.family.as_deref()),
            ("topic", Some(self.topic.as_str())),
            ("correlation_id", Some(self.correlation_id.as_str())),
            ("producer_id", Some(self.producer_id.as_str())),
            ("system_id", Some(self.system_id.as_str())),
            ("som_version", Some(self.som_version.as_str())),
        ]
    }

    /// What attributes weigh against [`MAX_WITH_ATTRIBUTES`]: name, type (`String`) and value each, in bytes.
    #[must_use]
    pub fn size_of(members: [(&'static str, Option<&str>); 7]) -> usize {
        members
            .iter()
            .filter_map(|(name, value)| value.map(|v| name.len() + "String".len() + v.len()))
            .sum()
    }
}

/// What a message is about, as its payload says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct About {
    /// The digest of its `payload.story_id`, if that is a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story: Option<[u8; 16]>,
    /// That `story_id` itself, unless it is longer than [`MAX_STORY_ID`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story_id: Option<String>,
    /// A snapshot's sequence number, in canonical form, if it has one of at most 30 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<String>,
}

/// The longest `story_id` that is kept to be shown, in bytes.
pub const MAX_STORY_ID: usize = 1024;

impl About {
    /// What a payload is about; `snapshot` tells whether it is one of a story.
    #[must_use]
    pub fn of(payload: Value<'_>, snapshot: bool) -> Self {
        let story_id = payload.get("story_id").and_then(Value::as_str);
        let number = payload.get("sequence_number").filter(|_| snapshot);
        Self {
            story: story_id.map(story_digest),
            story_id: story_id.filter(|id| id.len() <= MAX_STORY_ID).map(str::to_owned),
            sequence_number: number
                .and_then(Value::as_number)
                .map(|number| number.canonical().into_owned())
                .filter(|number| number.len() <= 30),
        }
    }
}

/// A message as it is handed to the topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The workspace, which is the topic.
    pub workspace: WorkspaceId,
    /// The message id; with the workspace, the deduplication id.
    pub message_id: MessageId,
    /// The correlation id; with the workspace, the order group.
    pub correlation_id: CorrelationId,
    /// The story it is a snapshot of, if it is one.
    pub story: Option<[u8; 16]>,
    /// The producer's bytes, unchanged.
    pub body: Bytes,
    /// What travels beside them.
    pub attributes: Attributes,
    /// What it is about: for the archive.
    pub about: About,
    /// By what right it is published.
    pub claim: Claim,
}

/// The right to publish a message: held by one attempt, for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The record's `attempt`.
    pub attempt: Token,
    /// No publication may begin at or after this time.
    pub until: Millis,
}
