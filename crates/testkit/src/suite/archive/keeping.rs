//! How long a message is archived, and what its bytes are needed for besides.

use std::time::Duration;

use storybus_core::domain::archived::Selection;
use storybus_core::domain::filter::Filter;
use storybus_core::domain::record::story_digest;

use super::{PLENTY, everything, head_numbers, numbers, part, send};
use crate::suite::behaviours_both_ways;
use crate::suite::sample::{self, Letter};
use crate::suite::world::{VISIBILITY, World};

behaviours_both_ways![
    a_message_is_archived_for_its_retention needs Time,
    each_message_has_its_own_time needs Time,
    a_position_outlives_its_message needs Time,
    the_time_is_kept_over_a_reopening needs Time Reopen,
    a_queue_gives_the_bytes_of_what_was_archived,
    what_is_in_flight_is_received_again_after_that needs Time,
    a_deleted_consumer_takes_nothing_from_the_archive,
];

const MS: Duration = Duration::from_millis(1);

/// Whichever way one looks for messages 1 to 9 of the story `s`.
async fn seen(world: &World, workspace: &storybus_protocol::id::WorkspaceId) -> Vec<u64> {
    let archive = world.archive();
    let all = numbers(&everything(world, workspace).await);
    let about = archive
        .about(workspace, &story_digest("s"), None, None, 100)
        .await
        .unwrap();
    assert_eq!(head_numbers(&about), all);
    let mut latest = archive.latest(workspace, None, 100).await.unwrap();
    latest.reverse();
    assert_eq!(head_numbers(&latest), all);
    for n in 1..10 {
        let found = archive.find(workspace, sample::message_id(n)).await.unwrap();
        assert_eq!(found.len(), usize::from(all.contains(&n)));
    }
    all
}

/// A message is there until its age is the retention, to the millisecond.
pub async fn a_message_is_archived_for_its_retention(world: &mut World) {
    let workspace = world.workspace("w1").await;
    send(world, &workspace, &[Letter::new(1, 1).about("s")]).await;
    world.clock.advance(world.archive().retention() - MS);
    assert_eq!(seen(world, &workspace).await, [1]);
    world.clock.advance(MS);
    assert!(seen(world, &workspace).await.is_empty());
}

/// Of messages that lie side by side, each goes at its own time.
pub async fn each_message_has_its_own_time(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for n in 1..=6 {
        send(world, &workspace, &[Letter::new(n, n % 2).about("s")]).await;
        world.clock.advance(MS);
    }
    world.clock.advance(world.archive().retention() - MS * 6);
    for n in 1..=6 {
        assert_eq!(seen(world, &workspace).await, (n + 1..=6).collect::<Vec<_>>());
        world.clock.advance(MS);
    }
    send(world, &workspace, &[Letter::new(7, 1).about("s")]).await;
    assert_eq!(seen(world, &workspace).await, [7]);
}

/// The position of a message that is gone leads to those behind it.
pub async fn a_position_outlives_its_message(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let mut places = Vec::new();
    for n in 1..=4 {
        send(world, &workspace, &[Letter::new(n, 1).about("s")]).await;
        places.push(
            world.archive().latest(&workspace, None, 1).await.unwrap()[0]
                .position
                .clone(),
        );
        world.clock.advance(MS);
    }
    world.clock.advance(world.archive().retention() - MS * 3);
    assert_eq!(seen(world, &workspace).await, [3, 4]);
    let archive = world.archive();
    let behind = part(world, &workspace, Some(&places[0]), &Selection::default(), PLENTY).await;
    assert_eq!(numbers(&behind.messages), [3, 4]);
    assert!(archive.is_position(&places[0]));
    let about = archive
        .about(&workspace, &story_digest("s"), None, Some(&places[0]), 9)
        .await
        .unwrap();
    assert_eq!(head_numbers(&about), [3, 4]);
    let older = archive.latest(&workspace, Some(&places[1]), 9).await.unwrap();
    assert!(older.is_empty());
}

/// A reopening gives nothing a new time.
pub async fn the_time_is_kept_over_a_reopening(world: &mut World) {
    let workspace = world.workspace("w1").await;
    send(world, &workspace, &[Letter::new(1, 1).about("s")]).await;
    world.clock.advance(world.archive().retention() - MS);
    world.reopen().await;
    assert_eq!(seen(world, &workspace).await, [1]);
    world.clock.advance(MS);
    world.reopen().await;
    assert!(seen(world, &workspace).await.is_empty());
}

/// Bytes that lie in the archive are received as they were, whole or many.
pub async fn a_queue_gives_the_bytes_of_what_was_archived(world: &mut World) {
    let queue = world.queue().await;
    let letters: Vec<Letter> = (1..=8)
        .map(|n| Letter::new(n, n % 3).of_size(if n == 5 { 240_000 } else { 50 }))
        .collect();
    send(world, &queue.workspace, &letters).await;
    let mut received = world.drain(&queue).await;
    received.sort_by_key(|delivery| delivery.message_id);
    assert_eq!(received.len(), 8);
    for (delivery, letter) in received.iter().zip(&letters) {
        assert_eq!(
            (delivery.message_id, &delivery.body),
            (letter.message_id, &letter.body)
        );
        assert_eq!(delivery.attributes, letter.attributes);
    }
}

/// A message that was received before it was compacted comes again after, and dies with its bytes.
pub async fn what_is_in_flight_is_received_again_after_that(world: &mut World) {
    let queue = world.queue().await;
    let letter = Letter::new(1, 1).of_size(3000);
    world.send(&queue.workspace, &letter).await;
    assert_eq!(world.receive(&queue, 10).await[0].body, letter.body);
    world.file().await;
    world.clock.advance(VISIBILITY);
    let again = world.receive(&queue, 10).await;
    assert_eq!((again[0].receive_count, &again[0].body), (2, &letter.body));
    world.reject(&queue, &again, "bad").await;
    world.file().await;
    let dead = world.dead_letters(&queue).await;
    assert_eq!(
        (&dead[0].body, &dead[0].attributes),
        (&letter.body, &letter.attributes)
    );
}

/// A consumer that goes takes its queue with it and nothing else.
pub async fn a_deleted_consumer_takes_nothing_from_the_archive(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    let letters = [Letter::new(1, 1).of_size(500), Letter::new(2, 1).of_size(500)];
    send(world, &one.workspace, &letters).await;
    let audit = sample::audit("consumer.delete", &["w1", "c1"], world.now());
    world.connections().delete(&one.consumer, &audit).await.unwrap();
    assert_eq!(numbers(&everything(world, &one.workspace).await), [1, 2]);
    let received = world.drain(&two).await;
    assert_eq!(received.len(), 2);
    assert_eq!(received[1].body, letters[1].body);
}
