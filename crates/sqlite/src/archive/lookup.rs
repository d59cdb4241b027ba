//! Lists of heads: what is known of an id, of a story, and what came last.

use rusqlite::Params;
use storybus_core::domain::archived::Head;
use storybus_protocol::id::{CorrelationId, MessageId};

use super::Look;
use super::block::{Block, BlockHeads};
use super::heads::HeadRef;
use super::index::{self, Kind, hash};
use crate::error::Failure;
use crate::messages::{head_columns, read_head};
use crate::rows;

impl Look<'_> {
    /// Every publication of a message, oldest first.
    pub(super) fn find(&self, message_id: MessageId) -> Result<Vec<Head>, Failure> {
        let id = message_id.as_bytes();
        let mut found = Vec::new();
        let key = hash(Kind::Message, self.workspace, id);
        for block in index::blocks(self.view, self.workspace, &[key], 0)? {
            if let Some(block) = self.block(block)? {
                self.take(&block, &mut found, usize::MAX, |head| head.message_id == *id)?;
            }
        }
        found.extend(self.rows(
            "NOT INDEXED",
            "AND message_id = ?2 AND published_at > ?3",
            (self.workspace, id, self.horizon.0),
        )?);
        Ok(found)
    }

    /// Messages of a story or of a correlation id, oldest first.
    pub(super) fn about(
        &self,
        story: [u8; 16],
        correlation: Option<CorrelationId>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<Head>, Failure> {
        let mut keys = vec![hash(Kind::Story, self.workspace, &story)];
        keys.extend(correlation.map(|id| hash(Kind::Correlation, self.workspace, id.as_bytes())));
        let wanted = |head: &HeadRef<'_>| {
            let correlated = || correlation.is_some_and(|id| head.correlation() == Some(*id.as_bytes()));
            head.seq > after && (head.story == Some(story) || correlated())
        };
        let mut found = Vec::new();
        let first = Block::at(self.view, self.workspace, after)?.map_or(0, |block| block.id);
        for block in index::blocks(self.view, self.workspace, &keys, first)? {
            if found.len() >= limit {
                return Ok(found);
            }
            if let Some(block) = self.block(block)? {
                self.take(&block, &mut found, limit, wanted)?;
            }
        }
        found.extend(self.rows(
            "NOT INDEXED",
            "AND seq > ?2 AND published_at > ?3 AND (story = ?4 OR lower(correlation_id) = ?5) ORDER BY seq LIMIT ?6",
            (
                self.workspace,
                after,
                self.horizon.0,
                story,
                correlation.map(|id| id.to_string()),
                rows::limit(limit - found.len()),
            ),
        )?);
        Ok(found)
    }

    /// The newest messages before a place, newest first.
    pub(super) fn latest(&self, before: i64, limit: usize) -> Result<Vec<Head>, Failure> {
        let mut found = self.rows(
            "INDEXED BY message_workspace",
            "AND seq < ?2 AND published_at > ?3 ORDER BY seq DESC LIMIT ?4",
            (self.workspace, before, self.horizon.0, rows::limit(limit)),
        )?;
        let mut before = before;
        while found.len() < limit {
            let block = Block::find(
                self.view,
                "INDEXED BY archive_block_seq WHERE workspace = ?1 AND first_seq < ?2 ORDER BY first_seq DESC",
                [self.workspace, before],
            )?;
            let Some(block) = block.filter(|block| block.last_at > self.horizon) else {
                break;
            };
            let mut heads = Vec::new();
            self.take(&block.heads(self.view)?, &mut heads, usize::MAX, |head| {
                head.seq < before
            })?;
            let wanted = limit - found.len();
            found.extend(heads.into_iter().rev().take(wanted));
            before = block.first_seq;
        }
        Ok(found)
    }

    /// The heads of a block that the index names, if it is there, this workspace's, and not wholly too old.
    fn block(&self, id: i64) -> Result<Option<BlockHeads>, Failure> {
        let block = Block::find(self.view, "WHERE id = ?1", [id])?;
        block
            .filter(|block| block.workspace == self.workspace && block.last_at > self.horizon)
            .map(|block| block.heads(self.view))
            .transpose()
    }

    /// Adds what is wanted of a block and not too old, up to a number.
    fn take(
        &self,
        block: &BlockHeads,
        found: &mut Vec<Head>,
        limit: usize,
        wanted: impl Fn(&HeadRef<'_>) -> bool,
    ) -> Result<(), Failure> {
        for head in block.iter() {
            let head = head?;
            if found.len() < limit && head.published_at > self.horizon && wanted(&head) {
                found.push(block.head(&head)?);
            }
        }
        Ok(())
    }

    /// The workspace's rows that a condition finds. The tail is short: to look through it is faster in the table's own order.
    fn rows(&self, by: &str, condition: &str, params: impl Params) -> Result<Vec<Head>, Failure> {
        let sql = format!(
            concat!(
                "SELECT ",
                head_columns!(),
                " FROM message {} WHERE workspace = ?1 {}"
            ),
            by, condition
        );
        self.view.all(&sql, params, read_head)
    }
}
