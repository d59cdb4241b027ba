//! The archive on DynamoDB.
//!
//! The function `archive` takes what the topics send to the archive's queue and stores it by an [`Archiver`]: one publication, one
//! item, one write unit as a rule. [`DynamoArchive`] reads. Hours and shards make partitions small enough for any traffic; a
//! workspace's partitions are listed, so that a reader looks only where something is. An hour's shards are merged in the order of
//! the [`place`]s. How far a range may be read while messages are still on their way, [`watermark`] says.
//!
//! The decision and what was rejected: `docs/adr/0007-archive-on-dynamodb.md`.

mod archiver;
mod buckets;
mod lookup;
mod merge;
mod pack;
mod place;
mod read;
mod watermark;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::archived::{Archived, Head, Part, Position, Selection, TimeRange};
use storybus_core::domain::time::Millis;
use storybus_core::ports::archive::PartLimits;
use storybus_core::ports::{Archive, Clock, StoreError};
use storybus_protocol::id::{CorrelationId, MessageId, WorkspaceId};

pub use self::archiver::Archiver;
use self::place::Place;
use self::watermark::Watermark;
use crate::clients::Aws;
use crate::item::{Attributes as _, Item, unreadable};

/// The attribute of a body.
const BODY: &str = "b";
/// The attribute of what a head has besides its keys.
const HEAD: &str = "h";
/// The partition key of `by_message`.
const MESSAGE: &str = "m";
/// The partition key of `by_story`.
const STORY: &str = "s";
/// The partition key of `by_correlation`.
const CORRELATION: &str = "c";

/// [`Archive`] on DynamoDB. A message's place begins with the time at which it came into the archive's queue, which is its time of
/// publication here.
///
/// A range is read up to where nothing can be missing any more: a part that comes back empty and is not the end is to be read again
/// a little later. Lists and look-ups show what is stored, seconds after the publication as a rule.
pub struct DynamoArchive {
    aws: Aws,
    clock: Arc<dyn Clock>,
    watermark: Watermark,
}

impl Aws {
    /// The archive, for readers.
    #[must_use]
    pub fn archive(&self, clock: Arc<dyn Clock>) -> DynamoArchive {
        DynamoArchive {
            aws: self.clone(),
            watermark: Watermark::new(self.clone(), Arc::clone(&clock)),
            clock,
        }
    }

    /// The archive, for what the topics send.
    #[must_use]
    pub fn archiver(&self) -> Archiver {
        Archiver::new(self.clone())
    }
}

impl DynamoArchive {
    /// What was published before this is not in the archive any more.
    fn begin(&self) -> Millis {
        let horizon = self.clock.now().minus(self.aws.config.archive_retention);
        Millis(horizon.0.saturating_add(1))
    }

    /// Looks how far the archive is whole, and keeps it for others: from time to time, so that there is something to go on from when the
    /// archive's queue is never seen empty.
    ///
    /// # Errors
    ///
    /// A service that does not answer.
    pub async fn advance(&self) -> Result<(), StoreError> {
        self.watermark.until(Millis(i64::MAX)).await.map(drop)
    }
}

fn place_of(position: &Position) -> Result<Place, StoreError> {
    Place::parse(&position.0).ok_or_else(|| StoreError::Internal {
        reason: "not a place in the archive".to_owned(),
    })
}

/// The place of an item.
fn item_place(item: &Item) -> Result<Place, StoreError> {
    Place::parse(item.need_text("sk")?).ok_or_else(|| unreadable("sk"))
}

/// What an index's key ends with.
fn sixteen_of(item: &Item, name: &'static str) -> Result<Option<[u8; 16]>, StoreError> {
    let Some(text) = item.text(name) else {
        return Ok(None);
    };
    let id = text.rsplit_once('#').and_then(|(_, id)| place::of_sixteen(id));
    id.map(Some).ok_or_else(|| unreadable(name))
}

/// The head of an item.
fn item_head(item: &Item) -> Result<Head, StoreError> {
    let place = item_place(item)?;
    let story = sixteen_of(item, STORY)?;
    let correlation = sixteen_of(item, CORRELATION)?.ok_or_else(|| unreadable(CORRELATION))?;
    let packed = item.bytes(HEAD).ok_or_else(|| unreadable(HEAD))?;
    let (attributes, about) = pack::unpack_head(packed, story, CorrelationId::from_bytes(correlation))?;
    Ok(Head {
        position: place.position(),
        message_id: place.message_id,
        published_at: place.at,
        attributes,
        about,
    })
}

/// The body of an item.
fn item_body(item: &Item) -> Result<Vec<u8>, StoreError> {
    pack::unpack(item.bytes(BODY).ok_or_else(|| unreadable(BODY))?)
}

#[async_trait]
impl Archive for DynamoArchive {
    fn retention(&self) -> Duration {
        self.aws.config.archive_retention
    }

    async fn read(
        &self,
        workspace: &WorkspaceId,
        range: TimeRange,
        after: Option<&Position>,
        selection: &Selection,
        limits: PartLimits,
    ) -> Result<Part, StoreError> {
        let after = after.map(place_of).transpose()?;
        self.part(workspace, range, after, selection, limits).await
    }

    async fn find(&self, workspace: &WorkspaceId, message_id: MessageId) -> Result<Vec<Head>, StoreError> {
        self.publications(workspace, message_id).await
    }

    async fn about(
        &self,
        workspace: &WorkspaceId,
        story: &[u8; 16],
        correlation: Option<CorrelationId>,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError> {
        let after = after.map(place_of).transpose()?;
        self.story(workspace, story, correlation, after, limit).await
    }

    async fn latest(
        &self,
        workspace: &WorkspaceId,
        before: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError> {
        let before = before.map(place_of).transpose()?;
        self.newest_first(workspace, before, limit).await
    }

    fn is_position(&self, position: &Position) -> bool {
        Place::parse(&position.0).is_some()
    }
}

impl DynamoArchive {
    /// The message at a place, whole: one read.
    ///
    /// # Errors
    ///
    /// A table that does not answer, or a text that is no position.
    pub async fn whole(
        &self,
        workspace: &WorkspaceId,
        position: &Position,
    ) -> Result<Option<Archived>, StoreError> {
        let place = place_of(position)?;
        self.at(workspace, &place).await
    }

    /// The newest publication of a message, whole: two requests.
    ///
    /// # Errors
    ///
    /// A table that does not answer.
    pub async fn newest(
        &self,
        workspace: &WorkspaceId,
        message_id: MessageId,
    ) -> Result<Option<Archived>, StoreError> {
        match self.places_of(workspace, message_id).await?.last() {
            Some(place) => self.at(workspace, place).await,
            None => Ok(None),
        }
    }
}
