//! Groups: when one is ready, and what takes rows out of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use storybus_core::domain::time::Millis;
use storybus_core::ports::queues::RETENTION;

use super::{Queue, raise_floor, retention_cutoff};
use crate::error::Failure;
use crate::rows::{self, Rows as _};
use crate::writer::{Change, Tx};

pub(crate) type Group = [u8; 16];

/// Row states, as in the schema.
pub(super) const WAITING: i64 = 0;
pub(crate) const READY: i64 = 1;
pub(crate) const HIDDEN: i64 = 2;
pub(super) const ACKNOWLEDGED: i64 = 3;
pub(super) const REJECTED: i64 = 4;

/// A receive takes at most so many of a group, so what is hidden of it is among its first so many.
pub(crate) const MOST_HIDDEN: i64 = 10;

/// Makes the first of a group ready unless something of the group is hidden.
pub(super) fn make_ready(tx: &mut Tx<'_>, queue: i64, group: &Group) -> Result<(), Failure> {
    let first = tx.all(
        "SELECT position, state FROM queue_message INDEXED BY queue_group
         WHERE queue = ?1 AND grp = ?2 AND state < 3 ORDER BY position LIMIT ?3",
        (queue, group, MOST_HIDDEN),
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
    )?;
    if first.iter().any(|(_, state)| *state == HIDDEN) {
        return Ok(());
    }
    if let Some((position, state)) = first.first()
        && *state == WAITING
    {
        tx.execute(
            "UPDATE queue_message SET state = 1 WHERE queue = ?1 AND position = ?2",
            (queue, position),
        )?;
        tx.wake(queue);
    }
    Ok(())
}

/// Shows a hidden message again.
pub(super) fn show(tx: &mut Tx<'_>, queue: i64, position: i64) -> Result<(), Failure> {
    tx.execute(
        "UPDATE queue_message SET state = 0, visible_at = NULL, attempt = NULL WHERE queue = ?1 AND position = ?2",
        (queue, position),
    )?;
    tx.count(
        queue,
        Change {
            visible: 1,
            in_flight: -1,
            ..Change::default()
        },
    );
    Ok(())
}

/// Until when a message is hidden that wants to be until `wanted`: a message that is kept no longer hides nothing behind it.
pub(super) fn hidden_until(wanted: Millis, enqueued_at: Millis) -> Millis {
    wanted.min(enqueued_at.plus(RETENTION))
}

/// Shows what is no longer hidden, in the order in which it came back, up to a number of rows; whether there may be more.
pub(crate) fn show_due(tx: &mut Tx<'_>, queue: i64, budget: usize) -> Result<bool, Failure> {
    let cutoff = retention_cutoff(tx.now());
    let due = tx.all(
        "SELECT position, grp, enqueued_at FROM queue_message INDEXED BY queue_hidden
         WHERE queue = ?1 AND state = 2 AND visible_at <= ?2 ORDER BY visible_at, position LIMIT ?3",
        (queue, tx.now().0, rows::limit(budget)),
        |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, Group>(1)?,
                rows::millis(row, 2)?,
            ))
        },
    )?;
    for (position, _, enqueued_at) in &due {
        if *enqueued_at <= cutoff {
            remove(tx, queue, *position, HIDDEN)?;
        } else {
            show(tx, queue, *position)?;
        }
    }
    for (_, group, _) in &due {
        make_ready(tx, queue, group)?;
    }
    Ok(due.len() == budget)
}

/// When the next hidden message comes back.
pub(super) fn next_due(tx: &Tx<'_>, queue: i64) -> Result<Option<Millis>, Failure> {
    tx.find(
        "SELECT visible_at FROM queue_message INDEXED BY queue_hidden WHERE queue = ?1 AND state = 2
         ORDER BY visible_at LIMIT 1",
        [queue],
        |row| rows::millis(row, 0),
    )
}

/// Removes what has waited longer than the retention, oldest first, up to a number of rows; whether there may be more.
pub(crate) fn drop_expired(tx: &mut Tx<'_>, queue: &Arc<Queue>, budget: usize) -> Result<bool, Failure> {
    let cutoff = retention_cutoff(tx.now());
    let first = tx.all(
        "SELECT position, grp, state, enqueued_at FROM queue_message WHERE queue = ?1 AND position >= ?2
         ORDER BY position LIMIT ?3",
        (queue.id, queue.floor.load(Ordering::Relaxed), rows::limit(budget)),
        |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, Group>(1)?,
                row.get::<_, i64>(2)?,
                rows::millis(row, 3)?,
            ))
        },
    )?;
    let mut floor = None;
    let mut all_gone = true;
    for (position, group, state, enqueued_at) in &first {
        floor = Some(*position);
        if *state >= ACKNOWLEDGED {
            continue;
        }
        if *enqueued_at > cutoff {
            all_gone = false;
            break;
        }
        remove(tx, queue.id, *position, *state)?;
        make_ready(tx, queue.id, group)?;
    }
    if let Some(floor) = floor {
        raise_floor(tx, queue, floor);
    }
    Ok(all_gone && first.len() == budget)
}

/// Removes a live row.
pub(super) fn remove(tx: &mut Tx<'_>, queue: i64, position: i64, state: i64) -> Result<(), Failure> {
    tx.execute(
        "DELETE FROM queue_message WHERE queue = ?1 AND position = ?2",
        (queue, position),
    )?;
    let change = if state == HIDDEN {
        Change {
            in_flight: -1,
            ..Change::default()
        }
    } else {
        Change {
            visible: -1,
            ..Change::default()
        }
    };
    tx.count(queue, change);
    Ok(())
}

/// Copies a row to the dead letters, with the reason if a consumer gave one.
pub(super) fn bury(tx: &mut Tx<'_>, queue: i64, position: i64, reason: Option<&str>) -> Result<(), Failure> {
    tx.execute(
        "INSERT INTO dead_letter (queue, position, grp, message, message_id, enqueued_at, receives, reason, dead_at,
                                  redelivery)
         SELECT queue, position, grp, message, message_id, enqueued_at, receives, ?3, ?4, redelivery
         FROM queue_message WHERE queue = ?1 AND position = ?2",
        (queue, position, reason, tx.now().0),
    )?;
    tx.count(
        queue,
        Change {
            dead_lettered: 1,
            ..Change::default()
        },
    );
    Ok(())
}
