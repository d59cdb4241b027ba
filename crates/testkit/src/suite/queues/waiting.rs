//! Receives that wait.

use std::time::Duration;

use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::filter::Filter;

use super::{MS, SECOND, filled, next, polling};
use crate::suite::behaviours;
use crate::suite::world::{VISIBILITY, World, numbers};

behaviours![
    a_long_poll_comes_back_empty_after_its_wait needs Time,
    a_long_poll_does_not_wait_for_what_is_there needs Time,
    a_long_poll_ends_with_a_publication needs Time,
    a_long_poll_ends_with_a_release needs Time,
    a_long_poll_ends_when_a_visibility_ends needs Time,
    a_long_poll_ends_when_a_delay_ends needs Time,
    a_long_poll_ends_when_an_acknowledgement_frees_the_group needs Time,
    a_long_poll_ends_when_a_rejection_frees_the_group needs Time,
    a_long_poll_sleeps_through_what_is_not_for_it needs Time,
    of_two_long_polls_one_gets_the_message needs Time,
];

/// Waits at the queue while something else happens, and says what came and how long that took.
async fn poll_while(
    world: &World,
    queue: &QueueKey,
    seconds: u64,
    other: impl AsyncFnOnce(),
) -> (Vec<u64>, Duration) {
    let before = world.now();
    let waiting = polling(seconds);
    let other = async {
        world.clock.until_asleep(1).await;
        other().await;
    };
    let (received, ()) = futures::join!(world.receive_as(queue, &waiting), other);
    (numbers(&received), before.until(world.now()))
}

/// Nothing came: an empty list at the end of the wait, not before.
pub async fn a_long_poll_comes_back_empty_after_its_wait(world: &mut World) {
    let queue = world.queue().await;
    let clock = world.clock.clone();
    let (received, took) = poll_while(world, &queue, 20, async || {
        clock.advance(SECOND * 20 - MS);
        crate::executor::yield_now().await;
        // unless it came back too early, it still sleeps
        clock.until_asleep(1).await;
        clock.advance(MS);
    })
    .await;
    assert_eq!((received, took), (vec![], SECOND * 20));
}

/// With a message there, nobody waits.
pub async fn a_long_poll_does_not_wait_for_what_is_there(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    assert_eq!(numbers(&world.receive_as(&queue, &polling(20)).await), [1]);
}

/// A publication ends the wait at once.
pub async fn a_long_poll_ends_with_a_publication(world: &mut World) {
    let queue = world.queue().await;
    let (received, took) = poll_while(world, &queue, 20, async || world.send_to(&queue, 1, 1).await).await;
    assert_eq!((received, took), (vec![1], Duration::ZERO));
}

/// A message given back ends the wait at once.
pub async fn a_long_poll_ends_with_a_release(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    let release = async || {
        world.release(&queue, &held, Duration::ZERO).await;
    };
    assert_eq!(
        poll_while(world, &queue, 20, release).await,
        (vec![1], Duration::ZERO)
    );
}

/// A message that comes back ends the wait at that moment.
pub async fn a_long_poll_ends_when_a_visibility_ends(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    world.receive(&queue, 10).await;
    world.clock.advance(VISIBILITY - SECOND * 5);
    let clock = world.clock.clone();
    let got = poll_while(world, &queue, 20, async || clock.advance(SECOND * 5)).await;
    assert_eq!(got, (vec![1], SECOND * 5));
}

/// A delay that was set while somebody waits ends the wait when it is over.
pub async fn a_long_poll_ends_when_a_delay_ends(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    let clock = world.clock.clone();
    let soon = world.now().plus(SECOND * 3);
    let got = poll_while(world, &queue, 20, async || {
        world.release(&queue, &held, SECOND * 3).await;
        // whoever waits must have heard of it before time goes on
        while clock.next_wake() != Some(soon) {
            crate::executor::yield_now().await;
        }
        clock.advance(SECOND * 3);
    })
    .await;
    assert_eq!(got, (vec![1], SECOND * 3));
}

/// An acknowledgement that frees a group ends the wait at once.
pub async fn a_long_poll_ends_when_an_acknowledgement_frees_the_group(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1)]).await;
    let held = world.receive(&queue, 1).await;
    let acknowledge = async || {
        world.acknowledge(&queue, &held).await;
    };
    assert_eq!(
        poll_while(world, &queue, 20, acknowledge).await,
        (vec![2], Duration::ZERO)
    );
}

/// A rejection that frees a group ends the wait at once.
pub async fn a_long_poll_ends_when_a_rejection_frees_the_group(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1)]).await;
    let held = world.receive(&queue, 1).await;
    let reject = async || {
        world.reject(&queue, &held, "bad").await;
    };
    assert_eq!(
        poll_while(world, &queue, 20, reject).await,
        (vec![2], Duration::ZERO)
    );
}

/// What happens elsewhere, or is held back, does not end the wait.
pub async fn a_long_poll_sleeps_through_what_is_not_for_it(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let workspace = world.workspace("w2").await;
    let other = world.consumer("c2", &workspace, Filter::default()).await;
    world.receive(&queue, 10).await;
    let clock = world.clock.clone();
    let got = poll_while(world, &queue, 20, async || {
        world.send_to(&queue, 2, 1).await;
        world.send_to(&other, 3, 3).await;
        crate::executor::yield_now().await;
        clock.until_asleep(1).await;
        clock.advance(SECOND * 20);
    })
    .await;
    assert_eq!(got, (vec![], SECOND * 20));
    assert_eq!(next(world, &other).await, [3]);
}

/// Of two that wait one gets the message, and the other waits on.
pub async fn of_two_long_polls_one_gets_the_message(world: &mut World) {
    let queue = world.queue().await;
    let waiting = polling(20);
    let clock = world.clock.clone();
    let other = async {
        clock.until_asleep(2).await;
        world.send_to(&queue, 1, 1).await;
        // one has gone, and the other sleeps (again)
        while clock.sleepers() != 1 {
            crate::executor::yield_now().await;
        }
        clock.advance(SECOND * 20);
    };
    let (a, b, ()) = futures::join!(
        world.receive_as(&queue, &waiting),
        world.receive_as(&queue, &waiting),
        other
    );
    assert_eq!(numbers(&[a, b].concat()), [1]);
}
