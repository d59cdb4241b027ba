//! Emptying a queue.

use std::time::Duration;

use storybus_core::domain::delivery::{QueueCounts, QueueKey, Settled};
use storybus_core::domain::filter::Filter;
use storybus_core::ports::queues::Receive;

use crate::suite::behaviours;
use crate::suite::dead_letters::{kill, numbers as letter_numbers};
use crate::suite::sample;
use crate::suite::world::{World, numbers, receive};

behaviours![
    everything_that_waits_goes,
    what_is_hidden_goes_too,
    handles_end_with_their_messages needs Purges,
    what_was_acknowledged_stays_acknowledged,
    dead_letters_stay,
    what_comes_after_is_delivered,
    other_queues_are_not_touched,
    a_repeated_receive_does_not_bring_it_back,
    a_purge_is_audited,
    what_is_not_there_is_not_purged,
    a_purge_survives_a_reopening needs Reopen,
    a_receive_that_waits_goes_on_waiting needs Time,
];

async fn purge(world: &World, queue: &QueueKey) -> Option<u64> {
    let audit = sample::audit("consumer.purge", &["w1", "c1"], world.now());
    world.queue_control().purge(queue, &audit).await.unwrap()
}

/// A queue with messages of these numbers, each of its own group.
async fn filled(world: &World, messages: &[u64]) -> QueueKey {
    let queue = world.queue().await;
    for n in messages {
        world.send_to(&queue, *n, *n).await;
    }
    queue
}

/// All of it, and it is told how many.
pub async fn everything_that_waits_goes(world: &mut World) {
    let queue = filled(world, &(1..=25).collect::<Vec<_>>()).await;
    assert_eq!(purge(world, &queue).await, Some(25));
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
    assert!(world.drain(&queue).await.is_empty());
    assert_eq!(purge(world, &queue).await, Some(0));
}

/// In flight or nacked with a delay: it goes, and holds nothing back any more.
pub async fn what_is_hidden_goes_too(world: &mut World) {
    let queue = filled(world, &[1, 2, 3]).await;
    world.send_to(&queue, 4, 1).await;
    let held = world.receive(&queue, 3).await;
    world.release(&queue, &held[..1], Duration::from_secs(3600)).await;
    assert_eq!(purge(world, &queue).await, Some(4));
    world.send_to(&queue, 5, 1).await;
    assert_eq!(numbers(&world.drain(&queue).await), [5]);
}

/// What was received before cannot be settled any more.
pub async fn handles_end_with_their_messages(world: &mut World) {
    let queue = filled(world, &[1, 2, 3]).await;
    let held = world.receive(&queue, 3).await;
    purge(world, &queue).await;
    assert_eq!(world.acknowledge(&queue, &held[..1]).await, [Settled::Invalid]);
    assert_eq!(
        world.release(&queue, &held[1..2], Duration::ZERO).await,
        [Settled::Invalid]
    );
    assert_eq!(world.reject(&queue, &held[2..], "bad").await, [Settled::Invalid]);
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}

/// A second acknowledgement within the visibility is done, purged or not.
pub async fn what_was_acknowledged_stays_acknowledged(world: &mut World) {
    let queue = filled(world, &[1]).await;
    let held = world.receive(&queue, 1).await;
    world.acknowledge(&queue, &held).await;
    assert_eq!(purge(world, &queue).await, Some(0));
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Done]);
}

/// They have to be redriven or to grow old.
pub async fn dead_letters_stay(world: &mut World) {
    let queue = filled(world, &[1, 2]).await;
    kill(world, &queue, 1).await;
    assert_eq!(purge(world, &queue).await, Some(1));
    assert_eq!(letter_numbers(&world.dead_letters(&queue).await), [1]);
    assert_eq!(world.counts(&queue).await.dead_lettered, 1);
}

/// A purged queue is a queue.
pub async fn what_comes_after_is_delivered(world: &mut World) {
    let queue = filled(world, &[1]).await;
    purge(world, &queue).await;
    world.send_to(&queue, 2, 1).await;
    assert_eq!(numbers(&world.drain(&queue).await), [2]);
}

/// The other consumers of the same messages keep them.
pub async fn other_queues_are_not_touched(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    world.send_to(&one, 1, 1).await;
    assert_eq!(purge(world, &one).await, Some(1));
    assert_eq!(numbers(&world.drain(&two).await), [1]);
}

/// The same attempt again finds an empty queue.
pub async fn a_repeated_receive_does_not_bring_it_back(world: &mut World) {
    let queue = filled(world, &[1]).await;
    let named = Receive {
        attempt: Some("a".to_owned()),
        ..receive(10)
    };
    assert_eq!(world.receive_as(&queue, &named).await.len(), 1);
    purge(world, &queue).await;
    assert!(world.receive_as(&queue, &named).await.is_empty());
    world.send_to(&queue, 2, 1).await;
    assert_eq!(numbers(&world.receive_as(&queue, &named).await), [2]);
}

/// One entry a purge, written with it.
pub async fn a_purge_is_audited(world: &mut World) {
    let queue = filled(world, &[1]).await;
    let audit = sample::audit("consumer.purge", &["w1", "c1"], world.now());
    world.queue_control().purge(&queue, &audit).await.unwrap();
    let (entries, _) = world.audit().list(None, 10).await.unwrap().unwrap();
    assert_eq!(entries[0], audit);
    assert_eq!(entries.iter().filter(|e| e.action == audit.action).count(), 1);
}

/// No queue, no purge, no entry.
pub async fn what_is_not_there_is_not_purged(world: &mut World) {
    let queue = world.queue().await;
    let nobody = QueueKey {
        consumer: "c9".parse().unwrap(),
        ..queue
    };
    assert_eq!(purge(world, &nobody).await, None);
    let (entries, _) = world.audit().list(None, 10).await.unwrap().unwrap();
    assert!(entries.iter().all(|entry| entry.action != "consumer.purge"));
}

/// What is gone is gone.
pub async fn a_purge_survives_a_reopening(world: &mut World) {
    let queue = filled(world, &[1, 2]).await;
    world.receive(&queue, 1).await;
    assert_eq!(purge(world, &queue).await, Some(2));
    world.reopen().await;
    assert!(world.drain(&queue).await.is_empty());
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}

/// It is not told of an empty queue; it gets what comes next.
pub async fn a_receive_that_waits_goes_on_waiting(world: &mut World) {
    let queue = filled(world, &[1]).await;
    world.receive(&queue, 1).await;
    let polling = Receive {
        wait: Duration::from_secs(20),
        ..receive(10)
    };
    let world = &*world;
    let meanwhile = async {
        world.clock.until_asleep(1).await;
        purge(world, &queue).await;
        world.send_to(&queue, 2, 1).await;
    };
    let (received, ()) = futures::join!(world.receive_as(&queue, &polling), meanwhile);
    assert_eq!(numbers(&received), [2]);
}
