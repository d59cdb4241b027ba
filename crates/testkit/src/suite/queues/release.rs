//! Messages given back.

use std::time::Duration;

use storybus_core::domain::delivery::{QueueCounts, Settled};
use storybus_core::ports::queues::MAX_VISIBILITY;

use super::{MS, SECOND, filled, next};
use crate::suite::behaviours;
use crate::suite::world::{VISIBILITY, World, handles, numbers};

behaviours![
    a_release_makes_visible_at_once,
    a_released_message_keeps_its_place,
    a_handle_ends_with_its_release,
    a_release_with_a_delay_hides_that_long needs Time,
    a_release_asks_for_more_time needs Time,
    a_release_is_cut_at_twelve_hours_from_the_receive needs Time,
    a_release_of_what_was_acknowledged_brings_nothing_back,
];

/// Given back without a delay, a message comes with the next receive.
pub async fn a_release_makes_visible_at_once(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    assert_eq!(
        world.release(&queue, &held, Duration::ZERO).await,
        [Settled::Done]
    );
    let again = world.receive(&queue, 10).await;
    assert_eq!(numbers(&again), [1]);
    assert_ne!(handles(&again), handles(&held));
}

/// Given back, a message is where it was: in front of the later ones of its group.
pub async fn a_released_message_keeps_its_place(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 1)]).await;
    let held = world.receive(&queue, 2).await;
    world.send_to(&queue, 4, 2).await;
    world.release(&queue, &held, Duration::ZERO).await;
    assert_eq!(next(world, &queue).await, [1, 2, 3, 4]);
}

/// With the visibility ends the handle, also when it was ended on purpose.
pub async fn a_handle_ends_with_its_release(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.release(&queue, &held, Duration::ZERO).await;
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Invalid]);
    assert_eq!(next(world, &queue).await, [1]);
}

/// Given back with a delay, a message stays hidden, its group waits, and its handle stays good.
pub async fn a_release_with_a_delay_hides_that_long(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 2)]).await;
    let held = world.receive(&queue, 1).await;
    world.release(&queue, &held, SECOND * 10).await;
    assert_eq!(next(world, &queue).await, [3]);
    world.clock.advance(SECOND * 10 - MS);
    assert!(next(world, &queue).await.is_empty());
    world.clock.advance(MS);
    let again = world.receive(&queue, 1).await;
    assert_eq!(numbers(&again), [1]);
    world.release(&queue, &again, SECOND * 10).await;
    world.clock.advance(SECOND * 10 - MS);
    assert_eq!(
        world.acknowledge(&queue, &again).await,
        [Settled::Done],
        "still its handle"
    );
    assert_eq!(next(world, &queue).await, [2]);
}

/// A delay longer than what is left of the visibility gives the consumer more time.
pub async fn a_release_asks_for_more_time(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.clock.advance(VISIBILITY - MS);
    assert_eq!(
        world.release(&queue, &held, VISIBILITY * 3).await,
        [Settled::Done]
    );
    world.clock.advance(VISIBILITY * 3 - MS);
    assert!(next(world, &queue).await.is_empty());
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Done]);
}

/// However often it is prolonged, a message is hidden no longer than 12 hours from its receive.
pub async fn a_release_is_cut_at_twelve_hours_from_the_receive(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.clock.advance(SECOND);
    assert_eq!(
        world.release(&queue, &held, MAX_VISIBILITY).await,
        [Settled::Done]
    );
    world.clock.advance(MAX_VISIBILITY - SECOND * 2);
    assert_eq!(
        world.release(&queue, &held, MAX_VISIBILITY).await,
        [Settled::Done],
        "one second is left"
    );
    world.clock.advance(SECOND - MS);
    assert!(next(world, &queue).await.is_empty());
    world.clock.advance(MS);
    assert_eq!(next(world, &queue).await, [1]);
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Invalid]);
}

/// What was acknowledged cannot be given back or rejected.
pub async fn a_release_of_what_was_acknowledged_brings_nothing_back(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.acknowledge(&queue, &held).await;
    world.release(&queue, &held, Duration::ZERO).await;
    world.reject(&queue, &held, "late").await;
    assert!(next(world, &queue).await.is_empty());
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}
