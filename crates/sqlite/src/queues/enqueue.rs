//! Into a queue.

use storybus_protocol::id::CorrelationId;

use crate::error::Failure;
use crate::rows::Rows as _;
use crate::writer::{Change, Tx};

/// Puts a message at the end of its group. A group that was empty is ready with it.
pub(crate) fn enqueue(
    tx: &mut Tx<'_>,
    queue: i64,
    group: &CorrelationId,
    message: i64,
) -> Result<(), Failure> {
    let group = group.as_bytes();
    let waits = tx.find(
        "SELECT 1 FROM queue_message INDEXED BY queue_group WHERE queue = ?1 AND grp = ?2 AND state < 3 LIMIT 1",
        (queue, group),
        |_| Ok(()),
    )?;
    let ready = waits.is_none();
    tx.execute(
        "INSERT INTO queue_message (queue, position, grp, message, enqueued_at, state) VALUES (?1, ?2, ?3, ?2, ?4, ?5)",
        (queue, message, group, tx.now().0, i64::from(ready)),
    )?;
    tx.count(
        queue,
        Change {
            visible: 1,
            ..Change::default()
        },
    );
    if ready {
        tx.wake(queue);
    }
    Ok(())
}
