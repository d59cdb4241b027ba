//! A store whose archive has small blocks and short runs, and what the tests ask it.

use std::path::Path;
use std::sync::Arc;

use storybus_core::domain::archived::{Archived, Head, Part, Position, Selection, TimeRange};
use storybus_core::domain::time::Millis;
use storybus_core::ports::archive::PartLimits;
use storybus_core::ports::{Archive as _, StoreError};
use storybus_protocol::id::{MessageId, WorkspaceId};
use storybus_sqlite::{ArchiveLimits, Store, StoreOptions};
use storybus_testkit::FakeClock;
use storybus_testkit::suite::World;
use storybus_testkit::suite::sample::Letter;
use tempfile::TempDir;

use crate::engine::world;

/// Layout in which a few messages make many blocks and some runs.
pub(crate) fn small() -> ArchiveLimits {
    ArchiveLimits {
        tail: 1_000_000,
        block_messages: 4,
        block_bytes: 2000,
        run_blocks: 3,
        fan: 2,
    }
}

pub(crate) struct Place {
    pub(crate) clock: FakeClock,
    pub(crate) directory: TempDir,
    pub(crate) store: Store,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut StoreOptions)) -> Self {
        let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
        let store = open(directory.path(), &clock, change);
        Self {
            clock,
            directory,
            store,
        }
    }

    pub(crate) fn world(&self) -> World {
        world(&self.store, &self.clock)
    }

    /// Closes it, lets somebody do something to the database, and opens it again.
    pub(crate) async fn between(&mut self, work: impl FnOnce(&rusqlite::Connection)) {
        self.store.close().await;
        let database = rusqlite::Connection::open(self.directory.path().join("bus.db")).unwrap();
        work(&database);
        drop(database);
        self.store = open(self.directory.path(), &self.clock, |_| {});
    }

    /// A number that a query finds.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        crate::engine::database(self.directory.path())
            .query_row(sql, [], |row| row.get(0))
            .unwrap()
    }
}

pub(crate) fn open(directory: &Path, clock: &FakeClock, change: impl FnOnce(&mut StoreOptions)) -> Store {
    let mut options = StoreOptions::new(Arc::new(clock.clone()));
    options.archive = small();
    change(&mut options);
    Store::open(directory, options).unwrap()
}

/// A letter about a story, with a body of some size.
pub(crate) fn letter(n: u64, group: u64) -> Letter {
    Letter::new(n, group)
        .about(&format!("story-{group}"))
        .of_size(100 + usize::try_from(n % 7).unwrap() * 90)
}

pub(crate) const LIMITS: PartLimits = PartLimits {
    messages: 7,
    scanned: 11,
    bytes: 3000,
};

/// The next part of everything.
pub(crate) async fn part(
    store: &Store,
    workspace: &WorkspaceId,
    after: Option<&Position>,
) -> Result<Part, StoreError> {
    let range = TimeRange {
        from: Millis(0),
        to: Millis(i64::MAX),
    };
    store
        .archive()
        .read(workspace, range, after, &Selection::default(), LIMITS)
        .await
}

/// Everything that is there, part by part.
pub(crate) async fn everything(store: &Store, workspace: &WorkspaceId) -> Vec<Archived> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let part = part(store, workspace, after.as_ref()).await.unwrap();
        all.extend(part.messages);
        if part.end {
            return all;
        }
        after = part.last;
    }
}

/// By number.
pub(crate) fn number(id: MessageId) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&id.as_bytes()[8..]);
    u64::from_be_bytes(bytes)
}

pub(crate) fn numbers(heads: &[Head]) -> Vec<u64> {
    heads.iter().map(|head| number(head.message_id)).collect()
}
