//! Dead letters, to be looked at and redriven: [`DeadLetters`](storybus_core::ports::DeadLetters).

pub mod keeping;
pub mod list;
pub mod take;

use std::time::Duration;

use storybus_core::domain::archived::Position;
use storybus_core::domain::dead_letter::DeadLetter;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::Turn;
use storybus_core::ports::dead_letters::{DeadLetterLimits, Wanted};

use super::world::{World, number};

pub(super) const MS: Duration = Duration::from_millis(1);

/// No limit that a behaviour meets by chance.
pub(super) const PLENTY: DeadLetterLimits = DeadLetterLimits {
    letters: 1000,
    bytes: 1 << 30,
};

/// Lets a message die: the next one that is received must be it.
pub(super) async fn kill(world: &World, queue: &QueueKey, n: u64) {
    let held = world.receive(queue, 10).await;
    let (dying, others): (Vec<_>, Vec<_>) = held.into_iter().partition(|d| number(d.message_id) == n);
    assert_eq!(dying.len(), 1, "message {n} waits");
    world.reject(queue, &dying, "bad").await;
    world.release(queue, &others, Duration::ZERO).await;
}

/// The queue `c1` of `w1`, in which these messages died, each of an order group of its own.
pub(super) async fn dead(world: &World, messages: &[u64]) -> QueueKey {
    let queue = world.queue().await;
    for n in messages {
        world.send_to(&queue, *n, *n).await;
        kill(world, &queue, *n).await;
    }
    queue
}

/// What a job gets that has its turn.
pub(super) async fn take(
    world: &World,
    queue: &QueueKey,
    turn: &Turn,
    wanted: Wanted<'_>,
    after: Option<&Position>,
) -> Vec<DeadLetter> {
    let taken = world.letters().take(queue, turn, wanted, after, PLENTY).await;
    taken.unwrap().expect("the turn is not over")
}

/// All that were dead by now.
pub(super) fn all(world: &World) -> Wanted<'static> {
    Wanted::All { until: world.now() }
}

/// By number.
pub(super) fn numbers(letters: &[DeadLetter]) -> Vec<u64> {
    letters.iter().map(|letter| number(letter.message_id)).collect()
}

/// Their places.
pub(super) fn positions(letters: &[DeadLetter]) -> Vec<Position> {
    letters.iter().map(|letter| letter.position.clone()).collect()
}
