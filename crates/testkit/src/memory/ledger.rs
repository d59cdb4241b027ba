//! Records and stories.

use async_trait::async_trait;
use storybus_core::domain::record::{RecordKey, RecordState, Story, StoryKey, Token};
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::{
    GiveBack, Marking, NewClaim, NewRecord, PutBack, Reading, Recorded, Removal, StoryMove, Supersession,
    Written,
};
use storybus_core::ports::{Ledger, StoreError};

use super::{Claims, Memory, State};

impl State {
    /// Whether the story is (still) this version; `None`: still absent.
    fn story_is(&self, key: &StoryKey, version: Option<Token>) -> bool {
        self.stories.get(key).map(|story| story.version) == version
    }

    fn may_move(&self, new: &NewRecord, moved: &StoryMove) -> bool {
        let head_in_flight = self.stories.get(&moved.key).is_some_and(|story| {
            let head = RecordKey {
                workspace: moved.key.workspace.clone(),
                message_id: story.head,
            };
            self.live(&head, new.now)
                .is_some_and(|record| record.in_flight(new.now, new.window))
        });
        self.story_is(&moved.key, moved.read.map(|(version, _)| version)) && !head_in_flight
    }

    /// Whether the record is there, `Recorded`, and held by this attempt.
    fn holds(&self, key: &RecordKey, attempt: Token, now: Millis) -> bool {
        self.live(key, now)
            .is_some_and(|r| r.state == RecordState::Recorded && r.attempt == attempt)
    }

    fn put_back(&mut self, back: &PutBack) {
        match &back.story {
            Some(story) => self.stories.insert(back.key.clone(), story.clone()),
            None => {
                self.names.remove(&back.key);
                self.stories.remove(&back.key)
            }
        };
    }
}

#[async_trait]
impl Ledger for Memory {
    async fn read(
        &self,
        key: &RecordKey,
        story: Option<&StoryKey>,
        now: Millis,
    ) -> Result<Reading, StoreError> {
        let state = self.lock();
        let story = story.and_then(|key| state.stories.get(key)).cloned();
        let head = story
            .as_ref()
            .filter(|story| story.head != key.message_id)
            .and_then(|story| {
                let head = RecordKey {
                    workspace: key.workspace.clone(),
                    message_id: story.head,
                };
                state.live(&head, now).cloned()
            });
        Ok(Reading {
            record: state.live(key, now).cloned(),
            story,
            head,
        })
    }

    async fn record(&self, new: &NewRecord) -> Result<Recorded, StoreError> {
        let mut state = self.lock();
        if let Some(known) = state.live(&new.key, new.now) {
            let mine = known.attempt == new.record.attempt;
            return Ok(if mine {
                Recorded::Done
            } else {
                Recorded::Known(known.clone())
            });
        }
        if let Some(moved) = &new.story {
            if !state.may_move(new, moved) {
                return Ok(Recorded::StoryMoved);
            }
            let story = Story {
                state: moved.state.clone(),
                head: new.key.message_id,
                version: moved.version,
            };
            state.stories.insert(moved.key.clone(), story);
            state.name(moved, new.now);
        }
        state.records.insert(new.key.clone(), new.record.clone());
        Ok(Recorded::Done)
    }

    async fn claim(&self, claim: &NewClaim) -> Result<Written, StoreError> {
        let mut state = self.lock();
        if state
            .live(&claim.key, claim.now)
            .is_some_and(|record| record.attempt == claim.attempt)
        {
            return Ok(Written::Done);
        }
        let story_stands = claim
            .story
            .as_ref()
            .is_none_or(|(key, version)| state.story_is(key, Some(*version)));
        if !state.holds(&claim.key, claim.read, claim.now) || !story_stands {
            return Ok(Written::Lost);
        }
        let Some(record) = state.live_mut(&claim.key, claim.now) else {
            return Ok(Written::Lost);
        };
        record.recorded_at = claim.now;
        record.attempt = claim.attempt;
        record.expires_at = claim.expires_at;
        Ok(Written::Done)
    }

    async fn supersede(&self, supersession: &Supersession) -> Result<Written, StoreError> {
        let Supersession {
            key,
            read,
            story: (story, read_version),
            version,
            now,
        } = supersession;
        let mut state = self.lock();
        let story_stands = state.story_is(story, Some(*read_version));
        let Some(record) = state.live_mut(key, *now) else {
            return Ok(Written::Lost);
        };
        match record.state {
            RecordState::Superseded if record.attempt == *read => Ok(Written::Done),
            RecordState::Recorded if record.attempt == *read && story_stands => {
                record.state = RecordState::Superseded;
                if let Some(story) = state.stories.get_mut(story) {
                    story.version = *version;
                }
                Ok(Written::Done)
            }
            RecordState::Recorded | RecordState::Superseded | RecordState::Published => Ok(Written::Lost),
        }
    }

    async fn remove(&self, removal: &Removal) -> Result<Written, StoreError> {
        let now = match self.claims {
            // the caller may have been paused since it looked at its clock
            Claims::Checked => removal.now.max(self.clock.now()),
            Claims::Trusted => removal.now,
        };
        let mut state = self.lock();
        let young = state
            .live(&removal.key, now)
            .is_some_and(|record| record.in_flight(now, removal.window));
        let story_stands = removal
            .story
            .as_ref()
            .is_none_or(|back| state.story_is(&back.key, Some(back.version)));
        if !young || !story_stands || !state.holds(&removal.key, removal.attempt, now) {
            return Ok(Written::Lost);
        }
        state.records.remove(&removal.key);
        if let Some(back) = &removal.story {
            state.put_back(back);
        }
        Ok(Written::Done)
    }

    async fn give_back(&self, back: &GiveBack) -> Result<Written, StoreError> {
        let mut state = self.lock();
        let mine = state.holds(&back.key, back.attempt, back.now);
        let Some(record) = state.live_mut(&back.key, back.now) else {
            return Ok(Written::Lost);
        };
        if record.attempt == back.new_attempt {
            return Ok(Written::Done);
        }
        if !mine {
            return Ok(Written::Lost);
        }
        record.attempt = back.new_attempt;
        record.recorded_at = back.recorded_at;
        Ok(Written::Done)
    }

    async fn mark(&self, marking: &Marking) -> Result<Written, StoreError> {
        let mut state = self.lock();
        match state.live_mut(&marking.key, marking.now) {
            Some(record) if record.attempt == marking.attempt => {
                record.state = RecordState::Published;
                record.published_at = Some(marking.now);
                record.expires_at = marking.expires_at;
                Ok(Written::Done)
            }
            _ => Ok(Written::Lost),
        }
    }
}
