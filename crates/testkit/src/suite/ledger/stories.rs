//! Stories, moved by snapshots and held by their head.

use std::time::Duration;

use storybus_core::domain::record::Story;
use storybus_core::ports::ledger::{Reading, Recorded, Written};

use super::{Case, past_window, record, version};
use crate::suite::world::{WINDOW, World};
use crate::suite::{behaviours, sample};

behaviours![
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
];

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
