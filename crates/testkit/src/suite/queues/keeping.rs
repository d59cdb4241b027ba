//! What is kept, for how long, over a reopening; and how it is counted.

use std::time::Duration;

use storybus_core::domain::delivery::{QueueCounts, Settled};
use storybus_core::domain::filter::Filter;
use storybus_core::ports::queues::RETENTION;

use super::{SECOND, filled, named, next};
use crate::suite::behaviours;
use crate::suite::world::{VISIBILITY, World, numbers};

behaviours![
    consumers_have_queues_of_their_own,
    messages_are_kept_for_fourteen_days needs Time,
    a_message_that_is_kept_no_more_holds_nothing_back needs Time,
    dead_letters_are_kept_for_fourteen_days needs Time Counts,
    counts_are_exact needs Time Counts,
    receives_survive_a_reopening needs Reopen,
    handles_survive_a_reopening needs Reopen,
    a_repeated_receive_survives_a_reopening needs Reopen,
];

/// What one consumer does is not seen by the other.
pub async fn consumers_have_queues_of_their_own(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    world.send_to(&one, 1, 1).await;
    world.send_to(&one, 2, 1).await;
    let held = world.receive(&one, 10).await;
    world.reject(&one, &held[..1], "bad").await;
    world.acknowledge(&one, &held[1..]).await;
    let theirs = world.receive(&two, 10).await;
    assert_eq!(numbers(&theirs), [1, 2]);
    assert_eq!(theirs[0].receive_count, 1);
    assert_eq!(world.counts(&two).await.dead_lettered, 0);
}

/// A message waits for 14 days, and is gone then.
pub async fn messages_are_kept_for_fourteen_days(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    world.clock.advance(RETENTION - VISIBILITY - SECOND);
    assert_eq!(next(world, &queue).await, [1]);
    world.clock.advance(VISIBILITY);
    assert_eq!(world.counts(&queue).await.visible, 1);
    world.clock.advance(SECOND);
    assert!(next(world, &queue).await.is_empty());
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}

/// A message that is gone by age, hidden or not, does not block its group.
pub async fn a_message_that_is_kept_no_more_holds_nothing_back(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    world.clock.advance(RETENTION - SECOND);
    world.send_to(&queue, 2, 1).await;
    assert_eq!(numbers(&world.receive(&queue, 1).await), [1]);
    assert!(next(world, &queue).await.is_empty());
    world.clock.advance(SECOND);
    assert_eq!(next(world, &queue).await, [2]);
}

/// Dead letters are gone after 14 days too.
pub async fn dead_letters_are_kept_for_fourteen_days(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.reject(&queue, &held, "bad").await;
    world.clock.advance(RETENTION - SECOND);
    assert_eq!(world.counts(&queue).await.dead_lettered, 1);
    world.clock.advance(SECOND);
    assert_eq!(world.counts(&queue).await.dead_lettered, 0);
}

/// Every message is visible, in flight or dead; the oldest that lives says since when.
pub async fn counts_are_exact(world: &mut World) {
    let queue = world.queue().await;
    let began = world.now();
    for n in 1..=5 {
        world.send_to(&queue, n, n.min(4)).await;
        world.clock.advance(SECOND);
    }
    let counts = |visible, in_flight, dead_lettered, oldest: Option<u64>| QueueCounts {
        visible,
        in_flight,
        dead_lettered,
        oldest_at: oldest.map(|n| began.plus(SECOND * u32::try_from(n - 1).unwrap())),
    };
    assert_eq!(world.counts(&queue).await, counts(5, 0, 0, Some(1)));
    let held = world.receive(&queue, 4).await;
    assert_eq!(
        world.counts(&queue).await,
        counts(1, 4, 0, Some(1)),
        "the one that waits for its group is visible"
    );
    world.acknowledge(&queue, &held[..1]).await;
    assert_eq!(world.counts(&queue).await, counts(1, 3, 0, Some(2)));
    world.reject(&queue, &held[1..2], "bad").await;
    assert_eq!(world.counts(&queue).await, counts(1, 2, 1, Some(3)));
    world.release(&queue, &held[2..3], Duration::ZERO).await;
    assert_eq!(world.counts(&queue).await, counts(2, 1, 1, Some(3)));
    world.release(&queue, &held[3..], SECOND * 100).await;
    world.clock.advance(VISIBILITY);
    assert_eq!(
        world.counts(&queue).await,
        counts(2, 1, 1, Some(3)),
        "hidden by its delay"
    );
    world.clock.advance(SECOND * 40);
    assert_eq!(world.counts(&queue).await, counts(3, 0, 1, Some(3)));
    world.drain(&queue).await;
    assert_eq!(world.counts(&queue).await, counts(0, 0, 1, None));
}

/// What is hidden stays hidden, and counted, when the engine is opened again.
pub async fn receives_survive_a_reopening(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 2)]).await;
    assert_eq!(numbers(&world.receive(&queue, 1).await), [1]);
    world.reopen().await;
    assert_eq!(next(world, &queue).await, [3]);
    world.clock.advance(VISIBILITY);
    let received = world.receive(&queue, 10).await;
    assert_eq!(numbers(&received), [1, 2, 3]);
    assert_eq!(
        received.iter().map(|d| d.receive_count).collect::<Vec<_>>(),
        [2, 1, 2]
    );
}

/// A handle from before settles its message after the engine was opened again, and so does a second acknowledgement.
pub async fn handles_survive_a_reopening(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let held = world.receive(&queue, 10).await;
    world.acknowledge(&queue, &held[..1]).await;
    world.reopen().await;
    assert_eq!(
        world.acknowledge(&queue, &held).await,
        [Settled::Done, Settled::Done]
    );
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}

/// A receive whose answer was lost because the bus stopped can be repeated.
pub async fn a_repeated_receive_survives_a_reopening(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    world.reopen().await;
    assert_eq!(world.receive_as(&queue, &named("a")).await, first);
}
