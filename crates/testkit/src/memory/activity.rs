//! The log of refused publishes.

use async_trait::async_trait;
use storybus_core::domain::activity::RefusedPublish;
use storybus_core::domain::archived::Position;
use storybus_core::ports::activity::ACTIVITY_RETENTION;
use storybus_core::ports::{ActivityLog, StoreError};
use storybus_protocol::id::WorkspaceId;

use super::{Memory, number, position};

#[async_trait]
impl ActivityLog for Memory {
    fn note(&self, refusal: RefusedPublish) {
        let mut state = self.lock();
        let number = state.number();
        state.refusals.push((number, refusal));
    }

    async fn list(
        &self,
        workspace: &WorkspaceId,
        before: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<(Position, RefusedPublish)>, StoreError> {
        let now = self.clock.now();
        let state = self.lock();
        Ok(state
            .refusals
            .iter()
            .rev()
            .filter(|(_, r)| r.workspace == *workspace && now < r.at.plus(ACTIVITY_RETENTION))
            .filter(|(n, _)| before.is_none_or(|before| Some(*n) < number(before)))
            .take(limit)
            .map(|(n, refusal)| (position(*n), refusal.clone()))
            .collect())
    }

    fn is_position(&self, position: &Position) -> bool {
        number(position).is_some()
    }
}
