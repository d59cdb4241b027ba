//! A store to measure, and what the bus does for a publish.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use rusqlite::{Connection as Database, OpenFlags};
use storybus_core::domain::archived::{Archived, Head, Position};
use storybus_core::domain::filter::Filter;
use storybus_core::domain::message::{Claim, Publication};
use storybus_core::domain::record::{ContentHash, RECORD_LIFETIME, Record, RecordKey, RecordState, Token};
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::{Marking, NewRecord, Recorded, Written};
use storybus_core::ports::{Clock, Connections as _, Ledger as _, Topic as _, Workspaces as _};
use storybus_protocol::id::WorkspaceId;
use storybus_sqlite::{Store, StoreOptions};
use storybus_testkit::suite::sample;

use super::story::{Snapshot, sixteen};

/// Real time, and days that are let go by.
#[derive(Clone, Default)]
pub(crate) struct Shifted(Arc<AtomicI64>);

impl Shifted {
    pub(crate) fn advance(&self, by: Duration) {
        self.0
            .fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for Shifted {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Millis(i64::try_from(since.as_millis()).unwrap() + self.0.load(Ordering::Relaxed))
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

#[derive(Clone)]
pub(crate) struct Bus {
    pub(crate) store: Store,
    pub(crate) clock: Shifted,
    pub(crate) workspace: WorkspaceId,
    pub(crate) stories: u64,
    next: Arc<AtomicU64>,
}

impl Bus {
    /// A fresh one, with a workspace and a consumer.
    pub(crate) async fn open(dir: &Path, tail: usize, stories: u64) -> Self {
        let clock = Shifted::default();
        let mut options = StoreOptions::new(Arc::new(clock.clone()));
        options.archive.tail = tail;
        let store = Store::open(dir, options).unwrap();
        let now = clock.now();
        let workspace = sample::workspace("w1", now);
        let consumer = sample::consumer("c1", &workspace.id, Filter::default(), now);
        let audit = sample::audit("tenant.create", &["w1"], now);
        store.workspaces().create(&workspace, &audit).await.unwrap();
        let audit = sample::audit("consumer.create", &["w1", "c1"], now);
        store.connections().create(&consumer, &audit).await.unwrap();
        Self {
            store,
            clock,
            workspace: workspace.id,
            stories,
            next: Arc::default(),
        }
    }

    pub(crate) fn take(&self, count: u64) -> u64 {
        self.next.fetch_add(count, Ordering::Relaxed)
    }

    /// RECORD, PUBLISH, MARK, and the barrier before the answer.
    pub(crate) async fn publish(&self) -> Duration {
        let n = self.take(1);
        let snapshot = Snapshot::new(n, self.stories, true);
        let begun = Instant::now();
        let now = self.clock.now();
        let (attempt, window) = (Token(sixteen(n)), Duration::from_secs(30));
        let key = RecordKey {
            workspace: self.workspace.clone(),
            message_id: snapshot.message_id,
        };
        let new = NewRecord {
            key: key.clone(),
            record: Record {
                content_hash: ContentHash([7; 32]),
                state: RecordState::Recorded,
                recorded_at: now,
                attempt,
                story: None,
                producer: snapshot.attributes.producer_id.clone(),
                published_at: None,
                expires_at: now.plus(RECORD_LIFETIME),
            },
            story: None,
            now,
            window,
        };
        let ledger = self.store.ledger();
        assert_eq!(ledger.record(&new).await.unwrap(), Recorded::Done);
        let publication = Publication {
            workspace: key.workspace.clone(),
            message_id: key.message_id,
            correlation_id: snapshot.correlation_id,
            story: None,
            body: snapshot.body,
            attributes: snapshot.attributes,
            about: snapshot.about,
            claim: Claim {
                attempt,
                until: now.plus(window),
            },
        };
        let topic = self.store.topic();
        topic.publish(&publication, Duration::from_secs(5)).await.unwrap();
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

    /// Publishes as fast as 64 at a time can; how many a second.
    pub(crate) async fn publishes(&self, count: u64) -> f64 {
        let begun = Instant::now();
        let workers: Vec<_> = (0..64)
            .map(|_| {
                let bus = self.clone();
                tokio::spawn(async move {
                    for _ in 0..count / 64 {
                        bus.publish().await;
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        (count / 64 * 64) as f64 / begun.elapsed().as_secs_f64()
    }

    /// Puts a history straight into blocks.
    pub(crate) async fn fill(&self, count: u64, long: bool) {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let bus = self.clone();
                tokio::spawn(async move {
                    for _ in 0..count / 128 {
                        let (first, now) = (bus.take(64), bus.clock.now());
                        let messages = (first..first + 64).map(|n| bus.archived(n, now, long)).collect();
                        bus.store.archive().add(&bus.workspace, messages).await.unwrap();
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
    }

    fn archived(&self, n: u64, now: Millis, long: bool) -> Archived {
        let snapshot = Snapshot::new(n, self.stories, long);
        Archived {
            head: Head {
                position: Position(String::new()),
                message_id: snapshot.message_id,
                published_at: now,
                attributes: snapshot.attributes,
                about: snapshot.about,
            },
            body: snapshot.body,
        }
    }
}

/// Bytes of the tables and indexes whose names begin so, in whole pages, the free ones apart.
pub(crate) fn bytes_of(dir: &Path, names: &str) -> i64 {
    let database = Database::open_with_flags(dir.join("bus.db"), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    database
        .query_row(
            "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name GLOB ?1",
            [names],
            |row| row.get(0),
        )
        .unwrap()
}

/// What each thread of the process has used of the processors so far, in seconds; on Linux alone.
pub(crate) fn threads() -> Vec<(String, f64)> {
    let mut used = std::collections::BTreeMap::<String, f64>::new();
    for task in std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
    {
        let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        // https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: utime and stime, in ticks of 10 ms
        let stat = read("stat");
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let ticks = |n: usize| {
            fields
                .get(n)
                .and_then(|f| f.parse::<f64>().ok())
                .unwrap_or_default()
        };
        *used.entry(read("comm").trim().to_owned()).or_default() += (ticks(11) + ticks(12)) / 100.0;
    }
    used.into_iter().collect()
}
