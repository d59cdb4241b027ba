//! Rows of records.

use rusqlite::Row;
use rusqlite::types::Type;
use storybus_core::domain::record::{ContentHash, Record, RecordKey, RecordState, Token};
use storybus_core::domain::time::Millis;

use crate::error::Failure;
use crate::rows::{self, Rows};
use crate::writer::Tx;

pub(crate) const RECORDED: i64 = 0;

/// A record with its row's id.
pub(super) struct RecordRow {
    pub(super) id: i64,
    pub(super) record: Record,
    pub(super) topic_at: Option<Millis>,
}

impl RecordRow {
    pub(super) fn is_live(&self, now: Millis) -> bool {
        self.record.expires_at > now
    }

    /// Whether the attempt may still publish it, as far as the record says.
    pub(super) fn is_held_by(&self, attempt: Token) -> bool {
        self.record.state == RecordState::Recorded && self.record.attempt == attempt
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            record: Record {
                content_hash: ContentHash(row.get(1)?),
                state: state(row, 2)?,
                recorded_at: rows::millis(row, 3)?,
                attempt: Token(row.get(4)?),
                story: row.get(5)?,
                producer: rows::parsed(row, 6)?,
                published_at: row.get::<_, Option<i64>>(7)?.map(Millis),
                expires_at: rows::millis(row, 8)?,
            },
            topic_at: row.get::<_, Option<i64>>(9)?.map(Millis),
        })
    }
}

fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<RecordState> {
    match row.get(column)? {
        RECORDED => Ok(RecordState::Recorded),
        1 => Ok(RecordState::Published),
        2 => Ok(RecordState::Superseded),
        other => Err(rusqlite::Error::FromSqlConversionFailure(
            column,
            Type::Integer,
            format!("{other} is not a state of a record").into(),
        )),
    }
}

const fn code(state: RecordState) -> i64 {
    match state {
        RecordState::Recorded => RECORDED,
        RecordState::Published => 1,
        RecordState::Superseded => 2,
    }
}

/// A record that has not expired.
pub(super) fn find(rows: &impl Rows, key: &RecordKey, now: Millis) -> Result<Option<RecordRow>, Failure> {
    Ok(find_any(rows, key)?.filter(|row| row.is_live(now)))
}

/// A record, expired or not.
pub(super) fn find_any(rows: &impl Rows, key: &RecordKey) -> Result<Option<RecordRow>, Failure> {
    let Some(workspace) = rows.known_number(&key.workspace)? else {
        return Ok(None);
    };
    rows.find(
        "SELECT id, content_hash, state, recorded_at, attempt, story, producer, published_at, expires_at, topic_at
         FROM record WHERE workspace = ?1 AND message_id = ?2",
        (workspace, key.message_id.as_bytes()),
        RecordRow::read,
    )
}

/// Adds a record; `topic_at` is what is remembered of the one before.
pub(super) fn insert(
    tx: &mut Tx<'_>,
    key: &RecordKey,
    record: &Record,
    topic_at: Option<Millis>,
) -> Result<(), Failure> {
    let workspace = tx.number(&key.workspace)?;
    tx.execute(
        "INSERT INTO record
         (workspace, message_id, content_hash, state, recorded_at, attempt, story, producer, published_at, expires_at,
          topic_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        (
            workspace,
            key.message_id.as_bytes(),
            record.content_hash.0,
            code(record.state),
            record.recorded_at.0,
            record.attempt.0,
            record.story,
            record.producer.as_str(),
            record.published_at.map(|at| at.0),
            record.expires_at.0,
            topic_at.map(|at| at.0),
        ),
    )?;
    Ok(())
}

/// Takes a record away. If the topic ever took its message, the row stays, expired, so that the topic goes on knowing it.
pub(super) fn remove(tx: &Tx<'_>, row: &RecordRow) -> Result<(), Failure> {
    if row.topic_at.is_none() {
        return delete(tx, row.id);
    }
    tx.execute(
        "UPDATE record SET expires_at = ?2 WHERE id = ?1",
        (row.id, i64::MIN),
    )?;
    Ok(())
}

pub(super) fn delete(tx: &Tx<'_>, id: i64) -> Result<(), Failure> {
    tx.execute("DELETE FROM record WHERE id = ?1", [id])?;
    Ok(())
}
