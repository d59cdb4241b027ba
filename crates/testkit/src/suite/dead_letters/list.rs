//! Looking at dead letters.

use std::time::Duration;

use storybus_core::domain::archived::Position;
use storybus_core::domain::dead_letter::{Cause, DeadLetter};
use storybus_core::domain::filter::Filter;
use storybus_core::ports::dead_letters::DeadLetterLimits;

use super::{PLENTY, dead, kill, numbers};
use crate::suite::behaviours;
use crate::suite::sample::{self, Letter};
use crate::suite::world::World;

behaviours![
    a_new_queue_has_no_dead_letters,
    a_rejected_message_is_shown_as_it_came,
    a_dead_letter_says_when_it_came needs Time,
    a_message_received_too_often_is_shown_as_it_came,
    dead_letters_come_in_the_order_of_their_arrival_in_the_queue needs Arrivals,
    pages_meet_without_gap_or_overlap,
    a_page_keeps_its_bytes,
    one_large_letter_comes_alone,
    looking_takes_nothing_away,
    queues_have_dead_letters_of_their_own,
    a_deleted_consumer_has_no_dead_letters,
    dead_letters_survive_a_reopening needs Reopen,
    foreign_texts_are_no_positions,
];

/// A new queue, and one that does not exist, have none.
pub async fn a_new_queue_has_no_dead_letters(world: &mut World) {
    let queue = world.queue().await;
    assert!(world.dead_letters(&queue).await.is_empty());
    let nobody = storybus_core::domain::delivery::QueueKey {
        consumer: "c9".parse().unwrap(),
        ..queue
    };
    let (letters, more) = world.letters().list(&nobody, None, PLENTY).await.unwrap();
    assert!(letters.is_empty() && !more);
}

/// Bytes, attributes, counts, times and the reason.
pub async fn a_rejected_message_is_shown_as_it_came(world: &mut World) {
    let queue = world.queue().await;
    let letter = Letter::new(1, 1).of_size(1000);
    world.send(&queue.workspace, &letter).await;
    world.clock.advance(Duration::from_secs(2));
    let held = world.receive(&queue, 1).await;
    world.release(&queue, &held, Duration::ZERO).await;
    let held = world.receive(&queue, 1).await;
    world.clock.advance(Duration::from_secs(3));
    world.reject(&queue, &held, "ü\"'\\\n😀").await;
    let letters = world.dead_letters(&queue).await;
    let expected = DeadLetter {
        position: letters[0].position.clone(),
        message_id: letter.message_id,
        body: letter.body,
        attributes: letter.attributes,
        receive_count: 2,
        enqueued_at: letters[0].enqueued_at,
        dead_at: world.now(),
        cause: Cause::Rejected("ü\"'\\\n😀".to_owned()),
        redelivery: None,
        taken_by: None,
    };
    assert_eq!(letters, [expected]);
}

/// When it came into the queue, not when it died.
pub async fn a_dead_letter_says_when_it_came(world: &mut World) {
    let queue = world.queue().await;
    let enqueued_at = world.now();
    world.send_to(&queue, 1, 1).await;
    world.clock.advance(Duration::from_secs(2));
    kill(world, &queue, 1).await;
    assert_eq!(world.dead_letters(&queue).await[0].enqueued_at, enqueued_at);
}

/// The same for one that nobody rejected.
pub async fn a_message_received_too_often_is_shown_as_it_came(world: &mut World) {
    let queue = world.queue().await;
    let letter = Letter::new(1, 1);
    world.send(&queue.workspace, &letter).await;
    let limited = world.limited(&queue, 3).await;
    for _ in 0..4 {
        world.clock.advance(Duration::from_secs(1));
        let held = world.receive_as(&queue, &limited).await;
        world.release(&queue, &held, Duration::ZERO).await;
    }
    let letters = world.dead_letters(&queue).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(
        (&letters[0].cause, letters[0].receive_count, letters[0].dead_at),
        (&Cause::MaxReceives, 3, world.now())
    );
    assert_eq!(
        (&letters[0].body, &letters[0].attributes),
        (&letter.body, &letter.attributes)
    );
}

/// The order is that in which they came into the queue, not that in which they died.
pub async fn dead_letters_come_in_the_order_of_their_arrival_in_the_queue(world: &mut World) {
    let queue = world.queue().await;
    for n in 1..=4 {
        world.send_to(&queue, n, n).await;
    }
    for n in [3, 1, 4] {
        kill(world, &queue, n).await;
    }
    assert_eq!(numbers(&world.dead_letters(&queue).await), [1, 3, 4]);
    kill(world, &queue, 2).await;
    assert_eq!(numbers(&world.dead_letters(&queue).await), [1, 2, 3, 4]);
}

/// Page by page, each comes once, and the last page says so.
pub async fn pages_meet_without_gap_or_overlap(world: &mut World) {
    let queue = dead(world, &[1, 2, 3, 4, 5]).await;
    for letters in 1..=6 {
        let limits = DeadLetterLimits { letters, ..PLENTY };
        let mut all: Vec<DeadLetter> = Vec::new();
        loop {
            let after = all.last().map(|letter| letter.position.clone());
            let (page, more) = world
                .letters()
                .list(&queue, after.as_ref(), limits)
                .await
                .unwrap();
            assert!(page.len() <= letters);
            all.extend(page);
            assert_eq!(more, all.len() < 5, "{letters} a page");
            if !more {
                break;
            }
        }
        assert_eq!(numbers(&all), [1, 2, 3, 4, 5]);
    }
}

/// A page ends before its bodies are too many.
pub async fn a_page_keeps_its_bytes(world: &mut World) {
    let queue = world.queue().await;
    for n in 1..=5 {
        world
            .send(&queue.workspace, &Letter::new(n, n).of_size(100))
            .await;
        kill(world, &queue, n).await;
    }
    for (bytes, expected) in [(299, 2), (300, 3), (500, 5), (99, 1)] {
        let limits = DeadLetterLimits { bytes, ..PLENTY };
        let (page, more) = world.letters().list(&queue, None, limits).await.unwrap();
        assert_eq!((page.len(), more), (expected, expected < 5), "{bytes} bytes");
    }
}

/// A letter that is larger than a page may be is a page of its own.
pub async fn one_large_letter_comes_alone(world: &mut World) {
    let queue = world.queue().await;
    for (n, size) in [(1, 10), (2, 5000), (3, 10)] {
        world
            .send(&queue.workspace, &Letter::new(n, n).of_size(size))
            .await;
        kill(world, &queue, n).await;
    }
    let limits = DeadLetterLimits { bytes: 100, ..PLENTY };
    let mut after = None;
    for n in 1..=3 {
        let (page, more) = world
            .letters()
            .list(&queue, after.as_ref(), limits)
            .await
            .unwrap();
        assert_eq!((numbers(&page), more), (vec![n], n < 3));
        after = Some(page[0].position.clone());
    }
}

/// However often one looks, they stay, and what lives is not touched.
pub async fn looking_takes_nothing_away(world: &mut World) {
    let queue = dead(world, &[1, 2]).await;
    world.send_to(&queue, 3, 3).await;
    let before = world.dead_letters(&queue).await;
    assert_eq!(world.dead_letters(&queue).await, before);
    let counts = world.counts(&queue).await;
    assert_eq!((counts.dead_lettered, counts.visible), (2, 1));
}

/// What died for one consumer lives for the other.
pub async fn queues_have_dead_letters_of_their_own(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    for n in 1..=2 {
        world.send_to(&one, n, n).await;
    }
    kill(world, &one, 1).await;
    kill(world, &two, 2).await;
    assert_eq!(numbers(&world.dead_letters(&one).await), [1]);
    assert_eq!(numbers(&world.dead_letters(&two).await), [2]);
}

/// They go with their consumer.
pub async fn a_deleted_consumer_has_no_dead_letters(world: &mut World) {
    let queue = dead(world, &[1]).await;
    let audit = sample::audit("consumer.delete", &["w1", "c1"], world.now());
    world.connections().delete(&queue.consumer, &audit).await.unwrap();
    assert!(world.dead_letters(&queue).await.is_empty());
    let again = world.consumer("c1", &queue.workspace, Filter::default()).await;
    assert!(world.dead_letters(&again).await.is_empty());
}

/// Closed and opened again, they are what they were, at their places.
pub async fn dead_letters_survive_a_reopening(world: &mut World) {
    let queue = dead(world, &[1, 2, 3]).await;
    let before = world.dead_letters(&queue).await;
    world.reopen().await;
    assert_eq!(world.dead_letters(&queue).await, before);
    let (rest, _) = world
        .letters()
        .list(&queue, Some(&before[0].position), PLENTY)
        .await
        .unwrap();
    assert_eq!(numbers(&rest), [2, 3]);
}

/// A text is known for a position or not, whatever there is.
pub async fn foreign_texts_are_no_positions(world: &mut World) {
    let queue = dead(world, &[1]).await;
    let own = &world.dead_letters(&queue).await[0].position;
    assert!(world.letters().is_position(own));
    for text in sample::FOREIGN_POSITIONS {
        assert!(
            !world.letters().is_position(&Position((*text).to_owned())),
            "{text:?}"
        );
    }
}
