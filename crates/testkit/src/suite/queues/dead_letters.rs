//! Messages that are received no more: rejected, or received too often.

use std::time::Duration;

use storybus_core::domain::dead_letter::Cause;
use storybus_core::domain::delivery::{QueueKey, Settled};

use super::{filled, next};
use crate::suite::world::{VISIBILITY, World, numbers};
use crate::suite::{behaviours, sample};

behaviours![
    a_rejected_message_goes_to_the_dead_letters_at_once,
    a_rejection_keeps_its_reason,
    a_rejection_lets_its_story_go_on,
    a_rejection_can_be_repeated_within_the_visibility,
    an_expired_handle_rejects_nothing needs Time,
    a_message_received_too_often_goes_to_the_dead_letters,
    a_dead_letter_lets_its_story_go_on_in_the_same_receive,
    a_limit_of_one_receive_holds,
    a_dead_letter_says_how_often_it_was_received,
    a_raised_limit_counts_from_then_on,
];

/// Receives and gives back, with a limit; says how often something came.
async fn receives(world: &World, queue: &QueueKey, max_receives: u32, times: usize) -> usize {
    let limited = world.limited(queue, max_receives).await;
    let mut came = 0;
    for _ in 0..times {
        let received = world.receive_as(queue, &limited).await;
        came += received.len();
        world.release(queue, &received, Duration::ZERO).await;
    }
    came
}

/// Rejected, a message is a dead letter and comes no more.
pub async fn a_rejected_message_goes_to_the_dead_letters_at_once(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let held = world.receive(&queue, 1).await;
    assert_eq!(world.reject(&queue, &held, "bad").await, [Settled::Done]);
    assert_eq!(world.counts(&queue).await.dead_lettered, 1);
    assert_eq!(next(world, &queue).await, [2]);
    assert_eq!(
        world.acknowledge(&queue, &world.receive(&queue, 10).await).await,
        []
    );
}

/// What the consumer said is kept, to the last character.
pub async fn a_rejection_keeps_its_reason(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let held = world.receive(&queue, 10).await;
    let reason = "ü\"'\\\n😀".repeat(166);
    world.reject(&queue, &held[..1], &reason).await;
    world.reject(&queue, &held[1..], "other").await;
    let letters = world.dead_letters(&queue).await;
    let said: Vec<_> = letters.iter().map(|l| (l.message_id, l.cause.clone())).collect();
    assert_eq!(
        said,
        [
            (sample::message_id(1), Cause::Rejected(reason)),
            (sample::message_id(2), Cause::Rejected("other".to_owned()))
        ]
    );
    assert_eq!(letters[0].dead_at, world.now());
}

/// One bad message does not hold its story back.
pub async fn a_rejection_lets_its_story_go_on(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1)]).await;
    let held = world.receive(&queue, 1).await;
    assert!(next(world, &queue).await.is_empty());
    world.reject(&queue, &held, "bad").await;
    assert_eq!(next(world, &queue).await, [2]);
}

/// A second rejection within the visibility is done, and makes no second dead letter.
pub async fn a_rejection_can_be_repeated_within_the_visibility(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    for _ in 0..2 {
        assert_eq!(world.reject(&queue, &held, "bad").await, [Settled::Done]);
    }
    assert_eq!(world.counts(&queue).await.dead_lettered, 1);
}

/// A handle that has ended rejects nothing.
pub async fn an_expired_handle_rejects_nothing(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.clock.advance(VISIBILITY);
    assert_eq!(world.reject(&queue, &held, "late").await, [Settled::Invalid]);
    assert_eq!(world.counts(&queue).await.dead_lettered, 0);
    assert_eq!(next(world, &queue).await, [1]);
}

/// After `max_receives` receives a message is a dead letter instead of being received once more.
pub async fn a_message_received_too_often_goes_to_the_dead_letters(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    assert_eq!(receives(world, &queue, 3, 3).await, 3);
    assert_eq!(
        world.counts(&queue).await.dead_lettered,
        0,
        "it moves when it would be received again"
    );
    assert_eq!(receives(world, &queue, 3, 2).await, 0);
    let counts = world.counts(&queue).await;
    assert_eq!(
        (counts.visible, counts.in_flight, counts.dead_lettered),
        (0, 0, 1)
    );
}

/// What is behind a new dead letter comes in the same receive.
pub async fn a_dead_letter_lets_its_story_go_on_in_the_same_receive(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1)]).await;
    assert_eq!(receives(world, &queue, 2, 2).await, 2);
    let limited = world.limited(&queue, 2).await;
    assert_eq!(numbers(&world.receive_as(&queue, &limited).await), [2]);
    assert_eq!(world.counts(&queue).await.dead_lettered, 1);
}

/// With a limit of one a message comes once.
pub async fn a_limit_of_one_receive_holds(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    assert_eq!(receives(world, &queue, 1, 3).await, 1);
    assert_eq!(world.counts(&queue).await.dead_lettered, 1);
}

/// A dead letter keeps its count; it has no reason but the limit.
pub async fn a_dead_letter_says_how_often_it_was_received(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    receives(world, &queue, 2, 3).await;
    let letters = world.dead_letters(&queue).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(
        (letters[0].message_id, letters[0].receive_count, &letters[0].cause),
        (sample::message_id(1), 2, &Cause::MaxReceives)
    );
    assert_eq!(letters[0].dead_at, world.now());
}

/// The limit is the one of the receive that would be one too many.
pub async fn a_raised_limit_counts_from_then_on(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    assert_eq!(receives(world, &queue, 1, 1).await, 1);
    assert_eq!(receives(world, &queue, 4, 9).await, 3);
}
