//! Dead letters in the hands of jobs.

use storybus_core::domain::archived::Position;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::Turn;
use storybus_core::ports::dead_letters::{DeadLetterLimits, Wanted};

use super::{MS, PLENTY, all, dead, kill, numbers, positions, take};
use crate::suite::behaviours;
use crate::suite::sample::{self, Letter};
use crate::suite::world::World;

behaviours![
    a_job_takes_all_in_order,
    what_is_taken_stays_and_says_by_whom,
    two_jobs_never_take_the_same,
    taking_again_gives_the_same_and_no_more,
    a_job_goes_on_behind_a_position,
    a_take_keeps_its_limits,
    chosen_messages_alone_are_taken,
    all_are_those_that_were_dead_by_then needs Time,
    held_takes_nothing_new,
    who_has_not_the_turn_takes_nothing,
    there_is_nothing_to_take_where_there_is_no_queue,
    what_was_taken_is_removed,
    a_job_removes_nothing_but_its_own,
    released_letters_are_free_again,
    a_job_releases_nothing_but_its_own,
    holds_survive_a_reopening needs Reopen,
];

/// The oldest first, and each is what a look at it shows.
pub async fn a_job_takes_all_in_order(world: &mut World) {
    let queue = dead(world, &[1, 2, 3]).await;
    let seen = world.dead_letters(&queue).await;
    let turn = world.job(&queue, "j1").await;
    let taken = take(world, &queue, &turn, all(world), None).await;
    assert_eq!(numbers(&taken), [1, 2, 3]);
    for (taken, seen) in taken.iter().zip(seen) {
        let mut taken = taken.clone();
        taken.taken_by = None;
        assert_eq!(taken, seen);
    }
}

/// They are listed and counted until they are removed.
pub async fn what_is_taken_stays_and_says_by_whom(world: &mut World) {
    let queue = dead(world, &[1, 2]).await;
    let turn = world.job(&queue, "j1").await;
    let chosen = [sample::message_id(2)];
    take(world, &queue, &turn, Wanted::Messages(&chosen), None).await;
    let letters = world.dead_letters(&queue).await;
    let holders: Vec<_> = letters.iter().map(|l| l.taken_by.clone()).collect();
    assert_eq!(holders, [None, Some(turn.job)]);
    assert_eq!(world.counts(&queue).await.dead_lettered, 2);
}

/// What one has the other does not get.
pub async fn two_jobs_never_take_the_same(world: &mut World) {
    let queue = dead(world, &[1, 2, 3]).await;
    let (one, two) = (world.job(&queue, "j1").await, world.job(&queue, "j2").await);
    let chosen = [sample::message_id(2)];
    let taken = take(world, &queue, &one, Wanted::Messages(&chosen), None).await;
    assert_eq!(numbers(&taken), [2]);
    let others = take(world, &queue, &two, all(world), None).await;
    assert_eq!(numbers(&others), [1, 3]);
    let ids = [1, 2, 3].map(sample::message_id);
    assert_eq!(
        numbers(&take(world, &queue, &one, Wanted::Messages(&ids), None).await),
        [2]
    );
    let three = world.job(&queue, "j3").await;
    assert!(take(world, &queue, &three, all(world), None).await.is_empty());
}

/// Until it is removed, a job gets what it has and nothing that came since.
pub async fn taking_again_gives_the_same_and_no_more(world: &mut World) {
    let queue = world.queue().await;
    for n in 1..=3 {
        world.send_to(&queue, n, n).await;
    }
    kill(world, &queue, 2).await;
    let turn = world.job(&queue, "j1").await;
    let ids = [1, 2, 3].map(sample::message_id);
    let taken = take(world, &queue, &turn, Wanted::Messages(&ids), None).await;
    assert_eq!(numbers(&taken), [2]);
    kill(world, &queue, 1).await;
    kill(world, &queue, 3).await;
    for wanted in [Wanted::Messages(&ids), all(world), Wanted::Held] {
        assert_eq!(
            take(world, &queue, &turn, wanted, None).await,
            taken,
            "{wanted:?}"
        );
    }
    let turn = world.next_turn(&turn.job).await;
    let behind = take(
        world,
        &queue,
        &turn,
        Wanted::Messages(&ids),
        Some(&taken[0].position),
    )
    .await;
    assert_eq!(numbers(&behind), [3]);
}

/// What lies before the position is not looked at, held or not.
pub async fn a_job_goes_on_behind_a_position(world: &mut World) {
    let queue = dead(world, &[1, 2, 3, 4]).await;
    let places = positions(&world.dead_letters(&queue).await);
    let turn = world.job(&queue, "j1").await;
    let limits = DeadLetterLimits { letters: 2, ..PLENTY };
    let first = world
        .letters()
        .take(&queue, &turn, all(world), None, limits)
        .await
        .unwrap();
    assert_eq!(numbers(&first.unwrap()), [1, 2]);
    assert_eq!(
        numbers(&take(world, &queue, &turn, Wanted::Held, Some(&places[0])).await),
        [2]
    );
    assert_eq!(
        numbers(&take(world, &queue, &turn, all(world), Some(&places[1])).await),
        [3, 4]
    );
    assert!(
        take(world, &queue, &turn, all(world), Some(&places[3]))
            .await
            .is_empty()
    );
}

/// A take ends with the first limit, and holds at least one.
pub async fn a_take_keeps_its_limits(world: &mut World) {
    let queue = world.queue().await;
    for n in 1..=5 {
        world
            .send(&queue.workspace, &Letter::new(n, n).of_size(100))
            .await;
        kill(world, &queue, n).await;
    }
    let mut job = 0;
    for (letters, bytes, expected) in [
        (2, 1000, 2),
        (9, 300, 3),
        (9, 299, 2),
        (3, 300, 3),
        (9, 0, 1),
        (9, 1000, 5),
    ] {
        job += 1;
        let turn = world.job(&queue, &format!("j{job}")).await;
        let limits = DeadLetterLimits { letters, bytes };
        for _ in 0..2 {
            let taken = world
                .letters()
                .take(&queue, &turn, all(world), None, limits)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(numbers(&taken), (1..=expected).collect::<Vec<_>>(), "{limits:?}");
        }
        world.letters().release(&queue, &turn.job).await.unwrap();
    }
}

/// Messages that are not dead letters are passed over.
pub async fn chosen_messages_alone_are_taken(world: &mut World) {
    let queue = dead(world, &[1, 2, 3, 4]).await;
    world.send_to(&queue, 5, 5).await;
    let turn = world.job(&queue, "j1").await;
    let ids = [4, 9, 2, 5].map(sample::message_id);
    let taken = take(world, &queue, &turn, Wanted::Messages(&ids), None).await;
    assert_eq!(numbers(&taken), [2, 4]);
    let two = world.job(&queue, "j2").await;
    assert!(
        take(world, &queue, &two, Wanted::Messages(&[]), None)
            .await
            .is_empty()
    );
    let many: Vec<_> = (1000..1999).chain([1]).map(sample::message_id).collect();
    assert_eq!(
        numbers(&take(world, &queue, &two, Wanted::Messages(&many), None).await),
        [1]
    );
}

/// That instant is included, the next is not.
pub async fn all_are_those_that_were_dead_by_then(world: &mut World) {
    let queue = world.queue().await;
    for n in 1..=4 {
        world.send_to(&queue, n, n).await;
    }
    let mut times = Vec::new();
    for n in [3, 1, 4, 2] {
        world.clock.advance(MS);
        kill(world, &queue, n).await;
        times.push(world.now());
    }
    for (n, (until, expected)) in times
        .iter()
        .zip([vec![3], vec![1, 3], vec![1, 3, 4], vec![1, 2, 3, 4]])
        .enumerate()
    {
        let turn = world.job(&queue, &format!("j{n}")).await;
        let taken = take(world, &queue, &turn, Wanted::All { until: *until }, None).await;
        assert_eq!(numbers(&taken), expected);
        world.letters().release(&queue, &turn.job).await.unwrap();
    }
    let turn = world.job(&queue, "j9").await;
    let until = times[0].minus(MS);
    assert!(
        take(world, &queue, &turn, Wanted::All { until }, None)
            .await
            .is_empty()
    );
}

/// A job that wants no more gets what it has.
pub async fn held_takes_nothing_new(world: &mut World) {
    let queue = dead(world, &[1, 2]).await;
    let turn = world.job(&queue, "j1").await;
    assert!(take(world, &queue, &turn, Wanted::Held, None).await.is_empty());
    let chosen = [sample::message_id(2)];
    take(world, &queue, &turn, Wanted::Messages(&chosen), None).await;
    let held = take(world, &queue, &turn, Wanted::Held, None).await;
    assert_eq!(numbers(&held), [2]);
    world
        .letters()
        .remove(&queue, &turn.job, &positions(&held))
        .await
        .unwrap();
    assert!(take(world, &queue, &turn, Wanted::Held, None).await.is_empty());
}

/// Once the job was written, who read it before takes nothing any more; nor does a job that is none.
pub async fn who_has_not_the_turn_takes_nothing(world: &mut World) {
    let queue = dead(world, &[1, 2]).await;
    let old = world.job(&queue, "j1").await;
    let new = world.next_turn(&old.job).await;
    let future = Turn {
        version: new.version + 1,
        ..new.clone()
    };
    let nobody = Turn {
        job: "j2".parse().unwrap(),
        version: 1,
    };
    for turn in [&old, &future, &nobody] {
        for wanted in [all(world), Wanted::Held] {
            let taken = world
                .letters()
                .take(&queue, turn, wanted, None, PLENTY)
                .await
                .unwrap();
            assert_eq!(taken, None, "{turn:?}");
        }
    }
    assert!(
        world
            .dead_letters(&queue)
            .await
            .iter()
            .all(|l| l.taken_by.is_none())
    );
    assert_eq!(
        numbers(&take(world, &queue, &new, all(world), None).await),
        [1, 2]
    );
    let old = new;
    world.next_turn(&old.job).await;
    let taken = world
        .letters()
        .take(&queue, &old, Wanted::Held, None, PLENTY)
        .await;
    assert_eq!(taken.unwrap(), None, "not what it holds either");
}

/// A queue that is not there has nothing, and that is no error.
pub async fn there_is_nothing_to_take_where_there_is_no_queue(world: &mut World) {
    let queue = dead(world, &[1]).await;
    let nobody = QueueKey {
        consumer: "c9".parse().unwrap(),
        ..queue
    };
    let turn = world.job(&nobody, "j1").await;
    assert!(take(world, &nobody, &turn, all(world), None).await.is_empty());
    let places = [Position("1".to_owned())];
    world.letters().remove(&nobody, &turn.job, &places).await.unwrap();
    world.letters().release(&nobody, &turn.job).await.unwrap();
}

/// Removed, a letter is gone; once more is nothing.
pub async fn what_was_taken_is_removed(world: &mut World) {
    let queue = dead(world, &[1, 2, 3]).await;
    let turn = world.job(&queue, "j1").await;
    let taken = take(world, &queue, &turn, all(world), None).await;
    for _ in 0..2 {
        world
            .letters()
            .remove(&queue, &turn.job, &positions(&taken[..2]))
            .await
            .unwrap();
        assert_eq!(numbers(&world.dead_letters(&queue).await), [3]);
        assert_eq!(world.counts(&queue).await.dead_lettered, 1);
    }
}

/// What another holds, and what nobody holds, stays.
pub async fn a_job_removes_nothing_but_its_own(world: &mut World) {
    let queue = dead(world, &[1, 2, 3]).await;
    let places = positions(&world.dead_letters(&queue).await);
    let (one, two) = (world.job(&queue, "j1").await, world.job(&queue, "j2").await);
    take(
        world,
        &queue,
        &one,
        Wanted::Messages(&[sample::message_id(1)]),
        None,
    )
    .await;
    take(
        world,
        &queue,
        &two,
        Wanted::Messages(&[sample::message_id(2)]),
        None,
    )
    .await;
    world.letters().remove(&queue, &one.job, &places).await.unwrap();
    assert_eq!(numbers(&world.dead_letters(&queue).await), [2, 3]);
}

/// What was given back any job gets; what was removed before is not given back.
pub async fn released_letters_are_free_again(world: &mut World) {
    let queue = dead(world, &[1, 2, 3]).await;
    let (one, two) = (world.job(&queue, "j1").await, world.job(&queue, "j2").await);
    let taken = take(world, &queue, &one, all(world), None).await;
    world
        .letters()
        .remove(&queue, &one.job, &positions(&taken[..1]))
        .await
        .unwrap();
    for _ in 0..2 {
        world.letters().release(&queue, &one.job).await.unwrap();
    }
    assert!(take(world, &queue, &one, Wanted::Held, None).await.is_empty());
    assert_eq!(
        numbers(&take(world, &queue, &two, all(world), None).await),
        [2, 3]
    );
}

/// What another holds stays in its hands.
pub async fn a_job_releases_nothing_but_its_own(world: &mut World) {
    let queue = dead(world, &[1, 2]).await;
    let (one, two) = (world.job(&queue, "j1").await, world.job(&queue, "j2").await);
    take(world, &queue, &one, all(world), None).await;
    world.letters().release(&queue, &two.job).await.unwrap();
    assert!(take(world, &queue, &two, all(world), None).await.is_empty());
    assert_eq!(take(world, &queue, &one, Wanted::Held, None).await.len(), 2);
}

/// Closed and opened again, each job holds what it held.
pub async fn holds_survive_a_reopening(world: &mut World) {
    let queue = dead(world, &[1, 2]).await;
    let (one, two) = (world.job(&queue, "j1").await, world.job(&queue, "j2").await);
    take(
        world,
        &queue,
        &one,
        Wanted::Messages(&[sample::message_id(1)]),
        None,
    )
    .await;
    world.reopen().await;
    assert_eq!(numbers(&take(world, &queue, &two, all(world), None).await), [2]);
    assert_eq!(numbers(&take(world, &queue, &one, Wanted::Held, None).await), [1]);
}
