//! Opening a directory, and what is said when it cannot be.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::{open, world};
use rusqlite::Connection;
use storybus_core::domain::time::Millis;
use storybus_core::ports::StoreError;
use storybus_sqlite::{OpenError, Store, StoreOptions};
use storybus_testkit::FakeClock;
use storybus_testkit::clock::START;
use storybus_testkit::executor::run;
use tempfile::TempDir;

fn try_open(directory: &Path) -> Result<Store, OpenError> {
    Store::open(directory, StoreOptions::new(Arc::new(FakeClock::new())))
}

fn change(directory: &Path, sql: &str) {
    let database = Connection::open(directory.join("bus.db")).unwrap();
    database.execute_batch(sql).unwrap();
}

/// A directory that a store has been in.
fn used() -> TempDir {
    let directory = TempDir::new().unwrap();
    run(try_open(directory.path()).unwrap().close());
    directory
}

#[test]
fn directories_and_files_are_for_their_owner_alone() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a/b");
    let store = try_open(&path).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o700, 0o700));
    for file in fs::read_dir(&path).unwrap() {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    run(store.close());
}

#[test]
fn one_process_opens_it_at_a_time() {
    let directory = TempDir::new().unwrap();
    let store = try_open(directory.path()).unwrap();
    let refused = try_open(directory.path()).unwrap_err();
    assert!(
        matches!(refused, OpenError::Locked { pid: Some(pid) } if pid == std::process::id()),
        "{refused:?}"
    );
    assert_eq!(
        refused.to_string(),
        format!("another process (pid {}) is using it", std::process::id())
    );
    run(store.close());
    run(try_open(directory.path()).unwrap().close());
}

#[test]
fn a_database_that_is_gone_is_not_begun_anew() {
    let directory = TempDir::new().unwrap();
    let store = try_open(directory.path()).unwrap();
    run(world(&store, &FakeClock::new()).queue());
    // as if it had been killed, and then lost a file
    let copy = TempDir::new().unwrap();
    let log = copy.path().join("bus.db-wal");
    fs::copy(directory.path().join("bus.db-wal"), &log).unwrap();
    let before = fs::read(&log).unwrap();
    let database = copy.path().join("bus.db");
    for empty in [false, true] {
        if empty {
            fs::write(&database, "").unwrap();
        }
        let refused = try_open(copy.path()).unwrap_err();
        assert!(
            matches!(&refused, OpenError::DatabaseGone { left } if left == "bus.db-wal"),
            "{refused:?}"
        );
        assert_eq!(database.exists(), empty);
        assert_eq!(fs::read(&log).unwrap(), before);
    }
    // put back, all of it is there
    fs::copy(directory.path().join("bus.db"), &database).unwrap();
    let clock = FakeClock::new();
    let found = open(copy.path(), &clock);
    assert!(
        run(world(&found, &clock).connections().get(&"c1".parse().unwrap()))
            .unwrap()
            .is_some()
    );
    run(found.close());
    run(store.close());
}

#[test]
fn a_directory_that_was_in_use_without_its_database_is_not_begun_anew() {
    let directory = TempDir::new().unwrap();
    let mut options = StoreOptions::new(Arc::new(FakeClock::new()));
    options.traces = vec!["other.json", "note.json"];
    run(Store::open(directory.path(), options.clone()).unwrap().close());
    fs::write(directory.path().join("note.json"), "").unwrap();
    run(Store::open(directory.path(), options.clone()).unwrap().close());
    fs::remove_file(directory.path().join("bus.db")).unwrap();
    let refused = Store::open(directory.path(), options).unwrap_err();
    assert!(
        matches!(&refused, OpenError::DatabaseGone { left } if left == "note.json"),
        "{refused:?}"
    );
    assert!(!directory.path().join("bus.db").exists());
    run(try_open(directory.path()).unwrap().close());
}

#[test]
fn a_file_is_not_a_directory() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    for path in [file.clone(), file.join("below")] {
        let refused = try_open(&path).unwrap_err();
        assert!(matches!(refused, OpenError::NotADirectory(_)), "{refused:?}");
    }
}

#[test]
fn another_programs_database_is_left_alone() {
    let directory = TempDir::new().unwrap();
    change(directory.path(), "CREATE TABLE mine (x)");
    let refused = try_open(directory.path()).unwrap_err();
    assert!(matches!(refused, OpenError::NotStorybus), "{refused:?}");
    let directory = TempDir::new().unwrap();
    fs::write(
        directory.path().join("bus.db"),
        "something else altogether, and more than a header",
    )
    .unwrap();
    let refused = try_open(directory.path()).unwrap_err();
    assert!(matches!(refused, OpenError::NotStorybus), "{refused:?}");
}

#[test]
fn a_newer_format_is_refused() {
    let directory = used();
    change(directory.path(), "PRAGMA user_version = 99");
    let refused = try_open(directory.path()).unwrap_err();
    assert!(
        matches!(refused, OpenError::NewerVersion { found: 99, .. }),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("use a later release"), "{refused}");
}

#[test]
fn a_damaged_database_is_refused() {
    let directory = used();
    let path = directory.path().join("bus.db");
    let mut bytes = fs::read(&path).unwrap();
    // the schema's page, but for the header
    bytes[100..4096].fill(0xee);
    fs::write(&path, bytes).unwrap();
    let refused = try_open(directory.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Corrupt(_)), "{refused:?}");
}

#[test]
fn a_database_that_was_just_made_is_taken_up() {
    let directory = TempDir::new().unwrap();
    // the process ended right after making the file, or after making it a WAL database
    fs::write(directory.path().join("bus.db"), "").unwrap();
    run(try_open(directory.path()).unwrap().close());
    let directory = TempDir::new().unwrap();
    change(directory.path(), "PRAGMA journal_mode = WAL");
    run(try_open(directory.path()).unwrap().close());
}

#[test]
fn no_room_to_begin_with_is_said() {
    let directory = TempDir::new().unwrap();
    let mut options = StoreOptions::new(Arc::new(FakeClock::new()));
    options.max_pages = Some(4);
    let refused = Store::open(directory.path(), options).unwrap_err();
    assert!(matches!(refused, OpenError::NoRoom), "{refused:?}");
    run(try_open(directory.path()).unwrap().close());
}

#[test]
fn time_never_goes_back_over_a_restart() {
    run(async {
        let directory = TempDir::new().unwrap();
        let clock = FakeClock::new();
        let store = open(directory.path(), &clock);
        let queue = world(&store, &clock).queue().await;
        clock.advance(Duration::from_secs(100));
        world(&store, &clock).send_to(&queue, 1, 1).await;
        assert_eq!(store.last_time(), START.plus(Duration::from_secs(100)));
        // as if it had been killed: nothing more is written down
        let copy = TempDir::new().unwrap();
        for file in ["bus.db", "bus.db-wal"] {
            fs::copy(directory.path().join(file), copy.path().join(file)).unwrap();
        }
        store.close().await;
        let yesterday = FakeClock::at(Millis(START.0 - 86_400_000));
        let store = open(copy.path(), &yesterday);
        assert_eq!(store.last_time(), START.plus(Duration::from_secs(100)));
        let received = world(&store, &yesterday).receive(&queue, 10).await;
        assert_eq!(received[0].enqueued_at, START.plus(Duration::from_secs(100)));
        // hidden by the store's own time: the other clock has to reach it first
        yesterday.advance(Duration::from_secs(86_400));
        assert!(world(&store, &yesterday).receive(&queue, 10).await.is_empty());
        yesterday.advance(Duration::from_secs(160));
        assert_eq!(world(&store, &yesterday).receive(&queue, 10).await.len(), 1);
        store.close().await;
    });
}

#[test]
fn a_closed_store_refuses() {
    run(async {
        let directory = TempDir::new().unwrap();
        let clock = FakeClock::new();
        let store = open(directory.path(), &clock);
        let world = world(&store, &clock);
        let queue = world.queue().await;
        store.close().await;
        store.close().await;
        assert!(
            !directory.path().join("bus.db-wal").exists(),
            "copied into the database"
        );
        let refused = world.queues().counts(&queue).await;
        assert!(
            matches!(refused, Err(StoreError::Unavailable { .. })),
            "{refused:?}"
        );
        let refused = world.audit().list(None, 1).await;
        assert!(
            matches!(refused, Err(StoreError::Unavailable { .. })),
            "{refused:?}"
        );
    });
}
