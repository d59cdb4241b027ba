//! Into a queue.

use storybus_protocol::id::{CorrelationId, MessageId};

use crate::error::Failure;
use crate::rows::Rows as _;
use crate::writer::{Change, Tx};

/// What comes into a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    /// Behind all that the queue has or had: a publication's number, or a new position.
    pub(crate) position: i64,
    /// The publication's number.
    pub(crate) message: i64,
    pub(crate) message_id: MessageId,
    pub(crate) group: &'a CorrelationId,
    /// What a job marks it with.
    pub(crate) redelivery: Option<&'a str>,
}

/// Puts a message at the end of its group. A group that was empty is ready with it.
pub(crate) fn enqueue(tx: &mut Tx<'_>, queue: i64, arrival: Arrival<'_>) -> Result<(), Failure> {
    let group = arrival.group.as_bytes();
    let waits = tx.find(
        "SELECT 1 FROM queue_message INDEXED BY queue_group WHERE queue = ?1 AND grp = ?2 AND state < 3 LIMIT 1",
        (queue, group),
        |_| Ok(()),
    )?;
    let ready = waits.is_none();
    tx.execute(
        "INSERT INTO queue_message (queue, position, grp, message, message_id, enqueued_at, state, redelivery)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (
            queue,
            arrival.position,
            group,
            arrival.message,
            arrival.message_id.as_bytes(),
            tx.now().0,
            i64::from(ready),
            arrival.redelivery,
        ),
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
