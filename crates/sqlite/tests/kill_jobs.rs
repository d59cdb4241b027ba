//! The process is killed while jobs work, at any instant: each message of a redrive and of a replay arrives once, in order.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use engine::{open, stores, world};
use storybus_core::domain::delivery::{Delivery, QueueKey};
use storybus_core::domain::filter::Filter;
use storybus_core::domain::job::{Job, JobState, Work};
use storybus_core::domain::time::Millis;
use storybus_core::ops::jobs::Stepped;
use storybus_core::ports::Jobs as _;
use storybus_core::{Bus, Settings};
use storybus_sqlite::{Store, check};
use storybus_testkit::executor::run;
use storybus_testkit::suite::{World, sample};
use storybus_testkit::{FakeClock, SeededRandom, ports};
use tempfile::TempDir;

/// Names the directory to the process that is to be killed.
const DIRECTORY: &str = "STORYBUS_JOBS_KILLED_IN";
const MESSAGES: u64 = 600;
const GROUPS: u64 = 30;
/// Who works at a job at the same time.
const RUNNERS: u64 = 2;

fn say(line: &str) {
    std::io::stdout()
        .lock()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// Takes steps until no job is left, or until it is killed. Without its directory it has nothing to do: it is a part of the other
/// test.
#[test]
fn runners_at_work() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let clock = FakeClock::new();
    let store = open(Path::new(&directory), &clock);
    std::thread::scope(|scope| {
        for runner in 0..RUNNERS {
            let (store, clock) = (&store, &clock);
            scope.spawn(move || {
                let random = Arc::new(SeededRandom::new(runner));
                let ports = ports(&stores(store), Arc::new(clock.clone()), random);
                let bus = Bus::new(ports, Settings::with_window(Duration::from_secs(30)));
                run(async {
                    loop {
                        let jobs = bus.jobs_unfinished().await.unwrap();
                        if jobs.is_empty() {
                            break;
                        }
                        for job in jobs {
                            if bus.job_step(&job).await.unwrap() == Stepped::Goes {
                                say("stepped");
                            }
                        }
                    }
                });
            });
        }
    });
    say("over");
}

/// Lets runners work for so many steps and a bit, and kills them; whether they were done before.
fn live(directory: &Path, steps: usize, bit: u32) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "runners_at_work", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut stepped = 0;
    for line in said {
        match line.unwrap().as_str() {
            "over" => {
                assert!(child.wait().unwrap().success());
                return true;
            }
            "stepped" => stepped += 1,
            _ => {}
        }
        if stepped >= steps {
            break;
        }
    }
    // somewhere in what comes next
    for _ in 0..bit {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

fn number(delivery: &Delivery) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&delivery.message_id.as_bytes()[8..]);
    u64::from_be_bytes(bytes)
}

/// Messages that a consumer has rejected, and another that was not there then; a job for each.
async fn prepare(store: &Store, clock: &FakeClock) -> [(QueueKey, Job); 2] {
    let world = world(store, clock);
    let queue = world.queue().await;
    for n in 0..MESSAGES {
        world.send_to(&queue, n, n % GROUPS).await;
    }
    // half of what the replay reads is packed
    store.compact().await.unwrap();
    for n in MESSAGES..2 * MESSAGES {
        world.send_to(&queue, n, n % GROUPS).await;
    }
    loop {
        let received = world.receive(&queue, 10).await;
        if received.is_empty() {
            break;
        }
        world.reject(&queue, &received, "cannot use it").await;
    }
    clock.advance(Duration::from_secs(1));
    let late = world.consumer("c2", &queue.workspace, Filter::default()).await;
    let redrive = sample::job("j1", &queue, clock.now());
    let mut replay = sample::job("j2", &late, clock.now());
    replay.work = Work::Replay {
        from: Millis(0),
        to: clock.now(),
        message_types: Vec::new(),
        story_ids: Vec::new(),
        correlation_ids: Vec::new(),
    };
    for job in [&redrive, &replay] {
        let audit = sample::audit("job.create", &[], clock.now());
        store.jobs().create(job, &audit).await.unwrap();
    }
    [(queue, redrive), (late, replay)]
}

async fn arrived(store: &Store, world: &World, queue: &QueueKey, job: &Job) {
    let job = store.jobs().get(&job.id).await.unwrap().unwrap();
    let counts = (job.state, job.moved, job.scanned);
    assert_eq!(counts, (JobState::Done, 2 * MESSAGES, 2 * MESSAGES), "{job:?}");
    let counts = world.counts(queue).await;
    assert_eq!((counts.visible, counts.dead_lettered), (2 * MESSAGES, 0));
    let mark = format!("{}:{}", job.kind(), job.id);
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for delivery in world.drain(queue).await {
        let n = number(&delivery);
        assert_eq!(delivery.redelivery.as_deref(), Some(mark.as_str()));
        assert!(all.insert(n), "message {n} came twice");
        let before = last.insert(n % GROUPS, n);
        assert!(before < Some(n), "message {n} came behind {before:?}");
    }
    assert_eq!(all.len() as u64, 2 * MESSAGES, "something is lost");
}

#[test]
fn killed_jobs_deliver_each_message_once() {
    let directory = TempDir::new().unwrap();
    let clock = FakeClock::new();
    let jobs = run(async {
        let store = open(directory.path(), &clock);
        let jobs = prepare(&store, &clock).await;
        store.close().await;
        jobs
    });
    let mut lives = 0;
    // a stream of lives that differ, the same in each run
    let mut dice: u32 = 12345;
    while !live(directory.path(), (dice >> 16) as usize % 4, (dice >> 8) % 2000) {
        lives += 1;
        dice = dice.wrapping_mul(1_103_515_245).wrapping_add(12345);
        assert!(lives < 500, "the jobs do not end");
    }
    println!("{lives} lives");
    assert!(lives >= 10, "the processes were killed at work, {lives} times");
    let checked = check(directory.path()).unwrap();
    assert_eq!(checked.findings, []);
    assert_eq!(
        (checked.queued, checked.dead_letters, checked.jobs),
        (4 * MESSAGES, 0, 2)
    );
    run(async {
        let store = open(directory.path(), &clock);
        let world = world(&store, &clock);
        for (queue, job) in &jobs {
            arrived(&store, &world, queue, job).await;
        }
        store.close().await;
    });
}
