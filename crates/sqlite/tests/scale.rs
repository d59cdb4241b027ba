//! Large queues: what is done does not depend on what waits.
//!
//! Counted in the statements' own steps would be brittle and in seconds flaky, so each test does what would take minutes if
//! it were not so.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use std::path::Path;
use std::time::Duration;

use engine::{open, world};
use rusqlite::Connection;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::filter::Filter;
use storybus_core::ports::Queues as _;
use storybus_core::ports::queues::Receive;
use storybus_sqlite::Store;
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use storybus_testkit::suite::sample;
use tempfile::TempDir;

/// A queue with so many messages, as publications would have left it; `state` and `visible_at` of each.
fn filled(
    directory: &Path,
    clock: &FakeClock,
    count: i64,
    groups: i64,
    hidden_until: Option<i64>,
) -> QueueKey {
    let queue = run(async {
        let store = open(directory, clock);
        let queue = world(&store, clock).queue().await;
        world(&store, clock).send_to(&queue, 0, 0).await;
        world(&store, clock).drain(&queue).await;
        clock.advance(Duration::from_secs(60));
        store.sweep().await.unwrap();
        store.close().await;
        queue
    });
    let mut database = Connection::open(directory.join("bus.db")).unwrap();
    let tx = database.transaction().unwrap();
    let mut group = *b"together\0\0\0\0\0\0\0\0";
    for n in 1..=count {
        group[8..].copy_from_slice(&(n % groups).to_be_bytes());
        let state = if hidden_until.is_some() {
            2
        } else {
            i64::from(n <= groups)
        };
        tx.prepare_cached(
            "INSERT INTO queue_message (queue, position, grp, message, enqueued_at, state, visible_at, received_at, receipt,
                                        receives)
             VALUES (1, ?1 + 1, ?2, 1, ?3, ?4, ?5, ?3, ?1, 1)",
        )
        .unwrap()
        .execute((n, group, clock.now().0, state, hidden_until))
        .unwrap();
    }
    // the next publication takes its position behind them
    tx.execute("UPDATE meta SET value = 1000000 WHERE name = 'positions'", [])
        .unwrap();
    let column = if hidden_until.is_some() {
        "in_flight"
    } else {
        "visible"
    };
    tx.execute(&format!("UPDATE queue SET {column} = ?1"), [count])
        .unwrap();
    tx.commit().unwrap();
    queue
}

async fn receive_all(store: &Store, clock: &FakeClock, queue: &QueueKey, times: usize) -> usize {
    let world = world(store, clock);
    let mut all = 0;
    for _ in 0..times {
        let received = world.receive(queue, 10).await;
        world.acknowledge(queue, &received).await;
        all += received.len();
    }
    all
}

#[test]
fn a_long_queue_is_as_fast_as_a_short_one() {
    let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
    let queue = filled(directory.path(), &clock, 300_000, 50_000, None);
    run(async {
        let store = open(directory.path(), &clock);
        assert_eq!(receive_all(&store, &clock, &queue, 300).await, 3000);
        let counts = world(&store, &clock).counts(&queue).await;
        assert_eq!((counts.visible, counts.in_flight), (297_000, 0));
        store.close().await;
    });
}

#[test]
fn one_long_story_is_as_fast_as_many_short_ones() {
    let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
    let queue = filled(directory.path(), &clock, 100_000, 1, None);
    run(async {
        let store = open(directory.path(), &clock);
        assert_eq!(receive_all(&store, &clock, &queue, 300).await, 3000);
        store.close().await;
    });
}

#[test]
fn blocked_groups_do_not_slow_a_receive() {
    let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
    let queue = filled(
        directory.path(),
        &clock,
        100_000,
        100_000,
        Some(clock.now().0 + 3_600_000),
    );
    run(async {
        let store = open(directory.path(), &clock);
        let world = world(&store, &clock);
        for n in 0..300 {
            world.send_to(&queue, 500_000 + n, 500_000 + n).await;
            let received = world.receive(&queue, 10).await;
            assert_eq!(received.len(), 1);
            world.acknowledge(&queue, &received).await;
            assert_eq!(world.counts(&queue).await.in_flight, 100_000);
        }
        store.close().await;
    });
}

#[test]
fn groups_that_come_back_all_at_once_are_received_at_once() {
    let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
    let queue = filled(
        directory.path(),
        &clock,
        100_000,
        100_000,
        Some(clock.now().0 + 3_600_000),
    );
    run(async {
        let store = open(directory.path(), &clock);
        let world = world(&store, &clock);
        clock.advance(Duration::from_secs(3600));
        let received = world.receive(&queue, 10).await;
        assert_eq!(received.len(), 10);
        assert!(received.iter().all(|delivery| delivery.receive_count == 2));
        // exact, though most of it had not been looked at
        let counts = world.counts(&queue).await;
        assert_eq!((counts.visible, counts.in_flight), (99_990, 10));
        store.close().await;
    });
}

#[test]
fn a_deleted_consumers_queue_goes_bit_by_bit() {
    let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
    let queue = filled(directory.path(), &clock, 20_000, 100, None);
    run(async {
        let store = open(directory.path(), &clock);
        let world = world(&store, &clock);
        let audit = sample::audit("consumer.delete", &["w1", "c1"], clock.now());
        world.connections().delete(&queue.consumer, &audit).await.unwrap();
        assert!(world.receive(&queue, 10).await.is_empty());
        let other = world.consumer("c2", &queue.workspace, Filter::default()).await;
        world.send_to(&other, 9_000_000, 1).await;
        store.sweep().await.unwrap();
        let left = |sql: &str| {
            engine::database(directory.path())
                .query_row(sql, [], |row| row.get::<_, i64>(0))
                .unwrap()
        };
        assert_eq!(left("SELECT count(*) FROM queue_message"), 1);
        assert_eq!(left("SELECT count(*) FROM queue"), 1);
        assert_eq!(world.drain(&other).await.len(), 1);
        store.close().await;
    });
}

#[test]
fn of_many_who_wait_each_gets_its_own() {
    run(async {
        let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
        let store = open(directory.path(), &clock);
        let world = world(&store, &clock);
        let queue = world.queue().await;
        let queues = store.queues();
        let receive = Receive {
            max: 1,
            wait: Duration::from_secs(20),
            visibility: Duration::from_secs(5),
            max_receives: 5,
            attempt: None,
        };
        let waiting = futures::future::join_all((0..100).map(|_| queues.receive(&queue, &receive)));
        let sending = async {
            clock.until_asleep(100).await;
            // half of them come one by one, the rest when the first ones' visibility ends
            for n in 0..50 {
                world.send_to(&queue, n, n).await;
            }
            // only then may time go on: what is received later is hidden for longer
            while queues.counts(&queue).await.unwrap().in_flight < 50 {
                storybus_testkit::executor::yield_now().await;
            }
            clock.advance(Duration::from_secs(5));
        };
        let (received, ()) = futures::join!(waiting, sending);
        let numbers: Vec<_> = received
            .into_iter()
            .map(|deliveries| deliveries.unwrap().len())
            .collect();
        assert_eq!(numbers, vec![1; 100]);
        store.close().await;
    });
}

#[test]
fn closing_ends_all_who_wait() {
    run(async {
        let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
        let store = open(directory.path(), &clock);
        let queue = world(&store, &clock).queue().await;
        let queues = store.queues();
        let receive = Receive {
            max: 1,
            wait: Duration::from_secs(20),
            visibility: Duration::from_secs(5),
            max_receives: 5,
            attempt: None,
        };
        let waiting = futures::future::join_all((0..10).map(|_| queues.receive(&queue, &receive)));
        let closing = async {
            clock.until_asleep(10).await;
            store.close().await;
        };
        let (received, ()) = futures::join!(waiting, closing);
        assert!(
            received
                .into_iter()
                .all(|deliveries| deliveries.unwrap().is_empty())
        );
    });
}

#[test]
fn who_goes_away_passes_on_what_it_was_woken_for() {
    run(async {
        let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
        let store = open(directory.path(), &clock);
        let world = world(&store, &clock);
        let queue = world.queue().await;
        let queues = store.queues();
        let receive = Receive {
            max: 1,
            wait: Duration::from_secs(20),
            visibility: Duration::from_secs(600),
            max_receives: 5,
            attempt: None,
        };
        for n in 0..50 {
            let mut first = Box::pin(queues.receive(&queue, &receive));
            let second = queues.receive(&queue, &receive);
            let going = async {
                // the first waits, is woken and goes at some moment of its second look
                let asleep = clock.until_asleep(1);
                futures::future::select(&mut first, Box::pin(asleep)).await;
                world.send_to(&queue, n, n).await;
                if n % 2 == 0 {
                    let _ = storybus_testkit::executor::poll_once(first.as_mut());
                }
                drop(first);
                world.send_to(&queue, 1000 + n, 1000 + n).await;
            };
            let (received, ()) = futures::join!(second, going);
            assert_eq!(received.unwrap().len(), 1, "round {n}");
            clock.advance(Duration::from_secs(600));
            world.drain(&queue).await;
        }
        store.close().await;
    });
}
