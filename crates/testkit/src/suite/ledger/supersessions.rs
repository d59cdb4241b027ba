//! Snapshots given up.

use storybus_core::domain::record::{Record, RecordState, Story};
use storybus_core::ports::ledger::Written;

use super::{Case, past_window, version};
use crate::suite::behaviours;
use crate::suite::world::World;

behaviours![
    a_supersession_ends_a_record,
    a_head_that_another_was_given_up_for_stays,
    a_supersession_needs_attempt_state_and_story,
    a_repeated_supersession_is_done,
];

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
