//! The archive: what was published, for as long as it is kept.
//!
//! A publication is a row of `message`, beside everything else that its transaction writes. Behind the newest few thousand rows
//! a thread of its own ([`compact`]) moves them into **blocks**: up to 64 messages of one workspace, one behind
//! another, as two compressed parts, the heads and the bodies, so that a list or a time line reads no body. A block is
//! written and its rows are deleted in one short transaction: at every instant a message is in exactly one place, and whoever
//! reads one snapshot sees it once. Since the oldest go first, all blocks of a workspace lie before all its rows.
//!
//! A message's place is its `seq`. Places and times are found by the blocks' own small indexes, ids and stories by sorted
//! runs ([`index`]). What is too old goes block by block ([`retention`]); freed pages are used again.
//!
//! Rejected: the bodies in files of their own (a backup, a full disk and a crash would have to be right twice); an index of
//! every id as rows (a random page a message, and half of the archive's room).

mod block;
mod compact;
mod heads;
mod index;
mod lookup;
mod read;
mod retention;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::archived::{Archived, Head, Part, Position, Selection, TimeRange};
use storybus_core::domain::time::Millis;
use storybus_core::ports::archive::PartLimits;
use storybus_core::ports::{Archive, StoreError};
use storybus_protocol::id::{CorrelationId, MessageId, WorkspaceId};

pub(crate) use self::block::BlockCache;
use self::block::{Block, Packer};
pub use self::compact::ArchiveLimits;
pub(crate) use self::compact::{Archivist, channel};
pub(crate) use self::retention::Retention;
pub(crate) use self::verify::verify;
use crate::error::Failure;
use crate::reader::View;
use crate::rows::{self, Rows};
use crate::store::Inner;

/// [`Archive`] on SQLite. A message's place is its number in the order of publication.
#[derive(Clone)]
pub struct SqliteArchive {
    inner: Arc<Inner>,
    retention: Duration,
}

impl SqliteArchive {
    pub(crate) fn new(inner: Arc<Inner>, retention: Duration) -> Self {
        Self { inner, retention }
    }

    /// What was published then, or before, is not in the archive any more.
    fn horizon(&self) -> Millis {
        rows::before(self.inner.clock().now(), self.retention)
    }

    /// Adds messages as one block, as if they had been published: a history for measurements and tests. Their positions are
    /// given here; their times must not go back.
    #[doc(hidden)]
    pub async fn add(&self, workspace: &WorkspaceId, messages: Vec<Archived>) -> Result<(), StoreError> {
        let (count, of) = (messages.len(), workspace.clone());
        let placed = self.inner.writer().call(move |tx| {
            let mut seqs = Vec::with_capacity(count);
            for _ in 0..count {
                seqs.push(tx.next_position()?);
            }
            Ok((tx.number(&of)?, seqs))
        });
        let (workspace, seqs) = placed.await?;
        let messages: Vec<_> = seqs.into_iter().zip(messages).collect();
        let packed = Packer::new().and_then(|mut packer| packer.pack(workspace, &messages));
        let packed = packed.map_err(|error| Failure::Stored(format!("compression failed: {error}")))?;
        match packed {
            Some(block) => self.inner.writer().call(move |tx| block.insert(tx)).await,
            None => Ok(()),
        }
    }

    /// Looks into the archive of a workspace that has one, in one snapshot.
    async fn look<R: Default + Send + 'static>(
        &self,
        workspace: &WorkspaceId,
        work: impl FnOnce(&Look<'_>) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, StoreError> {
        let (workspace, horizon) = (workspace.clone(), self.horizon());
        self.inner
            .history()
            .call(move |view| match view.known_number(&workspace)? {
                Some(workspace) => work(&Look {
                    view,
                    workspace,
                    horizon,
                }),
                None => Ok(R::default()),
            })
            .await
    }
}

/// A look into one workspace's archive.
struct Look<'a> {
    view: &'a View<'a>,
    workspace: i64,
    horizon: Millis,
}

/// The number of a place that must be behind or before others; of none, the default.
fn place(position: Option<&Position>, none: i64) -> Result<i64, StoreError> {
    position.map_or(Ok(none), |position| {
        rows::place(position).ok_or_else(|| StoreError::Internal {
            reason: "not a place in the archive".to_owned(),
        })
    })
}

#[async_trait]
impl Archive for SqliteArchive {
    fn retention(&self) -> Duration {
        self.retention
    }

    async fn read(
        &self,
        workspace: &WorkspaceId,
        range: TimeRange,
        after: Option<&Position>,
        selection: &Selection,
        limits: PartLimits,
    ) -> Result<Part, StoreError> {
        let after = place(after, -1)?;
        let selection = selection.clone();
        let part = self
            .look(workspace, move |look| {
                look.read(range, after, &selection, limits).map(Some)
            })
            .await?;
        Ok(part.unwrap_or_else(read::nothing))
    }

    async fn find(&self, workspace: &WorkspaceId, message_id: MessageId) -> Result<Vec<Head>, StoreError> {
        self.look(workspace, move |look| look.find(message_id)).await
    }

    async fn about(
        &self,
        workspace: &WorkspaceId,
        story: &[u8; 16],
        correlation: Option<CorrelationId>,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError> {
        let (story, after) = (*story, place(after, -1)?);
        self.look(workspace, move |look| {
            look.about(story, correlation, after, limit)
        })
        .await
    }

    async fn latest(
        &self,
        workspace: &WorkspaceId,
        before: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError> {
        let before = place(before, i64::MAX)?;
        self.look(workspace, move |look| look.latest(before, limit)).await
    }

    fn is_position(&self, position: &Position) -> bool {
        rows::place(position).is_some()
    }
}

/// The block that holds a place.
fn block_of(rows: &impl Rows, workspace: i64, seq: i64) -> Result<Option<Block>, Failure> {
    Ok(Block::at(rows, workspace, seq)?.filter(|block| seq <= block.last_seq))
}

/// The message at a place, from its block.
pub(crate) fn load(view: &View<'_>, workspace: i64, seq: i64) -> Result<Option<Archived>, Failure> {
    let Some(block) = block_of(view, workspace, seq)? else {
        return Ok(None);
    };
    let whole = view.blocks().whole(view, block)?;
    for head in whole.heads.iter() {
        let head = head?;
        if head.seq == seq {
            return whole.heads.archived(&head, &whole.bodies).map(Some);
        }
    }
    Ok(None)
}

/// Whether a block holds the place of a message: none is ever taken out of it, so its bounds tell, and the writer need not
/// unpack it.
pub(crate) fn exists(rows: &impl Rows, workspace: i64, seq: i64) -> Result<bool, Failure> {
    Ok(block_of(rows, workspace, seq)?.is_some())
}
