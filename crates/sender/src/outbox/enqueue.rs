//! Writing a message down, in the caller's own transaction.

use std::sync::LazyLock;

use super::State;
use super::conn::{Arg, Conn, Sql};
use super::error::{EnqueueError, OutboxError, Trouble};
use crate::message::{Message, PayloadHash};

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// It is in the outbox once the caller's transaction commits.
    New {
        /// Its number in the outbox.
        id: i64,
    },
    /// The same content is there under this key: nothing was written.
    Known {
        /// Its number in the outbox.
        id: i64,
        /// What became of it.
        state: State,
    },
}

impl Enqueued {
    /// Its number in the outbox.
    #[must_use]
    pub fn id(&self) -> i64 {
        match self {
            Self::New { id } | Self::Known { id, .. } => *id,
        }
    }
}

static INSERT: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "INSERT INTO sender_log (target, key, order_group, payload, payload_hash, content_type) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (target, key) DO NOTHING RETURNING id",
    )
});
static KNOWN: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new("SELECT id, state, payload_hash FROM sender_log WHERE target = $1 AND key = $2")
});
static PAYLOAD: LazyLock<Sql> = LazyLock::new(|| Sql::new("SELECT payload FROM sender_log WHERE id = $1"));

/// Writes the message into the outbox of the caller's database, in the caller's transaction: it is there if and only if that commits.
///
/// `conn` is a connection or a transaction (`&mut *tx`) on SQLite or PostgreSQL. Nothing is sent from here, and no other connection is used.
///
/// - The key is there with the same bytes: nothing is written, [`Enqueued::Known`] tells what became of it.
/// - The key is there with other bytes: [`EnqueueError::KeyReused`], and the transaction goes on as if nothing had been asked.
/// - Another transaction came in between: [`EnqueueError::Conflict`]. It happens at isolation levels above READ COMMITTED, when two transactions
///   wait for each other, and on SQLite when a transaction that began by reading wants to write: begin it with `BEGIN IMMEDIATE`.
///
/// Messages of one group are sent in the order of their commits. On PostgreSQL other transactions that enqueue to the same group wait
/// from here until the caller's transaction ends, so enqueue late in it.
pub async fn enqueue<'c>(conn: impl Into<Conn<'c>>, message: &Message) -> Result<Enqueued, EnqueueError> {
    one(&mut conn.into(), message).await
}

/// Writes several down in one transaction. Whoever calls it drops the connection when it fails.
pub(crate) async fn together(
    mut conn: Conn<'_>,
    messages: &[Message],
) -> Result<Vec<Enqueued>, (usize, EnqueueError)> {
    let at = |place| move |error: sqlx::Error| (place, EnqueueError::from(error));
    conn.script("BEGIN IMMEDIATE", "BEGIN").await.map_err(at(0))?;
    let mut enqueued = Vec::with_capacity(messages.len());
    for (place, message) in messages.iter().enumerate() {
        enqueued.push(one(&mut conn, message).await.map_err(|error| (place, error))?);
    }
    conn.script("COMMIT", "COMMIT").await.map_err(at(0))?;
    Ok(enqueued)
}

async fn one(conn: &mut Conn<'_>, message: &Message) -> Result<Enqueued, EnqueueError> {
    message.check()?;
    let (target, key) = (message.target.as_str(), message.key.as_str());
    let given = PayloadHash::of(&message.body);
    let written = conn
        .row(
            &INSERT,
            &[
                Arg::Text(target),
                Arg::Text(key),
                Arg::TextOrNull(message.group.as_ref().map(|group| group.as_str())),
                Arg::Bytes(&message.body),
                Arg::Bytes(&given.0),
                Arg::TextOrNull(message.content_type.as_deref()),
            ],
        )
        .await?;
    if let Some(row) = written {
        return Ok(Enqueued::New { id: row.int(0)? });
    }
    let Some(row) = conn.row(&KNOWN, &[Arg::Text(target), Arg::Text(key)]).await? else {
        // It was there a statement ago: purged in between.
        return Err(EnqueueError::Conflict(Trouble::new(
            "the message of that key was purged just now",
        )));
    };
    let id = row.int(0)?;
    let state = parse_state(&row.text(1)?)?;
    let kept = match row.bytes_or_null(2)? {
        Some(hash) => parse_hash(hash)?,
        // Inserted by plain SQL into SQLite, and not claimed yet.
        None => match conn.row(&PAYLOAD, &[Arg::Int(id)]).await? {
            Some(row) => PayloadHash::of(&row.bytes(0)?),
            None => {
                return Err(EnqueueError::Conflict(Trouble::new(
                    "the message of that key was purged just now",
                )));
            }
        },
    };
    if kept == given {
        Ok(Enqueued::Known { id, state })
    } else {
        Err(EnqueueError::KeyReused {
            target: message.target.clone(),
            key: message.key.clone(),
            kept,
            given,
        })
    }
}

pub(crate) fn parse_state(name: &str) -> Result<State, OutboxError> {
    State::parse(name).ok_or_else(|| {
        OutboxError::Database(Trouble::new(format!("the table holds an unknown state: {name}")))
    })
}

pub(crate) fn parse_hash(bytes: Vec<u8>) -> Result<PayloadHash, OutboxError> {
    <[u8; 32]>::try_from(bytes)
        .map(PayloadHash)
        .map_err(|_| OutboxError::Database(Trouble::new("the table holds a hash that is not 32 bytes long")))
}
