//! The reader: one thread with a connection that only reads.
//!
//! It sees every commit that was answered before a call, and does not wait for the writer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Params, Row};
use storybus_core::ports::StoreError;
use storybus_protocol::id::WorkspaceId;
use tokio::sync::oneshot;

use crate::archive::BlockCache;
use crate::error::{Failure, closed};
use crate::rows::Rows;

/// How many calls share one snapshot of the database.
const MAX_BATCH: usize = 64;

/// A snapshot of the database.
pub(crate) struct View<'a> {
    connection: &'a Connection,
    blocks: &'a BlockCache,
}

impl<'a> View<'a> {
    /// Of a connection that is in a transaction, or whose queries see what they see each for itself.
    pub(crate) fn new(connection: &'a Connection, blocks: &'a BlockCache) -> Self {
        Self { connection, blocks }
    }

    /// The archive's blocks that the thread has at hand.
    pub(crate) fn blocks(&self) -> &'a BlockCache {
        self.blocks
    }

    pub(crate) fn prepare(&self, sql: &str) -> Result<CachedStatement<'a>, Failure> {
        Ok(self.connection.prepare_cached(sql)?)
    }

    /// The rows a query finds.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Failure> {
        Ok(self
            .prepare(sql)?
            .query_map(params, read)?
            .collect::<rusqlite::Result<_>>()?)
    }
}

impl Rows for View<'_> {
    fn find<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Failure> {
        Ok(self.prepare(sql)?.query_row(params, read).optional()?)
    }

    fn known_number(&self, workspace: &WorkspaceId) -> Result<Option<i64>, Failure> {
        let sql = "SELECT number FROM workspace_number WHERE workspace = ?1";
        self.find(sql, [workspace.as_str()], |row| row.get(0))
    }
}

type Call = Box<dyn FnOnce(&View<'_>) + Send>;

/// A call; `None` ends the thread.
type Order = Option<Call>;

/// The way to the reader.
#[derive(Clone)]
pub(crate) struct Reader {
    orders: Sender<Order>,
}

impl Reader {
    /// Reads from one snapshot, which has all that was committed before the call.
    pub(crate) async fn call<R, W>(&self, work: W) -> Result<R, StoreError>
    where
        R: Send + 'static,
        W: FnOnce(&View<'_>) -> Result<R, Failure> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let call: Call = Box::new(move |view| {
            if !reply.is_closed() {
                reply.send(work(view)).ok();
            }
        });
        self.orders.send(Some(call)).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?.map_err(|failure| {
            let error = StoreError::from(&failure);
            tracing::warn!(%error, "reading failed");
            error
        })
    }

    /// Ends the thread after the calls sent before.
    pub(crate) fn stop(&self) {
        self.orders.send(None).ok();
    }
}

/// The thread's end of the way.
pub(crate) struct Calls(Receiver<Order>);

pub(crate) fn channel() -> (Reader, Calls) {
    let (sender, receiver) = mpsc::channel();
    (Reader { orders: sender }, Calls(receiver))
}

impl Calls {
    /// Works until it is stopped or nobody can call any more.
    pub(crate) fn serve(self, connection: &Connection) {
        let mut batch: Vec<Call> = Vec::with_capacity(MAX_BATCH);
        let mut open = true;
        let blocks = BlockCache::default();
        while open {
            let mut next = self.0.recv().ok();
            while let Some(order) = next {
                match order {
                    Some(call) => batch.push(call),
                    None => open = false,
                }
                next = if open && batch.len() < MAX_BATCH {
                    self.0.try_recv().ok()
                } else {
                    None
                };
            }
            open &= !batch.is_empty();
            // The snapshot is taken after the last of the calls came: each sees what was committed before it.
            read(connection, &blocks, batch.drain(..));
        }
    }
}

fn read(connection: &Connection, blocks: &BlockCache, calls: impl Iterator<Item = Call>) {
    let run = |sql| {
        connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
    };
    if let Err(error) = run("BEGIN") {
        // the callers get an error as their replies drop
        tracing::error!(%error, "cannot begin to read");
        return;
    }
    for call in calls {
        // the caller of one that panics gets an error as its reply drops
        catch_unwind(AssertUnwindSafe(|| call(&View::new(connection, blocks)))).ok();
    }
    if let Err(error) = run("COMMIT") {
        tracing::error!(%error, "cannot end to read");
        connection.execute_batch("ROLLBACK").ok();
    }
}
