//! The process is killed, at any instant: everything answered is there, and nothing acknowledged comes back.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use engine::{open, world};
use storybus_core::domain::delivery::{Delivery, QueueKey};
use storybus_core::domain::record::{RecordKey, RecordState};
use storybus_core::ports::Ledger as _;
use storybus_sqlite::Store;
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use storybus_testkit::suite::sample;
use tempfile::TempDir;

/// Names the directory to the process that is to be killed.
const DIRECTORY: &str = "STORYBUS_KILLED_IN";
const SENDERS: u64 = 3;
/// Messages of one sender in one life.
const MOST: u64 = 100_000;

fn queue() -> QueueKey {
    QueueKey {
        workspace: "w1".parse().unwrap(),
        consumer: "c1".parse().unwrap(),
    }
}

fn number(delivery: &Delivery) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&delivery.message_id.as_bytes()[8..]);
    u64::from_be_bytes(bytes)
}

/// Says something as one write: a line that is out is whole.
fn say(line: &str) {
    std::io::stdout()
        .lock()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// Sends, receives and acknowledges until it is killed, and says what was answered. Without its directory it has nothing to do:
/// it is a part of the other test.
#[test]
fn a_process_at_work() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let (directory, life) = directory.split_once('#').unwrap();
    let life: u64 = life.parse().unwrap();
    let clock = FakeClock::new();
    let store = open(Path::new(directory), &clock);
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (store, clock) = (&store, &clock);
            scope.spawn(move || {
                let world = world(store, clock);
                let first = (life * SENDERS + sender) * MOST;
                for n in first..first + MOST {
                    run(async {
                        world.send_to(&queue(), n, n % 50).await;
                        store.barrier().await.unwrap();
                    });
                    say(&format!("published {n}"));
                }
            });
        }
        let world = world(&store, &clock);
        loop {
            let received = run(async {
                let received = world.receive(&queue(), 5).await;
                world.acknowledge(&queue(), &received).await;
                store.barrier().await.unwrap();
                received
            });
            received
                .iter()
                .for_each(|delivery| say(&format!("acknowledged {}", number(delivery))));
        }
    });
}

#[derive(Default)]
struct Told {
    published: BTreeSet<u64>,
    acknowledged: BTreeSet<u64>,
}

/// Lets a process work until it has said so many lines, and kills it.
fn live(directory: &Path, life: u64, lines: usize, told: &mut Told) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_process_at_work", "--nocapture"])
        .env(DIRECTORY, format!("{}#{life}", directory.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut take = |line: String| match line.split_once(' ') {
        Some(("published", n)) => told.published.insert(n.parse().unwrap()),
        Some(("acknowledged", n)) => told.acknowledged.insert(n.parse().unwrap()),
        _ => false,
    };
    let mut count = 0;
    while count < lines {
        count += usize::from(take(said.next().unwrap().unwrap()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // what was on its way
    said.map_while(Result::ok).for_each(|line| {
        take(line);
    });
}

async fn check(store: &Store, clock: &FakeClock, told: &Told) {
    let queue = queue();
    for n in &told.published {
        let key = RecordKey {
            workspace: queue.workspace.clone(),
            message_id: sample::message_id(*n),
        };
        let record = store
            .ledger()
            .read(&key, None, world(store, clock).now())
            .await
            .unwrap()
            .record
            .unwrap();
        assert_eq!(record.state, RecordState::Published, "message {n}");
    }
}

#[test]
fn what_a_killed_process_answered_holds() {
    let directory = TempDir::new().unwrap();
    let clock = FakeClock::new();
    run(async {
        let store = open(directory.path(), &clock);
        world(&store, &clock).queue().await;
        store.close().await;
    });
    let mut told = Told::default();
    for life in 0..8 {
        live(
            directory.path(),
            life,
            20 + 67 * usize::try_from(life).unwrap(),
            &mut told,
        );
    }
    run(async {
        let store = open(directory.path(), &clock);
        check(&store, &clock, &told).await;
        let world = world(&store, &clock);
        // what was received and not acknowledged comes back, all of it
        clock.advance(storybus_core::ports::queues::MAX_VISIBILITY);
        let came: Vec<u64> = world.drain(&queue()).await.iter().map(number).collect();
        let once: BTreeSet<u64> = came.iter().copied().collect();
        assert_eq!(came.len(), once.len(), "each message is in the queue once");
        assert!(once.is_disjoint(&told.acknowledged));
        for n in told.published.difference(&told.acknowledged) {
            // the last acknowledgements of a life may have been done and not told
            let recent = told
                .acknowledged
                .iter()
                .any(|a| a / MOST == n / MOST && a + 50 * 6 > *n);
            assert!(
                once.contains(n) || recent,
                "message {n} was published and is gone"
            );
        }
        assert!(
            told.published.len() > 1000 && told.acknowledged.len() > 100,
            "the processes did work"
        );
        store.close().await;
    });
}
