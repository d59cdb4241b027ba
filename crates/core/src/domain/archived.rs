//! Messages in the archive.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use storybus_protocol::id::{CorrelationId, MessageId};

use super::filter::{Filter, TypePattern};
use super::message::{About, Attributes};
use super::time::Millis;

/// A place in a list that an engine keeps, such as the archive or a queue's dead letters. Its text is the engine's own and is
/// given back to it as it was.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(pub String);

/// What is known of a published message without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its place in the archive: one message published twice (guarantee F) has two.
    pub position: Position,
    /// The message id.
    pub message_id: MessageId,
    /// When it was published.
    pub published_at: Millis,
    /// What travels beside the body.
    pub attributes: Attributes,
    /// What it is about.
    pub about: About,
}

/// A published message, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    /// All but the body.
    pub head: Head,
    /// The producer's bytes, unchanged.
    pub body: Bytes,
}

/// A half-open range of publication times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// Inclusive.
    pub from: Millis,
    /// Exclusive.
    pub to: Millis,
}

/// Which messages of a range: every condition must hold; an empty list is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Message types.
    pub types: Vec<TypePattern>,
    /// Digests of `payload.story_id`s (see [`story_digest`](super::record::story_digest)).
    pub stories: Vec<[u8; 16]>,
    /// Correlation ids.
    pub correlations: Vec<CorrelationId>,
    /// A consumer's filter.
    pub filter: Filter,
}

impl Selection {
    /// Whether it takes this message.
    #[must_use]
    pub fn matches(&self, attributes: &Attributes, about: &About) -> bool {
        let of_type = || self.types.iter().any(|t| t.matches(&attributes.message_type));
        let of_story = || about.story.is_some_and(|story| self.stories.contains(&story));
        let correlated = || {
            attributes
                .correlation_id
                .parse()
                .is_ok_and(|id| self.correlations.contains(&id))
        };
        (self.types.is_empty() || of_type())
            && (self.stories.is_empty() || of_story())
            && (self.correlations.is_empty() || correlated())
            && self.filter.matches(attributes)
    }
}

/// The next part of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What was selected, in the order of publication.
    pub messages: Vec<Archived>,
    /// How many were looked at, selected or not.
    pub scanned: u64,
    /// The last that was looked at: read on behind it. `None` when there was none.
    pub last: Option<Position>,
    /// When that one was published.
    pub last_at: Option<Millis>,
    /// Whether the range ends here.
    pub end: bool,
}
