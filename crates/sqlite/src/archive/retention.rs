//! Retention: what is too old goes, the oldest first, a little at a time.
//!
//! Whoever reads honours it to the millisecond; here only room is made. What a queue still refers to stays: a queue keeps its
//! messages for 14 days however short the archive's memory is, and a dead letter, or what came by replay or redrive, may be older
//! than any memory.

use std::time::Duration;

use storybus_core::domain::time::Millis;
use storybus_core::ports::queues::RETENTION;

use super::block::{Block, COLUMNS};
use super::index;
use crate::error::Failure;
use crate::rows::{self, Rows as _};
use crate::writer::Tx;

/// Messages looked at in one step.
const MESSAGES: usize = 100;
/// Blocks looked at in one step: freeing one takes a look at each of its pages.
const BLOCKS: usize = 4;
/// A receive may be about to load what its queue has just let go.
const MARGIN: Duration = Duration::from_secs(3600);

/// Where the sweeping of the archive is.
#[derive(Debug, Clone)]
pub(crate) struct Retention {
    kept: Duration,
    message: i64,
    block: (i64, i64),
}

impl Retention {
    /// For an archive that keeps messages so long.
    pub(crate) fn new(archive: Duration) -> Self {
        Self {
            kept: archive.max(RETENTION + MARGIN),
            message: 0,
            block: FIRST,
        }
    }

    /// Whether a round is over.
    pub(crate) fn is_at_start(&self) -> bool {
        self.message == 0 && self.block == FIRST
    }

    /// One step; whether there is more to do.
    pub(crate) fn step(&mut self, tx: &Tx<'_>) -> Result<bool, Failure> {
        Ok(self.messages(tx)? | self.blocks(tx)? | index::sweep(tx)?)
    }

    fn cutoff(&self, tx: &Tx<'_>) -> Millis {
        rows::before(tx.now(), self.kept)
    }

    /// Messages that were never put into a block.
    fn messages(&mut self, tx: &Tx<'_>) -> Result<bool, Failure> {
        let cutoff = self.cutoff(tx);
        let old = tx.all(
            "SELECT seq, published_at FROM message WHERE seq > ?1 ORDER BY seq LIMIT ?2",
            (self.message, rows::limit(MESSAGES)),
            |row| Ok((row.get::<_, i64>(0)?, rows::millis(row, 1)?)),
        )?;
        let mut all_old = true;
        for (seq, at) in &old {
            if *at > cutoff {
                all_old = false;
            } else if !is_referred_to(tx, *seq)? {
                tx.execute("DELETE FROM message WHERE seq = ?1", [seq])?;
            }
        }
        let more = all_old && old.len() == MESSAGES;
        self.message = old.last().filter(|_| more).map_or(0, |(seq, _)| *seq);
        Ok(more)
    }

    /// A block goes when its last message is too old.
    fn blocks(&mut self, tx: &Tx<'_>) -> Result<bool, Failure> {
        let old = tx.all(
            &format!(
                "SELECT {COLUMNS} FROM archive_block INDEXED BY archive_block_age
                 WHERE (last_at, id) > (?1, ?2) AND last_at <= ?3 ORDER BY last_at, id LIMIT ?4"
            ),
            (self.block.0, self.block.1, self.cutoff(tx).0, rows::limit(BLOCKS)),
            Block::read,
        )?;
        for block in &old {
            if !holds_what_is_referred_to(tx, *block)? {
                tx.execute("DELETE FROM archive_block WHERE id = ?1", [block.id])?;
            }
        }
        let more = old.len() == BLOCKS;
        let last = old.last().filter(|_| more);
        self.block = last.map_or(FIRST, |block| (block.last_at.0, block.id));
        Ok(more)
    }
}

const FIRST: (i64, i64) = (i64::MIN, 0);

const REFERRED_TO: &str = "SELECT 1 FROM dead_letter INDEXED BY dead_letter_message WHERE message BETWEEN ?1 AND ?2
     UNION ALL
     SELECT 1 FROM queue_message INDEXED BY queue_redelivery WHERE redelivery IS NOT NULL AND message BETWEEN ?1 AND ?2
     LIMIT 1";

fn is_referred_to(tx: &Tx<'_>, seq: i64) -> Result<bool, Failure> {
    Ok(tx.find(REFERRED_TO, [seq, seq], |_| Ok(()))?.is_some())
}

/// Between a block's first and last message there are other workspaces' too.
fn holds_what_is_referred_to(tx: &Tx<'_>, block: Block) -> Result<bool, Failure> {
    let near = tx.find(REFERRED_TO, [block.first_seq, block.last_seq], |_| Ok(()))?;
    if near.is_none() {
        return Ok(false);
    }
    let Ok(heads) = block.heads(tx) else {
        return Ok(true); // damaged: nothing tells
    };
    for head in heads.iter() {
        match head {
            Ok(head) if !is_referred_to(tx, head.seq)? => {}
            _ => return Ok(true),
        }
    }
    Ok(false)
}
