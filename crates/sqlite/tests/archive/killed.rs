//! The process is killed while it makes blocks and runs: every message is in one place.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use storybus_core::ports::Archive as _;
use storybus_protocol::id::WorkspaceId;
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use storybus_testkit::suite::sample;
use tempfile::TempDir;

use crate::engine::world;
use crate::place::{everything, letter, number, open};

/// Names the directory, and the first number, to the process that is to be killed.
const DIRECTORY: &str = "STORYBUS_ARCHIVIST_KILLED_IN";
const MOST: u64 = 100_000;

/// Publishes, while another thread makes blocks, runs and room, until it is killed, and says what was answered. Without its
/// directory it has nothing to do: it is a part of the other test.
#[test]
fn an_archivist_at_work() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let (directory, first) = directory.split_once('#').unwrap();
    let first: u64 = first.parse().unwrap();
    let clock = FakeClock::new();
    let store = open(Path::new(directory), &clock, |_| {});
    let workspace: WorkspaceId = "w1".parse().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                run(async {
                    store.compact().await.unwrap();
                    store.sweep().await.unwrap();
                });
            }
        });
        let world = world(&store, &clock);
        for n in first..first + MOST {
            run(async {
                world.send(&workspace, &letter(n, n % 20)).await;
                store.barrier().await.unwrap();
            });
            let mut out = std::io::stdout().lock();
            out.write_all(format!("published {n}\n").as_bytes()).unwrap();
        }
    });
}

/// Lets a process publish so many, and kills it; what it had published.
fn live(directory: &Path, first: u64, count: usize) -> Vec<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::an_archivist_at_work", "--nocapture"])
        .env(DIRECTORY, format!("{}#{first}", directory.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let number = |line: String| line.strip_prefix("published ").map(|n| n.parse::<u64>().unwrap());
    let mut published = Vec::new();
    while published.len() < count {
        published.extend(number(said.next().unwrap().unwrap()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    published.extend(said.map_while(Result::ok).filter_map(number));
    published
}

#[test]
fn a_killed_archivist_leaves_each_message_in_one_place() {
    let directory = TempDir::new().unwrap();
    let clock = FakeClock::new();
    let workspace = run(async {
        let store = open(directory.path(), &clock, |_| {});
        let workspace = world(&store, &clock).workspace("w1").await;
        store.close().await;
        workspace
    });
    let mut told = Vec::new();
    for life in 0..6 {
        let count = 30 + 41 * usize::try_from(life).unwrap();
        told.extend(live(directory.path(), life * MOST, count));
        run(async {
            let store = open(directory.path(), &clock, |_| {});
            let mut times: BTreeMap<_, usize> = BTreeMap::new();
            for message in everything(&store, &workspace).await {
                *times.entry(message.head.message_id).or_default() += 1;
            }
            assert!(times.values().all(|times| *times == 1), "life {life}");
            for n in &told {
                let id = sample::message_id(*n);
                assert!(times.contains_key(&id), "message {n} is gone");
                if n % 7 == 0 {
                    let found = store.archive().find(&workspace, id).await.unwrap();
                    assert_eq!(found.len(), 1, "message {n}");
                }
            }
            store.close().await;
        });
    }
    run(async {
        clock.advance(Duration::from_secs(1));
        let store = open(directory.path(), &clock, |_| {});
        store.compact().await.unwrap();
        let all = everything(&store, &workspace).await;
        assert!(all.len() >= told.len());
        for message in all {
            let n = number(message.head.message_id);
            assert_eq!(message.body, letter(n, n % 20).body);
        }
        store.close().await;
    });
}
