//! Claims, and what becomes of them: given back, or marked.

use std::time::Duration;

use storybus_core::domain::record::{Record, RecordState, StoryKey};
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::{NewClaim, Recorded, Written};

use super::{Case, past_window, record, version};
use crate::suite::behaviours;
use crate::suite::world::{WINDOW, World};

behaviours![
    a_claim_takes_the_record_over,
    a_claim_needs_the_attempt_that_was_read,
    a_claim_needs_a_record_in_state_recorded,
    a_claim_needs_its_story_unchanged,
    a_repeated_claim_finds_its_own_token,
    of_rival_claims_one_is_done,
    a_claim_is_given_back,
    giving_back_needs_attempt_and_state,
    a_repeated_giving_back_is_done,
    a_mark_makes_it_published,
    a_mark_needs_its_attempt,
    a_repeated_mark_is_done,
];

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
