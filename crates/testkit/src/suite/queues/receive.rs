//! What a receive gives, and in which order.

use std::time::Duration;

use storybus_core::domain::delivery::{Delivery, QueueCounts, QueueKey, Settled};

use super::{SECOND, filled, next, polling};
use crate::suite::world::{VISIBILITY, World, handles, numbers};
use crate::suite::{behaviours, sample};

behaviours![
    an_empty_queue_gives_nothing,
    an_unknown_queue_gives_nothing,
    a_delivery_says_all_about_its_message,
    a_delivery_says_when_its_message_came needs Time,
    a_receive_gives_no_more_than_asked,
    one_receive_holds_several_of_one_story_in_order,
    oldest_groups_come_first,
    a_group_waits_until_all_is_acknowledged,
    a_group_waits_for_what_is_hidden_though_a_part_is_visible needs Time,
    other_groups_go_on,
    no_message_goes_to_two_receivers,
];

/// Nothing there, nothing received.
pub async fn an_empty_queue_gives_nothing(world: &mut World) {
    let queue = world.queue().await;
    assert!(world.receive(&queue, 10).await.is_empty());
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}

/// A queue that does not exist (any more) is an empty one; a long poll at it does not wait.
pub async fn an_unknown_queue_gives_nothing(world: &mut World) {
    let queue = world.queue().await;
    let unknown = QueueKey {
        consumer: "c9".parse().unwrap(),
        ..queue.clone()
    };
    let elsewhere = QueueKey {
        workspace: "w9".parse().unwrap(),
        ..queue.clone()
    };
    world.send_to(&queue, 1, 1).await;
    for queue in [unknown, elsewhere] {
        assert!(world.receive_as(&queue, &polling(20)).await.is_empty());
        assert_eq!(world.counts(&queue).await, QueueCounts::default());
        let answers = world
            .queues()
            .acknowledge(&queue, &["x".to_owned()])
            .await
            .unwrap();
        assert_eq!(answers, [Settled::Invalid]);
    }
}

/// Message, handle and count.
pub async fn a_delivery_says_all_about_its_message(world: &mut World) {
    let queue = world.queue().await;
    let letter = sample::Letter::new(1, 1);
    world.send(&queue.workspace, &letter).await;
    let received = world.receive(&queue, 10).await;
    assert!(!received[0].receipt_handle.is_empty());
    let expected = Delivery {
        receipt_handle: received[0].receipt_handle.clone(),
        message_id: letter.message_id,
        body: letter.body,
        attributes: letter.attributes,
        receive_count: 1,
        enqueued_at: received[0].enqueued_at,
        redelivery: None,
    };
    assert_eq!(received, [expected]);
}

/// The time at which it came into the queue.
pub async fn a_delivery_says_when_its_message_came(world: &mut World) {
    let queue = world.queue().await;
    world.clock.advance(SECOND);
    let sent_at = world.now();
    world.send_to(&queue, 1, 1).await;
    world.clock.advance(SECOND);
    assert_eq!(world.receive(&queue, 10).await[0].enqueued_at, sent_at);
}

/// `max` is the most; what is left comes with the next receive.
pub async fn a_receive_gives_no_more_than_asked(world: &mut World) {
    let messages: Vec<_> = (0..13).map(|n| (n, n)).collect();
    let queue = filled(world, &messages).await;
    assert_eq!(world.receive(&queue, 1).await.len(), 1);
    assert_eq!(world.receive(&queue, 10).await.len(), 10);
    assert_eq!(world.receive(&queue, 10).await.len(), 2);
}

/// As many of a group as asked for come at once, oldest first.
pub async fn one_receive_holds_several_of_one_story_in_order(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 1)]).await;
    let received = world.receive(&queue, 10).await;
    assert_eq!(numbers(&received), [1, 2, 3]);
    let mut handles = handles(&received);
    handles.dedup();
    assert_eq!(handles.len(), 3, "each has a handle of its own");
}

/// The group with the oldest message is served first.
pub async fn oldest_groups_come_first(world: &mut World) {
    let queue = filled(world, &[(1, 2), (2, 1), (3, 2), (4, 3)]).await;
    assert_eq!(numbers(&world.receive(&queue, 1).await), [1]);
    assert_eq!(numbers(&world.receive(&queue, 1).await), [2]);
    assert_eq!(next(world, &queue).await, [4]);
}

/// Nothing more of a group comes until everything received of it is acknowledged.
pub async fn a_group_waits_until_all_is_acknowledged(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 1)]).await;
    let held = world.receive(&queue, 2).await;
    assert!(next(world, &queue).await.is_empty());
    world.acknowledge(&queue, &held[..1]).await;
    assert!(next(world, &queue).await.is_empty(), "the second is still hidden");
    world.acknowledge(&queue, &held[1..]).await;
    assert_eq!(next(world, &queue).await, [3]);
}

/// What came back of a group waits too, as long as another message of the group is hidden.
pub async fn a_group_waits_for_what_is_hidden_though_a_part_is_visible(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 1)]).await;
    let held = world.receive(&queue, 2).await;
    world.release(&queue, &held[..1], Duration::ZERO).await;
    assert!(
        next(world, &queue).await.is_empty(),
        "else the first could come behind the second"
    );
    world.clock.advance(VISIBILITY);
    assert_eq!(next(world, &queue).await, [1, 2, 3]);
}

/// A group that waits does not hold up the others.
pub async fn other_groups_go_on(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 2)]).await;
    assert_eq!(numbers(&world.receive(&queue, 1).await), [1]);
    assert_eq!(next(world, &queue).await, [3]);
    world.send_to(&queue, 4, 3).await;
    world.send_to(&queue, 5, 1).await;
    assert_eq!(next(world, &queue).await, [4]);
}

/// Two receives at the same moment share what is there.
pub async fn no_message_goes_to_two_receivers(world: &mut World) {
    let messages: Vec<_> = (0..8).map(|n| (n, n)).collect();
    let queue = filled(world, &messages).await;
    let (a, b) = futures::join!(world.receive(&queue, 5), world.receive(&queue, 5));
    let mut all = numbers(&[a, b].concat());
    all.sort_unstable();
    assert_eq!(all, (0..8).collect::<Vec<_>>());
}
