//! How long dead letters are kept.

use storybus_core::ports::dead_letters::Wanted;
use storybus_core::ports::queues::RETENTION;

use super::{MS, all, dead, kill, numbers, positions, take};
use crate::suite::behaviours;
use crate::suite::world::World;

behaviours![
    a_dead_letter_is_kept_for_fourteen_days needs Time,
    its_time_counts_from_its_death needs Time,
    a_taken_one_is_kept_longer needs Time,
    a_released_one_goes_when_its_time_is_over needs Time,
];

/// It is there until its age is 14 days, to the millisecond.
pub async fn a_dead_letter_is_kept_for_fourteen_days(world: &mut World) {
    let queue = dead(world, &[1]).await;
    world.clock.advance(MS);
    world.send_to(&queue, 2, 2).await;
    kill(world, &queue, 2).await;
    let turn = world.job(&queue, "j1").await;
    world.clock.advance(RETENTION - MS * 2);
    assert_eq!(numbers(&world.dead_letters(&queue).await), [1, 2]);
    world.clock.advance(MS);
    assert_eq!(numbers(&world.dead_letters(&queue).await), [2]);
    assert_eq!(numbers(&take(world, &queue, &turn, all(world), None).await), [2]);
}

/// However long it had waited before.
pub async fn its_time_counts_from_its_death(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    world.clock.advance(RETENTION - MS);
    kill(world, &queue, 1).await;
    world.clock.advance(RETENTION - MS);
    assert_eq!(numbers(&world.dead_letters(&queue).await), [1]);
    world.clock.advance(MS);
    assert!(world.dead_letters(&queue).await.is_empty());
}

/// While a job holds it, it does not go: the job has still to deliver it.
pub async fn a_taken_one_is_kept_longer(world: &mut World) {
    let queue = dead(world, &[1, 2]).await;
    let turn = world.job(&queue, "j1").await;
    let chosen = [crate::suite::sample::message_id(2)];
    take(world, &queue, &turn, Wanted::Messages(&chosen), None).await;
    world.clock.advance(RETENTION * 2);
    assert_eq!(numbers(&world.dead_letters(&queue).await), [2]);
    let held = take(world, &queue, &turn, Wanted::Held, None).await;
    assert_eq!(numbers(&held), [2]);
    world
        .letters()
        .remove(&queue, &turn.job, &positions(&held))
        .await
        .unwrap();
    assert!(world.dead_letters(&queue).await.is_empty());
}

/// Given back, it is as old as it is.
pub async fn a_released_one_goes_when_its_time_is_over(world: &mut World) {
    let queue = dead(world, &[1]).await;
    let turn = world.job(&queue, "j1").await;
    take(world, &queue, &turn, all(world), None).await;
    world.clock.advance(RETENTION);
    world.letters().release(&queue, &turn.job).await.unwrap();
    assert!(world.dead_letters(&queue).await.is_empty());
    assert!(take(world, &queue, &turn, all(world), None).await.is_empty());
}
