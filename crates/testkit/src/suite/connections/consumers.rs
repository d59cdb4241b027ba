//! Consumers, with their queues.

use std::time::Duration;

use storybus_core::domain::connection::Role;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::filter::Filter;
use storybus_core::ports::queues::Receive;

use super::{delete, update};
use crate::suite::behaviours;
use crate::suite::world::{World, numbers, receive};

behaviours![
    an_update_leaves_the_queue_alone,
    a_deletion_drops_the_queue,
    a_deletion_ends_a_waiting_receive needs Time,
    a_disabled_consumer_receives_nothing,
    disabling_ends_a_waiting_receive needs Time,
    a_paused_consumer_receives_nothing,
    a_waiting_receive_of_a_paused_consumer_waits_on needs Time,
    a_pause_that_ends_lets_a_waiting_receive_go_on needs Time,
];

/// Disables or pauses the queue's consumer, or ends that.
async fn set(world: &World, queue: &QueueKey, disabled: bool, paused: bool) {
    let mut consumer = world.connections().get(&queue.consumer).await.unwrap().unwrap();
    consumer.version += 1;
    consumer.disabled = disabled;
    match &mut consumer.role {
        Role::Consumer(role) => role.paused = paused,
        Role::Producer(_) | Role::Operator => unreachable!("not a consumer"),
    }
    update(world, &consumer).await.unwrap();
}

fn waiting() -> Receive {
    Receive {
        wait: Duration::from_secs(20),
        ..receive(10)
    }
}

/// What waits in a consumer's queue, hidden or not, is not touched by an update.
pub async fn an_update_leaves_the_queue_alone(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    world.send_to(&queue, 2, 2).await;
    let held = world.receive(&queue, 1).await;
    let mut consumer = world.connections().get(&queue.consumer).await.unwrap().unwrap();
    consumer.version += 1;
    consumer.disabled = true;
    update(world, &consumer).await.unwrap();
    let counts = world.counts(&queue).await;
    assert_eq!((counts.visible, counts.in_flight), (1, 1));
    assert_eq!(
        world.acknowledge(&queue, &held).await,
        [storybus_core::domain::delivery::Settled::Done]
    );
}

/// With a consumer go its messages and their handles.
pub async fn a_deletion_drops_the_queue(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    world.send_to(&queue, 2, 2).await;
    let held = world.receive(&queue, 1).await;
    let consumer = world.connections().get(&queue.consumer).await.unwrap().unwrap();
    delete(world, &consumer).await.unwrap();
    assert!(world.receive(&queue, 10).await.is_empty());
    assert_eq!(
        world.counts(&queue).await,
        storybus_core::domain::delivery::QueueCounts::default()
    );
    assert_eq!(
        world.acknowledge(&queue, &held).await,
        [storybus_core::domain::delivery::Settled::Invalid]
    );
    let other = world.consumer("c2", &queue.workspace, Filter::default()).await;
    assert!(world.receive(&other, 10).await.is_empty());
}

/// A receive that waits at the queue comes back empty at once.
pub async fn a_deletion_ends_a_waiting_receive(world: &mut World) {
    let queue = world.queue().await;
    let consumer = world.connections().get(&queue.consumer).await.unwrap().unwrap();
    let waiting = Receive {
        wait: Duration::from_secs(20),
        ..receive(10)
    };
    let deletion = async {
        world.clock.until_asleep(1).await;
        delete(world, &consumer).await.unwrap();
    };
    let before = world.now();
    let (received, ()) = futures::join!(world.receive_as(&queue, &waiting), deletion);
    assert!(received.is_empty());
    assert_eq!(world.now(), before);
}

/// Neither anew nor by a repetition; and a long poll does not wait.
pub async fn a_disabled_consumer_receives_nothing(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    world.send_to(&queue, 2, 2).await;
    let named = Receive {
        attempt: Some("a".to_owned()),
        ..receive(1)
    };
    let held = world.receive_as(&queue, &named).await;
    set(world, &queue, true, false).await;
    for receive in [named.clone(), waiting()] {
        assert!(world.receive_as(&queue, &receive).await.is_empty());
    }
    set(world, &queue, false, false).await;
    assert_eq!(world.receive_as(&queue, &named).await, held);
    assert_eq!(numbers(&world.receive(&queue, 10).await), [2]);
}

/// It comes back empty at once; what comes then waits in the queue.
pub async fn disabling_ends_a_waiting_receive(world: &mut World) {
    let queue = world.queue().await;
    let disable = async {
        world.clock.until_asleep(1).await;
        set(world, &queue, true, false).await;
        world.send_to(&queue, 1, 1).await;
    };
    let (before, wait) = (world.now(), waiting());
    let (received, ()) = futures::join!(world.receive_as(&queue, &wait), disable);
    assert!(received.is_empty());
    assert_eq!(world.now(), before);
    assert_eq!(world.counts(&queue).await.visible, 1);
}

/// Neither anew nor by a repetition.
pub async fn a_paused_consumer_receives_nothing(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    world.send_to(&queue, 2, 2).await;
    let named = Receive {
        attempt: Some("a".to_owned()),
        ..receive(1)
    };
    let held = world.receive_as(&queue, &named).await;
    set(world, &queue, false, true).await;
    for receive in [named.clone(), receive(10)] {
        assert!(world.receive_as(&queue, &receive).await.is_empty());
    }
    set(world, &queue, false, false).await;
    assert_eq!(world.receive_as(&queue, &named).await, held);
    assert_eq!(numbers(&world.receive(&queue, 10).await), [2]);
}

/// It waits as if nothing came, though something does, or comes back; until its end, or until the consumer is disabled.
pub async fn a_waiting_receive_of_a_paused_consumer_waits_on(world: &mut World) {
    let queue = world.queue().await;
    let clock = world.clock.clone();
    for disabled in [false, true] {
        let release = Receive {
            visibility: Duration::from_secs(5),
            ..receive(10)
        };
        world.send_to(&queue, u64::from(disabled), 1).await;
        assert_eq!(world.receive_as(&queue, &release).await.len(), 1);
        let pause = async {
            clock.until_asleep(1).await;
            set(world, &queue, false, true).await;
            world.send_to(&queue, 10 + u64::from(disabled), 2).await;
            for _ in 0..3 {
                crate::executor::yield_now().await;
                clock.until_asleep(1).await;
                clock.advance(Duration::from_secs(5));
            }
            clock.until_asleep(1).await;
            if disabled {
                set(world, &queue, true, true).await;
            } else {
                clock.advance(Duration::from_secs(5));
            }
        };
        let (before, wait) = (world.now(), waiting());
        let (received, ()) = futures::join!(world.receive_as(&queue, &wait), pause);
        assert!(received.is_empty());
        let took = Duration::from_secs(if disabled { 15 } else { 20 });
        assert_eq!(before.until(world.now()), took);
        set(world, &queue, false, false).await;
        assert_eq!(world.drain(&queue).await.len(), 2);
    }
}

/// What came meanwhile is handed out at once.
pub async fn a_pause_that_ends_lets_a_waiting_receive_go_on(world: &mut World) {
    let queue = world.queue().await;
    let pause = async {
        world.clock.until_asleep(1).await;
        set(world, &queue, false, true).await;
        world.send_to(&queue, 1, 1).await;
        world.clock.until_asleep(1).await;
        set(world, &queue, false, false).await;
    };
    let (before, wait) = (world.now(), waiting());
    let (received, ()) = futures::join!(world.receive_as(&queue, &wait), pause);
    assert_eq!(numbers(&received), [1]);
    assert_eq!(world.now(), before);
}
