//! The power fails: what was answered is there, and nothing of what came after it is there without what came before.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use engine::{database, open, world};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::record::{RecordKey, RecordState};
use storybus_core::ports::Ledger as _;
use storybus_sqlite::{CheckpointLimits, Store, StoreOptions};
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use storybus_testkit::suite::sample::{self, Letter};
use tempfile::TempDir;

/// What the disk has after a power failure: the database, and so many bytes of the WAL; behind those `garbage` says what each
/// sector became.
fn after_power_failure(directory: &Path, wal_bytes: u64, garbage: impl Fn(u64) -> bool) -> TempDir {
    let copy = TempDir::new().unwrap();
    fs::copy(directory.join("bus.db"), copy.path().join("bus.db")).unwrap();
    let mut wal = fs::read(directory.join("bus.db-wal")).unwrap();
    let kept = usize::try_from(wal_bytes).unwrap_or(usize::MAX);
    for (n, sector) in wal
        .iter_mut()
        .skip(kept)
        .collect::<Vec<_>>()
        .chunks_mut(512)
        .enumerate()
    {
        if garbage(u64::try_from(n).unwrap()) {
            sector.iter_mut().for_each(|byte| **byte = 0);
        }
    }
    fs::write(copy.path().join("bus.db-wal"), wal).unwrap();
    copy
}

fn cut(directory: &Path, wal_bytes: u64) -> TempDir {
    let copy = after_power_failure(directory, wal_bytes, |_| false);
    fs::File::options()
        .write(true)
        .open(copy.path().join("bus.db-wal"))
        .unwrap()
        .set_len(wal_bytes)
        .unwrap();
    copy
}

/// Opens what is left: the store must say of the first `answered` messages what it had said, and of the rest a prefix.
async fn check(directory: &Path, clock: &FakeClock, queue: &QueueKey, answered: u64, all: u64) {
    let store = open(directory, clock);
    let mut published = 0;
    for n in 0..all {
        let key = RecordKey {
            workspace: queue.workspace.clone(),
            message_id: sample::message_id(n),
        };
        let record = store
            .ledger()
            .read(&key, None, world(&store, clock).now())
            .await
            .unwrap()
            .record;
        let state = record.map(|record| record.state);
        assert!(
            n >= answered || state == Some(RecordState::Published),
            "message {n} was answered: {state:?}"
        );
        assert!(
            n == published || state.is_none(),
            "message {n} is there, and {published} is not"
        );
        if state == Some(RecordState::Published) {
            published += 1;
        }
    }
    let waiting = world(&store, clock).drain(queue).await.len();
    // the next one may be published and not yet marked
    assert!(
        [0, 1].contains(&(u64::try_from(waiting).unwrap() - published)),
        "{waiting} of {published} wait"
    );
    let counts = world(&store, clock).counts(queue).await;
    assert_eq!(
        (counts.visible, counts.in_flight),
        (0, 0),
        "the counters tell of the same"
    );
    store.close().await;
    let check: String = database(directory)
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
}

#[test]
fn what_was_answered_is_there_wherever_the_wal_ends() {
    run(async {
        let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
        let store = open(directory.path(), &clock);
        let world = world(&store, &clock);
        let queue = world.queue().await;
        for n in 0..5 {
            world.send_to(&queue, n, n % 2).await;
        }
        let synced = store.synced().await.unwrap();
        for n in 5..8 {
            world.send_to(&queue, n, n % 2).await;
        }
        let all = fs::metadata(directory.path().join("bus.db-wal")).unwrap().len();
        assert!(synced.wal_bytes < all);
        let mut end = synced.wal_bytes;
        while end < all {
            let copy = cut(directory.path(), end);
            check(copy.path(), &clock, &queue, 5, 8).await;
            // neither aligned with a page nor with a sector
            end += 3001;
        }
        // a part of the rest reached the disk, in any order
        for seed in 1..20 {
            let copy = after_power_failure(directory.path(), synced.wal_bytes, |sector| {
                (sector * seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 0
            });
            check(copy.path(), &clock, &queue, 5, 8).await;
        }
        store.close().await;
    });
}

#[test]
fn what_was_answered_is_there_while_the_wal_starts_over() {
    run(async {
        let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
        let mut options = StoreOptions::new(Arc::new(clock.clone()));
        options.checkpoints = CheckpointLimits {
            every: 20,
            bound: 60,
            tail: 10,
        };
        let store = Store::open(directory.path(), options).unwrap();
        let world = world(&store, &clock);
        let queue = world.queue().await;
        let wal = directory.path().join("bus.db-wal");
        let header = || fs::read(&wal).unwrap()[..32].to_vec();
        let (mut sent, mut restarts, mut last) = (0, 0, header());
        for _ in 0..40 {
            for _ in 0..6 {
                world.send_to(&queue, sent, sent % 3).await;
                sent += 1;
            }
            let (answered, synced, before) = (sent, store.synced().await.unwrap(), header());
            let at_the_answer = after_power_failure(directory.path(), synced.wal_bytes, |_| false);
            for _ in 0..2 {
                world.send_to(&queue, sent, sent % 3).await;
                sent += 1;
            }
            restarts += u32::from(before != last);
            last = before;
            // What is copied to the database was synced in the WAL before. So either the database as it was at the answer and
            // the WAL as far as it was synced then; or, if the WAL has started over, all of both.
            let copy = if header() == last {
                let copy = cut(directory.path(), synced.wal_bytes);
                fs::copy(at_the_answer.path().join("bus.db"), copy.path().join("bus.db")).unwrap();
                copy
            } else {
                after_power_failure(directory.path(), u64::MAX, |_| false)
            };
            check(copy.path(), &clock, &queue, answered, sent).await;
        }
        assert!(restarts > 3, "{restarts}");
        store.close().await;
    });
}

#[test]
fn a_barrier_with_nothing_to_wait_for_is_no_wait() {
    run(async {
        let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
        let store = open(directory.path(), &clock);
        let first = store.synced().await.unwrap();
        assert_eq!(store.synced().await.unwrap(), first);
        world(&store, &clock).queue().await;
        assert!(store.synced().await.unwrap() > first);
        store.close().await;
    });
}

#[test]
fn the_wal_stays_bounded_under_load() {
    run(async {
        let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
        let mut options = StoreOptions::new(Arc::new(clock.clone()));
        options.checkpoints = CheckpointLimits {
            every: 64,
            bound: 256,
            tail: 32,
        };
        let store = Store::open(directory.path(), options).unwrap();
        let world = world(&store, &clock);
        let queue = world.queue().await;
        let mut letter = Letter::new(0, 0);
        letter.body = vec![b'x'; 50_000].into();
        for n in 0..400 {
            letter.message_id = sample::message_id(n);
            world.send(&queue.workspace, &letter).await;
        }
        let wal = fs::metadata(directory.path().join("bus.db-wal")).unwrap().len();
        // 20 MB were written; a WAL of 256 pages and what comes while the rest of it is copied
        assert!(wal < 6_000_000, "{wal} bytes");
        store.close().await;
    });
}
