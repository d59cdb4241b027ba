//! A database of an earlier version goes on as it was.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use engine::{open, world};
use rusqlite::Connection;
use storybus_core::domain::dead_letter::Cause;
use storybus_core::domain::delivery::QueueKey;
use storybus_sqlite::check;
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use storybus_testkit::suite::sample;
use tempfile::TempDir;

/// A workspace with a consumer; two messages, of which one waits and one is a dead letter.
fn first_version(directory: &TempDir, clock: &FakeClock) -> QueueKey {
    let database = Connection::open(directory.path().join("bus.db")).unwrap();
    database
        .execute_batch(include_str!("../src/schema/001_initial.sql"))
        .unwrap();
    database
        .pragma_update(None, "application_id", 0x7374_7279)
        .unwrap();
    database.pragma_update(None, "user_version", 1).unwrap();
    let now = clock.now();
    let workspace = sample::workspace("w1", now);
    let consumer = sample::consumer("c1", &workspace.id, Default::default(), now);
    let json = |value| serde_json::to_string(value).unwrap();
    database
        .execute(
            "INSERT INTO workspace VALUES ('w1', 1, ?1)",
            [serde_json::to_string(&workspace).unwrap()],
        )
        .unwrap();
    database
        .execute(
            "INSERT INTO connection VALUES ('c1', 'w1', 1, ?1)",
            [json(&consumer)],
        )
        .unwrap();
    database
        .execute_batch(
            "INSERT INTO workspace_number (number, workspace) VALUES (1, 'w1');
             INSERT INTO queue (id, consumer, visible, dead_lettered) VALUES (1, 'c1', 1, 1);",
        )
        .unwrap();
    for n in [1_u32, 2] {
        database
            .execute(
                "INSERT INTO message VALUES (?1, 1, ?2, ?3, NULL, 'telling.started', NULL, 't', ?4, 'p1', 's', '1.0.0', x'7b7d')",
                (n, sample::message_id(n.into()).as_bytes(), now.0, sample::correlation_id(n.into()).to_string()),
            )
            .unwrap();
    }
    database
        .execute(
            "INSERT INTO queue_message (queue, position, grp, message, enqueued_at, state) VALUES (1, 2, ?1, 2, ?2, 1)",
            (sample::correlation_id(2).as_bytes(), now.0),
        )
        .unwrap();
    database
        .execute(
            "INSERT INTO dead_letter VALUES (1, 1, ?1, 1, ?2, 3, 'bad', ?2, NULL)",
            (sample::correlation_id(1).as_bytes(), now.0),
        )
        .unwrap();
    QueueKey {
        workspace: workspace.id,
        consumer: consumer.id,
    }
}

#[test]
fn the_first_version_goes_on() {
    let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
    let queue = first_version(&directory, &clock);
    run(async {
        let store = open(directory.path(), &clock);
        let world = world(&store, &clock);
        assert_eq!(check(directory.path()).unwrap().findings, []);
        let letters = world.dead_letters(&queue).await;
        assert_eq!(letters.len(), 1);
        assert_eq!(letters[0].message_id, sample::message_id(1));
        assert_eq!(
            (letters[0].receive_count, &letters[0].cause),
            (3, &Cause::Rejected("bad".to_owned()))
        );
        world.send_to(&queue, 3, 3).await;
        let waiting = world.receive(&queue, 10).await;
        let ids: Vec<_> = waiting.iter().map(|delivery| delivery.message_id).collect();
        assert_eq!(ids, [2, 3].map(sample::message_id));
        // what was there before can become a dead letter too
        world.reject(&queue, &waiting, "bad").await;
        assert_eq!(world.dead_letters(&queue).await.len(), 3);
        assert_eq!(check(directory.path()).unwrap().findings, []);
        store.close().await;
    });
}
