//! Records and stories: [`Ledger`](storybus_core::ports::Ledger).

pub mod claims;
pub mod records;
pub mod removals;
pub mod stories;
pub mod supersessions;

use std::time::Duration;

use storybus_core::domain::record::{Record, RecordKey, Story, StoryKey, Token};
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::{
    GiveBack, Marking, NewClaim, NewRecord, PutBack, Reading, Recorded, Removal, StoryMove, Supersession,
    Written,
};
use storybus_protocol::id::WorkspaceId;

use crate::suite::sample::{self, Letter};
use crate::suite::world::{WINDOW, World};

/// One message of one story, as the suite writes it.
pub(super) struct Case {
    pub(super) workspace: WorkspaceId,
    pub(super) story: StoryKey,
}

impl Case {
    pub(super) fn new() -> Self {
        let workspace: WorkspaceId = "w1".parse().unwrap();
        Self {
            story: StoryKey {
                workspace: workspace.clone(),
                digest: [9; 16],
            },
            workspace,
        }
    }

    pub(super) fn key(&self, n: u64) -> RecordKey {
        RecordKey {
            workspace: self.workspace.clone(),
            message_id: sample::message_id(n),
        }
    }

    /// A record of event `n`.
    pub(super) fn event(&self, world: &World, n: u64) -> NewRecord {
        world.record_of(&self.workspace, &Letter::new(n, 1))
    }

    /// A record of snapshot `n`, moving the story as it was read.
    pub(super) fn snapshot(&self, world: &World, n: u64, read: Option<&Story>) -> NewRecord {
        let mut new = self.event(world, n);
        new.record.story = Some(self.story.digest);
        new.story = Some(StoryMove {
            key: self.story.clone(),
            story_id: "s".to_owned(),
            read: read.map(|story| (story.version, story.head)),
            state: sample::story_state(n),
            version: world.token(),
        });
        new
    }

    pub(super) async fn read(&self, world: &World, n: u64) -> Reading {
        world
            .ledger()
            .read(&self.key(n), Some(&self.story), world.now())
            .await
            .unwrap()
    }

    pub(super) async fn stored(&self, world: &World, n: u64) -> Option<Record> {
        self.read(world, n).await.record
    }

    pub(super) async fn stored_story(&self, world: &World) -> Option<Story> {
        self.read(world, 0).await.story
    }

    /// Records event `n` and gives its attempt.
    pub(super) async fn recorded(&self, world: &World, n: u64) -> Token {
        let new = self.event(world, n);
        assert_eq!(record(world, &new).await, Recorded::Done);
        new.record.attempt
    }

    /// Records snapshot `n` on top of the story as it stands.
    pub(super) async fn accepted(&self, world: &World, n: u64) -> NewRecord {
        let story = self.stored_story(world).await;
        let new = self.snapshot(world, n, story.as_ref());
        assert_eq!(record(world, &new).await, Recorded::Done);
        new
    }

    pub(super) async fn mark(&self, world: &World, n: u64, attempt: Token) -> Written {
        let marking = Marking {
            key: self.key(n),
            attempt,
            now: world.now(),
            expires_at: world.now().plus(Duration::from_secs(1000)),
        };
        world.ledger().mark(&marking).await.unwrap()
    }

    pub(super) async fn claim(
        &self,
        world: &World,
        n: u64,
        read: Token,
        story: Option<Token>,
    ) -> (Written, Token) {
        let attempt = world.token();
        (self.claim_as(world, n, read, attempt, story).await, attempt)
    }

    pub(super) async fn claim_as(
        &self,
        world: &World,
        n: u64,
        read: Token,
        attempt: Token,
        story: Option<Token>,
    ) -> Written {
        let claim = NewClaim {
            key: self.key(n),
            read,
            attempt,
            story: story.map(|version| (self.story.clone(), version)),
            now: world.now(),
            expires_at: world.now().plus(Duration::from_secs(1000)),
        };
        world.ledger().claim(&claim).await.unwrap()
    }

    pub(super) async fn supersede(&self, world: &World, n: u64, read: Token, version: Token) -> Written {
        let new = world.token();
        self.supersede_as(world, n, read, version, new).await
    }

    pub(super) async fn supersede_as(
        &self,
        world: &World,
        n: u64,
        read: Token,
        version: Token,
        new: Token,
    ) -> Written {
        let supersession = Supersession {
            key: self.key(n),
            read,
            story: (self.story.clone(), version),
            version: new,
            now: world.now(),
        };
        world.ledger().supersede(&supersession).await.unwrap()
    }

    pub(super) async fn remove(
        &self,
        world: &World,
        n: u64,
        attempt: Token,
        story: Option<PutBack>,
    ) -> Written {
        let removal = Removal {
            key: self.key(n),
            attempt,
            story,
            now: world.now(),
            window: WINDOW,
        };
        world.ledger().remove(&removal).await.unwrap()
    }

    pub(super) async fn give_back(
        &self,
        world: &World,
        n: u64,
        attempt: Token,
        new_attempt: Token,
        at: Millis,
    ) -> Written {
        let back = GiveBack {
            key: self.key(n),
            attempt,
            new_attempt,
            recorded_at: at,
            now: world.now(),
        };
        world.ledger().give_back(&back).await.unwrap()
    }

    pub(super) fn put_back(&self, version: Token, story: Option<Story>) -> PutBack {
        PutBack {
            key: self.story.clone(),
            version,
            story,
        }
    }
}

pub(super) async fn record(world: &World, new: &NewRecord) -> Recorded {
    world.ledger().record(new).await.unwrap()
}

pub(super) fn version(new: &NewRecord) -> Token {
    new.story.as_ref().unwrap().version
}

pub(super) fn past_window(world: &World) {
    world.clock.advance(WINDOW);
}
