//! The archive.

use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::archived::{Archived, Head, Part, Position, Selection, TimeRange};
use storybus_core::domain::message::Publication;
use storybus_core::domain::time::Millis;
use storybus_core::ports::archive::PartLimits;
use storybus_core::ports::{Archive, StoreError};
use storybus_protocol::id::{CorrelationId, MessageId, WorkspaceId};

use super::{Memory, State, number, position};

/// How long a message is kept.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// A message in the archive.
#[derive(Clone)]
pub(super) struct Stored {
    number: u64,
    workspace: WorkspaceId,
    message: Archived,
}

impl State {
    pub(super) fn archive(&mut self, number: u64, publication: &Publication, now: Millis) {
        let head = Head {
            position: position(number),
            message_id: publication.message_id,
            published_at: now,
            attributes: publication.attributes.clone(),
            about: publication.about.clone(),
        };
        self.archive.push(Stored {
            number,
            workspace: publication.workspace.clone(),
            message: Archived {
                head,
                body: publication.body.clone(),
            },
        });
    }

    /// What of a workspace is kept, oldest first.
    fn archived(&self, workspace: &WorkspaceId, now: Millis) -> impl DoubleEndedIterator<Item = &Stored> {
        self.archive
            .iter()
            .filter(move |s| s.workspace == *workspace && now < s.message.head.published_at.plus(RETENTION))
    }
}

fn is_behind(stored: &Stored, after: Option<&Position>) -> bool {
    after.is_none_or(|after| number(after) < Some(stored.number))
}

#[async_trait]
impl Archive for Memory {
    fn retention(&self) -> Duration {
        RETENTION
    }

    async fn read(
        &self,
        workspace: &WorkspaceId,
        range: TimeRange,
        after: Option<&Position>,
        selection: &Selection,
        limits: PartLimits,
    ) -> Result<Part, StoreError> {
        let state = self.lock();
        let mut part = Part {
            messages: Vec::new(),
            scanned: 0,
            last: None,
            last_at: None,
            end: true,
        };
        let mut bytes = 0;
        for stored in state
            .archived(workspace, self.clock.now())
            .filter(|s| (range.from..range.to).contains(&s.message.head.published_at))
            .filter(|s| is_behind(s, after))
        {
            let Archived { head, body } = &stored.message;
            let selected = selection.matches(&head.attributes, &head.about);
            let too_large = selected && !part.messages.is_empty() && bytes + body.len() > limits.bytes;
            let full = part.messages.len() >= limits.messages || part.scanned >= limits.scanned as u64;
            if full || too_large {
                part.end = false;
                break;
            }
            part.scanned += 1;
            part.last = Some(head.position.clone());
            part.last_at = Some(head.published_at);
            if selected {
                bytes += body.len();
                part.messages.push(stored.message.clone());
            }
        }
        Ok(part)
    }

    async fn find(&self, workspace: &WorkspaceId, message_id: MessageId) -> Result<Vec<Head>, StoreError> {
        let state = self.lock();
        let heads = state
            .archived(workspace, self.clock.now())
            .map(|s| &s.message.head);
        Ok(heads.filter(|h| h.message_id == message_id).cloned().collect())
    }

    async fn about(
        &self,
        workspace: &WorkspaceId,
        story: &[u8; 16],
        correlation: Option<CorrelationId>,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError> {
        let correlated =
            |head: &Head| correlation.is_some_and(|id| head.attributes.correlation_id.parse() == Ok(id));
        let state = self.lock();
        Ok(state
            .archived(workspace, self.clock.now())
            .filter(|s| is_behind(s, after))
            .map(|s| &s.message.head)
            .filter(|head| head.about.story.as_ref() == Some(story) || correlated(head))
            .take(limit)
            .cloned()
            .collect())
    }

    async fn latest(
        &self,
        workspace: &WorkspaceId,
        before: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError> {
        let state = self.lock();
        Ok(state
            .archived(workspace, self.clock.now())
            .rev()
            .filter(|s| before.is_none_or(|before| Some(s.number) < number(before)))
            .take(limit)
            .map(|s| s.message.head.clone())
            .collect())
    }

    fn is_position(&self, position: &Position) -> bool {
        number(position).is_some()
    }
}
