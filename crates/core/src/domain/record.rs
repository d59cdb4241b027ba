//! Records and stories: the facts that the publish protocol rests on.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use storybus_protocol::id::{ConnectionId, MessageId, WorkspaceId};
use storybus_som::story::StoryState;

use super::time::Millis;

/// How long a record is remembered after it was last written: 7 days, and an hour of margin over the contract's promise.
pub const RECORD_LIFETIME: Duration = Duration::from_secs((7 * 24 + 1) * 3600);

/// A record's key. A message id is known per workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The message id; letter case does not matter.
    pub message_id: MessageId,
}

/// A story's key: its `story_id` may be of any length, so it is known by a digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoryKey {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The first 16 bytes of the SHA-256 of the `story_id`.
    pub digest: [u8; 16],
}

/// The digest by which a story is known.
#[must_use]
pub fn story_digest(story_id: &str) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&Sha256::digest(story_id.as_bytes())[..16]);
    digest
}

/// SHA-256 of a message's canonical form.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// A token that names one write: an attempt to publish, or a version of a story. Fresh each time, never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token(pub [u8; 16]);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordState {
    /// Recorded; not known published.
    Recorded,
    /// Known published.
    Published,
    /// Will not be published any more: a newer snapshot of its story was accepted.
    Superseded,
}

/// What the bus remembers of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What it said.
    pub content_hash: ContentHash,
    /// Where it stands.
    pub state: RecordState,
    /// When it was recorded, or claimed last.
    pub recorded_at: Millis,
    /// Who may publish it: the holder of this token, within the window.
    pub attempt: Token,
    /// The story it is a snapshot of, if it is one.
    pub story: Option<[u8; 16]>,
    /// Who sent it.
    pub producer: ConnectionId,
    /// When it was known published.
    pub published_at: Option<Millis>,
    /// From then on it counts as absent.
    pub expires_at: Millis,
}

impl Record {
    /// Whether an attempt may still be at work on it.
    #[must_use]
    pub fn in_flight(&self, now: Millis, window: Duration) -> bool {
        self.state == RecordState::Recorded && now < self.recorded_at.plus(window)
    }
}

/// A story as its last accepted snapshot left it.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    /// What the next snapshot is compared with.
    pub state: StoryState,
    /// The message id of the last accepted snapshot.
    pub head: MessageId,
    /// New on every write. "Still the one read" means this, never the head: an id can be removed and recorded again.
    pub version: Token,
}
