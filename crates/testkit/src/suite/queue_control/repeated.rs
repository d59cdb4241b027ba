//! The same redelivery once more changes nothing.

use super::{drained, emptied, of_job, redeliver};
use crate::suite::behaviours;
use crate::suite::sample;
use crate::suite::world::World;

behaviours![
    what_waits_is_not_put_in_again,
    what_was_acknowledged_is_not_put_in_again,
    what_died_is_not_put_in_again,
    what_was_purged_is_not_put_in_again,
    a_repetition_may_bring_more,
    what_lies_before_the_last_is_passed_over needs Forward,
    a_repetition_at_a_later_turn_changes_nothing,
    each_job_delivers_for_itself,
    each_queue_is_delivered_to_for_itself,
    a_repetition_after_a_reopening_changes_nothing needs Reopen,
    a_repetition_much_later_changes_nothing needs Time,
];

/// A repeated call leaves one of each, in order.
pub async fn what_waits_is_not_put_in_again(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1), (2, 1), (3, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    for _ in 0..3 {
        redeliver(world, &queue, &turn, &replayed).await;
    }
    assert_eq!(world.counts(&queue).await.visible, 3);
    assert_eq!(drained(world, &queue).await, of_job("j1", &[1, 2, 3]));
}

/// Nor when the consumer was faster than the repetition.
pub async fn what_was_acknowledged_is_not_put_in_again(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1), (2, 2)]).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    assert_eq!(drained(world, &queue).await, of_job("j1", &[1, 2]));
    redeliver(world, &queue, &turn, &replayed).await;
    assert!(drained(world, &queue).await.is_empty());
}

/// Nor when it died meanwhile.
pub async fn what_died_is_not_put_in_again(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    let held = world.receive(&queue, 1).await;
    world.reject(&queue, &held, "bad").await;
    redeliver(world, &queue, &turn, &replayed).await;
    assert!(drained(world, &queue).await.is_empty());
    assert_eq!(world.counts(&queue).await.dead_lettered, 1);
}

/// Nor when it was purged.
pub async fn what_was_purged_is_not_put_in_again(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1), (2, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed[..1]).await;
    let audit = sample::audit("consumer.purge", &["w1", "c1"], world.now());
    assert_eq!(
        world.queue_control().purge(&queue, &audit).await.unwrap(),
        Some(1)
    );
    redeliver(world, &queue, &turn, &replayed).await;
    assert_eq!(drained(world, &queue).await, of_job("j1", &[2]));
}

/// What comes behind in the same call comes.
pub async fn a_repetition_may_bring_more(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1), (2, 1), (3, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed[..2]).await;
    redeliver(world, &queue, &turn, &replayed).await;
    assert_eq!(drained(world, &queue).await, of_job("j1", &[1, 2, 3]));
}

/// A job only goes forward.
pub async fn what_lies_before_the_last_is_passed_over(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1), (2, 1), (3, 1), (4, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed[1..3]).await;
    redeliver(world, &queue, &turn, &replayed).await;
    assert_eq!(drained(world, &queue).await, of_job("j1", &[2, 3, 4]));
}

/// Whoever goes on with the job repeats as safely.
pub async fn a_repetition_at_a_later_turn_changes_nothing(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    let turn = world.next_turn(&turn.job).await;
    redeliver(world, &queue, &turn, &replayed).await;
    assert_eq!(drained(world, &queue).await, of_job("j1", &[1]));
}

/// Two jobs deliver the same message twice.
pub async fn each_job_delivers_for_itself(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1)]).await;
    for job in ["j1", "j2"] {
        let turn = world.job(&queue, job).await;
        redeliver(world, &queue, &turn, &replayed).await;
    }
    let expected = [of_job("j1", &[1]), of_job("j2", &[1])].concat();
    assert_eq!(drained(world, &queue).await, expected);
}

/// A consumer that was made anew under its old id is another.
pub async fn each_queue_is_delivered_to_for_itself(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    let audit = sample::audit("consumer.delete", &["w1", "c1"], world.now());
    world.connections().delete(&queue.consumer, &audit).await.unwrap();
    let queue = world
        .consumer(
            "c1",
            &queue.workspace,
            storybus_core::domain::filter::Filter::default(),
        )
        .await;
    assert!(drained(world, &queue).await.is_empty());
    redeliver(world, &queue, &turn, &replayed).await;
    assert_eq!(drained(world, &queue).await, of_job("j1", &[1]));
}

/// An engine that was closed remembers what it took, acknowledged or not.
pub async fn a_repetition_after_a_reopening_changes_nothing(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1), (2, 2), (3, 3)]).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed[..2]).await;
    let first = world.receive(&queue, 1).await;
    world.acknowledge(&queue, &first).await;
    world.reopen().await;
    redeliver(world, &queue, &turn, &replayed).await;
    assert_eq!(drained(world, &queue).await, of_job("j1", &[2, 3]));
}

/// A job may be at work for days.
pub async fn a_repetition_much_later_changes_nothing(world: &mut World) {
    let (queue, replayed) = emptied(world, &[(1, 1), (2, 1)]).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed[..1]).await;
    assert_eq!(drained(world, &queue).await, of_job("j1", &[1]));
    world
        .clock
        .advance(std::time::Duration::from_secs(10 * 24 * 3600));
    world.send_to(&queue, 3, 3).await;
    assert_eq!(drained(world, &queue).await, [(3, None)]);
    redeliver(world, &queue, &turn, &replayed).await;
    assert_eq!(drained(world, &queue).await, of_job("j1", &[2]));
}
