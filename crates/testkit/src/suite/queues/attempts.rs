//! Receives that have a name, and can be repeated by it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use storybus_core::domain::delivery::Settled;
use storybus_core::domain::filter::Filter;
use storybus_core::ports::queues::{RECEIVE_ATTEMPT_LIFETIME, Receive};

use super::{MS, SECOND, filled, named, next, polling};
use crate::suite::behaviours;
use crate::suite::world::{VISIBILITY, World, handles, numbers};

behaviours![
    a_repeated_receive_gives_the_same,
    a_repeated_receive_hides_anew needs Time,
    a_repeated_receive_does_not_count,
    a_receive_is_repeated_until_one_was_acknowledged,
    a_receive_is_repeated_until_one_was_released,
    a_receive_is_repeated_until_one_was_rejected,
    a_receive_is_repeated_until_one_came_back needs Time,
    a_receive_is_repeated_for_five_minutes needs Time,
    receives_of_other_names_are_apart,
    receives_of_other_queues_are_apart,
    an_empty_receive_is_not_remembered,
    a_newer_receive_of_an_attempt_ends_the_one_that_waits needs Time,
    a_receive_that_does_not_wait_ends_one_of_its_attempt_too needs Time,
    of_many_receives_of_an_attempt_the_newest_waits needs Time,
    receives_of_one_attempt_at_one_moment_get_the_same,
    receives_of_other_attempts_do_not_end_each_other needs Time,
];

fn waiting(attempt: &str) -> Receive {
    Receive {
        attempt: Some(attempt.to_owned()),
        ..polling(20)
    }
}

/// The same name gives the same messages with the same handles, instead of leaving them hidden.
pub async fn a_repeated_receive_gives_the_same(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 2)]).await;
    let first = world.receive_as(&queue, &named("a-1_B")).await;
    assert_eq!(numbers(&first), [1, 2, 3]);
    world.send_to(&queue, 4, 3).await;
    assert_eq!(world.receive_as(&queue, &named("a-1_B")).await, first);
    assert_eq!(
        next(world, &queue).await,
        [4],
        "nothing else was hidden by the repetition"
    );
    assert_eq!(world.acknowledge(&queue, &first).await, [Settled::Done; 3]);
}

/// A repetition starts the visibility anew.
pub async fn a_repeated_receive_hides_anew(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    world.clock.advance(VISIBILITY - MS);
    assert_eq!(world.receive_as(&queue, &named("a")).await, first);
    world.clock.advance(VISIBILITY - MS);
    assert!(next(world, &queue).await.is_empty());
    assert_eq!(world.acknowledge(&queue, &first).await, [Settled::Done]);
}

/// A repetition is the same receive: neither the count nor the limit takes it for another.
pub async fn a_repeated_receive_does_not_count(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let once = Receive {
        attempt: named("a").attempt,
        ..world.limited(&queue, 1).await
    };
    for _ in 0..3 {
        let received = world.receive_as(&queue, &once).await;
        assert_eq!(received.iter().map(|d| d.receive_count).collect::<Vec<_>>(), [1]);
    }
}

/// Once one of its messages was acknowledged, a name stands for a new receive.
pub async fn a_receive_is_repeated_until_one_was_acknowledged(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    world.acknowledge(&queue, &first[..1]).await;
    world.send_to(&queue, 3, 3).await;
    assert_eq!(numbers(&world.receive_as(&queue, &named("a")).await), [3]);
    assert_eq!(
        numbers(&world.receive_as(&queue, &named("a")).await),
        [3],
        "which can be repeated in turn"
    );
}

/// Once one of its messages was given back, even to stay hidden, a name stands for a new receive.
pub async fn a_receive_is_repeated_until_one_was_released(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    world.release(&queue, &first[..1], SECOND).await;
    assert!(world.receive_as(&queue, &named("a")).await.is_empty());
    let second = world.receive_as(&queue, &named("b")).await;
    assert!(second.is_empty());
    world.release(&queue, &first[1..], Duration::ZERO).await;
    assert_eq!(numbers(&world.receive_as(&queue, &named("a")).await), [2]);
}

/// Once one of its messages was rejected, a name stands for a new receive.
pub async fn a_receive_is_repeated_until_one_was_rejected(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    world.reject(&queue, &first[..1], "bad").await;
    assert!(world.receive_as(&queue, &named("a")).await.is_empty());
}

/// Once its messages came back, a name stands for a new receive.
pub async fn a_receive_is_repeated_until_one_came_back(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    world.clock.advance(VISIBILITY);
    let second = world.receive_as(&queue, &named("a")).await;
    assert_eq!(numbers(&second), [1]);
    assert_ne!(handles(&first), handles(&second));
    assert_eq!(second[0].receive_count, 2);
}

/// A receive can be repeated for 5 minutes; then its name stands for a new one.
pub async fn a_receive_is_repeated_for_five_minutes(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let hour = Receive {
        visibility: Duration::from_secs(3600),
        ..named("a")
    };
    assert_eq!(world.receive_as(&queue, &hour).await.len(), 1);
    world.clock.advance(RECEIVE_ATTEMPT_LIFETIME - SECOND);
    assert_eq!(world.receive_as(&queue, &hour).await.len(), 1);
    // long enough after either of them
    world.clock.advance(RECEIVE_ATTEMPT_LIFETIME + SECOND);
    world.send_to(&queue, 2, 2).await;
    assert_eq!(numbers(&world.receive_as(&queue, &hour).await), [2]);
}

/// Another name, or none, is another receive.
pub async fn receives_of_other_names_are_apart(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    assert!(world.receive_as(&queue, &named("A")).await.is_empty());
    assert!(next(world, &queue).await.is_empty());
    assert_eq!(world.receive_as(&queue, &named("a")).await, first);
}

/// The same name at another queue is another receive.
pub async fn receives_of_other_queues_are_apart(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    world.send_to(&one, 1, 1).await;
    let first = world.receive_as(&one, &named("a")).await;
    let second = world.receive_as(&two, &named("a")).await;
    assert_eq!((numbers(&first), numbers(&second)), (vec![1], vec![1]));
    assert_ne!(handles(&first), handles(&second));
}

/// A receive that gave nothing has nothing to repeat.
pub async fn an_empty_receive_is_not_remembered(world: &mut World) {
    let queue = world.queue().await;
    assert!(world.receive_as(&queue, &named("a")).await.is_empty());
    world.send_to(&queue, 1, 1).await;
    assert_eq!(numbers(&world.receive_as(&queue, &named("a")).await), [1]);
}

/// A client that repeats its receive has given the one that waits up: that ends at once, with nothing.
pub async fn a_newer_receive_of_an_attempt_ends_the_one_that_waits(world: &mut World) {
    let queue = world.queue().await;
    let clock = world.clock.clone();
    let wait = waiting("a");
    let ended = AtomicBool::new(false);
    let first = async {
        let received = world.receive_as(&queue, &wait).await;
        ended.store(true, Ordering::Relaxed);
        received
    };
    let second = async {
        clock.until_asleep(1).await;
        world.receive_as(&queue, &wait).await
    };
    let send = async {
        while !ended.load(Ordering::Relaxed) {
            crate::executor::yield_now().await;
        }
        clock.until_asleep(1).await;
        world.send_to(&queue, 1, 1).await;
    };
    let before = world.now();
    let (first, second, ()) = futures::join!(first, second, send);
    assert_eq!((numbers(&first), numbers(&second)), (vec![], vec![1]));
    assert_eq!(world.now(), before);
    assert_eq!(
        world.receive_as(&queue, &named("a")).await,
        second,
        "to be repeated as ever"
    );
}

/// It need not wait itself.
pub async fn a_receive_that_does_not_wait_ends_one_of_its_attempt_too(world: &mut World) {
    let queue = world.queue().await;
    let wait = waiting("a");
    let second = async {
        world.clock.until_asleep(1).await;
        world.receive_as(&queue, &named("a")).await
    };
    let before = world.now();
    let (first, second) = futures::join!(world.receive_as(&queue, &wait), second);
    assert!(first.is_empty() && second.is_empty());
    assert_eq!(world.now(), before);
}

/// Of many repetitions the last one waits, beside others.
pub async fn of_many_receives_of_an_attempt_the_newest_waits(world: &mut World) {
    let queue = world.queue().await;
    let clock = world.clock.clone();
    let (wait, other) = (waiting("a"), polling(20));
    let clients = async { futures::future::join_all((0..5).map(|_| world.receive_as(&queue, &wait))).await };
    let other = async {
        clock.until_asleep(1).await;
        world.receive_as(&queue, &other).await
    };
    let send = async {
        while clock.sleepers() != 2 {
            crate::executor::yield_now().await;
        }
        world.send_to(&queue, 1, 1).await;
        // one of the two looks for it
        while clock.sleepers() > 1 {
            crate::executor::yield_now().await;
        }
        clock.advance(SECOND * 20);
    };
    let (mut received, other, ()) = futures::join!(clients, other, send);
    let newest = received.pop().unwrap_or_default();
    assert!(received.iter().all(Vec::is_empty), "{received:?}");
    assert_eq!(numbers(&[newest, other].concat()), [1]);
}

/// Both get what is there, as one receive and its repetition.
pub async fn receives_of_one_attempt_at_one_moment_get_the_same(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    for (wait, attempt) in [(named("a"), "a"), (waiting("b"), "b")] {
        let (a, b) = futures::join!(world.receive_as(&queue, &wait), world.receive_as(&queue, &wait));
        assert_eq!(numbers(&a), [1, 2], "{attempt}");
        assert_eq!(a, b, "{attempt}");
        world.release(&queue, &a, Duration::ZERO).await;
    }
}

/// Another name, another queue, or no name: each waits on.
pub async fn receives_of_other_attempts_do_not_end_each_other(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    let clock = world.clock.clone();
    let (a, b, none) = (waiting("a"), waiting("b"), polling(20));
    let time = async {
        while clock.sleepers() != 4 {
            crate::executor::yield_now().await;
        }
        clock.advance(SECOND * 20);
    };
    let before = world.now();
    let (received, ()) = futures::join!(
        futures::future::join_all([
            world.receive_as(&one, &a),
            world.receive_as(&one, &b),
            world.receive_as(&two, &a),
            world.receive_as(&one, &none),
        ]),
        time
    );
    assert!(received.iter().all(Vec::is_empty));
    assert_eq!(before.until(world.now()), SECOND * 20);
}
