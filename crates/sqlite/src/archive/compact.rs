//! The archivist: a thread that makes blocks of what was published, and runs of what is in blocks.
//!
//! Whatever it does is done by small commands of the writer, each a whole step: a crash, or a kill, leaves what was before one
//! or after it. It waits for each before the next, so that under load it takes a turn like anyone.

use std::sync::Weak;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use rusqlite::Connection;
use storybus_core::ports::StoreError;
use tokio::sync::oneshot;

use super::block::{BlockCache, Packer, Placed};
use super::index;
use crate::error::{Failure, closed};
use crate::messages::{head_columns, read_archived};
use crate::reader::View;
use crate::rows::{self, Rows as _};
use crate::store::Inner;

/// How often it looks whether there is something to do. Pacing alone: nothing waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How many looks it leaves out after a failure (there is no room, most likely).
const AFTER_FAILURE: u32 = 40;
/// How the archive is laid out. Only tests and measurements have a reason to change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// The newest messages, of all workspaces together, that are left as they are.
    pub tail: usize,
    /// Messages of one block, at most.
    pub block_messages: usize,
    /// Bytes of their bodies, at most, unless one alone has more.
    pub block_bytes: usize,
    /// Blocks that a first run is made of.
    pub run_blocks: usize,
    /// Runs of which a longer one is made.
    pub fan: usize,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self {
            tail: 2048,
            block_messages: 64,
            block_bytes: 256 * 1024,
            run_blocks: 64,
            fan: 8,
        }
    }
}

enum Order {
    Begin(Weak<Inner>),
    Compact(oneshot::Sender<Result<(), StoreError>>),
    Stop,
}

/// The way to the archivist.
#[derive(Clone)]
pub(crate) struct Archivist(Sender<Order>);

impl Archivist {
    /// From now on it works for this store, as long as there is one.
    pub(crate) fn begin(&self, inner: Weak<Inner>) {
        self.0.send(Order::Begin(inner)).ok();
    }

    /// Puts everything that is published into blocks, and what is due into runs.
    pub(crate) async fn compact(&self) -> Result<(), StoreError> {
        let (done, answer) = oneshot::channel();
        self.0.send(Order::Compact(done)).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.0.send(Order::Stop).ok();
    }
}

/// The thread's end of the way.
pub(crate) struct Orders(Receiver<Order>);

pub(crate) fn channel() -> (Archivist, Orders) {
    let (sender, receiver) = mpsc::channel();
    (Archivist(sender), Orders(receiver))
}

impl Orders {
    /// Works until it is told to stop.
    pub(crate) fn serve(self, connection: &Connection, limits: ArchiveLimits) {
        let mut inner: Weak<Inner> = Weak::new();
        let mut pause = 0_u32;
        let (mut seen, mut failed) = (None, None);
        let cache = BlockCache::default();
        loop {
            match self.0.recv_timeout(LOOK_EVERY) {
                Ok(Order::Begin(of)) => inner = of,
                Ok(Order::Compact(done)) => {
                    let worked = work(&inner, connection, &cache, limits, 0);
                    done.send(worked).ok();
                }
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if pause > 0 => {
                    // not at the end, when the writer goes first
                    if let Some(error) = failed.take() {
                        tracing::warn!(%error, "archiving failed; it goes on later");
                    }
                    pause -= 1;
                }
                Err(RecvTimeoutError::Timeout) => {
                    // cheap to ask, and the same as long as nobody has written
                    let version = connection
                        .pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0))
                        .ok();
                    if version.is_some() && version == seen {
                        continue;
                    }
                    seen = version;
                    if let Err(error) = work(&inner, connection, &cache, limits, limits.tail) {
                        (pause, seen, failed) = (AFTER_FAILURE, None, Some(error));
                    }
                }
            }
        }
    }
}

fn work(
    inner: &Weak<Inner>,
    connection: &Connection,
    cache: &BlockCache,
    limits: ArchiveLimits,
    tail: usize,
) -> Result<(), StoreError> {
    let Some(inner) = inner.upgrade() else {
        return Ok(());
    };
    let archiving = Archiving {
        inner: &inner,
        view: View::new(connection, cache),
        limits,
    };
    archiving.compact(tail)?;
    archiving.index()
}

/// The thread at work.
pub(super) struct Archiving<'a> {
    pub(super) inner: &'a Inner,
    /// Each query has a snapshot of its own: what one finds does not change until this thread changes it, or it goes.
    pub(super) view: View<'a>,
    pub(super) limits: ArchiveLimits,
}

impl Archiving<'_> {
    /// Makes blocks until no more than so many messages are left.
    fn compact(&self, tail: usize) -> Result<(), StoreError> {
        // a few blocks at a time, not a message
        let worth_it = tail.saturating_add(tail / 8).saturating_add(1);
        if !self.has_messages(worth_it)? {
            return Ok(());
        }
        let failed = |error| Failure::Stored(format!("compression failed: {error}"));
        let mut packer = Packer::new().map_err(failed)?;
        while self.has_messages(tail.saturating_add(1))? {
            let Some((workspace, messages)) = self.oldest()? else {
                break;
            };
            let Some(block) = packer.pack(workspace, &messages).map_err(failed)? else {
                break;
            };
            // when they were not all there any more, the sweeper has been faster, and the next look sees what it left
            self.inner.writer().call_blocking(move |tx| block.replace(tx))?;
        }
        Ok(())
    }

    fn has_messages(&self, count: usize) -> Result<bool, StoreError> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM message INDEXED BY message_workspace LIMIT ?1)";
        let found = self
            .view
            .find(sql, [rows::limit(count)], |row| row.get::<_, i64>(0))?;
        Ok(found >= Some(rows::limit(count)))
    }

    /// The oldest message's workspace, and its first messages: of a workspace in which little happens, all there are.
    fn oldest(&self) -> Result<Option<(i64, Vec<Placed>)>, StoreError> {
        let sql = "SELECT workspace FROM message ORDER BY seq LIMIT 1";
        let Some(workspace) = self.view.find(sql, [], |row| row.get::<_, i64>(0))? else {
            return Ok(None);
        };
        let mut statement = self.view.prepare(concat!(
            "SELECT ",
            head_columns!(),
            ", body FROM message INDEXED BY message_workspace WHERE workspace = ?1 ORDER BY seq LIMIT ?2"
        ))?;
        let mut found = statement
            .query((workspace, rows::limit(self.limits.block_messages)))
            .map_err(Failure::from)?;
        let (mut messages, mut bytes) = (Vec::new(), 0);
        while let Some(row) = found.next().map_err(Failure::from)? {
            let (seq, message) = read_archived(row).map_err(Failure::from)?;
            bytes += message.body.len();
            if bytes > self.limits.block_bytes && !messages.is_empty() {
                break;
            }
            messages.push((seq, message));
        }
        Ok(Some((workspace, messages)))
    }

    fn index(&self) -> Result<(), StoreError> {
        index::drop_unfinished(self)?;
        while index::build(self)? {}
        while index::merge(self)? {}
        Ok(())
    }
}
