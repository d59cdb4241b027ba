//! How long a message is hidden, and its handle good.

use std::time::Duration;

use storybus_core::domain::delivery::{Delivery, QueueCounts, Settled};
use storybus_core::domain::filter::Filter;
use storybus_core::ports::queues::{MAX_VISIBILITY, Receive};

use super::{MS, SECOND, filled, next};
use crate::suite::behaviours;
use crate::suite::world::{VISIBILITY, World, handles, numbers, receive};

behaviours![
    an_acknowledged_message_never_comes_back needs Time,
    a_message_comes_back_when_its_visibility_ends needs Time,
    messages_come_back_in_order needs Time,
    a_receive_sets_its_own_visibility needs Time,
    receives_are_counted needs Time,
    a_handle_ends_with_its_visibility needs Time,
    a_handle_ends_with_the_next_receive needs Time,
    an_acknowledgement_can_be_repeated_within_the_visibility needs Time,
    an_acknowledgement_out_of_order_breaks_only_its_own_order needs Time,
    malformed_handles_are_invalid,
    handles_of_another_queue_are_invalid,
    answers_come_in_the_order_of_the_handles,
];

/// What was acknowledged is gone for good.
pub async fn an_acknowledged_message_never_comes_back(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Done]);
    world.clock.advance(VISIBILITY * 2);
    assert!(next(world, &queue).await.is_empty());
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}

/// A message is hidden for its visibility, and not a millisecond longer.
pub async fn a_message_comes_back_when_its_visibility_ends(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    assert_eq!(next(world, &queue).await, [1]);
    world.clock.advance(VISIBILITY - MS);
    assert!(next(world, &queue).await.is_empty());
    world.clock.advance(MS);
    assert_eq!(next(world, &queue).await, [1]);
}

/// A batch that comes back comes in its order, in front of what came later.
pub async fn messages_come_back_in_order(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 1)]).await;
    assert_eq!(numbers(&world.receive(&queue, 2).await), [1, 2]);
    world.send_to(&queue, 4, 1).await;
    world.clock.advance(VISIBILITY);
    assert_eq!(next(world, &queue).await, [1, 2, 3, 4]);
}

/// Each receive says how long what it takes is hidden.
pub async fn a_receive_sets_its_own_visibility(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let short = Receive {
        visibility: SECOND,
        max: 1,
        ..receive(1)
    };
    let long = Receive {
        visibility: MAX_VISIBILITY,
        ..receive(1)
    };
    assert_eq!(numbers(&world.receive_as(&queue, &short).await), [1]);
    assert_eq!(numbers(&world.receive_as(&queue, &long).await), [2]);
    world.clock.advance(SECOND);
    assert_eq!(numbers(&world.receive_as(&queue, &long).await), [1]);
    world.clock.advance(MAX_VISIBILITY - SECOND - MS);
    assert!(next(world, &queue).await.is_empty());
    world.clock.advance(MS);
    assert_eq!(next(world, &queue).await, [2]);
}

/// The count rises with each receive of a message, however it came back, and not with those of others.
pub async fn receives_are_counted(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let counts = |deliveries: &[Delivery]| deliveries.iter().map(|d| d.receive_count).collect::<Vec<_>>();
    assert_eq!(counts(&world.receive(&queue, 10).await), [1]);
    world.clock.advance(VISIBILITY);
    world.send_to(&queue, 2, 1).await;
    let held = world.receive(&queue, 10).await;
    assert_eq!(counts(&held), [2, 1]);
    world.release(&queue, &held, Duration::ZERO).await;
    assert_eq!(counts(&world.receive(&queue, 10).await), [3, 2]);
}

/// A handle is good until the visibility ends, though nobody received the message since.
pub async fn a_handle_ends_with_its_visibility(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.clock.advance(VISIBILITY);
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Invalid]);
    assert_eq!(
        world.release(&queue, &held, Duration::ZERO).await,
        [Settled::Invalid]
    );
    assert_eq!(next(world, &queue).await, [1]);
}

/// The handle of an earlier receive has no power over the message.
pub async fn a_handle_ends_with_the_next_receive(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let first = world.receive(&queue, 10).await;
    world.clock.advance(VISIBILITY);
    let second = world.receive(&queue, 10).await;
    assert_ne!(handles(&first), handles(&second));
    assert_eq!(world.acknowledge(&queue, &first).await, [Settled::Invalid]);
    assert_eq!(
        world.release(&queue, &first, Duration::ZERO).await,
        [Settled::Invalid]
    );
    assert_eq!(world.reject(&queue, &first, "late").await, [Settled::Invalid]);
    assert!(
        next(world, &queue).await.is_empty(),
        "the second receive still holds it"
    );
    assert_eq!(world.acknowledge(&queue, &second).await, [Settled::Done]);
}

/// A second acknowledgement within the visibility is done, and a later one is not.
pub async fn an_acknowledgement_can_be_repeated_within_the_visibility(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    let twice = [held.clone(), held.clone()].concat();
    assert_eq!(
        world.acknowledge(&queue, &twice).await,
        [Settled::Done, Settled::Done],
        "within one call too"
    );
    world.clock.advance(VISIBILITY - MS);
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Done]);
    world.clock.advance(MS);
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Invalid]);
}

/// A later message of a batch can be acknowledged alone; the earlier one comes again, behind it.
pub async fn an_acknowledgement_out_of_order_breaks_only_its_own_order(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 1)]).await;
    let held = world.receive(&queue, 2).await;
    assert_eq!(world.acknowledge(&queue, &held[1..]).await, [Settled::Done]);
    assert!(next(world, &queue).await.is_empty());
    world.clock.advance(VISIBILITY);
    assert_eq!(next(world, &queue).await, [1, 3]);
}

/// Text that was never a handle settles nothing and is no error.
pub async fn malformed_handles_are_invalid(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    let handle = &held[0].receipt_handle;
    let cut = handle[..handle.len() - 1].to_owned();
    let long = "A".repeat(10_000);
    let bad: Vec<String> = [
        "",
        " ",
        "0",
        "é",
        "\0",
        "' OR 1=1 --",
        &cut,
        &format!("{handle}x"),
        &long,
    ]
    .map(str::to_owned)
    .into();
    let invalid = vec![Settled::Invalid; bad.len()];
    assert_eq!(world.queues().acknowledge(&queue, &bad).await.unwrap(), invalid);
    assert_eq!(
        world
            .queues()
            .release(&queue, &bad, Duration::ZERO)
            .await
            .unwrap(),
        invalid
    );
    assert_eq!(world.queues().reject(&queue, &bad, "bad").await.unwrap(), invalid);
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Done]);
}

/// A handle works at its own queue alone.
pub async fn handles_of_another_queue_are_invalid(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    let workspace = world.workspace("w2").await;
    let three = world.consumer("c3", &workspace, Filter::default()).await;
    world.send_to(&one, 1, 1).await;
    let held = world.receive(&one, 10).await;
    world.receive(&two, 10).await;
    for queue in [&two, &three] {
        assert_eq!(world.acknowledge(queue, &held).await, [Settled::Invalid]);
        assert_eq!(
            world.release(queue, &held, Duration::ZERO).await,
            [Settled::Invalid]
        );
        assert_eq!(world.reject(queue, &held, "foreign").await, [Settled::Invalid]);
    }
    assert!(next(world, &one).await.is_empty(), "still held");
    assert_eq!(world.acknowledge(&one, &held).await, [Settled::Done]);
}

/// Good and bad handles of one call are answered one by one, in order.
pub async fn answers_come_in_the_order_of_the_handles(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let held = world.receive(&queue, 10).await;
    let mixed = ["x", &held[1].receipt_handle, "y", &held[0].receipt_handle].map(str::to_owned);
    let expected = [Settled::Invalid, Settled::Done, Settled::Invalid, Settled::Done];
    assert_eq!(
        world.queues().acknowledge(&queue, &mixed).await.unwrap(),
        expected
    );
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}
