//! Messages that jobs put into a queue.

use std::time::Duration;

use storybus_core::domain::dead_letter::Cause;
use storybus_core::domain::delivery::{Delivery, Settled};
use storybus_core::domain::filter::Filter;
use storybus_core::ports::dead_letters::Wanted;
use storybus_core::ports::queue_control::{MAX_REDELIVERIES, Redelivered, Redelivery};
use storybus_core::ports::queues::{RETENTION, Receive};

use super::{drained, emptied, of_job, redeliver, replayed};
use crate::suite::behaviours;
use crate::suite::sample::{self, Letter};
use crate::suite::world::{World, number, numbers, receive};

behaviours![
    a_redelivered_message_is_the_message_with_a_mark,
    a_redelivered_message_comes_at_its_redelivery needs Time,
    redelivered_messages_come_in_their_order,
    they_come_behind_all_that_waits,
    they_wait_for_what_is_hidden_of_their_group,
    nothing_for_nobody_is_done,
    as_many_as_there_may_be_come_at_once,
    a_message_twice_in_the_archive_comes_twice needs Time,
    publications_are_dropped_apart_from_redeliveries,
    a_dead_letter_starts_anew,
    a_redelivered_message_dies_like_any_other,
    a_redelivered_message_waits_for_fourteen_days needs Time,
    a_redelivered_message_outlives_the_archive needs Time,
    a_redelivery_wakes_a_receive_that_waits needs Time,
    a_redelivery_is_not_archived_again,
    other_queues_get_nothing,
    there_is_no_delivery_without_a_queue,
    who_has_not_the_turn_delivers_nothing needs Turns,
];

/// Bytes and attributes unchanged, a mark, a receive count that starts anew, the time of the redelivery.
pub async fn a_redelivered_message_is_the_message_with_a_mark(world: &mut World) {
    let queue = world.queue().await;
    let letter = Letter::new(1, 1).of_size(2000);
    world.send(&queue.workspace, &letter).await;
    for _ in 0..3 {
        let held = world.receive(&queue, 1).await;
        world.release(&queue, &held, Duration::ZERO).await;
    }
    world.drain(&queue).await;
    world.clock.advance(Duration::from_secs(60));
    let replayed = replayed(world, &queue.workspace).await;
    let turn = world.job(&queue, "j1").await;
    assert_eq!(
        redeliver(world, &queue, &turn, &replayed).await,
        Redelivered::Done
    );
    let received = world.receive(&queue, 10).await;
    let expected = Delivery {
        receipt_handle: received[0].receipt_handle.clone(),
        message_id: letter.message_id,
        body: letter.body,
        attributes: letter.attributes,
        receive_count: 1,
        enqueued_at: received[0].enqueued_at,
        redelivery: Some("replay:j1".to_owned()),
    };
    assert_eq!(received, [expected]);
    world.release(&queue, &received, Duration::ZERO).await;
    let again = world.receive(&queue, 10).await;
    assert_eq!(
        (again[0].receive_count, again[0].redelivery.as_deref()),
        (2, Some("replay:j1"))
    );
    assert_eq!(world.acknowledge(&queue, &again).await, [Settled::Done]);
}

/// Its time is that of the redelivery.
pub async fn a_redelivered_message_comes_at_its_redelivery(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1)]).await;
    world.clock.advance(Duration::from_secs(60));
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    assert_eq!(world.receive(&queue, 1).await[0].enqueued_at, world.now());
}

/// In the order of the call, whatever their groups.
pub async fn redelivered_messages_come_in_their_order(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(5, 1), (4, 2), (3, 1), (2, 2), (1, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed[..2]).await;
    redeliver(world, &queue, &turn, &replayed[2..]).await;
    let received = world.drain(&queue).await;
    for (group, expected) in [(1, vec![5, 3, 1]), (2, vec![4, 2])] {
        let id = sample::correlation_id(group).to_string();
        let of_group: Vec<_> = received
            .iter()
            .filter(|d| d.attributes.correlation_id == id)
            .cloned()
            .collect();
        assert_eq!(numbers(&of_group), expected);
    }
}

/// What is new comes first, of their own group too; what is newer still comes behind.
pub async fn they_come_behind_all_that_waits(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1), (2, 1)]).await;
    world.send_to(&queue, 3, 1).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    world.send_to(&queue, 4, 1).await;
    assert_eq!(numbers(&world.drain(&queue).await), [3, 1, 2, 4]);
}

/// A message in flight holds back what is delivered again of its group, and of no other.
pub async fn they_wait_for_what_is_hidden_of_their_group(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1), (2, 2)]).await;
    world.send_to(&queue, 3, 1).await;
    let held = world.receive(&queue, 10).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    assert_eq!(numbers(&world.receive(&queue, 10).await), [2]);
    world.release(&queue, &held, Duration::ZERO).await;
    assert_eq!(numbers(&world.receive(&queue, 10).await), [3, 1]);
}

/// An empty call is a call.
pub async fn nothing_for_nobody_is_done(world: &mut World) {
    let (queue, _) = emptied(world, &[]).await;
    let turn = world.job(&queue, "j1").await;
    assert_eq!(redeliver(world, &queue, &turn, &[]).await, Redelivered::Done);
    assert!(world.drain(&queue).await.is_empty());
}

/// A full call keeps its order.
pub async fn as_many_as_there_may_be_come_at_once(world: &mut World) {
    let messages: Vec<(u64, u64)> = (0..u64::try_from(MAX_REDELIVERIES).unwrap())
        .map(|n| (n, 1))
        .collect();
    let (queue, replayed) = emptied(world, &messages).await;
    assert_eq!(replayed.len(), MAX_REDELIVERIES);
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    let expected: Vec<u64> = messages.iter().map(|(n, _)| *n).collect();
    assert_eq!(numbers(&world.drain(&queue).await), expected);
}

/// Two places in the archive are two deliveries.
pub async fn a_message_twice_in_the_archive_comes_twice(world: &mut World) {
    let queue = world.queue().await;
    for _ in 0..2 {
        world.publish_anew(&queue.workspace, &Letter::new(1, 1)).await;
        world.clock.advance(Duration::from_secs(301));
    }
    world.drain(&queue).await;
    let replayed = replayed(world, &queue.workspace).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    assert_eq!(drained(world, &queue).await, of_job("j1", &[1, 1]));
}

/// A publication within the 5 minutes does not keep a redelivery away, nor a redelivery the next publication.
pub async fn publications_are_dropped_apart_from_redeliveries(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    assert_eq!(drained(world, &queue).await, of_job("j1", &[1]));
    world.send_to(&queue, 2, 1).await;
    assert_eq!(drained(world, &queue).await, [(2, None)]);
}

/// Redriven, a message that was received too often can be received as often again.
pub async fn a_dead_letter_starts_anew(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    let limited = world.limited(&queue, 2).await;
    for count in [1, 2] {
        let held = world.receive_as(&queue, &limited).await;
        assert_eq!(held[0].receive_count, count);
        world.release(&queue, &held, Duration::ZERO).await;
    }
    assert!(world.receive_as(&queue, &limited).await.is_empty());
    let turn = world.job(&queue, "j1").await;
    let limits = crate::suite::dead_letters::PLENTY;
    let wanted = Wanted::All { until: world.now() };
    let taken = world
        .letters()
        .take(&queue, &turn, wanted, None, limits)
        .await
        .unwrap()
        .unwrap();
    let letter = taken[0].clone();
    let message = Redelivery {
        position: letter.position.clone(),
        message_id: letter.message_id,
        correlation_id: letter.attributes.correlation_id.parse().unwrap(),
        body: letter.body,
        attributes: letter.attributes,
    };
    let redelivered = world
        .queue_control()
        .redeliver(&queue, &turn, "redrive:j1", &[message])
        .await;
    assert_eq!(redelivered.unwrap(), Redelivered::Done);
    world
        .letters()
        .remove(&queue, &turn.job, std::slice::from_ref(&letter.position))
        .await
        .unwrap();
    for count in [1, 2] {
        let held = world.receive_as(&queue, &limited).await;
        assert_eq!(
            (held[0].receive_count, held[0].redelivery.as_deref()),
            (count, Some("redrive:j1"))
        );
        world.release(&queue, &held, Duration::ZERO).await;
    }
    assert!(world.receive_as(&queue, &limited).await.is_empty());
    let dead = world.dead_letters(&queue).await;
    assert_eq!(dead.len(), 1);
    assert_ne!(dead[0].position, letter.position, "it arrived once more");
    assert_eq!(
        (dead[0].cause.clone(), dead[0].redelivery.as_deref()),
        (Cause::MaxReceives, Some("redrive:j1"))
    );
}

/// Rejected, it is a dead letter behind those that came before it, with its mark.
pub async fn a_redelivered_message_dies_like_any_other(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1)]).await;
    world.send_to(&queue, 2, 2).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    let held = world.receive(&queue, 10).await;
    world.reject(&queue, &held, "bad").await;
    let dead = world.dead_letters(&queue).await;
    let told: Vec<_> = dead
        .iter()
        .map(|l| (number(l.message_id), l.redelivery.as_deref()))
        .collect();
    assert_eq!(told, [(2, None), (1, Some("replay:j1"))]);
    assert_eq!(dead[1].body, replayed[0].body);
}

/// Its 14 days begin with the redelivery.
pub async fn a_redelivered_message_waits_for_fourteen_days(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1)]).await;
    world.clock.advance(RETENTION - Duration::from_secs(1));
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    world.clock.advance(RETENTION - Duration::from_millis(1));
    let counts = world.counts(&queue).await;
    assert_eq!(counts.visible, 1);
    world.clock.advance(Duration::from_millis(1));
    assert!(world.receive(&queue, 1).await.is_empty());
}

/// What a queue or its dead letters hold keeps its bytes when the archive has forgotten the message.
pub async fn a_redelivered_message_outlives_the_archive(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1), (2, 2)]).await;
    let retention = world.archive().retention();
    world.clock.advance(retention - Duration::from_secs(1));
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    world.compact().await;
    world.clock.advance(RETENTION - Duration::from_secs(60));
    world.compact().await;
    world.send_to(&queue, 3, 3).await;
    let received = world.receive(&queue, 10).await;
    assert_eq!(numbers(&received), [1, 2, 3]);
    assert_eq!(
        (&received[0].body, &received[1].attributes),
        (&replayed[0].body, &replayed[1].attributes)
    );
    world.reject(&queue, &received[1..2], "bad").await;
    world.clock.advance(RETENTION - Duration::from_secs(60));
    world.compact().await;
    let dead = world.dead_letters(&queue).await;
    assert_eq!(
        (&dead[0].body, &dead[0].attributes),
        (&replayed[1].body, &replayed[1].attributes)
    );
}

/// A receive that waits gets them at once.
pub async fn a_redelivery_wakes_a_receive_that_waits(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1), (2, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    let polling = Receive {
        wait: Duration::from_secs(20),
        ..receive(10)
    };
    let world = &*world;
    let delivering = async {
        world.clock.until_asleep(1).await;
        redeliver(world, &queue, &turn, &replayed).await;
    };
    let (received, ()) = futures::join!(world.receive_as(&queue, &polling), delivering);
    assert_eq!(numbers(&received), [1, 2]);
}

/// The archive keeps what was published, not what was delivered.
pub async fn a_redelivery_is_not_archived_again(world: &mut World) {
    let (queue, before) = emptied(world, &[(1, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &before).await;
    assert_eq!(replayed(world, &queue.workspace).await, before);
}

/// A job delivers to one consumer.
pub async fn other_queues_get_nothing(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1)]).await;
    let other = world.consumer("c2", &queue.workspace, Filter::default()).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    assert!(world.drain(&other).await.is_empty());
    assert_eq!(drained(world, &queue).await, of_job("j1", &[1]));
}

/// A consumer that was deleted gets nothing, and the job is told so.
pub async fn there_is_no_delivery_without_a_queue(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    let audit = sample::audit("consumer.delete", &["w1", "c1"], world.now());
    world.connections().delete(&queue.consumer, &audit).await.unwrap();
    assert_eq!(
        redeliver(world, &queue, &turn, &replayed).await,
        Redelivered::NoQueue
    );
}

/// Once the job was written, who read it before delivers nothing any more; nor does a job that is none.
pub async fn who_has_not_the_turn_delivers_nothing(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1), (2, 2)]).await;
    let old = world.job(&queue, "j1").await;
    redeliver(world, &queue, &old, &replayed[..1]).await;
    let new = world.next_turn(&old.job).await;
    let nobody = storybus_core::domain::job::Turn {
        job: "j2".parse().unwrap(),
        version: 1,
    };
    for turn in [&old, &nobody] {
        let told = redeliver(world, &queue, turn, &replayed).await;
        assert_eq!(told, Redelivered::Overtaken);
    }
    assert_eq!(drained(world, &queue).await, of_job("j1", &[1]));
    assert_eq!(redeliver(world, &queue, &new, &replayed).await, Redelivered::Done);
    assert_eq!(drained(world, &queue).await, of_job("j1", &[2]));
}
