//! Records and stories: the memory that makes a retry safe.
//!
//! Every write here is one atomic conditional write. A record whose `expires_at` is at or before `now` counts as absent
//! in every condition and in every read, whether or not the engine has deleted it. A call that is repeated after a lost
//! answer finds its own token and says `Done` again: an engine's own retry never looks like a rival.

use std::time::Duration;

use async_trait::async_trait;
use storybus_protocol::id::MessageId;
use storybus_som::story::StoryState;

use super::StoreError;
use crate::domain::record::{Record, RecordKey, Story, StoryKey, Token};
use crate::domain::time::Millis;

/// What the ledger knows of a message and its story.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The message's record.
    pub record: Option<Record>,
    /// The story.
    pub story: Option<Story>,
    /// The record of the story's head, when the head is another message. An engine may leave it out when the message's
    /// own record is `Published` or `Superseded`: it decides alone then.
    pub head: Option<Record>,
}

/// RECORD: a first attempt's record, and its story moved to it.
#[derive(Debug, Clone)]
pub struct NewRecord {
    /// Its key.
    pub key: RecordKey,
    /// The record, in state `Recorded`.
    pub record: Record,
    /// A snapshot's story.
    pub story: Option<StoryMove>,
    /// The time of the decision, which is also `record.recorded_at`.
    pub now: Millis,
    /// How long an attempt holds its claim.
    pub window: Duration,
}

/// A story that a snapshot moves.
#[derive(Debug, Clone)]
pub struct StoryMove {
    /// Which.
    pub key: StoryKey,
    /// Its id, for people: kept with the story.
    pub story_id: String,
    /// As it was read: it must still be this version (or still be absent).
    pub read: Option<(Token, MessageId)>,
    /// What it becomes.
    pub state: StoryState,
    /// The version that this write makes.
    pub version: Token,
}

/// What RECORD found.
#[derive(Debug, Clone, PartialEq)]
pub enum Recorded {
    /// Written, now or by an earlier call with the same attempt.
    Done,
    /// The message is known; nothing was written.
    Known(Record),
    /// The story is not the one read, or its head is in flight; nothing was written.
    StoryMoved,
}

/// CLAIM: a left-over record taken over.
#[derive(Debug, Clone)]
pub struct NewClaim {
    /// Which record.
    pub key: RecordKey,
    /// The attempt it must still hold, in state `Recorded`.
    pub read: Token,
    /// The attempt that takes over.
    pub attempt: Token,
    /// A snapshot's story, which must still be this version.
    pub story: Option<(StoryKey, Token)>,
    /// Becomes `recorded_at`.
    pub now: Millis,
    /// Becomes `expires_at`.
    pub expires_at: Millis,
}

/// SUPERSEDE: a left-over snapshot given up.
#[derive(Debug, Clone)]
pub struct Supersession {
    /// Which record.
    pub key: RecordKey,
    /// The attempt it must still hold, in state `Recorded`.
    pub read: Token,
    /// The story, which must still be this version: were its head removed meanwhile, the old snapshot would be the last
    /// accepted one again.
    pub story: (StoryKey, Token),
    /// The version that this write makes of it; state and head stay. The head's first attempt, which may have been paused
    /// since before its window ended, can then not remove it any more: it finds another version than its own.
    pub version: Token,
    /// The time of the decision.
    pub now: Millis,
}

/// REMOVE: a first attempt that surely failed, taken back.
#[derive(Debug, Clone)]
pub struct Removal {
    /// Which record.
    pub key: RecordKey,
    /// The attempt it must still hold, in state `Recorded`.
    pub attempt: Token,
    /// A snapshot's story, put back as it was read.
    pub story: Option<PutBack>,
    /// The time of the decision: the record must be younger than the window. An engine with a clock of its own asks that
    /// one too, since the caller may have been paused meanwhile: past the window an older snapshot may have been given up
    /// for this one, which must then stay. (The version that SUPERSEDE makes sees to that everywhere.)
    pub now: Millis,
    /// How long an attempt holds its claim.
    pub window: Duration,
}

/// A story put back.
#[derive(Debug, Clone)]
pub struct PutBack {
    /// Which.
    pub key: StoryKey,
    /// The version it must still be: the one that RECORD made.
    pub version: Token,
    /// What it becomes: the story as read, with a new version; absent if it was.
    pub story: Option<Story>,
}

/// GIVE BACK: a claim that surely published nothing.
#[derive(Debug, Clone)]
pub struct GiveBack {
    /// Which record.
    pub key: RecordKey,
    /// The attempt it must still hold, in state `Recorded`.
    pub attempt: Token,
    /// The attempt it holds from then on.
    pub new_attempt: Token,
    /// `recorded_at` as it was before the claim, so that the next retry may claim at once.
    pub recorded_at: Millis,
    /// The time of the decision.
    pub now: Millis,
}

/// MARK: known published.
#[derive(Debug, Clone)]
pub struct Marking {
    /// Which record.
    pub key: RecordKey,
    /// The attempt it must still hold.
    pub attempt: Token,
    /// When it was published.
    pub now: Millis,
    /// Becomes `expires_at`.
    pub expires_at: Millis,
}

/// Whether a conditional write found what it expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Written, now or by an earlier call with the same token.
    Done,
    /// A condition did not hold; nothing was written.
    Lost,
}

/// The records and stories of all workspaces.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Record and story as they stand together at one instant; then, if the story's head is another message, that one's
    /// record, which may be read an instant later. Sees every write that was answered before the call.
    async fn read(
        &self,
        key: &RecordKey,
        story: Option<&StoryKey>,
        now: Millis,
    ) -> Result<Reading, StoreError>;

    /// Writes the record if the message is unknown, and moves the story in the same write if it is still the one read and
    /// its head's record is absent, published, superseded or past its window.
    async fn record(&self, new: &NewRecord) -> Result<Recorded, StoreError>;

    /// Takes a left-over record over: `recorded_at`, `attempt` and `expires_at` become the claim's.
    async fn claim(&self, claim: &NewClaim) -> Result<Written, StoreError>;

    /// Sets the record `Superseded` and gives its story a new version, in one write.
    async fn supersede(&self, supersession: &Supersession) -> Result<Written, StoreError>;

    /// Deletes the record and puts its story back. `Lost` when the record is gone.
    async fn remove(&self, removal: &Removal) -> Result<Written, StoreError>;

    /// Undoes a claim.
    async fn give_back(&self, give_back: &GiveBack) -> Result<Written, StoreError>;

    /// Sets the record `Published`.
    async fn mark(&self, marking: &Marking) -> Result<Written, StoreError>;
}
