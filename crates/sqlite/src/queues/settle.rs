//! The end of a receive.

use std::time::Duration;

use storybus_core::domain::delivery::Settled;
use storybus_core::domain::time::Millis;
use storybus_core::ports::queues::MAX_VISIBILITY;

use super::group::{self, ACKNOWLEDGED, Group, HIDDEN, REJECTED};
use super::handle::Handle;
use crate::error::Failure;
use crate::rows::{self, Rows as _};
use crate::writer::{Change, Tx};

/// How a consumer ends a receive.
#[derive(Debug)]
pub(crate) enum Settle {
    Acknowledge,
    Release(Duration),
    Reject(String),
}

/// Settles one. A settled row stays until its visibility would have ended, so that the handle is known when it comes again.
pub(crate) fn settle(tx: &mut Tx<'_>, handle: &Handle, how: &Settle) -> Result<Settled, Failure> {
    let Handle {
        queue,
        position,
        token,
    } = *handle;
    let now = tx.now();
    let row = tx.find(
        "SELECT grp, state, received_at, enqueued_at FROM queue_message
         WHERE queue = ?1 AND position = ?2 AND receipt = ?3 AND visible_at > ?4",
        (queue, position, token, now.0),
        |row| {
            Ok((
                row.get::<_, Group>(0)?,
                row.get::<_, i64>(1)?,
                rows::millis(row, 2)?,
                rows::millis(row, 3)?,
            ))
        },
    )?;
    let Some((group, state, received_at, enqueued_at)) = row else {
        return Ok(Settled::Invalid);
    };
    match how {
        Settle::Acknowledge if state == ACKNOWLEDGED => return Ok(Settled::Done),
        Settle::Reject(_) if state == REJECTED => return Ok(Settled::Done),
        _ if state != HIDDEN => return Ok(Settled::Invalid),
        Settle::Acknowledge => end(tx, queue, position, ACKNOWLEDGED)?,
        Settle::Reject(reason) => {
            group::bury(tx, queue, position, Some(reason))?;
            end(tx, queue, position, REJECTED)?;
        }
        Settle::Release(delay) => {
            let until = group::hidden_until(
                now.plus(*delay).min(received_at.plus(MAX_VISIBILITY)),
                enqueued_at,
            );
            if until > now {
                keep_hidden(tx, queue, position, until)?;
                return Ok(Settled::Done);
            }
            group::show(tx, queue, position)?;
        }
    }
    group::make_ready(tx, queue, &group)?;
    Ok(Settled::Done)
}

fn end(tx: &mut Tx<'_>, queue: i64, position: i64, state: i64) -> Result<(), Failure> {
    tx.execute(
        "UPDATE queue_message SET state = ?3, attempt = NULL WHERE queue = ?1 AND position = ?2",
        (queue, position, state),
    )?;
    tx.count(
        queue,
        Change {
            in_flight: -1,
            ..Change::default()
        },
    );
    Ok(())
}

/// More time: the handle stays good, but the receive is not to be repeated.
fn keep_hidden(tx: &mut Tx<'_>, queue: i64, position: i64, until: Millis) -> Result<(), Failure> {
    tx.execute(
        "UPDATE queue_message SET visible_at = ?3, attempt = NULL WHERE queue = ?1 AND position = ?2",
        (queue, position, until.0),
    )?;
    tx.hidden_until(queue, until);
    Ok(())
}
