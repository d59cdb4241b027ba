//! Blocks: messages of one workspace, one behind another, compressed.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use rusqlite::{Params, Row};
use storybus_core::domain::archived::{Archived, Head};
use storybus_core::domain::time::Millis;
use zstd::bulk::{Compressor, Decompressor};

use super::heads::{Encoder, HeadRef, Heads};
use crate::error::Failure;
use crate::rows::{self, Rows};
use crate::writer::Tx;

/// zstd's level: measured, see `examples/bench_archive`. Higher ones take twice the time and save nothing.
const LEVEL: i32 = 1;
/// What is not believed of a block's size, in bytes: only damage says so.
const MOST_BYTES: i64 = 64 * 1024 * 1024;
/// Bytes of decompressed blocks that are kept at hand, for a consumer that is far behind.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// The columns of a [`Block`].
pub(super) const COLUMNS: &str =
    "id, workspace, first_seq, last_seq, first_at, last_at, heads_bytes, bodies_bytes";

/// What a block's row says of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) id: i64,
    pub(super) workspace: i64,
    pub(super) first_seq: i64,
    pub(super) last_seq: i64,
    pub(super) first_at: Millis,
    pub(super) last_at: Millis,
    heads_bytes: i64,
    bodies_bytes: i64,
}

impl Block {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            workspace: row.get(1)?,
            first_seq: row.get(2)?,
            last_seq: row.get(3)?,
            first_at: rows::millis(row, 4)?,
            last_at: rows::millis(row, 5)?,
            heads_bytes: row.get(6)?,
            bodies_bytes: row.get(7)?,
        })
    }

    /// The first block that a condition finds.
    pub(super) fn find(
        rows: &impl Rows,
        condition: &str,
        params: impl Params,
    ) -> Result<Option<Self>, Failure> {
        rows.find(
            &format!("SELECT {COLUMNS} FROM archive_block {condition} LIMIT 1"),
            params,
            Self::read,
        )
    }

    /// The block that holds a place, or the last one before it.
    pub(super) fn at(rows: &impl Rows, workspace: i64, seq: i64) -> Result<Option<Self>, Failure> {
        Self::find(
            rows,
            "INDEXED BY archive_block_seq WHERE workspace = ?1 AND first_seq <= ?2 ORDER BY first_seq DESC",
            [workspace, seq],
        )
    }

    /// Reads its heads.
    pub(super) fn heads(self, rows: &impl Rows) -> Result<BlockHeads, Failure> {
        let bytes = self.part(rows, "heads", self.heads_bytes)?;
        Ok(BlockHeads { block: self, bytes })
    }

    /// Reads its bodies, as one.
    pub(super) fn bodies(self, rows: &impl Rows) -> Result<Vec<u8>, Failure> {
        self.part(rows, "bodies", self.bodies_bytes)
    }

    fn part(self, rows: &impl Rows, column: &str, size: i64) -> Result<Vec<u8>, Failure> {
        let size = usize::try_from(size.min(MOST_BYTES)).map_err(|_| self.damaged("its size"))?;
        let sql = format!("SELECT {column} FROM archive_block WHERE id = ?1");
        let part = rows.find(&sql, [self.id], |row| {
            let compressed = row.get_ref(0)?.as_blob()?;
            Ok(Decompressor::new().and_then(|mut zstd| zstd.decompress(compressed, size)))
        })?;
        let part = part.ok_or_else(|| self.damaged("it is not there"))?;
        let part = part.map_err(|error| self.damaged(&format!("its {column}: {error}")))?;
        if part.len() == size {
            Ok(part)
        } else {
            Err(self.damaged(&format!("its {column} are of another size")))
        }
    }

    /// Says what is wrong with it.
    pub(super) fn damaged(self, what: &str) -> Failure {
        let Self {
            id,
            first_seq,
            last_seq,
            ..
        } = self;
        Failure::Stored(format!(
            "archive block {id} (messages {first_seq} to {last_seq}) is damaged: {what}; restore a backup"
        ))
    }
}

/// A block's heads, decompressed.
pub(super) struct BlockHeads {
    pub(super) block: Block,
    bytes: Vec<u8>,
}

impl BlockHeads {
    /// One after another, until one cannot be read.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<HeadRef<'_>, Failure>> {
        let block = self.block;
        let damaged = move |_| block.damaged("its heads");
        let (heads, error) = match Heads::new(&self.bytes, block.first_seq, block.first_at) {
            Ok(heads) => (Some(heads), None),
            Err(error) => (None, Some(Err(damaged(error)))),
        };
        heads
            .into_iter()
            .flatten()
            .map(move |head| head.map_err(damaged))
            .chain(error)
    }

    /// A head as the ports speak of it.
    pub(super) fn head(&self, head: &HeadRef<'_>) -> Result<Head, Failure> {
        head.to_head().map_err(|_| self.block.damaged("its heads"))
    }

    /// A head with its body.
    pub(super) fn archived(&self, head: &HeadRef<'_>, bodies: &[u8]) -> Result<Archived, Failure> {
        let body = bodies.get(head.body.clone());
        Ok(Archived {
            head: self.head(head)?,
            body: Bytes::copy_from_slice(body.ok_or_else(|| self.block.damaged("its bodies end early"))?),
        })
    }

    fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// A block that is wholly decompressed.
pub(super) struct Whole {
    pub(super) heads: BlockHeads,
    pub(super) bodies: Vec<u8>,
}

/// The blocks that were read last. They never change, and no id is used twice.
#[derive(Default)]
pub(crate) struct BlockCache(RefCell<VecDeque<Rc<Whole>>>);

impl BlockCache {
    pub(super) fn whole(&self, rows: &impl Rows, block: Block) -> Result<Rc<Whole>, Failure> {
        let mut kept = self.0.borrow_mut();
        if let Some(at) = kept.iter().position(|whole| whole.heads.block.id == block.id)
            && let Some(whole) = kept.remove(at)
        {
            kept.push_front(Rc::clone(&whole));
            return Ok(whole);
        }
        let whole = Rc::new(Whole {
            heads: block.heads(rows)?,
            bodies: block.bodies(rows)?,
        });
        kept.push_front(Rc::clone(&whole));
        let mut bytes = 0;
        kept.retain(|whole| {
            let fits = bytes < CACHE_BYTES;
            bytes += whole.heads.size() + whole.bodies.len();
            fits
        });
        Ok(whole)
    }
}

/// A message with its place.
pub(super) type Placed = (i64, Archived);

/// A block to be written.
pub(super) struct NewBlock {
    workspace: i64,
    first: (i64, Millis),
    last: (i64, Millis),
    count: usize,
    sizes: (usize, usize),
    heads: Vec<u8>,
    bodies: Vec<u8>,
}

/// Makes blocks.
pub(super) struct Packer(Compressor<'static>);

impl Packer {
    pub(super) fn new() -> std::io::Result<Self> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        Ok(Self(compressor))
    }

    /// Makes one of messages of a workspace, with their places; `None` of none.
    pub(super) fn pack(&mut self, workspace: i64, messages: &[Placed]) -> std::io::Result<Option<NewBlock>> {
        let place = |(seq, message): &Placed| (*seq, message.head.published_at);
        let (Some(first), Some(last)) = (messages.first().map(place), messages.last().map(place)) else {
            return Ok(None);
        };
        let mut heads = Encoder::new(first.0, first.1);
        let mut bodies = Vec::with_capacity(messages.iter().map(|(_, message)| message.body.len()).sum());
        for (seq, message) in messages {
            heads.push(*seq, &message.head, message.body.len());
            bodies.extend_from_slice(&message.body);
        }
        let heads = heads.finish();
        Ok(Some(NewBlock {
            workspace,
            first,
            last,
            count: messages.len(),
            sizes: (heads.len(), bodies.len()),
            heads: self.0.compress(&heads)?,
            bodies: self.0.compress(&bodies)?,
        }))
    }
}

impl NewBlock {
    /// Puts it in the place of its messages' rows; whether they were all there.
    pub(super) fn replace(&self, tx: &Tx<'_>) -> Result<bool, Failure> {
        let range = (self.workspace, self.first.0, self.last.0);
        let there = tx.find(
            "SELECT count(*) FROM message INDEXED BY message_workspace WHERE workspace = ?1 AND seq BETWEEN ?2 AND ?3",
            range,
            |row| row.get::<_, i64>(0),
        )?;
        if there != Some(rows::limit(self.count)) {
            return Ok(false);
        }
        // first: where there is no room, the block finds the rows'
        tx.execute(
            "DELETE FROM message WHERE seq IN (SELECT seq FROM message INDEXED BY message_workspace
                                               WHERE workspace = ?1 AND seq BETWEEN ?2 AND ?3)",
            range,
        )?;
        self.insert(tx)?;
        Ok(true)
    }

    /// Adds it.
    pub(super) fn insert(&self, tx: &Tx<'_>) -> Result<(), Failure> {
        tx.execute(
            "INSERT INTO archive_block (workspace, first_seq, last_seq, first_at, last_at, count, heads_bytes, bodies_bytes,
                                        heads, bodies)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            (
                self.workspace,
                self.first.0,
                self.last.0,
                self.first.1.0,
                self.last.1.0,
                rows::limit(self.count),
                rows::limit(self.sizes.0),
                rows::limit(self.sizes.1),
                &self.heads,
                &self.bodies,
            ),
        )?;
        Ok(())
    }
}
