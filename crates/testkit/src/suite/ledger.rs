//! Records and stories: [`Ledger`](storybus_core::ports::Ledger).

use std::time::Duration;

use storybus_core::domain::record::{ContentHash, Record, RecordKey, RecordState, Story, StoryKey, Token};
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::{
    GiveBack, Marking, NewClaim, NewRecord, PutBack, Reading, Recorded, Removal, StoryMove, Supersession,
    Written,
};
use storybus_protocol::id::WorkspaceId;

use super::sample::{self, Letter};
use super::world::{WINDOW, World};

super::behaviours![
    nothing_is_known_at_first,
    a_record_is_read_as_written,
    an_id_is_recorded_once,
    letter_case_does_not_tell_ids_apart,
    a_repeated_record_finds_its_own_token,
    of_rival_records_one_is_done,
    workspaces_are_apart,
    an_expired_record_is_not_read,
    an_expired_record_can_be_recorded_anew,
    an_expired_record_holds_no_attempt,
    a_snapshot_moves_its_story,
    a_story_state_comes_back_whole,
    a_known_message_moves_no_story,
    a_story_must_be_as_read,
    of_rival_snapshots_one_is_done,
    a_head_in_flight_blocks_its_story,
    a_head_blocks_until_its_window_ends,
    a_published_head_does_not_block,
    a_superseded_head_does_not_block,
    an_absent_head_does_not_block,
    an_expired_head_does_not_block,
    a_claimed_head_blocks_anew,
    a_story_outlives_its_records,
    the_head_is_read_when_it_is_another_message,
    a_claim_takes_the_record_over,
    a_claim_needs_the_attempt_that_was_read,
    a_claim_needs_a_record_in_state_recorded,
    a_claim_needs_its_story_unchanged,
    a_repeated_claim_finds_its_own_token,
    of_rival_claims_one_is_done,
    a_supersession_ends_a_record,
    a_head_that_another_was_given_up_for_stays,
    a_supersession_needs_attempt_state_and_story,
    a_repeated_supersession_is_done,
    a_removal_deletes_the_record,
    a_removal_puts_the_story_back,
    a_removal_of_a_first_snapshot_leaves_no_story,
    a_removal_needs_its_attempt,
    a_removal_needs_state_recorded,
    a_removal_needs_the_window_open,
    a_removal_that_was_held_up_needs_the_window_open needs Time Claims,
    a_removal_needs_its_story_unchanged,
    a_repeated_removal_is_lost,
    a_removed_id_is_unknown_again,
    a_claim_is_given_back,
    giving_back_needs_attempt_and_state,
    a_repeated_giving_back_is_done,
    a_mark_makes_it_published,
    a_mark_needs_its_attempt,
    a_repeated_mark_is_done,
    everything_survives_a_reopening needs Reopen,
];

/// One message of one story, as the suite writes it.
struct Case {
    workspace: WorkspaceId,
    story: StoryKey,
}

impl Case {
    fn new() -> Self {
        let workspace: WorkspaceId = "w1".parse().unwrap();
        Self {
            story: StoryKey {
                workspace: workspace.clone(),
                digest: [9; 16],
            },
            workspace,
        }
    }

    fn key(&self, n: u64) -> RecordKey {
        RecordKey {
            workspace: self.workspace.clone(),
            message_id: sample::message_id(n),
        }
    }

    /// A record of event `n`.
    fn event(&self, world: &World, n: u64) -> NewRecord {
        world.record_of(&self.workspace, &Letter::new(n, 1))
    }

    /// A record of snapshot `n`, moving the story as it was read.
    fn snapshot(&self, world: &World, n: u64, read: Option<&Story>) -> NewRecord {
        let mut new = self.event(world, n);
        new.record.story = Some(self.story.digest);
        new.story = Some(StoryMove {
            key: self.story.clone(),
            read: read.map(|story| (story.version, story.head)),
            state: sample::story_state(n),
            version: world.token(),
        });
        new
    }

    async fn read(&self, world: &World, n: u64) -> Reading {
        world
            .ledger()
            .read(&self.key(n), Some(&self.story), world.now())
            .await
            .unwrap()
    }

    async fn stored(&self, world: &World, n: u64) -> Option<Record> {
        self.read(world, n).await.record
    }

    async fn stored_story(&self, world: &World) -> Option<Story> {
        self.read(world, 0).await.story
    }

    /// Records event `n` and gives its attempt.
    async fn recorded(&self, world: &World, n: u64) -> Token {
        let new = self.event(world, n);
        assert_eq!(record(world, &new).await, Recorded::Done);
        new.record.attempt
    }

    /// Records snapshot `n` on top of the story as it stands.
    async fn accepted(&self, world: &World, n: u64) -> NewRecord {
        let story = self.stored_story(world).await;
        let new = self.snapshot(world, n, story.as_ref());
        assert_eq!(record(world, &new).await, Recorded::Done);
        new
    }

    async fn mark(&self, world: &World, n: u64, attempt: Token) -> Written {
        let marking = Marking {
            key: self.key(n),
            attempt,
            now: world.now(),
            expires_at: world.now().plus(Duration::from_secs(1000)),
        };
        world.ledger().mark(&marking).await.unwrap()
    }

    async fn claim(&self, world: &World, n: u64, read: Token, story: Option<Token>) -> (Written, Token) {
        let attempt = world.token();
        (self.claim_as(world, n, read, attempt, story).await, attempt)
    }

    async fn claim_as(
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

    async fn supersede(&self, world: &World, n: u64, read: Token, version: Token) -> Written {
        let new = world.token();
        self.supersede_as(world, n, read, version, new).await
    }

    async fn supersede_as(&self, world: &World, n: u64, read: Token, version: Token, new: Token) -> Written {
        let supersession = Supersession {
            key: self.key(n),
            read,
            story: (self.story.clone(), version),
            version: new,
            now: world.now(),
        };
        world.ledger().supersede(&supersession).await.unwrap()
    }

    async fn remove(&self, world: &World, n: u64, attempt: Token, story: Option<PutBack>) -> Written {
        let removal = Removal {
            key: self.key(n),
            attempt,
            story,
            now: world.now(),
            window: WINDOW,
        };
        world.ledger().remove(&removal).await.unwrap()
    }

    async fn give_back(
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

    fn put_back(&self, version: Token, story: Option<Story>) -> PutBack {
        PutBack {
            key: self.story.clone(),
            version,
            story,
        }
    }
}

async fn record(world: &World, new: &NewRecord) -> Recorded {
    world.ledger().record(new).await.unwrap()
}

fn version(new: &NewRecord) -> Token {
    new.story.as_ref().unwrap().version
}

fn past_window(world: &World) {
    world.clock.advance(WINDOW);
}

/// An empty ledger knows no record and no story.
pub async fn nothing_is_known_at_first(world: &mut World) {
    assert_eq!(Case::new().read(world, 1).await, Reading::default());
}

/// What was recorded is read as it was written, by the next call.
pub async fn a_record_is_read_as_written(world: &mut World) {
    let case = Case::new();
    let mut new = case.event(world, 1);
    new.record.content_hash = ContentHash(std::array::from_fn(|i| u8::try_from(i * 8).unwrap()));
    assert_eq!(record(world, &new).await, Recorded::Done);
    assert_eq!(case.stored(world, 1).await, Some(new.record.clone()));
    let without_story = world.ledger().read(&new.key, None, world.now()).await.unwrap();
    assert_eq!(
        without_story,
        Reading {
            record: Some(new.record),
            story: None,
            head: None
        }
    );
}

/// A known id is not recorded again; the answer holds what is known.
pub async fn an_id_is_recorded_once(world: &mut World) {
    let case = Case::new();
    let first = case.event(world, 1);
    assert_eq!(record(world, &first).await, Recorded::Done);
    past_window(world);
    let second = case.event(world, 1);
    assert_eq!(
        record(world, &second).await,
        Recorded::Known(first.record.clone())
    );
    assert_eq!(case.mark(world, 1, first.record.attempt).await, Written::Done);
    let known = case.stored(world, 1).await.unwrap();
    assert_eq!(
        record(world, &second).await,
        Recorded::Known(known),
        "published ones too"
    );
}

/// A message id is a UUID: the same in upper and lower case.
pub async fn letter_case_does_not_tell_ids_apart(world: &mut World) {
    let case = Case::new();
    let mut lower = case.event(world, 1);
    lower.key.message_id = "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07".parse().unwrap();
    let mut upper = case.event(world, 1);
    upper.key.message_id = "0199A1C4-7A2E-7B31-8C55-4D2F9E6A1B07".parse().unwrap();
    assert_eq!(record(world, &lower).await, Recorded::Done);
    assert_eq!(record(world, &upper).await, Recorded::Known(lower.record));
}

/// RECORD again with the same attempt, after a lost answer, is done; nothing is written twice.
pub async fn a_repeated_record_finds_its_own_token(world: &mut World) {
    let case = Case::new();
    let new = case.accepted(world, 1).await;
    let before = case.read(world, 1).await;
    assert_eq!(record(world, &new).await, Recorded::Done);
    assert_eq!(case.read(world, 1).await, before);
}

/// Two attempts record one id at the same moment: one is done, the other finds its record.
pub async fn of_rival_records_one_is_done(world: &mut World) {
    let case = Case::new();
    let (one, two) = (case.event(world, 1), case.event(world, 1));
    let (a, b) = futures::join!(record(world, &one), record(world, &two));
    let stored = case.stored(world, 1).await.unwrap();
    let (winner, loser) = if a == Recorded::Done { (one, b) } else { (two, a) };
    assert_eq!(stored, winner.record);
    assert_eq!(loser, Recorded::Known(winner.record));
}

/// Records and stories of one workspace are unknown in every other.
pub async fn workspaces_are_apart(world: &mut World) {
    let case = Case::new();
    case.accepted(world, 1).await;
    let workspace: WorkspaceId = "w2".parse().unwrap();
    let other = Case {
        story: StoryKey {
            workspace: workspace.clone(),
            ..case.story.clone()
        },
        workspace,
    };
    assert_eq!(other.read(world, 1).await, Reading::default());
    let new = other.accepted(world, 1).await;
    assert_eq!(
        other.remove(world, 1, new.record.attempt, None).await,
        Written::Done
    );
    assert!(case.stored(world, 1).await.is_some());
}

/// From its `expires_at` on, a record is not read, whether or not the engine has deleted it.
pub async fn an_expired_record_is_not_read(world: &mut World) {
    let case = Case::new();
    let new = case.accepted(world, 1).await;
    let last = Millis(new.record.expires_at.0 - 1);
    let read = async |now| {
        world
            .ledger()
            .read(&case.key(1), Some(&case.story), now)
            .await
            .unwrap()
    };
    assert!(read(last).await.record.is_some());
    let expired = read(new.record.expires_at).await;
    assert!(expired.record.is_none());
    assert!(expired.story.is_some(), "the story stays");
    let head = world
        .ledger()
        .read(&case.key(2), Some(&case.story), new.record.expires_at)
        .await
        .unwrap()
        .head;
    assert_eq!(head, None, "an expired head is not read either");
}

/// An expired record is absent for RECORD: the same id is a first attempt again.
pub async fn an_expired_record_can_be_recorded_anew(world: &mut World) {
    let case = Case::new();
    let first = case.event(world, 1);
    assert_eq!(record(world, &first).await, Recorded::Done);
    world.clock.set(Millis(first.record.expires_at.0 - 1));
    let second = case.event(world, 1);
    assert_eq!(
        record(world, &second).await,
        Recorded::Known(first.record.clone())
    );
    world.clock.set(first.record.expires_at);
    let mut third = case.event(world, 1);
    third.record.content_hash = ContentHash([1; 32]);
    assert_eq!(record(world, &third).await, Recorded::Done);
    assert_eq!(case.stored(world, 1).await, Some(third.record));
}

/// An expired record is absent for CLAIM, SUPERSEDE, REMOVE, GIVE BACK and MARK.
pub async fn an_expired_record_holds_no_attempt(world: &mut World) {
    let case = Case::new();
    let mut new = case.snapshot(world, 1, None);
    // so short-lived that its window is still open when it expires
    new.record.expires_at = world.now().plus(Duration::from_secs(10));
    assert_eq!(record(world, &new).await, Recorded::Done);
    let (attempt, version) = (new.record.attempt, version(&new));
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(
        case.claim(world, 1, attempt, Some(version)).await.0,
        Written::Lost
    );
    assert_eq!(case.supersede(world, 1, attempt, version).await, Written::Lost);
    assert_eq!(
        case.give_back(world, 1, attempt, world.token(), world.now())
            .await,
        Written::Lost
    );
    assert_eq!(case.mark(world, 1, attempt).await, Written::Lost);
    assert_eq!(
        case.remove(world, 1, attempt, Some(case.put_back(version, None)))
            .await,
        Written::Lost
    );
    assert!(case.stored_story(world).await.is_some(), "nothing was put back");
}

/// Record and story are written together.
pub async fn a_snapshot_moves_its_story(world: &mut World) {
    let case = Case::new();
    let new = case.accepted(world, 1).await;
    let moved = new.story.clone().unwrap();
    let story = Story {
        state: moved.state,
        head: new.key.message_id,
        version: moved.version,
    };
    let reading = case.read(world, 1).await;
    assert_eq!(
        reading,
        Reading {
            record: Some(new.record),
            story: Some(story),
            head: None
        }
    );
}

/// A story's state is stored exactly, whatever its size.
pub async fn a_story_state_comes_back_whole(world: &mut World) {
    let case = Case::new();
    let mut new = case.snapshot(world, 1, None);
    let assets: Vec<String> = (0..300)
        .map(|n| format!(r#"{{"asset_id":"asset-{n}","asset_type":"VIDEO"}}"#))
        .collect();
    let payload = format!(
        r#"{{"story_id":"s","sequence_number":12345678901234567890123,"updated_at":"2026-09-11T16:41:00.123456+02:00",
        "story_type":"KILLED","ünï":1,"assets":[{}],"assertions":[{{"assertion_id":"1","review":{{"state":"REJECTED"}}}}]}}"#,
        assets.join(",")
    );
    let document = storybus_json::Document::parse(payload.as_bytes()).unwrap();
    let state =
        storybus_som::story::StoryState::first(document.root(), "0199A1C4-0000-7000-8000-000000000911");
    new.story.as_mut().unwrap().state = state.clone();
    assert_eq!(record(world, &new).await, Recorded::Done);
    assert_eq!(case.stored_story(world).await.unwrap().state, state);
}

/// A message that is known leaves its story as it is.
pub async fn a_known_message_moves_no_story(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    past_window(world);
    let story = case.stored_story(world).await.unwrap();
    let again = case.snapshot(world, 1, Some(&story));
    assert_eq!(record(world, &again).await, Recorded::Known(first.record));
    assert_eq!(case.stored_story(world).await, Some(story));
}

/// RECORD writes nothing at all when the story is not the version that was read, or is there, or is gone.
pub async fn a_story_must_be_as_read(world: &mut World) {
    let case = Case::new();
    let never = Story {
        state: sample::story_state(1),
        head: sample::message_id(1),
        version: world.token(),
    };
    let new = case.snapshot(world, 2, Some(&never));
    assert_eq!(
        record(world, &new).await,
        Recorded::StoryMoved,
        "read, and absent now"
    );
    assert_eq!(case.read(world, 2).await, Reading::default());

    let first = case.accepted(world, 1).await;
    assert_eq!(case.mark(world, 1, first.record.attempt).await, Written::Done);
    let before = case.stored_story(world).await.unwrap();
    for read in [None, Some(&never)] {
        let new = case.snapshot(world, 2, read);
        assert_eq!(
            record(world, &new).await,
            Recorded::StoryMoved,
            "the head is the one read, the version is not"
        );
        assert_eq!(case.stored(world, 2).await, None, "no record without its story");
    }
    assert_eq!(case.stored_story(world).await, Some(before));
}

/// Two snapshots of one story are recorded at the same moment: one moves it, of the other nothing is written.
pub async fn of_rival_snapshots_one_is_done(world: &mut World) {
    let case = Case::new();
    let (one, two) = (case.snapshot(world, 1, None), case.snapshot(world, 2, None));
    let (a, b) = futures::join!(record(world, &one), record(world, &two));
    let (winner, loser) = if a == Recorded::Done { (1, 2) } else { (2, 1) };
    let other = if winner == 1 { b } else { a };
    assert_eq!(other, Recorded::StoryMoved);
    assert_eq!(case.stored(world, loser).await, None);
    assert_eq!(
        case.stored_story(world).await.unwrap().head,
        sample::message_id(winner)
    );
}

/// A story does not move while its head is recorded, unpublished and within its window, though it is the version read.
pub async fn a_head_in_flight_blocks_its_story(world: &mut World) {
    let case = Case::new();
    case.accepted(world, 1).await;
    let story = case.stored_story(world).await.unwrap();
    let next = case.snapshot(world, 2, Some(&story));
    assert_eq!(record(world, &next).await, Recorded::StoryMoved);
    assert_eq!(case.stored(world, 2).await, None);
    assert_eq!(case.stored_story(world).await, Some(story));
}

/// At the end of its window, and not a millisecond before, a head blocks no more.
pub async fn a_head_blocks_until_its_window_ends(world: &mut World) {
    let case = Case::new();
    case.accepted(world, 1).await;
    let story = case.stored_story(world).await.unwrap();
    world.clock.advance(WINDOW - Duration::from_millis(1));
    assert_eq!(
        record(world, &case.snapshot(world, 2, Some(&story))).await,
        Recorded::StoryMoved
    );
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(
        record(world, &case.snapshot(world, 2, Some(&story))).await,
        Recorded::Done
    );
}

/// A head that is known published blocks nothing.
pub async fn a_published_head_does_not_block(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    assert_eq!(case.mark(world, 1, first.record.attempt).await, Written::Done);
    case.accepted(world, 2).await;
}

/// A head that was given up blocks nothing.
pub async fn a_superseded_head_does_not_block(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    assert_eq!(
        case.supersede(world, 1, first.record.attempt, version(&first))
            .await,
        Written::Done
    );
    case.accepted(world, 2).await;
}

/// A head whose record is gone blocks nothing.
pub async fn an_absent_head_does_not_block(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    assert_eq!(
        case.remove(world, 1, first.record.attempt, None).await,
        Written::Done
    );
    assert!(case.stored_story(world).await.is_some());
    case.accepted(world, 2).await;
}

/// A head whose record has expired blocks nothing, even within its window.
pub async fn an_expired_head_does_not_block(world: &mut World) {
    let case = Case::new();
    let mut first = case.snapshot(world, 1, None);
    first.record.expires_at = world.now().plus(Duration::from_secs(10));
    assert_eq!(record(world, &first).await, Recorded::Done);
    world.clock.advance(Duration::from_secs(10));
    case.accepted(world, 2).await;
}

/// A claimed head is in flight anew: the window counts from the claim.
pub async fn a_claimed_head_blocks_anew(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    past_window(world);
    assert_eq!(
        case.claim(world, 1, first.record.attempt, Some(version(&first)))
            .await
            .0,
        Written::Done
    );
    let story = case.stored_story(world).await.unwrap();
    assert_eq!(
        record(world, &case.snapshot(world, 2, Some(&story))).await,
        Recorded::StoryMoved
    );
    past_window(world);
    assert_eq!(
        record(world, &case.snapshot(world, 2, Some(&story))).await,
        Recorded::Done
    );
}

/// A story is remembered when all its records have expired, and can move on from there.
pub async fn a_story_outlives_its_records(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    world.clock.set(first.record.expires_at);
    world.clock.advance(Duration::from_secs(365 * 24 * 3600));
    let reading = case.read(world, 1).await;
    assert_eq!(reading.record, None);
    assert_eq!(reading.story.map(|story| story.version), Some(version(&first)));
    case.accepted(world, 2).await;
}

/// The head's record is read along when the head is another message, and only then.
pub async fn the_head_is_read_when_it_is_another_message(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    assert_eq!(case.read(world, 1).await.head, None);
    assert_eq!(case.read(world, 2).await.head, Some(first.record));
    past_window(world);
    let second = case.accepted(world, 2).await;
    assert_eq!(case.read(world, 1).await.head, Some(second.record));
}

/// CLAIM sets time, attempt and expiry, and nothing else.
pub async fn a_claim_takes_the_record_over(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    let story = case.stored_story(world).await;
    past_window(world);
    let (written, attempt) = case
        .claim(world, 1, first.record.attempt, Some(version(&first)))
        .await;
    assert_eq!(written, Written::Done);
    let expected = Record {
        recorded_at: world.now(),
        attempt,
        expires_at: world.now().plus(Duration::from_secs(1000)),
        ..first.record
    };
    assert_eq!(case.stored(world, 1).await, Some(expected));
    assert_eq!(case.stored_story(world).await, story, "a claim moves no story");
}

/// A claim is lost when another attempt holds the record.
pub async fn a_claim_needs_the_attempt_that_was_read(world: &mut World) {
    let case = Case::new();
    let attempt = case.recorded(world, 1).await;
    let before = case.stored(world, 1).await;
    assert_eq!(case.claim(world, 1, world.token(), None).await.0, Written::Lost);
    assert_eq!(
        case.claim(world, 2, attempt, None).await.0,
        Written::Lost,
        "an unknown message"
    );
    assert_eq!(case.stored(world, 1).await, before);
}

/// A published or superseded record cannot be claimed.
pub async fn a_claim_needs_a_record_in_state_recorded(world: &mut World) {
    let case = Case::new();
    let published = case.recorded(world, 1).await;
    assert_eq!(case.mark(world, 1, published).await, Written::Done);
    assert_eq!(case.claim(world, 1, published, None).await.0, Written::Lost);
    let given_up = case.accepted(world, 2).await;
    assert_eq!(
        case.supersede(world, 2, given_up.record.attempt, version(&given_up))
            .await,
        Written::Done
    );
    assert_eq!(
        case.claim(world, 2, given_up.record.attempt, None).await.0,
        Written::Lost
    );
}

/// A snapshot's claim is lost when its story has another version, or is absent.
pub async fn a_claim_needs_its_story_unchanged(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    past_window(world);
    let before = case.stored(world, 1).await;
    assert_eq!(
        case.claim(world, 1, first.record.attempt, Some(world.token()))
            .await
            .0,
        Written::Lost
    );
    assert_eq!(case.stored(world, 1).await, before);
    let event = case.recorded(world, 2).await;
    let absent = StoryKey {
        digest: [1; 16],
        ..case.story.clone()
    };
    let claim = NewClaim {
        key: case.key(2),
        read: event,
        attempt: world.token(),
        story: Some((absent, version(&first))),
        now: world.now(),
        expires_at: world.now().plus(WINDOW),
    };
    assert_eq!(world.ledger().claim(&claim).await.unwrap(), Written::Lost);
}

/// CLAIM again with the same attempt, after a lost answer, is done.
pub async fn a_repeated_claim_finds_its_own_token(world: &mut World) {
    let case = Case::new();
    let first = case.recorded(world, 1).await;
    past_window(world);
    let attempt = world.token();
    assert_eq!(case.claim_as(world, 1, first, attempt, None).await, Written::Done);
    let before = case.stored(world, 1).await;
    assert_eq!(case.claim_as(world, 1, first, attempt, None).await, Written::Done);
    assert_eq!(case.stored(world, 1).await, before);
}

/// Two attempts claim one record at the same moment: one is done, the other lost.
pub async fn of_rival_claims_one_is_done(world: &mut World) {
    let case = Case::new();
    let first = case.recorded(world, 1).await;
    past_window(world);
    let ((a, one), (b, two)) = futures::join!(
        case.claim(world, 1, first, None),
        case.claim(world, 1, first, None)
    );
    assert!((a == Written::Done) != (b == Written::Done));
    let winner = if a == Written::Done { one } else { two };
    assert_eq!(case.stored(world, 1).await.unwrap().attempt, winner);
}

/// SUPERSEDE changes the state, and the story's version, and nothing else.
pub async fn a_supersession_ends_a_record(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    past_window(world);
    let second = case.accepted(world, 2).await;
    let story = case.stored_story(world).await.unwrap();
    let new = world.token();
    assert_eq!(
        case.supersede_as(world, 1, first.record.attempt, version(&second), new)
            .await,
        Written::Done
    );
    let expected = Record {
        state: RecordState::Superseded,
        ..first.record
    };
    assert_eq!(case.stored(world, 1).await, Some(expected));
    assert_eq!(case.stored(world, 2).await, Some(second.record));
    let expected = Story {
        version: new,
        ..story
    };
    assert_eq!(case.stored_story(world).await, Some(expected));
}

/// A snapshot that another was given up for is not taken back by its first attempt, whatever time that looks at; it can be
/// claimed.
pub async fn a_head_that_another_was_given_up_for_stays(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    past_window(world);
    let second = case.accepted(world, 2).await;
    let (attempt, read, new) = (second.record.attempt, version(&second), world.token());
    assert_eq!(
        case.supersede_as(world, 1, first.record.attempt, read, new).await,
        Written::Done
    );
    let put_back = case.put_back(read, None);
    assert_eq!(
        case.remove(world, 2, attempt, Some(put_back)).await,
        Written::Lost,
        "though within the window"
    );
    assert_eq!(case.stored(world, 2).await, Some(second.record));
    past_window(world);
    assert_eq!(case.claim(world, 2, attempt, Some(read)).await.0, Written::Lost);
    assert_eq!(case.claim(world, 2, attempt, Some(new)).await.0, Written::Done);
}

/// SUPERSEDE is lost when the attempt, the state or the story's version is another.
pub async fn a_supersession_needs_attempt_state_and_story(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    let (attempt, version) = (first.record.attempt, version(&first));
    assert_eq!(
        case.supersede(world, 1, world.token(), version).await,
        Written::Lost
    );
    assert_eq!(
        case.supersede(world, 1, attempt, world.token()).await,
        Written::Lost
    );
    assert_eq!(case.supersede(world, 2, attempt, version).await, Written::Lost);
    assert_eq!(case.stored(world, 1).await, Some(first.record));
    assert_eq!(
        case.stored_story(world).await.map(|story| story.version),
        Some(version)
    );
    assert_eq!(case.mark(world, 1, attempt).await, Written::Done);
    assert_eq!(case.supersede(world, 1, attempt, version).await, Written::Lost);
    assert_eq!(
        case.stored(world, 1).await.map(|r| r.state),
        Some(RecordState::Published)
    );
}

/// SUPERSEDE again, after a lost answer, is done.
pub async fn a_repeated_supersession_is_done(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    let new = world.token();
    for _ in 0..2 {
        assert_eq!(
            case.supersede_as(world, 1, first.record.attempt, version(&first), new)
                .await,
            Written::Done
        );
        assert_eq!(
            case.stored_story(world).await.map(|story| story.version),
            Some(new)
        );
    }
}

/// REMOVE deletes an event's record.
pub async fn a_removal_deletes_the_record(world: &mut World) {
    let case = Case::new();
    let attempt = case.recorded(world, 1).await;
    assert_eq!(case.remove(world, 1, attempt, None).await, Written::Done);
    assert_eq!(case.read(world, 1).await, Reading::default());
}

/// REMOVE deletes a snapshot's record and writes its story as it was, with a new version, in one write.
pub async fn a_removal_puts_the_story_back(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    assert_eq!(case.mark(world, 1, first.record.attempt).await, Written::Done);
    let read = case.stored_story(world).await.unwrap();
    let second = case.accepted(world, 2).await;
    let back = Story {
        version: world.token(),
        ..read.clone()
    };
    let put_back = case.put_back(version(&second), Some(back.clone()));
    assert_eq!(
        case.remove(world, 2, second.record.attempt, Some(put_back)).await,
        Written::Done
    );
    let reading = case.read(world, 2).await;
    assert_eq!((reading.record, reading.story), (None, Some(back)));
    let stale = case.snapshot(world, 3, Some(&read));
    assert_eq!(
        record(world, &stale).await,
        Recorded::StoryMoved,
        "the version read before is not the one now"
    );
    case.accepted(world, 2).await;
}

/// REMOVE of a story's first snapshot makes the story absent again.
pub async fn a_removal_of_a_first_snapshot_leaves_no_story(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    let put_back = case.put_back(version(&first), None);
    assert_eq!(
        case.remove(world, 1, first.record.attempt, Some(put_back)).await,
        Written::Done
    );
    assert_eq!(case.read(world, 1).await, Reading::default());
    assert_eq!(
        record(world, &case.snapshot(world, 2, None)).await,
        Recorded::Done
    );
}

/// REMOVE is lost when another attempt holds the record.
pub async fn a_removal_needs_its_attempt(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    let put_back = case.put_back(version(&first), None);
    assert_eq!(
        case.remove(world, 1, world.token(), Some(put_back)).await,
        Written::Lost
    );
    let reading = case.read(world, 1).await;
    assert_eq!(reading.record, Some(first.record));
    assert!(reading.story.is_some());
}

/// A published or superseded record is not removed.
pub async fn a_removal_needs_state_recorded(world: &mut World) {
    let case = Case::new();
    let published = case.recorded(world, 1).await;
    assert_eq!(case.mark(world, 1, published).await, Written::Done);
    assert_eq!(case.remove(world, 1, published, None).await, Written::Lost);
    let given_up = case.accepted(world, 2).await;
    assert_eq!(
        case.supersede(world, 2, given_up.record.attempt, version(&given_up))
            .await,
        Written::Done
    );
    let now = case.stored_story(world).await.unwrap().version;
    let put_back = case.put_back(now, None);
    assert_eq!(
        case.remove(world, 2, given_up.record.attempt, Some(put_back))
            .await,
        Written::Lost
    );
    assert!(case.stored(world, 1).await.is_some() && case.stored(world, 2).await.is_some());
    assert!(case.stored_story(world).await.is_some());
}

/// REMOVE is done until the last millisecond of the window, and lost from then on.
pub async fn a_removal_needs_the_window_open(world: &mut World) {
    let case = Case::new();
    let (one, two) = (case.recorded(world, 1).await, case.recorded(world, 2).await);
    world.clock.advance(WINDOW - Duration::from_millis(1));
    assert_eq!(case.remove(world, 1, one, None).await, Written::Done);
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(case.remove(world, 2, two, None).await, Written::Lost);
    assert!(case.stored(world, 2).await.is_some());
}

/// REMOVE by a caller that was paused since it looked at its clock is lost when the window has ended meanwhile: a retry
/// may have given up an older snapshot for this one.
pub async fn a_removal_that_was_held_up_needs_the_window_open(world: &mut World) {
    let case = Case::new();
    let attempt = case.recorded(world, 1).await;
    let removal = Removal {
        key: case.key(1),
        attempt,
        story: None,
        now: world.now(),
        window: WINDOW,
    };
    world.clock.advance(WINDOW);
    assert_eq!(world.ledger().remove(&removal).await.unwrap(), Written::Lost);
    assert!(case.stored(world, 1).await.is_some());
}

/// REMOVE is lost, and removes nothing, when the story is not the version that RECORD made.
pub async fn a_removal_needs_its_story_unchanged(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    let put_back = case.put_back(world.token(), None);
    assert_eq!(
        case.remove(world, 1, first.record.attempt, Some(put_back)).await,
        Written::Lost
    );
    let reading = case.read(world, 1).await;
    assert_eq!(reading.record, Some(first.record));
    assert_eq!(
        reading.story.map(|story| story.version),
        first.story.map(|moved| moved.version)
    );
}

/// REMOVE again finds nothing: lost.
pub async fn a_repeated_removal_is_lost(world: &mut World) {
    let case = Case::new();
    let attempt = case.recorded(world, 1).await;
    assert_eq!(case.remove(world, 1, attempt, None).await, Written::Done);
    assert_eq!(case.remove(world, 1, attempt, None).await, Written::Lost);
    assert_eq!(
        case.remove(world, 2, attempt, None).await,
        Written::Lost,
        "never recorded"
    );
}

/// After REMOVE the id is unknown: other content may take it, and the old attempt has no say any more.
pub async fn a_removed_id_is_unknown_again(world: &mut World) {
    let case = Case::new();
    let attempt = case.recorded(world, 1).await;
    assert_eq!(case.remove(world, 1, attempt, None).await, Written::Done);
    let mut other = case.event(world, 1);
    other.record.content_hash = ContentHash([1; 32]);
    assert_eq!(record(world, &other).await, Recorded::Done);
    assert_eq!(case.mark(world, 1, attempt).await, Written::Lost);
    assert_eq!(case.remove(world, 1, attempt, None).await, Written::Lost);
    assert_eq!(case.stored(world, 1).await, Some(other.record));
}

/// GIVE BACK restores `recorded_at` under a new attempt, so that the next retry can claim at once.
pub async fn a_claim_is_given_back(world: &mut World) {
    let case = Case::new();
    let first = case.event(world, 1);
    assert_eq!(record(world, &first).await, Recorded::Done);
    past_window(world);
    let (_, attempt) = case.claim(world, 1, first.record.attempt, None).await;
    let claimed = case.stored(world, 1).await.unwrap();
    let next = world.token();
    assert_eq!(
        case.give_back(world, 1, attempt, next, first.record.recorded_at)
            .await,
        Written::Done
    );
    let expected = Record {
        attempt: next,
        recorded_at: first.record.recorded_at,
        ..claimed
    };
    assert_eq!(case.stored(world, 1).await, Some(expected));
    assert_eq!(
        case.mark(world, 1, attempt).await,
        Written::Lost,
        "the claim is over"
    );
    assert_eq!(case.claim(world, 1, next, None).await.0, Written::Done);
}

/// GIVE BACK is lost when another attempt holds the record, or it is not `Recorded`.
pub async fn giving_back_needs_attempt_and_state(world: &mut World) {
    let case = Case::new();
    let attempt = case.recorded(world, 1).await;
    let (next, at) = (world.token(), Millis(0));
    assert_eq!(
        case.give_back(world, 1, world.token(), next, at).await,
        Written::Lost
    );
    assert_eq!(case.give_back(world, 2, attempt, next, at).await, Written::Lost);
    assert_eq!(case.mark(world, 1, attempt).await, Written::Done);
    let before = case.stored(world, 1).await;
    assert_eq!(case.give_back(world, 1, attempt, next, at).await, Written::Lost);
    assert_eq!(case.stored(world, 1).await, before);
}

/// GIVE BACK again, after a lost answer, finds its own token: done.
pub async fn a_repeated_giving_back_is_done(world: &mut World) {
    let case = Case::new();
    let attempt = case.recorded(world, 1).await;
    let (next, at) = (world.token(), Millis(world.now().0 - 30_000));
    assert_eq!(case.give_back(world, 1, attempt, next, at).await, Written::Done);
    assert_eq!(case.give_back(world, 1, attempt, next, at).await, Written::Done);
}

/// MARK sets state, time of publication and expiry, and nothing else.
pub async fn a_mark_makes_it_published(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(case.mark(world, 1, first.record.attempt).await, Written::Done);
    let expected = Record {
        state: RecordState::Published,
        published_at: Some(world.now()),
        expires_at: world.now().plus(Duration::from_secs(1000)),
        ..first.record
    };
    assert_eq!(case.stored(world, 1).await, Some(expected));
    assert_eq!(
        case.stored_story(world).await.map(|s| s.version),
        first.story.map(|moved| moved.version)
    );
}

/// MARK is lost when another attempt holds the record, or there is none.
pub async fn a_mark_needs_its_attempt(world: &mut World) {
    let case = Case::new();
    let attempt = case.recorded(world, 1).await;
    past_window(world);
    assert_eq!(case.mark(world, 2, attempt).await, Written::Lost);
    let (_, new) = case.claim(world, 1, attempt, None).await;
    assert_eq!(case.mark(world, 1, attempt).await, Written::Lost);
    assert_eq!(
        case.stored(world, 1).await.map(|r| r.state),
        Some(RecordState::Recorded)
    );
    past_window(world);
    assert_eq!(
        case.mark(world, 1, new).await,
        Written::Done,
        "also past the window: nobody else took over"
    );
}

/// MARK again, after a lost answer, is done.
pub async fn a_repeated_mark_is_done(world: &mut World) {
    let case = Case::new();
    let attempt = case.recorded(world, 1).await;
    for _ in 0..2 {
        assert_eq!(case.mark(world, 1, attempt).await, Written::Done);
    }
    assert_eq!(
        case.stored(world, 1).await.map(|r| r.state),
        Some(RecordState::Published)
    );
}

/// Records and stories are there when the engine is opened again.
pub async fn everything_survives_a_reopening(world: &mut World) {
    let case = Case::new();
    let first = case.accepted(world, 1).await;
    assert_eq!(case.mark(world, 1, first.record.attempt).await, Written::Done);
    case.accepted(world, 2).await;
    let before = (case.read(world, 1).await, case.read(world, 2).await);
    world.reopen().await;
    assert_eq!((case.read(world, 1).await, case.read(world, 2).await), before);
}
