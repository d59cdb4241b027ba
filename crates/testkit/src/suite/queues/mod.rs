//! The consumers' queues: [`Queues`](storybus_core::ports::Queues).

pub mod attempts;
pub mod dead_letters;
pub mod keeping;
pub mod receive;
pub mod release;
pub mod visibility;
pub mod waiting;

use std::time::Duration;

use storybus_core::domain::delivery::QueueKey;
use storybus_core::ports::queues::Receive;

use crate::suite::world::{World, numbers, receive};

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) const MS: Duration = Duration::from_millis(1);

/// A queue with these messages, each `(number, group)`.
pub(super) async fn filled(world: &World, messages: &[(u64, u64)]) -> QueueKey {
    let queue = world.queue().await;
    for (n, group) in messages {
        world.send_to(&queue, *n, *group).await;
    }
    queue
}

pub(super) fn named(attempt: &str) -> Receive {
    Receive {
        attempt: Some(attempt.to_owned()),
        ..receive(10)
    }
}

pub(super) fn polling(seconds: u64) -> Receive {
    Receive {
        wait: Duration::from_secs(seconds),
        ..receive(10)
    }
}

/// What a receive of up to ten gives, by number.
pub(super) async fn next(world: &World, queue: &QueueKey) -> Vec<u64> {
    numbers(&world.receive(queue, 10).await)
}
