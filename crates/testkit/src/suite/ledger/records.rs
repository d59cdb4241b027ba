//! Records, until they expire.

use std::time::Duration;

use storybus_core::domain::record::{ContentHash, StoryKey};
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::{Reading, Recorded, Written};
use storybus_protocol::id::WorkspaceId;

use super::{Case, past_window, record, version};
use crate::suite::behaviours;
use crate::suite::world::World;

behaviours![
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
    everything_survives_a_reopening needs Reopen,
];

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
