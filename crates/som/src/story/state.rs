//! What is remembered of a story.

use serde::{Deserialize, Serialize};
use storybus_json::Value;

use super::digests::Digests;
use super::snapshot::{ASSET, ID, Snapshot};

/// What must be remembered of a story's last accepted snapshot to judge the next one, and nothing else of it.
///
/// Serialises as an object of one-letter members, since a store writes it with every snapshot and pays by size; a
/// member that is absent is empty, so that later versions can add some. Its size follows the payload's number of
/// members, assets and reviewed assertions (32 characters an asset, 22 an assertion), never the length of their values.
/// Exact things stay exact: the numbers as decimal text, the time as the producer wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoryState {
    /// In canonical form.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub(super) sequence_number: Option<String>,
    /// As sent.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub(super) updated_at: Option<String>,
    /// Member names that the next snapshot must have, sorted.
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) members: Vec<String>,
    /// Asset ids with types.
    #[serde(rename = "a", default, skip_serializing_if = "Digests::is_empty")]
    pub(super) assets: Digests<ASSET>,
    /// The story type, if it is one that a story does not come back from.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<End>,
    /// The story type, as sent.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(super) story_type: Option<String>,
    /// Of the story's first snapshot, in lower case.
    #[serde(rename = "c", default)]
    pub(super) correlation_id: String,
    /// Ids of the assertions whose review is decided.
    #[serde(rename = "r", default, skip_serializing_if = "Digests::is_empty")]
    pub(super) decided: Digests<ID>,
}

/// The story types that a story does not come back from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum End {
    Killed,
    Spiked,
    Archived,
}

impl End {
    pub(super) fn of(story_type: &str) -> Option<Self> {
        match story_type {
            "KILLED" => Some(Self::Killed),
            "SPIKED" => Some(Self::Spiked),
            "ARCHIVED" => Some(Self::Archived),
            _ => None,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Killed => "KILLED",
            Self::Spiked => "SPIKED",
            Self::Archived => "ARCHIVED",
        }
    }
}

impl StoryState {
    /// The state after a story's first snapshot, which has nothing to be compared with.
    pub fn first(payload: Value<'_>, correlation_id: &str) -> Self {
        Self::after(Snapshot(payload), correlation_id.to_ascii_lowercase())
    }

    /// The state after a snapshot of a story whose first correlation id is known.
    pub(super) fn after(snapshot: Snapshot<'_>, correlation_id: String) -> Self {
        Self {
            sequence_number: snapshot
                .sequence_number()
                .map(|number| number.canonical().into_owned()),
            updated_at: snapshot.updated_at().map(str::to_owned),
            members: snapshot.members().into_iter().map(str::to_owned).collect(),
            assets: snapshot.assets(),
            end: snapshot.story_type().and_then(End::of),
            story_type: snapshot.story_type().map(str::to_owned),
            correlation_id,
            decided: snapshot.reviews().decided,
        }
    }

    /// The last accepted sequence number: exact decimal text.
    pub fn sequence_number(&self) -> Option<&str> {
        self.sequence_number.as_deref()
    }

    /// When the last accepted snapshot says that the story was updated, as sent.
    pub fn updated_at(&self) -> Option<&str> {
        self.updated_at.as_deref()
    }

    /// The last accepted snapshot's story type.
    pub fn story_type(&self) -> Option<&str> {
        self.story_type.as_deref()
    }

    /// About how many bytes it takes.
    pub fn weight(&self) -> usize {
        let texts = [&self.sequence_number, &self.updated_at, &self.story_type];
        let members: usize = self.members.iter().map(|name| name.len() + 3).sum();
        let digests = 32 * self.assets.len() + 22 * self.decided.len();
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        100 + members + digests + texts
    }

    /// The correlation id of the story's first snapshot, in lower case.
    pub fn correlation_id(&self) -> &str {
        &self.correlation_id
    }
}
