//! What is kept, and for how long.

use std::time::Duration;

use storybus_core::ports::Archive as _;
use storybus_core::ports::queues::RETENTION;
use storybus_testkit::executor::run;

use crate::place::{Place, everything, letter};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[test]
fn a_queue_keeps_its_messages_for_longer_than_a_short_archive() {
    run(async {
        let place = Place::with(|options| options.archive_retention = DAY * 7);
        let world = place.world();
        let queue = world.queue().await;
        for n in 0..20 {
            world.send(&queue.workspace, &letter(n, n)).await;
        }
        place.store.compact().await.unwrap();
        assert_eq!(place.number("SELECT count(*) FROM message"), 0);
        place.clock.advance(DAY * 7 - Duration::from_millis(1));
        assert_eq!(everything(&place.store, &queue.workspace).await.len(), 20);
        place.clock.advance(Duration::from_millis(1));
        place.store.sweep().await.unwrap();
        assert_eq!(everything(&place.store, &queue.workspace).await.len(), 0);
        assert!(
            place
                .store
                .archive()
                .latest(&queue.workspace, None, 9)
                .await
                .unwrap()
                .is_empty()
        );
        let received = world.receive(&queue, 10).await;
        assert_eq!(received.len(), 10, "a queue remembers for 14 days");
        assert!(
            received
                .iter()
                .zip(0..)
                .all(|(got, n)| got.body == letter(n, n).body)
        );
        place.clock.advance(RETENTION);
        place.store.sweep().await.unwrap();
        assert_eq!(place.number("SELECT count(*) FROM archive_block"), 0);
        assert_eq!(place.number("SELECT count(*) FROM archive_run"), 0);
        assert_eq!(place.number("SELECT count(*) FROM archive_segment"), 0);
        place.store.close().await;
    });
}

#[test]
fn a_dead_letter_keeps_its_block_and_no_other() {
    run(async {
        let place = Place::with(|options| options.archive_retention = DAY);
        let world = place.world();
        let queue = world.queue().await;
        for n in 0..40 {
            world.send(&queue.workspace, &letter(n, n)).await;
        }
        place.store.compact().await.unwrap();
        let blocks = place.number("SELECT count(*) FROM archive_block");
        assert!(blocks > 9, "{blocks}");
        let received = world.receive(&queue, 10).await;
        place.clock.advance(Duration::from_secs(1));
        world.reject(&queue, &received[9..], "bad").await;
        world.acknowledge(&queue, &received[..9]).await;
        place.clock.advance(RETENTION - Duration::from_secs(1));
        assert_eq!(world.dead_letters(&queue).await.len(), 1);
        // everything else in the queue is over by now
        place.clock.advance(Duration::from_secs(2));
        let letters = world.dead_letters(&queue).await;
        assert!(letters.is_empty(), "14 days after its death it is gone");
        place.clock.advance(DAY);
        place.store.sweep().await.unwrap();
        assert_eq!(place.number("SELECT count(*) FROM archive_block"), 0);
        place.store.close().await;

        let place = Place::with(|options| options.archive_retention = DAY);
        let world = place.world();
        let queue = world.queue().await;
        for n in 0..40 {
            world.send(&queue.workspace, &letter(n, n)).await;
        }
        place.store.compact().await.unwrap();
        place.clock.advance(DAY * 13);
        let received = world.receive(&queue, 10).await;
        world.reject(&queue, &received[9..], "bad").await;
        place.clock.advance(DAY * 3);
        place.store.sweep().await.unwrap();
        assert_eq!(place.number("SELECT count(*) FROM archive_block"), 1);
        assert_eq!(world.dead_letters(&queue).await[0].body, letter(9, 9).body);
        assert_eq!(everything(&place.store, &queue.workspace).await.len(), 0);
        place.store.close().await;
    });
}

#[test]
fn freed_room_is_used_again() {
    run(async {
        let place = Place::with(|options| options.archive_retention = DAY);
        let world = place.world();
        let workspace = world.workspace("w1").await;
        let mut pages = Vec::new();
        for round in 0..8 {
            for n in 0..300 {
                world.send(&workspace, &letter(round * 300 + n, n)).await;
            }
            place.store.compact().await.unwrap();
            place.clock.advance(RETENTION + DAY);
            place.store.sweep().await.unwrap();
            pages.push(place.number("SELECT page_count FROM pragma_page_count"));
        }
        assert!(pages[7] <= pages[2] + pages[2] / 10, "{pages:?}");
        place.store.close().await;
    });
}
