//! The engine as the suites want it, in a directory of its own.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags};
use storybus_sqlite::{Store, StoreOptions};
use storybus_testkit::FakeClock;
use storybus_testkit::suite::{Engine, Stores, World};
use tempfile::TempDir;

/// A store on a fake clock.
pub(crate) struct SqliteEngine {
    directory: Arc<TempDir>,
    clock: FakeClock,
    store: Store,
}

impl SqliteEngine {
    /// A fresh one.
    pub(crate) fn new(clock: &FakeClock) -> Self {
        let directory = Arc::new(TempDir::new().unwrap());
        let store = open(directory.path(), clock);
        Self {
            directory,
            clock: clock.clone(),
            store,
        }
    }
}

/// Opens a directory.
pub(crate) fn open(directory: &Path, clock: &FakeClock) -> Store {
    Store::open(directory, StoreOptions::new(Arc::new(clock.clone()))).unwrap()
}

/// Looks into a directory's database.
pub(crate) fn database(directory: &Path) -> Connection {
    Connection::open_with_flags(directory.join("bus.db"), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// A world on a store that the test has opened itself.
pub(crate) fn world(store: &Store, clock: &FakeClock) -> World {
    struct Borrowed(Store);

    #[async_trait]
    impl Engine for Borrowed {
        fn stores(&self) -> Stores {
            stores(&self.0)
        }

        async fn reopen(&mut self) {
            unreachable!("the test reopens")
        }

        async fn compact(&self) {
            self.0.compact().await.unwrap();
        }
    }

    World::new(Box::new(Borrowed(store.clone())), clock.clone())
}

/// Its ports.
pub(crate) fn stores(store: &Store) -> Stores {
    Stores {
        ledger: Arc::new(store.ledger()),
        topic: Arc::new(store.topic()),
        queues: Arc::new(store.queues()),
        queue_control: Arc::new(store.queue_control()),
        dead_letters: Arc::new(store.dead_letters()),
        archive: Arc::new(store.archive()),
        stories: Arc::new(store.stories()),
        jobs: Arc::new(store.jobs()),
        activity: Arc::new(store.activity_log()),
        workspaces: Arc::new(store.workspaces()),
        connections: Arc::new(store.connections()),
        audit: Arc::new(store.audit_log()),
    }
}

#[async_trait]
impl Engine for SqliteEngine {
    fn stores(&self) -> Stores {
        stores(&self.store)
    }

    async fn reopen(&mut self) {
        self.store.close().await;
        self.store = open(self.directory.path(), &self.clock);
    }
    async fn compact(&self) {
        self.store.compact().await.unwrap();
    }
}
