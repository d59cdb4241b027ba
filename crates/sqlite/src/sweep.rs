//! The sweeper: what is too old goes, a little at a time.
//!
//! Nothing depends on it: whoever reads looks at the times itself. It runs on the writer between two batches, in
//! transactions of its own that are small enough not to be felt.

use std::time::Duration;

use storybus_core::ports::queues::{RECEIVE_ATTEMPT_LIFETIME, RETENTION};

use crate::archive::Retention;
use crate::error::Failure;
use crate::queues::{drop_expired, redeliver, show_due};
use crate::rows::{self, Rows as _};
use crate::topic::DEDUPLICATION;
use crate::writer::{Change, Tx};
use crate::{activity, jobs};

/// Rows of one kind in one step.
const BUDGET: usize = 100;
/// Queues looked at in one step.
const QUEUES: usize = 16;

/// Where the sweeper is.
#[derive(Debug, Clone)]
pub(crate) struct Sweeper {
    more: bool,
    queue: i64,
    record: i64,
    archive: Retention,
}

impl Sweeper {
    /// At the start of a round, with an archive that keeps messages so long.
    pub(crate) fn new(archive: Duration) -> Self {
        Self {
            more: false,
            queue: 0,
            record: 0,
            archive: Retention::new(archive),
        }
    }

    /// Whether the last step left something.
    pub(crate) fn has_more(&self) -> bool {
        self.more
    }

    /// Whether a round is over, with nothing left.
    pub(crate) fn is_at_start(&self) -> bool {
        !self.more && self.queue == 0 && self.record == 0 && self.archive.is_at_start()
    }

    /// One step.
    pub(crate) fn step(&mut self, tx: &mut Tx<'_>) -> Result<(), Failure> {
        self.more = settled(tx)?
            | attempts(tx)?
            | dead_letters(tx, BUDGET)?
            | closed_queue(tx)?
            | stories(tx)?
            | jobs::sweep(tx, BUDGET)?
            | redeliver::sweep(tx, BUDGET)?
            | activity::sweep(tx, BUDGET)?
            | self.queues(tx)?
            | self.records(tx)?
            | self.archive.step(tx)?;
        Ok(())
    }

    /// Looks at the next few queues. A round over all of them is made of several steps, each a second after the other unless
    /// there is more to do.
    fn queues(&mut self, tx: &mut Tx<'_>) -> Result<bool, Failure> {
        for _ in 0..QUEUES {
            let Some(queue) = tx.registry().queue_after(self.queue) else {
                self.queue = 0;
                return Ok(false);
            };
            if show_due(tx, queue.id(), BUDGET)? | drop_expired(tx, &queue, BUDGET)? {
                return Ok(true);
            }
            self.queue = queue.id();
        }
        Ok(false)
    }

    /// Rows are in the order of their making, and few are written again much later: so the expired ones are at the front,
    /// with some live ones among them.
    fn records(&mut self, tx: &mut Tx<'_>) -> Result<bool, Failure> {
        let rows = tx.all(
            "SELECT id, expires_at <= ?2 AND coalesce(topic_at, ?3) <= ?3 FROM record WHERE id > ?1 ORDER BY id LIMIT ?4",
            (self.record, tx.now().0, rows::before(tx.now(), DEDUPLICATION).0, rows::limit(BUDGET)),
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?)),
        )?;
        let expired: Vec<i64> = rows
            .iter()
            .filter(|(_, expired)| *expired)
            .map(|(id, _)| *id)
            .collect();
        for id in &expired {
            tx.execute("DELETE FROM record WHERE id = ?1", [id])?;
        }
        let more = !expired.is_empty() && rows.len() == BUDGET;
        self.record = rows.last().filter(|_| more).map_or(0, |(id, _)| *id);
        Ok(more)
    }
}

/// Rows that were kept for their handles.
fn settled(tx: &Tx<'_>) -> Result<bool, Failure> {
    let over = tx.all(
        "SELECT queue, position FROM queue_message INDEXED BY queue_settled WHERE state >= 3 AND visible_at <= ?1
         ORDER BY visible_at LIMIT ?2",
        (tx.now().0, rows::limit(BUDGET)),
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
    )?;
    for key in &over {
        tx.execute(
            "DELETE FROM queue_message WHERE queue = ?1 AND position = ?2",
            *key,
        )?;
    }
    Ok(over.len() == BUDGET)
}

/// Receives that can no longer be repeated.
fn attempts(tx: &Tx<'_>) -> Result<bool, Failure> {
    let over = tx.all(
        "SELECT queue, attempt FROM receive_attempt WHERE at <= ?1 LIMIT ?2",
        (
            rows::before(tx.now(), RECEIVE_ATTEMPT_LIFETIME).0,
            rows::limit(BUDGET),
        ),
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)),
    )?;
    for key in &over {
        tx.execute(
            "DELETE FROM receive_attempt WHERE queue = ?1 AND attempt = ?2",
            (key.0, &key.1),
        )?;
    }
    Ok(over.len() == BUDGET)
}

/// Dead letters past their retention that no job holds, up to a number; whether there may be more.
pub(crate) fn dead_letters(tx: &mut Tx<'_>, budget: usize) -> Result<bool, Failure> {
    let over = tx.all(
        "SELECT queue, position FROM dead_letter INDEXED BY dead_letter_age WHERE job IS NULL AND dead_at <= ?1
         ORDER BY dead_at LIMIT ?2",
        (rows::before(tx.now(), RETENTION).0, rows::limit(budget)),
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
    )?;
    for key in &over {
        tx.execute("DELETE FROM dead_letter WHERE queue = ?1 AND position = ?2", *key)?;
        tx.count(
            key.0,
            Change {
                dead_lettered: -1,
                ..Change::default()
            },
        );
    }
    Ok(over.len() == budget)
}

/// A deleted consumer's queue.
fn closed_queue(tx: &Tx<'_>) -> Result<bool, Failure> {
    let sql = "SELECT id FROM queue INDEXED BY queue_closed WHERE closed LIMIT 1";
    let Some(queue) = tx.find(sql, [], |row| row.get::<_, i64>(0))? else {
        return Ok(false);
    };
    for sql in [
        "DELETE FROM queue_message WHERE queue = ?1 AND position IN
         (SELECT position FROM queue_message WHERE queue = ?1 ORDER BY position LIMIT ?2)",
        "DELETE FROM dead_letter WHERE queue = ?1 AND position IN
         (SELECT position FROM dead_letter WHERE queue = ?1 ORDER BY position LIMIT ?2)",
        "DELETE FROM receive_attempt WHERE queue = ?1 AND attempt IN
         (SELECT attempt FROM receive_attempt WHERE queue = ?1 ORDER BY attempt LIMIT ?2)",
    ] {
        if tx.execute(sql, (queue, rows::limit(BUDGET)))? > 0 {
            return Ok(true);
        }
    }
    tx.execute("DELETE FROM queue WHERE id = ?1", [queue])?;
    Ok(true)
}

/// Stories of deleted workspaces: nothing else ends a story.
fn stories(tx: &Tx<'_>) -> Result<bool, Failure> {
    let sql = "SELECT number FROM workspace_number INDEXED BY workspace_number_deleted WHERE deleted_at IS NOT NULL LIMIT 1";
    let Some(number) = tx.find(sql, [], |row| row.get::<_, i64>(0))? else {
        return Ok(false);
    };
    let deleted = tx.execute(
        "DELETE FROM story WHERE id IN (SELECT id FROM story WHERE workspace = ?1 LIMIT ?2)",
        (number, rows::limit(BUDGET)),
    )?;
    if deleted == 0 {
        // The number stays with the records and messages that go by their age; an id is never used again.
        tx.execute(
            "UPDATE workspace_number SET deleted_at = NULL WHERE number = ?1",
            [number],
        )?;
    }
    Ok(true)
}
