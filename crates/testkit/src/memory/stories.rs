//! The stories, to be looked at.

use std::cmp::Reverse;

use async_trait::async_trait;
use storybus_core::domain::archived::Position;
use storybus_core::domain::record::StoryKey;
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::StoryMove;
use storybus_core::ports::stories::NamedStory;
use storybus_core::ports::{StoreError, Stories};
use storybus_protocol::id::WorkspaceId;

use super::{Memory, State, number, position};

/// What a story is called, since when.
#[derive(Clone)]
pub(super) struct Name {
    /// Its place: the order of their beginnings.
    number: u64,
    story_id: String,
    begun_at: Millis,
}

impl State {
    /// Names a story, once.
    pub(super) fn name(&mut self, moved: &StoryMove, now: Millis) {
        let number = self.number();
        self.names.entry(moved.key.clone()).or_insert_with(|| Name {
            number,
            story_id: moved.story_id.clone(),
            begun_at: now,
        });
    }

    fn named(&self, key: &StoryKey) -> Option<NamedStory> {
        let (story, name) = (self.stories.get(key)?, self.names.get(key)?);
        Some(NamedStory {
            position: position(name.number),
            story_id: Some(name.story_id.clone()),
            begun_at: Some(name.begun_at),
            story: story.clone(),
        })
    }
}

#[async_trait]
impl Stories for Memory {
    async fn list(
        &self,
        workspace: &WorkspaceId,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<NamedStory>, StoreError> {
        let state = self.lock();
        let mut names: Vec<(&StoryKey, u64)> = state
            .names
            .iter()
            .map(|(key, name)| (key, name.number))
            .filter(|(key, _)| key.workspace == *workspace)
            .filter(|(_, n)| after.is_none_or(|after| Some(*n) < number(after)))
            .collect();
        names.sort_by_key(|(_, number)| Reverse(*number));
        Ok(names
            .into_iter()
            .take(limit)
            .filter_map(|(key, _)| state.named(key))
            .collect())
    }

    async fn get(&self, key: &StoryKey) -> Result<Option<NamedStory>, StoreError> {
        Ok(self.lock().named(key))
    }

    fn is_position(&self, position: &Position) -> bool {
        number(position).is_some()
    }
}
