//! Queues in the hands of jobs and operators: [`QueueControl`](storybus_core::ports::QueueControl).

pub mod purge;
pub mod redeliver;
pub mod repeated;
pub mod trace;

use storybus_core::domain::archived::Archived;
use storybus_core::domain::delivery::{Delivery, QueueKey};
use storybus_core::domain::job::Turn;
use storybus_core::ports::queue_control::{Redelivered, Redelivery};
use storybus_protocol::id::WorkspaceId;

use super::archive;
use super::sample::Letter;
use super::world::{World, number};

/// What a job would deliver of the archive, in order.
pub(super) async fn replayed(world: &World, workspace: &WorkspaceId) -> Vec<Redelivery> {
    let all = archive::everything(world, workspace).await;
    all.into_iter().map(redelivery).collect()
}

fn redelivery(message: Archived) -> Redelivery {
    Redelivery {
        position: message.head.position,
        message_id: message.head.message_id,
        correlation_id: message.head.attributes.correlation_id.parse().unwrap(),
        body: message.body,
        attributes: message.head.attributes,
    }
}

/// A queue that got these messages, each `(number, group)`, and acknowledged them; and what a job can deliver again.
pub(super) async fn emptied(world: &World, messages: &[(u64, u64)]) -> (QueueKey, Vec<Redelivery>) {
    let queue = world.queue().await;
    for (n, group) in messages {
        world.send(&queue.workspace, &Letter::new(*n, *group)).await;
    }
    assert_eq!(world.drain(&queue).await.len(), messages.len());
    let replayed = replayed(world, &queue.workspace).await;
    (queue, replayed)
}

/// Delivers as this turn's replay.
pub(super) async fn redeliver(
    world: &World,
    queue: &QueueKey,
    turn: &Turn,
    messages: &[Redelivery],
) -> Redelivered {
    let mark = format!("replay:{}", turn.job);
    world
        .queue_control()
        .redeliver(queue, turn, &mark, messages)
        .await
        .unwrap()
}

/// Everything that a queue holds, each as `(number, mark)`.
pub(super) async fn drained(world: &World, queue: &QueueKey) -> Vec<(u64, Option<String>)> {
    let told = |d: Delivery| (number(d.message_id), d.redelivery);
    world.drain(queue).await.into_iter().map(told).collect()
}

/// Messages of one job, as [`drained`] tells them.
pub(super) fn of_job(job: &str, messages: &[u64]) -> Vec<(u64, Option<String>)> {
    messages
        .iter()
        .map(|n| (*n, Some(format!("replay:{job}"))))
        .collect()
}
