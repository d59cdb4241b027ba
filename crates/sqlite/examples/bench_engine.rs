//! How fast the engine is, on this machine, beside SQLite itself.
//!
//! ```sh
//! cargo run --release -p storybus-sqlite --example bench_engine -- [--dir DIR] [--messages 1000000] [--tasks 16] [--body 1000] [--stories] [--soak SECONDS]
//!     [--every PAGES]
//! ```
//!
//! A publish is what the bus does for one: RECORD, PUBLISH to one consumer, MARK, and the barrier before the answer. With
//! `--stories` each message is a snapshot: it reads first, and moves its story. With `--soak` it publishes 3,000 a second for that
//! long, with consumers that keep up, and measures nothing else.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::Connection as Database;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::message::{About, Claim, Publication};
use storybus_core::domain::record::{
    ContentHash, RECORD_LIFETIME, Record, RecordKey, RecordState, StoryKey, Token,
};
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::{Marking, NewRecord, Recorded, StoryMove, Written};
use storybus_core::ports::queues::Receive;
use storybus_core::ports::{Clock, Connections as _, Ledger as _, Queues as _, Topic as _, Workspaces as _};
use storybus_protocol::id::{CorrelationId, MessageId};
use storybus_sqlite::{CheckpointLimits, Store, StoreOptions};
use storybus_testkit::suite::sample::{self, Letter};
use tokio::runtime::Runtime;

struct RealClock;

#[async_trait]
impl Clock for RealClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Millis(i64::try_from(since.as_millis()).unwrap())
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

struct Arguments {
    dir: Option<PathBuf>,
    messages: u64,
    tasks: u64,
    body: usize,
    stories: bool,
    soak: Option<u64>,
    every: u32,
}

impl Arguments {
    fn parse() -> Self {
        let mut parsed = Self {
            dir: None,
            messages: 1_000_000,
            tasks: 16,
            body: 1000,
            stories: false,
            soak: None,
            every: CheckpointLimits::default().every,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--dir" => parsed.dir = words.next().map(PathBuf::from),
                "--messages" => parsed.messages = words.next().unwrap().parse().unwrap(),
                "--tasks" => parsed.tasks = words.next().unwrap().parse().unwrap(),
                "--body" => parsed.body = words.next().unwrap().parse().unwrap(),
                "--stories" => parsed.stories = true,
                "--every" => parsed.every = words.next().unwrap().parse().unwrap(),
                "--soak" => parsed.soak = Some(words.next().unwrap().parse().unwrap()),
                other => println!("{other}?"),
            }
        }
        parsed
    }
}

/// Numbers that look random and never repeat.
fn scatter(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn sixteen(n: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&scatter(n).to_be_bytes());
    bytes[8..].copy_from_slice(&n.to_be_bytes());
    bytes
}

#[derive(Clone)]
struct Bench {
    store: Store,
    queue: QueueKey,
    body: Bytes,
    stories: bool,
    next: Arc<AtomicU64>,
}

impl Bench {
    async fn publish(&self) -> Duration {
        let begun = Instant::now();
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let now = RealClock.now();
        let (attempt, window) = (Token(sixteen(n << 1)), Duration::from_secs(30));
        let group = CorrelationId::from_bytes(sixteen(n / 5));
        let mut letter = Letter::new(n, 0);
        letter.attributes.correlation_id = group.to_string();
        let key = RecordKey {
            workspace: self.queue.workspace.clone(),
            message_id: MessageId::from_bytes(sixteen(n)),
        };
        let ledger = self.store.ledger();
        let story = if self.stories {
            let story = StoryKey {
                workspace: key.workspace.clone(),
                digest: sixteen(n),
            };
            let reading = ledger.read(&key, Some(&story), now).await.unwrap();
            assert!(reading.record.is_none() && reading.story.is_none());
            Some(StoryMove {
                key: story,
                story_id: format!("story {n}"),
                read: None,
                state: sample::story_state(n),
                version: attempt,
            })
        } else {
            None
        };
        let record = Record {
            content_hash: ContentHash([7; 32]),
            state: RecordState::Recorded,
            recorded_at: now,
            attempt,
            story: story.as_ref().map(|moved| moved.key.digest),
            producer: letter.attributes.producer_id.clone(),
            published_at: None,
            expires_at: now.plus(RECORD_LIFETIME),
        };
        let new = NewRecord {
            key: key.clone(),
            record,
            story,
            now,
            window,
        };
        assert_eq!(ledger.record(&new).await.unwrap(), Recorded::Done);
        let publication = Publication {
            workspace: key.workspace.clone(),
            message_id: key.message_id,
            correlation_id: group,
            story: new.record.story,
            body: self.body.clone(),
            attributes: letter.attributes,
            about: About::default(),
            claim: Claim {
                attempt,
                until: now.plus(window),
            },
        };
        self.store
            .topic()
            .publish(&publication, Duration::from_secs(5))
            .await
            .unwrap();
        let now = RealClock.now();
        let marking = Marking {
            key,
            attempt,
            now,
            expires_at: now.plus(RECORD_LIFETIME),
        };
        assert_eq!(ledger.mark(&marking).await.unwrap(), Written::Done);
        self.store.barrier().await.unwrap();
        begun.elapsed()
    }

    /// Publishes as fast as so many at a time can.
    async fn publishes(&self, count: u64, tasks: u64, what: &str) -> f64 {
        let begun = Instant::now();
        let left = Arc::new(AtomicU64::new(count));
        let workers: Vec<_> = (0..tasks)
            .map(|_| {
                let (bench, left) = (self.clone(), Arc::clone(&left));
                tokio::spawn(async move {
                    let mut took = Vec::new();
                    let one_less = |left: u64| left.checked_sub(1);
                    while left
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
                        .is_ok()
                    {
                        took.push(bench.publish().await);
                    }
                    took
                })
            })
            .collect();
        let mut took = Vec::new();
        for worker in workers {
            took.extend(worker.await.unwrap());
        }
        report(what, count, begun.elapsed(), took)
    }

    /// Publishes at a rate, whatever the answers take.
    async fn paced(&self, per_second: u64, seconds: u64) {
        let begun = Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        let mut sent = 0;
        let mut workers = Vec::new();
        while sent < per_second * seconds {
            ticks.tick().await;
            let due = u64::try_from(begun.elapsed().as_micros()).unwrap() * per_second / 1_000_000;
            while sent < due.min(per_second * seconds) {
                sent += 1;
                let bench = self.clone();
                workers.push(tokio::spawn(async move { bench.publish().await }));
            }
        }
        let mut took = Vec::new();
        for worker in workers {
            took.push(worker.await.unwrap());
        }
        report(
            &format!("publish, {per_second}/s asked for"),
            sent,
            begun.elapsed(),
            took,
        );
    }

    /// Publishes and consumes for a long time.
    async fn soak(&self, seconds: u64) {
        let done = Arc::new(AtomicBool::new(false));
        let consumers: Vec<_> = (0..4)
            .map(|_| {
                let (bench, done) = (self.clone(), Arc::clone(&done));
                tokio::spawn(async move {
                    let receive = Receive {
                        wait: Duration::from_secs(1),
                        ..receive()
                    };
                    let queues = bench.store.queues();
                    let mut got = 0;
                    while !done.load(Ordering::Relaxed) {
                        let received = queues.receive(&bench.queue, &receive).await.unwrap();
                        bench.store.barrier().await.unwrap();
                        got += received.len();
                        let handles: Vec<_> = received.into_iter().map(|d| d.receipt_handle).collect();
                        queues.acknowledge(&bench.queue, &handles).await.unwrap();
                        bench.store.barrier().await.unwrap();
                    }
                    got
                })
            })
            .collect();
        let mut left = seconds;
        while left > 0 {
            let part = left.min(20);
            self.paced(3000, part).await;
            left -= part;
            println!("resident: {} MiB", resident_mib());
        }
        done.store(true, Ordering::Relaxed);
        let mut got = 0;
        for consumer in consumers {
            got += consumer.await.unwrap();
        }
        println!(
            "{got} consumed, left: {:?}",
            self.store.queues().counts(&self.queue).await.unwrap()
        );
    }

    /// Receives ten and acknowledges them, several receivers at a time.
    async fn consumes(&self, count: u64, receivers: u64, what: &str) -> f64 {
        let begun = Instant::now();
        let got = Arc::new(AtomicU64::new(0));
        let workers: Vec<_> = (0..receivers)
            .map(|_| {
                let (bench, got) = (self.clone(), Arc::clone(&got));
                tokio::spawn(async move {
                    let mut took = Vec::new();
                    let queues = bench.store.queues();
                    while got.load(Ordering::Relaxed) < count {
                        let begun = Instant::now();
                        let received = queues.receive(&bench.queue, &receive()).await.unwrap();
                        bench.store.barrier().await.unwrap();
                        assert!(!received.is_empty());
                        let handles: Vec<_> = received.into_iter().map(|d| d.receipt_handle).collect();
                        queues.acknowledge(&bench.queue, &handles).await.unwrap();
                        bench.store.barrier().await.unwrap();
                        got.fetch_add(u64::try_from(handles.len()).unwrap(), Ordering::Relaxed);
                        took.push(begun.elapsed());
                    }
                    took
                })
            })
            .collect();
        let mut took = Vec::new();
        for worker in workers {
            took.extend(worker.await.unwrap());
        }
        report(what, got.load(Ordering::Relaxed), begun.elapsed(), took)
    }
}

fn receive() -> Receive {
    Receive {
        max: 10,
        wait: Duration::ZERO,
        visibility: Duration::from_secs(60),
        max_receives: 5,
        attempt: None,
    }
}

fn report(what: &str, count: u64, all: Duration, mut took: Vec<Duration>) -> f64 {
    took.sort_unstable();
    let at = |part: f64| {
        let index = ((took.len() as f64) * part) as usize;
        took.get(index.min(took.len() - 1)).unwrap().as_secs_f64() * 1e3
    };
    let rate = count as f64 / all.as_secs_f64();
    println!(
        "{what:<42} {rate:>8.0}/s   p50 {:>6.2} ms  p99 {:>6.2} ms  max {:>6.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    rate
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

async fn prepare(store: Store, arguments: &Arguments) -> Bench {
    let now = RealClock.now();
    let workspace = sample::workspace("w1", now);
    let consumer = sample::consumer(
        "c1",
        &workspace.id,
        storybus_core::domain::filter::Filter::default(),
        now,
    );
    store
        .workspaces()
        .create(&workspace, &sample::audit("tenant.create", &["w1"], now))
        .await
        .unwrap();
    store
        .connections()
        .create(&consumer, &sample::audit("consumer.create", &["w1", "c1"], now))
        .await
        .unwrap();
    let queue = QueueKey {
        workspace: workspace.id,
        consumer: consumer.id,
    };
    let body = Bytes::from(vec![b'x'; arguments.body]);
    Bench {
        store,
        queue,
        body,
        stories: arguments.stories,
        next: Arc::new(AtomicU64::new(0)),
    }
}

/// The rows of a publish, written by SQLite alone: batches as large as there are tasks, each synced.
fn bare(dir: &std::path::Path, count: u64, arguments: &Arguments) -> f64 {
    let database = Database::open(dir.join("bare.db")).unwrap();
    database
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .unwrap();
    database.pragma_update(None, "synchronous", "FULL").unwrap();
    database
        .execute_batch(include_str!("../src/schema/001_initial.sql"))
        .unwrap();
    database
        .execute_batch("INSERT INTO queue (consumer) VALUES ('c1')")
        .unwrap();
    let body = vec![b'x'; arguments.body];
    let state = serde_json::to_vec(&sample::story_state(1)).unwrap();
    let (begun, mut took) = (Instant::now(), Vec::new());
    let mut n = 0_u64;
    while n < count {
        let batch = Instant::now();
        database.execute_batch("BEGIN").unwrap();
        for _ in 0..arguments.tasks {
            let (id, token, group) = (sixteen(n), sixteen(n << 1), sixteen(n / 5));
            let now = RealClock.now().0;
            let run = |sql: &str, params: &[&dyn rusqlite::ToSql]| {
                database.prepare_cached(sql).unwrap().execute(params).unwrap();
            };
            if arguments.stories {
                let sql =
                    "INSERT INTO story (workspace, digest, head, version, state) VALUES (1, ?1, ?1, ?2, ?3)";
                run(sql, &[&id, &token, &state]);
            }
            run(
                "INSERT INTO record (workspace, message_id, content_hash, state, recorded_at, attempt, producer, expires_at)
                 VALUES (1, ?1, ?2, 0, ?3, ?4, 'p1', ?3)",
                &[&id, &[7_u8; 32], &now, &token],
            );
            let record = database.last_insert_rowid();
            run(
                "INSERT INTO message (workspace, message_id, published_at, message_type, family, topic, correlation_id,
                                      producer, system_id, som_version, body)
                 VALUES (1, ?1, ?2, 'telling.started', 'telling-event', 'som.telling',
                         '0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07', 'p1', 'ncs-1', '1.0.0', ?3)",
                &[&id, &now, &body],
            );
            let message = database.last_insert_rowid();
            run(
                "INSERT INTO queue_message (queue, position, grp, message, enqueued_at, state) VALUES (1, ?1, ?2, ?1, ?3, 1)",
                &[&message, &group, &now],
            );
            run("UPDATE record SET topic_at = ?2 WHERE id = ?1", &[&record, &now]);
            run(
                "UPDATE record SET state = 1, published_at = ?2 WHERE id = ?1",
                &[&record, &now],
            );
            run("UPDATE queue SET visible = visible + 1 WHERE id = 1", &[]);
            n += 1;
        }
        database.execute_batch("COMMIT").unwrap();
        took.push(batch.elapsed());
    }
    report("bare SQLite, the same rows and batches", n, begun.elapsed(), took)
}

fn main() {
    let arguments = Arguments::parse();
    let temporary = tempfile::tempdir().unwrap();
    let dir = arguments
        .dir
        .clone()
        .unwrap_or_else(|| temporary.path().to_owned());
    let runtime = Runtime::new().unwrap();
    let mut options = StoreOptions::new(Arc::new(RealClock));
    options.checkpoints.every = arguments.every;
    let store = Store::open(&dir, options).unwrap();
    runtime.block_on(async {
        let bench = prepare(store.clone(), &arguments).await;
        let tasks = arguments.tasks;
        if let Some(seconds) = arguments.soak {
            bench.soak(seconds).await;
            store.close().await;
            return;
        }
        let first = bench.publishes(10_000, tasks, "publish, the first 10,000").await;
        bench.consumes(9_000, 4, "receive and acknowledge, tens").await;
        bench.paced(3000, 5).await;
        let rest = arguments
            .messages
            .saturating_sub(bench.next.load(Ordering::Relaxed));
        bench
            .publishes(
                rest,
                64,
                &format!("publish, up to {} messages, 64 tasks", arguments.messages),
            )
            .await;
        println!("resident: {} MiB", resident_mib());
        let last = bench.publishes(10_000, tasks, "publish, 10,000 more").await;
        println!("that is {:.2} of the first 10,000", last / first);
        bench.paced(3000, 5).await;
        bench.consumes(90_000, 4, "receive and acknowledge, tens").await;
        println!("resident: {} MiB", resident_mib());
        let closing = Instant::now();
        store.close().await;
        println!("closed in {:.0} ms", closing.elapsed().as_secs_f64() * 1e3);
        drop((bench, store));
        let opening = Instant::now();
        let store = Store::open(&dir, StoreOptions::new(Arc::new(RealClock))).unwrap();
        println!("opened in {:.0} ms", opening.elapsed().as_secs_f64() * 1e3);
        let sweeping = Instant::now();
        store.sweep().await.unwrap();
        println!("a sweep took {:.0} ms", sweeping.elapsed().as_secs_f64() * 1e3);
        store.close().await;
        let bare = bare(&dir, 50_000, &arguments);
        println!("the first 10,000 publishes are {:.2} of that", first / bare);
    });
}
