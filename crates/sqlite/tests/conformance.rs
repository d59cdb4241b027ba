//! Every behaviour of every port, over SQLite.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::time::Millis;
use storybus_protocol::id::MessageId;
use storybus_sqlite::{Store, StoreOptions};
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use storybus_testkit::memory::DeadLetter;
use storybus_testkit::suite::{Engine, Factory, SUITES, Stores, exercise_all};
use tempfile::TempDir;

struct SqliteFactory;

struct SqliteEngine {
    directory: TempDir,
    clock: FakeClock,
    store: Store,
}

fn open(directory: &TempDir, clock: &FakeClock) -> Store {
    Store::open(directory.path(), StoreOptions::new(Arc::new(clock.clone()))).unwrap()
}

#[async_trait]
impl Engine for SqliteEngine {
    fn stores(&self) -> Stores {
        Stores {
            ledger: Arc::new(self.store.ledger()),
            topic: Arc::new(self.store.topic()),
            queues: Arc::new(self.store.queues()),
            workspaces: Arc::new(self.store.workspaces()),
            connections: Arc::new(self.store.connections()),
            audit: Arc::new(self.store.audit_log()),
        }
    }

    async fn reopen(&mut self) {
        self.store.close().await;
        self.store = open(&self.directory, &self.clock);
    }

    async fn dead_letters(&self, queue: &QueueKey) -> Vec<DeadLetter> {
        let database = self.directory.path().join("bus.db");
        let database = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let sql = "SELECT message_id, receives, reason, dead_at FROM dead_letter
                   JOIN queue ON queue.id = queue JOIN message ON seq = message WHERE consumer = ?1 ORDER BY position";
        let mut statement = database.prepare(sql).unwrap();
        let letters = statement.query_map([queue.consumer.as_str()], |row| {
            Ok(DeadLetter {
                message_id: MessageId::from_bytes(row.get(0)?),
                receive_count: row.get(1)?,
                reason: row.get(2)?,
                at: Millis(row.get(3)?),
            })
        });
        letters.unwrap().map(Result::unwrap).collect()
    }
}

#[async_trait]
impl Factory for SqliteFactory {
    async fn engine(&self, clock: FakeClock) -> Box<dyn Engine> {
        let directory = TempDir::new().unwrap();
        let store = open(&directory, &clock);
        Box::new(SqliteEngine {
            directory,
            clock,
            store,
        })
    }
}

#[test]
fn sqlite_keeps_every_promise() {
    let report = run(exercise_all(&SqliteFactory));
    println!("sqlite: {report}");
    assert_eq!(
        report.held.len(),
        SUITES.iter().map(|suite| suite.len()).sum::<usize>()
    );
}
