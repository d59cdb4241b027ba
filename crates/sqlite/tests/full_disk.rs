//! There is no room: nothing half done, said as such, and it goes on when there is room again.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use engine::{database, open, world};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::ports::ledger::Recorded;
use storybus_core::ports::topic::PublishError;
use storybus_core::ports::{Ledger as _, StoreError};
use storybus_sqlite::{Store, StoreOptions};
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use storybus_testkit::suite::World;
use storybus_testkit::suite::sample::{self, Letter};
use tempfile::TempDir;

fn letter(n: u64) -> Letter {
    Letter {
        body: vec![b'x'; 20_000].into(),
        ..Letter::new(n, n % 4)
    }
}

/// Sends until there is no room; how many were published.
async fn fill(world: &World, queue: &QueueKey, first: u64) -> u64 {
    for n in first.. {
        let letter = letter(n);
        let new = world.record_of(&queue.workspace, &letter);
        match world.ledger().record(&new).await {
            Ok(recorded) => assert_eq!(recorded, Recorded::Done),
            Err(StoreError::Unavailable { .. }) => return n,
            Err(other) => panic!("{other}"),
        }
        match world
            .publish(&world.publication(&queue.workspace, &letter, new.record.attempt))
            .await
        {
            Ok(()) => {}
            Err(PublishError::Refused { retryable: true, .. }) => return n,
            Err(other) => panic!("{other}"),
        }
    }
    unreachable!()
}

/// What is in the database agrees with itself, and with what was answered.
async fn check(directory: &Path, world: &World, queue: &QueueKey, published: u64) {
    let database = database(directory);
    let count = |sql: &str| {
        database
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
            .cast_unsigned()
    };
    assert_eq!(count("SELECT count(*) FROM message"), published);
    assert_eq!(count("SELECT count(*) FROM queue_message"), published);
    assert_eq!(
        count("SELECT count(*) FROM record WHERE topic_at IS NOT NULL"),
        published
    );
    let check: String = database
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    if let Ok(counts) = world.queues().counts(queue).await {
        assert_eq!(counts.visible, published);
    }
}

#[test]
fn a_database_that_may_not_grow_is_unavailable() {
    run(async {
        let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
        let mut options = StoreOptions::new(Arc::new(clock.clone()));
        options.max_pages = Some(200);
        let store = Store::open(directory.path(), options).unwrap();
        let queue = world(&store, &clock).queue().await;
        let published = fill(&world(&store, &clock), &queue, 0).await;
        assert!(published > 10);
        check(directory.path(), &world(&store, &clock), &queue, published).await;
        // a small command has room where a large one of the same batch has not
        let world_of_it = world(&store, &clock);
        let small = world_of_it.record_of(&queue.workspace, &Letter::new(9_000, 1));
        let large = letter(9_001);
        let large = world_of_it.publication(&queue.workspace, &large, world_of_it.token());
        let (small, _) = futures::join!(world_of_it.ledger().record(&small), world_of_it.publish(&large));
        assert!(
            matches!(small, Ok(Recorded::Done) | Err(StoreError::Unavailable { .. })),
            "{small:?}"
        );
        store.close().await;

        let store = open(directory.path(), &clock);
        let world = world(&store, &clock);
        world.send(&queue.workspace, &letter(9_002)).await;
        let received = world.drain(&queue).await.len();
        assert_eq!(u64::try_from(received).unwrap(), published + 1);
        store.close().await;
    });
}

/// A small file system of its own; `None` where one may not mount.
struct Mount(TempDir);

impl Mount {
    fn new(size: &str) -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "none"])
            .arg(directory.path())
            .output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then_some(Self(directory))
    }

    fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(
            Command::new("mount")
                .args(["-o", &options])
                .arg(self.0.path())
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        Command::new("umount")
            .arg("--lazy")
            .arg(self.0.path())
            .status()
            .ok();
    }
}

#[test]
fn a_full_file_system_is_unavailable_until_there_is_room() {
    let Some(mount) = Mount::new("6m") else {
        println!("not run: it takes the right to mount a file system");
        return;
    };
    run(async {
        let clock = FakeClock::new();
        let directory = mount.0.path();
        let store = open(directory, &clock);
        let world = world(&store, &clock);
        let queue = world.queue().await;
        let mut published = fill(&world, &queue, 0).await;
        assert!(published > 10);
        check(directory, &world, &queue, published).await;
        for round in 1..3 {
            // still none
            let again = world.record_of(&queue.workspace, &Letter::new(50_000 + round, 1));
            let refused = world.ledger().record(&again).await;
            assert!(
                matches!(refused, Ok(Recorded::Done) | Err(StoreError::Unavailable { .. })),
                "{refused:?}"
            );
            mount.resize(&format!("{}m", 6 + 6 * round));
            published += fill(&world, &queue, 2_000 * round).await - 2_000 * round;
            check(directory, &world, &queue, published).await;
            store.barrier().await.unwrap();
        }
        mount.resize("100m");
        assert_eq!(u64::try_from(world.drain(&queue).await.len()).unwrap(), published);
        store.close().await;
        let store = open(directory, &clock);
        let key = storybus_core::domain::record::RecordKey {
            workspace: queue.workspace.clone(),
            message_id: sample::message_id(0),
        };
        assert!(
            store
                .ledger()
                .read(&key, None, clock_now(&clock))
                .await
                .unwrap()
                .record
                .is_some()
        );
        store.close().await;
        fs::metadata(directory.join("bus.db")).unwrap();
    });
}

fn clock_now(clock: &FakeClock) -> storybus_core::domain::time::Millis {
    storybus_core::ports::Clock::now(clock)
}
