//! The stories of a workspace, and one story's timeline.

use storybus_protocol::rule;

use crate::bus::Bus;
use crate::domain::archived::{Head, Position};
use crate::domain::record::{StoryKey, story_digest};
use crate::domain::refusal::{Refusal, RefusalKind};
use crate::ops::admin::{Gathering, Page, not_a_place};
use crate::ops::refused_by_store;
use crate::ports::stories::NamedStory;

/// A story and what was published about it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoryTimeline {
    /// As the ledger knows it; absent when no snapshot of it was ever accepted.
    pub story: Option<NamedStory>,
    /// Everything with its `story_id`, or with its first correlation id, as far back as the archive goes.
    pub messages: TimelinePage,
}

/// Messages, oldest first.
pub type TimelinePage = Page<Head>;

impl Bus {
    /// Up to `limit` stories of a workspace, the one begun last first, behind the place `after`.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`; `400 request.invalid` at `/after`.
    pub async fn story_list(
        &self,
        tenant: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<NamedStory>, Refusal> {
        let workspace = self.tenant_get(tenant).await?.id;
        let after = after.map(|text| Position(text.to_owned()));
        if after.as_ref().is_some_and(|p| !self.ports.stories.is_position(p)) {
            return Err(not_a_place());
        }
        let mut page = Gathering::new(limit);
        while let Some(count) = page.next() {
            let behind = page.last().map(|story: &NamedStory| &story.position);
            let found = self
                .ports
                .stories
                .list(&workspace, behind.or(after.as_ref()), count)
                .await;
            page.add(found.map_err(|e| refused_by_store("story_list", &e))?, weight);
        }
        Ok(page.page(|story| story.position.0.clone()))
    }

    /// A story, with up to `limit` messages about it, behind the place `after`.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`, `404 story.not_found`; `400 request.invalid` at `/after`.
    pub async fn story_timeline(
        &self,
        tenant: &str,
        story_id: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<StoryTimeline, Refusal> {
        let workspace = self.tenant_get(tenant).await?.id;
        let after = after.map(|text| Position(text.to_owned()));
        if after.as_ref().is_some_and(|p| !self.ports.archive.is_position(p)) {
            return Err(not_a_place());
        }
        let key = StoryKey {
            workspace,
            digest: story_digest(story_id),
        };
        let story = self.ports.stories.get(&key).await;
        let story = story.map_err(|e| refused_by_store("story_timeline", &e))?;
        let correlation = story
            .as_ref()
            .and_then(|named| named.story.state.correlation_id().parse().ok());
        let heads = self
            .ports
            .archive
            .about(
                &key.workspace,
                &key.digest,
                correlation,
                after.as_ref(),
                limit.saturating_add(1),
            )
            .await
            .map_err(|e| refused_by_store("story_timeline", &e))?;
        if story.is_none() && heads.is_empty() && after.is_none() {
            return Err(Refusal::policy(
                RefusalKind::NotFound,
                rule::STORY_NOT_FOUND,
                "nothing is known of such a story in this workspace",
            ));
        }
        let messages = Page::of(heads, limit, |head| head.position.0.clone());
        Ok(StoryTimeline { story, messages })
    }
}

/// What a story weighs in a page: what is read of it, more than what is shown.
fn weight(named: &NamedStory) -> usize {
    named.story_id.as_ref().map_or(0, String::len) + named.story.state.weight()
}
