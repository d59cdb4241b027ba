//! The stories, to be looked at.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::Row;
use storybus_core::domain::archived::Position;
use storybus_core::domain::record::{Story, StoryKey, Token};
use storybus_core::domain::time::Millis;
use storybus_core::ports::stories::NamedStory;
use storybus_core::ports::{StoreError, Stories};
use storybus_protocol::id::{MessageId, WorkspaceId};

use crate::error::Failure;
use crate::rows::{self, Rows as _};
use crate::store::Inner;

const COLUMNS: &str = "SELECT id, story_id, begun_at, state, head, version FROM story";

/// [`Stories`] on SQLite. A story's place is its row's number.
#[derive(Clone)]
pub struct SqliteStories {
    inner: Arc<Inner>,
}

impl SqliteStories {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl Stories for SqliteStories {
    async fn list(
        &self,
        workspace: &WorkspaceId,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<NamedStory>, StoreError> {
        let before = match after {
            None => i64::MAX,
            Some(position) => match rows::place(position) {
                Some(id) => id,
                None => return Ok(Vec::new()),
            },
        };
        let workspace = workspace.clone();
        self.inner
            .history()
            .call(move |view| {
                let Some(workspace) = view.known_number(&workspace)? else {
                    return Ok(Vec::new());
                };
                let found = view.all(
                    &format!("{COLUMNS} INDEXED BY story_workspace WHERE workspace = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3"),
                    (workspace, before, rows::limit(limit)),
                    Found::read,
                )?;
                found.into_iter().map(Found::named).collect()
            })
            .await
    }

    async fn get(&self, key: &StoryKey) -> Result<Option<NamedStory>, StoreError> {
        let key = key.clone();
        self.inner
            .history()
            .call(move |view| {
                let Some(workspace) = view.known_number(&key.workspace)? else {
                    return Ok(None);
                };
                let sql = format!("{COLUMNS} WHERE workspace = ?1 AND digest = ?2");
                let found = view.find(&sql, (workspace, key.digest), Found::read)?;
                found.map(Found::named).transpose()
            })
            .await
    }

    fn is_position(&self, position: &Position) -> bool {
        rows::place(position).is_some()
    }
}

/// A row, its state not decoded yet.
struct Found {
    id: i64,
    story_id: Option<String>,
    begun_at: Option<Millis>,
    state: Vec<u8>,
    head: MessageId,
    version: Token,
}

impl Found {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            story_id: row.get(1)?,
            begun_at: row.get::<_, Option<i64>>(2)?.map(Millis),
            state: row.get(3)?,
            head: MessageId::from_bytes(row.get(4)?),
            version: Token(row.get(5)?),
        })
    }

    fn named(self) -> Result<NamedStory, Failure> {
        Ok(NamedStory {
            position: rows::position(self.id),
            story_id: self.story_id,
            begun_at: self.begun_at,
            story: Story {
                state: serde_json::from_slice(&self.state)?,
                head: self.head,
                version: self.version,
            },
        })
    }
}
