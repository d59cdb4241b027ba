//! Where a message is.

use std::time::Duration;

use storybus_core::domain::archived::Position;
use storybus_core::domain::dead_letter::Cause;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::filter::Filter;
use storybus_core::domain::time::Millis;
use storybus_core::domain::trace::{QueueTrace, Trace, TraceState};

use super::{redeliver, replayed};
use crate::suite::behaviours;
use crate::suite::sample;
use crate::suite::world::{VISIBILITY, World};

behaviours![
    a_message_that_waits_is_waiting needs Traces,
    a_received_message_is_in_flight needs Traces,
    a_delayed_message_is_in_flight needs Time,
    a_message_that_came_back_is_waiting needs Time,
    an_acknowledged_message_is_known_for_a_moment needs Traces,
    a_dead_letter_says_why,
    a_message_that_was_delivered_again_is_in_both_places needs Traces,
    a_purge_is_known_by_its_time,
    consumers_are_told_apart needs Traces,
    a_message_that_never_came_is_nowhere,
    workspaces_do_not_see_each_other needs Traces,
    traces_survive_a_reopening needs Reopen,
];

/// What a queue knows of message `n`.
async fn traced(world: &World, queue: &QueueKey, n: u64) -> QueueTrace {
    let id = sample::message_id(n);
    world.file().await;
    let heads = world.archive().find(&queue.workspace, id).await.unwrap();
    let positions: Vec<Position> = heads.into_iter().map(|head| head.position).collect();
    let traces = world
        .queue_control()
        .trace(&queue.workspace, id, &positions)
        .await;
    let mut of_queue = traces.unwrap();
    of_queue.retain(|trace| trace.consumer == queue.consumer);
    assert!(of_queue.len() <= 1);
    of_queue.pop().unwrap_or_else(|| QueueTrace {
        consumer: queue.consumer.clone(),
        deliveries: Vec::new(),
        purged_at: None,
    })
}

/// Each delivery: where, how often received, with which mark.
async fn stands(world: &World, queue: &QueueKey, n: u64) -> Vec<(TraceState, u32, Option<String>)> {
    let trace = traced(world, queue, n).await;
    let told = |t: Trace| (t.state, t.receive_count, t.redelivery);
    trace.deliveries.into_iter().map(told).collect()
}

fn since(trace: &QueueTrace) -> Option<Millis> {
    trace.deliveries.first().and_then(|t| t.at)
}

/// Never received, or given back at once.
pub async fn a_message_that_waits_is_waiting(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    assert_eq!(stands(world, &queue, 1).await, [(TraceState::Waiting, 0, None)]);
    let at = world.now();
    assert!(since(&traced(world, &queue, 1).await).is_none_or(|since| since == at));
    let held = world.receive(&queue, 1).await;
    world.release(&queue, &held, Duration::ZERO).await;
    assert_eq!(stands(world, &queue, 1).await, [(TraceState::Waiting, 1, None)]);
}

/// Since its receive, as far as that is known.
pub async fn a_received_message_is_in_flight(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    world.clock.advance(Duration::from_secs(9));
    world.receive(&queue, 1).await;
    let trace = traced(world, &queue, 1).await;
    assert_eq!(trace.deliveries.len(), 1);
    assert_eq!(
        (&trace.deliveries[0].state, trace.deliveries[0].receive_count),
        (&TraceState::InFlight, 1)
    );
    let at = world.now();
    assert!(since(&trace).is_none_or(|since| since == at));
}

/// A nack with a delay hides as a receive does.
pub async fn a_delayed_message_is_in_flight(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    let held = world.receive(&queue, 1).await;
    world.release(&queue, &held, VISIBILITY * 2).await;
    world.clock.advance(VISIBILITY);
    assert_eq!(stands(world, &queue, 1).await, [(TraceState::InFlight, 1, None)]);
}

/// When the visibility ended, it waits again, and it shows how often it came.
pub async fn a_message_that_came_back_is_waiting(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    for _ in 0..2 {
        world.receive(&queue, 1).await;
        world.clock.advance(VISIBILITY);
    }
    assert_eq!(stands(world, &queue, 1).await, [(TraceState::Waiting, 2, None)]);
}

/// Within the visibility it is still known.
pub async fn an_acknowledged_message_is_known_for_a_moment(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    let held = world.receive(&queue, 1).await;
    world.acknowledge(&queue, &held).await;
    let stands = stands(world, &queue, 1).await;
    assert!(
        stands.len() == 1 && stands[0].0 == TraceState::Acknowledged,
        "{stands:?}"
    );
}

/// Rejected with a reason, or received too often.
pub async fn a_dead_letter_says_why(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    world.send_to(&queue, 2, 2).await;
    let held = world.receive(&queue, 1).await;
    world.clock.advance(Duration::from_secs(1));
    world.reject(&queue, &held, "bad").await;
    let cause = Cause::Rejected("bad".to_owned());
    assert_eq!(
        stands(world, &queue, 1).await,
        [(TraceState::DeadLettered(cause), 1, None)]
    );
    let at = world.now();
    assert!(since(&traced(world, &queue, 1).await).is_none_or(|since| since == at));
    let limited = world.limited(&queue, 1).await;
    let held = world.receive_as(&queue, &limited).await;
    world.release(&queue, &held, Duration::ZERO).await;
    assert!(world.receive_as(&queue, &limited).await.is_empty());
    assert_eq!(
        stands(world, &queue, 2).await,
        [(TraceState::DeadLettered(Cause::MaxReceives), 1, None)]
    );
}

/// The original first, then what jobs delivered, each where it stands.
pub async fn a_message_that_was_delivered_again_is_in_both_places(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    let held = world.receive(&queue, 1).await;
    world.reject(&queue, &held, "bad").await;
    let replayed = replayed(world, &queue.workspace).await;
    let turn = world.job(&queue, "j1").await;
    redeliver(world, &queue, &turn, &replayed).await;
    world.receive(&queue, 1).await;
    let turn = world.job(&queue, "j2").await;
    redeliver(world, &queue, &turn, &replayed).await;
    let cause = Cause::Rejected("bad".to_owned());
    assert_eq!(
        stands(world, &queue, 1).await,
        [
            (TraceState::DeadLettered(cause), 1, None),
            (TraceState::InFlight, 1, Some("replay:j1".to_owned())),
            (TraceState::Waiting, 0, Some("replay:j2".to_owned())),
        ]
    );
}

/// What is gone is nowhere, and it can be told why.
pub async fn a_purge_is_known_by_its_time(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    assert_eq!(traced(world, &queue, 1).await.purged_at, None);
    for _ in 0..2 {
        world.clock.advance(Duration::from_secs(5));
        let audit = sample::audit("consumer.purge", &["w1", "c1"], world.now());
        world.queue_control().purge(&queue, &audit).await.unwrap();
        let trace = traced(world, &queue, 1).await;
        assert_eq!((trace.deliveries.len(), trace.purged_at), (0, Some(world.now())));
    }
}

/// Each queue knows its own.
pub async fn consumers_are_told_apart(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    let filter = Filter {
        sources: vec!["nobody".to_owned()],
        ..Filter::default()
    };
    let three = world.consumer("c3", &one.workspace, filter).await;
    world.send_to(&one, 1, 1).await;
    world.receive(&two, 1).await;
    assert_eq!(stands(world, &one, 1).await, [(TraceState::Waiting, 0, None)]);
    assert_eq!(stands(world, &two, 1).await, [(TraceState::InFlight, 1, None)]);
    assert_eq!(stands(world, &three, 1).await, []);
}

/// Another message's whereabouts say nothing of it.
pub async fn a_message_that_never_came_is_nowhere(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    assert_eq!(stands(world, &queue, 2).await, []);
}

/// The same id elsewhere is another message.
pub async fn workspaces_do_not_see_each_other(world: &mut World) {
    let one = world.queue().await;
    let workspace = world.workspace("w2").await;
    let two = world.consumer("c2", &workspace, Filter::default()).await;
    world.send_to(&two, 1, 1).await;
    assert_eq!(stands(world, &one, 1).await, []);
    assert_eq!(stands(world, &two, 1).await, [(TraceState::Waiting, 0, None)]);
    let traces = world
        .queue_control()
        .trace(&one.workspace, sample::message_id(1), &[])
        .await
        .unwrap();
    assert!(traces.iter().all(|trace| trace.consumer != two.consumer));
}

/// Closed and opened again, a queue knows what it knew.
pub async fn traces_survive_a_reopening(world: &mut World) {
    let queue = world.queue().await;
    for n in 1..=3 {
        world.send_to(&queue, n, n).await;
    }
    let held = world.receive(&queue, 2).await;
    world.reject(&queue, &held[..1], "bad").await;
    let mut before = Vec::new();
    for n in 1..=3 {
        before.push(traced(world, &queue, n).await);
    }
    world.reopen().await;
    for (n, before) in (1..).zip(before) {
        assert_eq!(traced(world, &queue, n).await, before);
    }
}
