//! Rows of stories.

use storybus_core::domain::record::{Story, StoryKey, Token};
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::StoryMove;
use storybus_protocol::id::MessageId;
use storybus_som::story::StoryState;

use crate::error::Failure;
use crate::rows::Rows;
use crate::writer::Tx;

/// A story.
pub(super) struct StoryRow {
    pub(super) story: Story,
}

/// What the conditions ask of a story: its state is not decoded for them.
pub(super) struct VersionRow {
    pub(super) id: i64,
    pub(super) head: MessageId,
    pub(super) version: Token,
}

pub(super) fn encode(state: &StoryState) -> Result<Vec<u8>, Failure> {
    Ok(serde_json::to_vec(state)?)
}

pub(super) fn find(rows: &impl Rows, key: &StoryKey) -> Result<Option<StoryRow>, Failure> {
    let Some(workspace) = rows.known_number(&key.workspace)? else {
        return Ok(None);
    };
    let row = rows.find(
        "SELECT state, head, version FROM story WHERE workspace = ?1 AND digest = ?2",
        (workspace, key.digest),
        |row| {
            Ok((
                row.get::<_, Vec<u8>>(0)?,
                MessageId::from_bytes(row.get(1)?),
                Token(row.get(2)?),
            ))
        },
    )?;
    let Some((state, head, version)) = row else {
        return Ok(None);
    };
    Ok(Some(StoryRow {
        story: Story {
            state: serde_json::from_slice(&state)?,
            head,
            version,
        },
    }))
}

pub(super) fn find_version(tx: &Tx<'_>, key: &StoryKey) -> Result<Option<VersionRow>, Failure> {
    let Some(workspace) = tx.known_number(&key.workspace)? else {
        return Ok(None);
    };
    tx.find(
        "SELECT id, head, version FROM story WHERE workspace = ?1 AND digest = ?2",
        (workspace, key.digest),
        |row| {
            Ok(VersionRow {
                id: row.get(0)?,
                head: MessageId::from_bytes(row.get(1)?),
                version: Token(row.get(2)?),
            })
        },
    )
}

/// Whether each story is still of that version.
pub(super) fn all_are<'a>(
    tx: &Tx<'_>,
    stories: impl IntoIterator<Item = &'a (StoryKey, Token)>,
) -> Result<bool, Failure> {
    for (key, version) in stories {
        if find_version(tx, key)?.is_none_or(|row| row.version != *version) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes a story over its row. Its name is added to one that was made before the store kept names.
pub(super) fn update(
    tx: &Tx<'_>,
    id: i64,
    story_id: Option<&str>,
    head: MessageId,
    version: Token,
    state: &[u8],
) -> Result<(), Failure> {
    tx.execute(
        "UPDATE story SET head = ?2, version = ?3, state = ?4, story_id = coalesce(story_id, ?5) WHERE id = ?1",
        (id, head.as_bytes(), version.0, state, story_id),
    )?;
    Ok(())
}

/// Adds a story, which a first snapshot begins.
pub(super) fn insert(
    tx: &mut Tx<'_>,
    moved: &StoryMove,
    head: MessageId,
    now: Millis,
    state: &[u8],
) -> Result<(), Failure> {
    let workspace = tx.number(&moved.key.workspace)?;
    tx.execute(
        "INSERT INTO story (workspace, digest, head, version, state, story_id, begun_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (
            workspace,
            moved.key.digest,
            head.as_bytes(),
            moved.version.0,
            state,
            &moved.story_id,
            now.0,
        ),
    )?;
    Ok(())
}

/// Gives a story another version.
pub(super) fn renew(tx: &Tx<'_>, id: i64, version: Token) -> Result<(), Failure> {
    tx.execute("UPDATE story SET version = ?2 WHERE id = ?1", (id, version.0))?;
    Ok(())
}

pub(super) fn delete(tx: &Tx<'_>, id: i64) -> Result<(), Failure> {
    tx.execute("DELETE FROM story WHERE id = ?1", [id])?;
    Ok(())
}
