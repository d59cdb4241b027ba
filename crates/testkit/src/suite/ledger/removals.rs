//! First attempts taken back.

use std::time::Duration;

use storybus_core::domain::record::{ContentHash, Story};
use storybus_core::ports::ledger::{Reading, Recorded, Removal, Written};

use super::{Case, record, version};
use crate::suite::behaviours;
use crate::suite::world::{WINDOW, World};

behaviours![
    a_removal_deletes_the_record,
    a_removal_puts_the_story_back,
    a_removal_of_a_first_snapshot_leaves_no_story,
    a_removal_needs_its_attempt,
    a_removal_needs_state_recorded,
    a_removal_needs_the_window_open,
    a_removal_that_was_held_up_needs_the_window_open needs Time Claims,
    a_removal_needs_its_story_unchanged,
    a_repeated_removal_is_lost needs Answers,
    a_removed_id_is_unknown_again,
];

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
