//! Messages by their place, wherever they lie.

use bytes::Bytes;
use rusqlite::Row;
use storybus_core::domain::archived::{Archived, Head};
use storybus_core::domain::message::{About, Attributes};
use storybus_protocol::id::MessageId;

use crate::archive;
use crate::error::Failure;
use crate::reader::View;
use crate::rows::{self, Rows};

/// The columns of a head, in the order [`read_head`] wants them.
macro_rules! head_columns {
    () => {
        "seq, message_id, published_at, story, story_id, sequence_number, message_type, family, topic, correlation_id, producer,
         system_id, som_version"
    };
}
pub(crate) use head_columns;

/// The column behind those.
pub(crate) const BODY: usize = 13;

/// A row of `message` without its body.
pub(crate) fn read_head(row: &Row<'_>) -> rusqlite::Result<Head> {
    Ok(Head {
        position: rows::position(row.get(0)?),
        message_id: MessageId::from_bytes(row.get(1)?),
        published_at: rows::millis(row, 2)?,
        about: About {
            story: row.get(3)?,
            story_id: row.get(4)?,
            sequence_number: row.get(5)?,
        },
        attributes: Attributes {
            message_type: row.get(6)?,
            family: row.get(7)?,
            topic: row.get(8)?,
            correlation_id: row.get(9)?,
            producer_id: rows::parsed(row, 10)?,
            system_id: row.get(11)?,
            som_version: row.get(12)?,
        },
    })
}

/// A row of `message`, of the head's columns and then the body, with its place.
pub(crate) fn read_archived(row: &Row<'_>) -> rusqlite::Result<(i64, Archived)> {
    let message = Archived {
        head: read_head(row)?,
        body: Bytes::copy_from_slice(row.get_ref(BODY)?.as_blob()?),
    };
    Ok((row.get(0)?, message))
}

/// The message at a place of a workspace, whole.
pub(crate) fn load(view: &View<'_>, workspace: i64, seq: i64) -> Result<Option<Archived>, Failure> {
    let row = view.find(
        concat!(
            "SELECT ",
            head_columns!(),
            ", body FROM message WHERE seq = ?1 AND workspace = ?2"
        ),
        [seq, workspace],
        read_archived,
    )?;
    match row {
        Some((_, message)) => Ok(Some(message)),
        None => archive::load(view, workspace, seq),
    }
}

/// Whether there is a message at a place of a workspace.
pub(crate) fn exists(rows: &impl Rows, workspace: i64, seq: i64) -> Result<bool, Failure> {
    let found = rows.find(
        "SELECT 1 FROM message WHERE seq = ?1 AND workspace = ?2",
        [seq, workspace],
        |_| Ok(()),
    )?;
    Ok(found.is_some() || archive::exists(rows, workspace, seq)?)
}
