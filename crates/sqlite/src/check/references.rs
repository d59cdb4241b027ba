//! What queues and dead letters say of messages, and what the counters say of them.

use storybus_core::domain::time::Millis;

use super::{Checked, DEAD, PURGE, REPORT};
use crate::error::Failure;
use crate::messages;
use crate::reader::View;
use crate::rows::Rows as _;

/// A live consumer's queue.
pub(super) struct Queue {
    id: i64,
    consumer: String,
    /// Its workspace's number, if that has one yet.
    workspace: Option<i64>,
    counters: [i64; 3],
}

pub(super) fn queues(view: &View<'_>) -> Result<Vec<Queue>, Failure> {
    view.all(
        "SELECT queue.id, consumer, number, visible, in_flight, dead_lettered FROM queue
         LEFT JOIN connection ON connection.id = consumer
         LEFT JOIN workspace_number ON workspace_number.workspace = connection.workspace
         WHERE NOT closed ORDER BY queue.id",
        [],
        |row| {
            Ok(Queue {
                id: row.get(0)?,
                consumer: row.get(1)?,
                workspace: row.get(2)?,
                counters: [row.get(3)?, row.get(4)?, row.get(5)?],
            })
        },
    )
}

pub(super) fn counters(checked: &mut Checked, view: &View<'_>, queues: &[Queue]) -> Result<(), Failure> {
    for queue in queues {
        let [waiting, hidden] = view
            .find(
                "SELECT count(*) FILTER (WHERE state < 2), count(*) FILTER (WHERE state = 2) FROM queue_message WHERE queue = ?1",
                [queue.id],
                |row| Ok([row.get::<_, i64>(0)?, row.get(1)?]),
            )?
            .unwrap_or_default();
        let dead: i64 = view
            .find(
                "SELECT count(*) FROM dead_letter WHERE queue = ?1",
                [queue.id],
                |row| row.get(0),
            )?
            .unwrap_or_default();
        checked.queued += (waiting + hidden).unsigned_abs();
        checked.dead_letters += dead.unsigned_abs();
        let mut kind = checked.kind(REPORT);
        for ((name, counter), rows) in ["visible", "in_flight", "dead_lettered"]
            .into_iter()
            .zip(queue.counters)
            .zip([waiting, hidden, dead])
        {
            if counter != rows {
                kind.add(|| {
                    format!(
                        "consumer {}: `{name}` is {counter}, and {rows} are there",
                        queue.consumer
                    )
                });
            }
        }
    }
    Ok(())
}

/// Everything that waits, and every dead letter, has its message.
pub(super) fn messages(checked: &mut Checked, view: &View<'_>, queues: &[Queue]) -> Result<(), Failure> {
    for queue in queues {
        for (sql, what, advice) in [
            (
                "SELECT message, enqueued_at FROM queue_message WHERE queue = ?1 AND +state < 3",
                "a message in the queue",
                PURGE,
            ),
            (
                "SELECT message, dead_at FROM dead_letter WHERE queue = ?1",
                "a dead letter",
                DEAD,
            ),
        ] {
            let mut kind = checked.kind(advice);
            let mut statement = view.prepare(sql)?;
            let mut rows = statement.query([queue.id])?;
            while let Some(row) = rows.next()? {
                let (message, at): (i64, i64) = (row.get(0)?, row.get(1)?);
                let there = match queue.workspace {
                    Some(workspace) => messages::exists(view, workspace, message)?,
                    None => false,
                };
                if !there {
                    kind.add(|| {
                        let since = Millis(at).to_rfc3339();
                        format!(
                            "consumer {}: {what} since {since} has no message {message}",
                            queue.consumer
                        )
                    });
                }
            }
        }
    }
    let mut kind = checked.kind(REPORT);
    for table in ["queue_message", "dead_letter"] {
        let sql = format!("SELECT DISTINCT queue FROM {table} WHERE queue NOT IN (SELECT id FROM queue)");
        for queue in view.all(&sql, [], |row| row.get::<_, i64>(0))? {
            kind.add(|| format!("{table} has rows of a queue {queue} that is not there"));
        }
    }
    Ok(())
}
