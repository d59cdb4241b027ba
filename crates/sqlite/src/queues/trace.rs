//! Where a message is.

use rusqlite::Row;
use storybus_core::domain::dead_letter::Cause;
use storybus_core::domain::time::Millis;
use storybus_core::domain::trace::{QueueTrace, Trace, TraceState};
use storybus_core::ports::queues::RETENTION;
use storybus_protocol::id::{ConnectionId, MessageId};

use super::group::{ACKNOWLEDGED, HIDDEN, REJECTED};
use super::retention_cutoff;
use crate::error::Failure;
use crate::reader::View;
use crate::rows::{self, Rows as _};

/// A delivery with what orders it: the original before what jobs delivered, then by position.
type Stop = ((bool, i64), Trace);

/// What each of the queues knows of a message.
pub(crate) fn trace(
    view: &View<'_>,
    queues: &[(ConnectionId, i64)],
    message_id: MessageId,
    publications: &[i64],
    now: Millis,
) -> Result<Vec<QueueTrace>, Failure> {
    let mut redelivered = Vec::new();
    for message in publications {
        redelivered.extend(view.all(
            concat!(
                "SELECT ",
                row_columns!(),
                ", queue FROM queue_message INDEXED BY queue_redelivery WHERE message = ?1 AND redelivery IS NOT NULL"
            ),
            [message],
            |row| Ok((row.get::<_, i64>(7)?, live(row, now)?)),
        )?);
    }
    let mut traces = Vec::with_capacity(queues.len());
    for (consumer, queue) in queues {
        let mut stops: Vec<Stop> = Vec::new();
        for message in publications {
            let original = view.find(
                concat!(
                    "SELECT ",
                    row_columns!(),
                    " FROM queue_message WHERE queue = ?1 AND position = ?2 AND redelivery IS NULL"
                ),
                [queue, message],
                |row| live(row, now),
            )?;
            stops.extend(original.flatten());
        }
        let of_queue = redelivered.iter().filter(|(of, _)| of == queue);
        stops.extend(of_queue.filter_map(|(_, stop)| stop.clone()));
        stops.extend(dead(view, *queue, message_id, now)?);
        stops.sort_by_key(|(order, _)| *order);
        let purged_at = view.find("SELECT purged_at FROM queue WHERE id = ?1", [queue], |row| {
            row.get::<_, Option<i64>>(0)
        })?;
        traces.push(QueueTrace {
            consumer: consumer.clone(),
            deliveries: stops.into_iter().map(|(_, trace)| trace).collect(),
            purged_at: purged_at.flatten().map(Millis),
        });
    }
    Ok(traces)
}

/// The columns of a queue's row, in the order [`live`] wants them.
macro_rules! row_columns {
    () => {
        "position, state, receives, enqueued_at, received_at, visible_at, redelivery"
    };
}
use row_columns;

/// A row of the queue; `None` when the queue has done with it, or when it is a dead letter now.
fn live(row: &Row<'_>, now: Millis) -> rusqlite::Result<Option<Stop>> {
    let state: i64 = row.get(1)?;
    let receive_count: u32 = row.get(2)?;
    let enqueued_at = rows::millis(row, 3)?;
    let received_at: Option<i64> = row.get(4)?;
    let visible_at: Option<i64> = row.get(5)?;
    let redelivery: Option<String> = row.get(6)?;
    let hidden = visible_at.is_some_and(|at| at > now.0);
    let gone = match state {
        REJECTED => true,
        ACKNOWLEDGED => !hidden,
        _ => enqueued_at <= retention_cutoff(now),
    };
    if gone {
        return Ok(None);
    }
    let (state, at) = match state {
        ACKNOWLEDGED => (TraceState::Acknowledged, None),
        HIDDEN if hidden => (TraceState::InFlight, received_at.map(Millis)),
        HIDDEN => (TraceState::Waiting, visible_at.map(Millis)),
        // when it came back is not kept
        _ => (TraceState::Waiting, (receive_count == 0).then_some(enqueued_at)),
    };
    let trace = Trace {
        state,
        receive_count,
        redelivery,
        at,
    };
    Ok(Some(((trace.redelivery.is_some(), row.get(0)?), trace)))
}

fn dead(view: &View<'_>, queue: i64, message_id: MessageId, now: Millis) -> Result<Vec<Stop>, Failure> {
    view.all(
        "SELECT position, receives, reason, dead_at, redelivery FROM dead_letter INDEXED BY dead_letter_message_id
         WHERE queue = ?1 AND message_id = ?2 AND (job IS NOT NULL OR dead_at > ?3)",
        (queue, message_id.as_bytes(), rows::before(now, RETENTION).0),
        |row| {
            let reason: Option<String> = row.get(2)?;
            let trace = Trace {
                state: TraceState::DeadLettered(reason.map_or(Cause::MaxReceives, Cause::Rejected)),
                receive_count: row.get(1)?,
                at: Some(rows::millis(row, 3)?),
                redelivery: row.get(4)?,
            };
            Ok(((trace.redelivery.is_some(), row.get(0)?), trace))
        },
    )
}
