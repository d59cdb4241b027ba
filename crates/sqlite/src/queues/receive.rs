//! Out of a queue.

use std::sync::Arc;

use rusqlite::Row;
use storybus_core::domain::delivery::Delivery;
use storybus_core::domain::time::Millis;
use storybus_core::ports::queues::{MAX_VISIBILITY, RECEIVE_ATTEMPT_LIFETIME, Receive};
use storybus_protocol::id::WorkspaceId;

use super::group::{self, Group, HIDDEN, READY};
use super::handle::Handle;
use super::{DUE_BUDGET, Queue, REMOVAL_BUDGET, retention_cutoff};
use crate::error::Failure;
use crate::messages;
use crate::reader::View;
use crate::rows::{self, Rows as _};
use crate::writer::{Change, Tx};

/// What a look into the queue found.
#[derive(Debug)]
pub(crate) enum Taken {
    /// Hidden now, and to be loaded.
    Some(Vec<Ticket>),
    /// Nothing is there.
    Nothing,
    /// Nothing was found among what one command looks at: look again.
    Again,
}

/// A message taken, without its body: bodies are read by the reader, not by the writer.
#[derive(Debug)]
pub(crate) struct Ticket {
    handle: Handle,
    message: i64,
    receive_count: u32,
    enqueued_at: Millis,
    redelivery: Option<String>,
}

/// A row of the queue as far as a receive needs it.
struct Candidate {
    position: i64,
    message: i64,
    enqueued_at: Millis,
    receives: u32,
    redelivery: Option<String>,
}

const OF_GROUP: &str = "SELECT position, message, enqueued_at, receives, redelivery
    FROM queue_message INDEXED BY queue_group
    WHERE queue = ?1 AND grp = ?2 AND state < 3 AND position > ?3 ORDER BY position LIMIT ?4";
const OF_ATTEMPT: &str = "SELECT position, message, enqueued_at, receives, redelivery FROM queue_message
    WHERE queue = ?1 AND position = ?2 AND state = ?3 AND receipt = ?4 AND attempt = ?5 AND visible_at > ?6";

impl Candidate {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            position: row.get(0)?,
            message: row.get(1)?,
            enqueued_at: rows::millis(row, 2)?,
            receives: row.get(3)?,
            redelivery: row.get(4)?,
        })
    }

    fn ticket(self, queue: i64, token: i64, receive_count: u32) -> Ticket {
        Ticket {
            handle: Handle {
                queue,
                position: self.position,
                token,
            },
            message: self.message,
            receive_count,
            enqueued_at: self.enqueued_at,
            redelivery: self.redelivery,
        }
    }
}

/// Takes up to `receive.max` messages.
pub(crate) fn take(tx: &mut Tx<'_>, queue: i64, receive: &Receive) -> Result<Taken, Failure> {
    // it may have been changed since the receive looked
    let open = |queue: Arc<Queue>| !queue.is_disabled() && !queue.is_paused();
    if !tx.registry().queue_of_id(queue).is_some_and(open) {
        return Ok(Taken::Nothing);
    }
    let mut overdue = group::show_due(tx, queue, DUE_BUDGET)?;
    if let Some(attempt) = &receive.attempt
        && let Some(tickets) = repeat(tx, queue, attempt, receive)?
    {
        return Ok(Taken::Some(tickets));
    }
    let token = tx
        .find("SELECT random()", [], |row| row.get(0))?
        .unwrap_or_default();
    let mut take = Take {
        queue,
        receive,
        token,
        tickets: Vec::new(),
        removed: 0,
    };
    let cutoff = retention_cutoff(tx.now());
    while take.wanted() > 0 && take.removed < REMOVAL_BUDGET {
        let ready = tx.find(
            "SELECT position, grp, enqueued_at FROM queue_message INDEXED BY queue_ready
             WHERE queue = ?1 AND state = 1 ORDER BY position LIMIT 1",
            [queue],
            |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, Group>(1)?,
                    rows::millis(row, 2)?,
                ))
            },
        )?;
        let Some((head, group, enqueued_at)) = ready else {
            break;
        };
        if enqueued_at > cutoff {
            take.take_group(tx, &group)?;
        } else {
            // Kept no longer. What is behind it may be younger than another group's first.
            group::remove(tx, queue, head, READY)?;
            group::make_ready(tx, queue, &group)?;
            take.removed += 1;
        }
    }
    overdue |= take.removed >= REMOVAL_BUDGET;
    if take.tickets.is_empty() {
        if overdue {
            return Ok(Taken::Again);
        }
        let due = group::next_due(tx, queue)?;
        tx.after_commit(move |registry| {
            registry
                .queue_of_id(queue)
                .iter()
                .for_each(|queue| queue.signal().due_at(due));
        });
        return Ok(Taken::Nothing);
    }
    if let Some(attempt) = &receive.attempt {
        remember(tx, queue, attempt, token, &take.tickets)?;
        let attempt = attempt.clone();
        tx.after_commit(move |registry| {
            registry
                .queue_of_id(queue)
                .iter()
                .for_each(|queue| queue.signal().taken_by(&attempt));
        });
    }
    pass_on(tx, queue)?;
    Ok(Taken::Some(take.tickets))
}

/// Wakes the next who waits, if there is something for it.
fn pass_on(tx: &mut Tx<'_>, queue: i64) -> Result<(), Failure> {
    let awaited = tx
        .registry()
        .queue_of_id(queue)
        .is_some_and(|queue| queue.signal().awaited());
    if awaited {
        let left = tx.find(
            "SELECT 1 FROM queue_message INDEXED BY queue_ready WHERE queue = ?1 AND state = 1 LIMIT 1",
            [queue],
            |_| Ok(()),
        )?;
        if left.is_some() {
            tx.wake(queue);
        }
    }
    Ok(())
}

/// A receive at work.
struct Take<'r> {
    queue: i64,
    receive: &'r Receive,
    token: i64,
    tickets: Vec<Ticket>,
    removed: usize,
}

impl Take<'_> {
    fn wanted(&self) -> usize {
        self.receive.max.saturating_sub(self.tickets.len())
    }

    /// Takes the first messages of a ready group, in order. What may not be received any more is removed on the way.
    fn take_group(&mut self, tx: &mut Tx<'_>, group: &Group) -> Result<(), Failure> {
        let before = self.tickets.len();
        let mut last = i64::MIN;
        loop {
            let wanted = self.wanted();
            let candidates = tx.all(
                OF_GROUP,
                (self.queue, group, last, rows::limit(wanted)),
                Candidate::read,
            )?;
            let end = candidates.len() < wanted;
            for candidate in candidates {
                last = candidate.position;
                if candidate.receives >= self.receive.max_receives {
                    group::bury(tx, self.queue, candidate.position, None)?;
                    group::remove(tx, self.queue, candidate.position, READY)?;
                    self.removed += 1;
                } else {
                    self.hide(tx, candidate)?;
                }
            }
            if end || self.wanted() == 0 || self.removed >= REMOVAL_BUDGET {
                break;
            }
        }
        if self.tickets.len() == before {
            group::make_ready(tx, self.queue, group)?;
        }
        Ok(())
    }

    fn hide(&mut self, tx: &mut Tx<'_>, candidate: Candidate) -> Result<(), Failure> {
        let now = tx.now();
        let receive_count = candidate.receives.saturating_add(1);
        let until = group::hidden_until(
            now.plus(self.receive.visibility.min(MAX_VISIBILITY)),
            candidate.enqueued_at,
        );
        tx.execute(
            "UPDATE queue_message
             SET state = 2, receives = ?3, visible_at = ?4, received_at = ?5, receipt = ?6, attempt = ?7
             WHERE queue = ?1 AND position = ?2",
            (
                self.queue,
                candidate.position,
                receive_count,
                until.0,
                now.0,
                self.token,
                &self.receive.attempt,
            ),
        )?;
        tx.count(
            self.queue,
            Change {
                visible: -1,
                in_flight: 1,
                ..Change::default()
            },
        );
        tx.hidden_until(self.queue, until);
        self.tickets
            .push(candidate.ticket(self.queue, self.token, receive_count));
        Ok(())
    }
}

fn remember(tx: &Tx<'_>, queue: i64, attempt: &str, token: i64, tickets: &[Ticket]) -> Result<(), Failure> {
    let positions: Vec<i64> = tickets.iter().map(|ticket| ticket.handle.position).collect();
    tx.execute(
        "INSERT OR REPLACE INTO receive_attempt (queue, attempt, at, receipt, positions) VALUES (?1, ?2, ?3, ?4, ?5)",
        (queue, attempt, tx.now().0, token, serde_json::to_string(&positions)?),
    )?;
    Ok(())
}

/// What the receive of that name took, hidden anew; `None` unless all of it is still as that receive left it.
fn repeat(
    tx: &mut Tx<'_>,
    queue: i64,
    attempt: &str,
    receive: &Receive,
) -> Result<Option<Vec<Ticket>>, Failure> {
    let now = tx.now();
    let found = tx.find(
        "SELECT receipt, positions FROM receive_attempt WHERE queue = ?1 AND attempt = ?2 AND at > ?3",
        (queue, attempt, rows::before(now, RECEIVE_ATTEMPT_LIFETIME).0),
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)),
    )?;
    let Some((token, positions)) = found else {
        return Ok(None);
    };
    let positions: Vec<i64> = serde_json::from_str(&positions)?;
    let mut tickets = Vec::with_capacity(positions.len());
    for position in &positions {
        let candidate = tx.find(
            OF_ATTEMPT,
            (queue, position, HIDDEN, token, attempt, now.0),
            Candidate::read,
        )?;
        let Some(candidate) = candidate else {
            return Ok(None);
        };
        let receive_count = candidate.receives;
        tickets.push(candidate.ticket(queue, token, receive_count));
    }
    for ticket in &tickets {
        let sql = "UPDATE queue_message SET visible_at = min(?3, received_at + ?4) WHERE queue = ?1 AND position = ?2";
        let until = group::hidden_until(now.plus(receive.visibility), ticket.enqueued_at);
        tx.execute(
            sql,
            (queue, ticket.handle.position, until.0, rows::span(MAX_VISIBILITY)),
        )?;
        tx.hidden_until(queue, until);
    }
    Ok(Some(tickets))
}

/// Reads bodies and attributes.
pub(crate) fn load(
    view: &View<'_>,
    workspace: &WorkspaceId,
    tickets: &[Ticket],
) -> Result<Vec<Delivery>, Failure> {
    let workspace = view.known_number(workspace)?.unwrap_or_default();
    tickets
        .iter()
        .map(|ticket| load_one(view, workspace, ticket))
        .collect()
}

fn load_one(view: &View<'_>, workspace: i64, ticket: &Ticket) -> Result<Delivery, Failure> {
    let message = messages::load(view, workspace, ticket.message)?
        .ok_or_else(|| Failure::Stored(format!("message {} of a queue is not there", ticket.message)))?;
    Ok(Delivery {
        receipt_handle: ticket.handle.to_string(),
        message_id: message.head.message_id,
        body: message.body,
        attributes: message.head.attributes,
        receive_count: ticket.receive_count,
        enqueued_at: ticket.enqueued_at,
        redelivery: ticket.redelivery.clone(),
    })
}
