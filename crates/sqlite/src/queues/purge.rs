//! Emptying a queue, in transactions that are short enough not to be felt.
//!
//! It goes from the last position to the first, so that what a consumer receives meanwhile is what would have gone last. Rows
//! that are kept for their handles alone stay.

use std::collections::BTreeSet;

use storybus_core::ports::audit::AuditEntry;

use super::group::{self, ACKNOWLEDGED, Group, HIDDEN, WAITING};
use super::retention_cutoff;
use crate::audit;
use crate::error::Failure;
use crate::rows;
use crate::writer::{Change, Tx};

/// Rows of one transaction.
const BUDGET: usize = 500;

/// What one transaction did.
pub(crate) struct Part {
    /// How many messages went.
    pub(crate) purged: u64,
    /// What is before this position is left; `None` when nothing is.
    pub(crate) below: Option<i64>,
}

/// Begins with all that is in the queue now; `None` when there is no such queue.
pub(crate) fn begin(tx: &mut Tx<'_>, queue: i64, audit: &AuditEntry) -> Result<Option<Part>, Failure> {
    let sql = "UPDATE queue SET purged_at = ?2 WHERE id = ?1 AND NOT closed";
    if tx.execute(sql, (queue, tx.now().0))? == 0 {
        return Ok(None);
    }
    audit::write(tx, audit)?;
    let end = tx.last_position() + 1;
    step(tx, queue, end).map(Some)
}

/// Removes the last of what is before a position.
pub(crate) fn step(tx: &mut Tx<'_>, queue: i64, below: i64) -> Result<Part, Failure> {
    let rows = tx.all(
        "SELECT position, grp, state, enqueued_at FROM queue_message WHERE queue = ?1 AND position < ?2
         ORDER BY position DESC LIMIT ?3",
        (queue, below, rows::limit(BUDGET)),
        |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, Group>(1)?,
                row.get::<_, i64>(2)?,
                rows::millis(row, 3)?,
            ))
        },
    )?;
    let Some((first, ..)) = rows.last() else {
        return Ok(Part {
            purged: 0,
            below: None,
        });
    };
    let cutoff = retention_cutoff(tx.now());
    let mut change = Change::default();
    let mut purged = 0;
    let mut heads = BTreeSet::new();
    for (_, group, state, enqueued_at) in rows.iter().filter(|(_, _, state, _)| *state < ACKNOWLEDGED) {
        match *state {
            HIDDEN => change.in_flight -= 1,
            _ => change.visible -= 1,
        }
        // what was too old was gone before
        purged += u64::from(*enqueued_at > cutoff);
        if *state != WAITING {
            heads.insert(*group);
        }
    }
    // `+` keeps the partial indexes out: the rows lie in a row
    tx.execute(
        "DELETE FROM queue_message WHERE queue = ?1 AND position >= ?2 AND position < ?3 AND +state < 3",
        (queue, first, below),
    )?;
    tx.count(queue, change);
    for group in &heads {
        group::make_ready(tx, queue, group)?;
    }
    Ok(Part {
        purged,
        below: (rows.len() == BUDGET).then_some(*first),
    })
}
