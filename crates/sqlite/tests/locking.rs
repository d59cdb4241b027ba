//! Another process on the same directory. Alone in its file: a process that is being started holds copies of this one's
//! locks for a moment, which other tests that open a directory again would meet.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use engine::{open, world};
use storybus_sqlite::{OpenError, Store, StoreOptions};
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use tempfile::TempDir;

/// Names the directory to the second process.
const DIRECTORY: &str = "STORYBUS_OPENED_IN";

/// Without its directory it has nothing to do: it is a part of the other test.
#[test]
fn a_second_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let options = StoreOptions::new(Arc::new(FakeClock::new()));
    let refused = Store::open(Path::new(&directory), options).unwrap_err();
    assert!(matches!(refused, OpenError::Locked { .. }), "{refused:?}");
}

#[test]
fn a_lock_that_was_removed_is_missed_by_nobody() {
    let directory = TempDir::new().unwrap();
    let clock = FakeClock::new();
    let store = open(directory.path(), &clock);
    fs::remove_file(directory.path().join("lock")).unwrap();
    for _ in 0..2 {
        let second = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_second_process"])
            .env(DIRECTORY, directory.path())
            .output()
            .unwrap();
        assert!(second.status.success(), "{second:?}");
    }
    let queue = run(world(&store, &clock).queue());
    run(store.close());
    let store = open(directory.path(), &clock);
    assert!(run(world(&store, &clock).receive(&queue, 1)).is_empty());
    run(store.close());
}
