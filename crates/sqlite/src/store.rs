//! The store: one directory, opened by one process.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use storybus_core::domain::time::Millis;
use storybus_core::ports::{Clock, StoreError};

use crate::activity::{Notes, SqliteActivityLog};
use crate::archive::{self, ArchiveLimits, Archivist, SqliteArchive};
use crate::audit::SqliteAuditLog;
use crate::checkpoint::{CheckpointLimits, Checkpoints};
use crate::connections::SqliteConnections;
use crate::dead_letters::SqliteDeadLetters;
use crate::directory::{self, Directory};
use crate::durability::{Durability, Point};
use crate::error::{Failure, OpenError};
use crate::jobs::SqliteJobs;
use crate::ledger::SqliteLedger;
use crate::queue_control::SqliteQueueControl;
use crate::queues::SqliteQueues;
use crate::reader::{self, Reader};
use crate::registry::Registry;
use crate::schema;
use crate::stories::SqliteStories;
use crate::sweep::Sweeper;
use crate::time::EngineClock;
use crate::topic::SqliteTopic;
use crate::workspaces::SqliteWorkspaces;
use crate::writer::{self, Batches, Writer};

/// The write connection's page cache, in KiB. With the reader's and the checkpointer's it bounds what SQLite takes.
const WRITER_CACHE: i64 = 16 * 1024;
const READER_CACHE: i64 = 4 * 1024;
const HISTORY_CACHE: i64 = 8 * 1024;
const ARCHIVIST_CACHE: i64 = 1024;
const CHECKPOINTER_CACHE: i64 = 1024;
/// When the WAL starts over, its file keeps so many bytes, to be overwritten: as many as it usually gets.
const WAL_BYTES: i64 = 128 * 1024 * 1024;
/// Statements kept prepared on a connection: more than there are.
const STATEMENTS: usize = 128;

/// How long the archive keeps a message unless it is told otherwise.
const ARCHIVE_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// How to open a store.
#[derive(Clone)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// When the write-ahead log is copied into the database.
    pub checkpoints: CheckpointLimits,
    /// How long what was published is kept. 30 days by default.
    pub archive_retention: Duration,
    /// How the archive is laid out.
    pub archive: ArchiveLimits,
    /// The most pages the database may have (of 4 KiB): how tests meet a full disk anywhere. No limit by default.
    pub max_pages: Option<u32>,
    /// Names of files that whoever opens the store puts into its directory, and only when the store was opened before: with
    /// one of them there and no database, the store is not opened, rather than begun anew. None by default.
    pub traces: Vec<&'static str>,
}

impl StoreOptions {
    /// The usual.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            checkpoints: CheckpointLimits::default(),
            archive_retention: ARCHIVE_RETENTION,
            archive: ArchiveLimits::default(),
            max_pages: None,
            traces: Vec::new(),
        }
    }
}

impl std::fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreOptions")
            .field("checkpoints", &self.checkpoints)
            .finish_non_exhaustive()
    }
}

/// What the ports share.
pub(crate) struct Inner {
    registry: Arc<Registry>,
    clock: Arc<EngineClock>,
    notes: Arc<Notes>,
    writer: Writer,
    reader: Reader,
    history: Reader,
    archivist: Archivist,
    archive_retention: Duration,
}

impl Inner {
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn clock(&self) -> &EngineClock {
        &self.clock
    }

    pub(crate) fn notes(&self) -> &Notes {
        &self.notes
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    /// For short reads, which a request of the hot paths waits for.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// For reads that may be long: operators' and jobs'.
    pub(crate) fn history(&self) -> &Reader {
        &self.history
    }
}

/// An open data directory. Cheap to clone; it closes with [`Store::close`], or when the last clone and the last port are
/// dropped.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    durability: Arc<Durability>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the directory, which is made if it is not there, and brings it to this program's format. Blocks meanwhile.
    pub fn open(path: &Path, options: StoreOptions) -> Result<Self, OpenError> {
        let directory = Directory::open(path, &options.traces)?;
        let database = directory.database_path();
        let mut connection = connect(&database, WRITER_CACHE)?;
        // checkpoints are another thread's: see `checkpoint`
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        // what a long reader made it grow by is given back
        connection.pragma_update_and_check(None, "journal_size_limit", WAL_BYTES, |_| Ok(()))?;
        if let Some(pages) = options.max_pages {
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        }
        schema::migrate(&mut connection)?;
        let clock = Arc::new(EngineClock::new(
            Arc::clone(&options.clock),
            latest_time(&connection)?,
        ));
        let registry = Arc::new(Registry::load(&connection).map_err(|failure| match failure {
            Failure::Sqlite(error) => error.into(),
            other => OpenError::Corrupt(StoreError::from(&other).to_string()),
        })?);
        let durability = Arc::new(Durability::new());
        let checkpoints = Arc::new(Checkpoints::new(options.checkpoints, Arc::clone(&durability)));
        let notes = Arc::new(Notes::default());
        let batches = Batches::new(
            connection,
            Arc::clone(&registry),
            Arc::clone(&clock),
            Arc::clone(&durability),
            Arc::clone(&checkpoints),
            Arc::clone(&notes),
            options.archive_retention,
        )?;
        directory.sync()?;
        let mut threads = Threads {
            registry: Arc::clone(&registry),
            durability: Arc::clone(&durability),
            checkpoints: Arc::clone(&checkpoints),
            readers: Vec::new(),
            archivist: None,
            database: Arc::clone(directory.database()),
            handles: durability.start(&directory::wal_path(&database))?,
            _directory: directory,
        };
        let ([reader, history], archivist) = match threads.start(&database, options.archive) {
            Ok(started) => started,
            Err(error) => {
                threads.end(batches);
                return Err(error);
            }
        };
        let (writer, orders) = writer::channel();
        let serve = move || orders.serve(batches, |batches| threads.end(batches));
        thread::Builder::new()
            .name("storybus-write".to_owned())
            .spawn(serve)?;
        let inner = Arc::new(Inner {
            registry,
            clock,
            notes,
            writer,
            reader,
            history,
            archivist,
            archive_retention: options.archive_retention,
        });
        inner.archivist.begin(Arc::downgrade(&inner));
        Ok(Self { inner, durability })
    }

    /// Records and stories.
    #[must_use]
    pub fn ledger(&self) -> SqliteLedger {
        SqliteLedger::new(Arc::clone(&self.inner))
    }

    /// Publication.
    #[must_use]
    pub fn topic(&self) -> SqliteTopic {
        SqliteTopic::new(Arc::clone(&self.inner))
    }

    /// The consumers' queues.
    #[must_use]
    pub fn queues(&self) -> SqliteQueues {
        SqliteQueues::new(Arc::clone(&self.inner))
    }

    /// What was published.
    #[must_use]
    pub fn archive(&self) -> SqliteArchive {
        SqliteArchive::new(Arc::clone(&self.inner), self.inner.archive_retention)
    }

    /// The stories, to be looked at.
    #[must_use]
    pub fn stories(&self) -> SqliteStories {
        SqliteStories::new(Arc::clone(&self.inner))
    }

    /// The registry of workspaces.
    #[must_use]
    pub fn workspaces(&self) -> SqliteWorkspaces {
        SqliteWorkspaces::new(Arc::clone(&self.inner))
    }

    /// The registry of connections.
    #[must_use]
    pub fn connections(&self) -> SqliteConnections {
        SqliteConnections::new(Arc::clone(&self.inner))
    }

    /// The audit.
    #[must_use]
    pub fn audit_log(&self) -> SqliteAuditLog {
        SqliteAuditLog::new(Arc::clone(&self.inner))
    }

    /// Jobs.
    #[must_use]
    pub fn jobs(&self) -> SqliteJobs {
        SqliteJobs::new(Arc::clone(&self.inner))
    }

    /// The consumers' dead letters.
    #[must_use]
    pub fn dead_letters(&self) -> SqliteDeadLetters {
        SqliteDeadLetters::new(Arc::clone(&self.inner))
    }

    /// The queues in an operator's hands.
    #[must_use]
    pub fn queue_control(&self) -> SqliteQueueControl {
        SqliteQueueControl::new(Arc::clone(&self.inner))
    }

    /// The log of refused publishes.
    #[must_use]
    pub fn activity_log(&self) -> SqliteActivityLog {
        SqliteActivityLog::new(Arc::clone(&self.inner))
    }

    /// Comes back when everything committed before the call is on disk, at once if it is. To be waited for before any
    /// answer leaves, whatever it says: it may tell of a commit of another's.
    ///
    /// An error is final: the disk failed, and the process should end.
    pub async fn barrier(&self) -> Result<(), StoreError> {
        self.durability.barrier().await.map(drop)
    }

    /// The same, with the point up to which the write-ahead log is known to be on disk.
    #[doc(hidden)]
    pub async fn synced(&self) -> Result<Point, StoreError> {
        self.durability.barrier().await
    }

    /// Comes back with the reason when the store has failed for good; the process should then end. Never otherwise.
    pub async fn failed(&self) -> Arc<str> {
        self.durability.failed().await
    }

    /// The latest time the store has seen, in this process or before: a clock that starts from it never goes back.
    #[must_use]
    pub fn last_time(&self) -> Millis {
        self.inner.clock.latest()
    }

    /// Writes the time, as the store does by itself every so often: whether it can write. Comes back when that is on disk.
    pub async fn try_write(&self) -> Result<(), StoreError> {
        let sql = "INSERT INTO meta (name, value) VALUES ('last_time', ?1)
             ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)";
        let write = self.inner.writer.call(|tx| tx.execute(sql, [tx.now().0]));
        write.await?;
        self.barrier().await
    }

    /// Removes everything whose time is over, which otherwise happens bit by bit.
    pub async fn sweep(&self) -> Result<(), StoreError> {
        let mut sweeper = Sweeper::new(self.inner.archive_retention);
        loop {
            let before = sweeper.clone();
            sweeper = self
                .inner
                .writer
                .call(move |tx| {
                    let mut sweeper = before.clone();
                    sweeper.step(tx)?;
                    Ok(sweeper)
                })
                .await?;
            if sweeper.is_at_start() {
                return Ok(());
            }
        }
    }

    /// Puts everything that is published into the archive's blocks, which otherwise happens behind the newest messages.
    #[doc(hidden)]
    pub async fn compact(&self) -> Result<(), StoreError> {
        self.inner.archivist.compact().await
    }

    /// Finishes what was asked before, copies the write-ahead log into the database and lets go of the directory. Receives
    /// that wait come back empty; what is asked later is refused.
    pub async fn close(&self) {
        self.inner.writer.close().await;
    }
}

/// The other threads, which end with the writer's.
struct Threads {
    registry: Arc<Registry>,
    durability: Arc<Durability>,
    checkpoints: Arc<Checkpoints>,
    readers: Vec<Reader>,
    archivist: Option<Archivist>,
    handles: Vec<JoinHandle<()>>,
    database: Arc<File>,
    /// Let go of last, with its descriptor of the database.
    _directory: Directory,
}

impl Threads {
    fn start(
        &mut self,
        database: &Path,
        archive: ArchiveLimits,
    ) -> Result<([Reader; 2], Archivist), OpenError> {
        let readers = [
            self.start_reader(database, READER_CACHE, "storybus-read")?,
            self.start_reader(database, HISTORY_CACHE, "storybus-history")?,
        ];
        let connection = connect(database, ARCHIVIST_CACHE)?;
        connection.pragma_update(None, "query_only", true)?;
        let (archivist, orders) = archive::channel();
        let serve = move || orders.serve(&connection, archive);
        self.handles.push(
            thread::Builder::new()
                .name("storybus-archive".to_owned())
                .spawn(serve)?,
        );
        self.archivist = Some(archivist.clone());
        let connection = connect(database, CHECKPOINTER_CACHE)?;
        let file = Arc::clone(&self.database);
        let checkpoints = Arc::clone(&self.checkpoints);
        let run = move || checkpoints.run(&connection, &file);
        self.handles.push(
            thread::Builder::new()
                .name("storybus-checkpoint".to_owned())
                .spawn(run)?,
        );
        Ok((readers, archivist))
    }

    fn start_reader(&mut self, database: &Path, cache: i64, name: &str) -> Result<Reader, OpenError> {
        let connection = connect(database, cache)?;
        connection.pragma_update(None, "query_only", true)?;
        let (reader, calls) = reader::channel();
        let serve = move || calls.serve(&connection);
        self.handles
            .push(thread::Builder::new().name(name.to_owned()).spawn(serve)?);
        self.readers.push(reader.clone());
        Ok(reader)
    }

    fn stop(&mut self) {
        self.registry.close_queues();
        self.checkpoints.stop();
        self.durability.stop();
        self.archivist.take().iter().for_each(Archivist::stop);
        self.readers.drain(..).for_each(|reader| reader.stop());
        for handle in self.handles.drain(..) {
            handle.join().ok();
        }
    }

    /// The write connection goes last: it checkpoints. Then the lock.
    fn end(mut self, batches: Batches) {
        self.stop();
        batches.close();
    }
}

impl Drop for Threads {
    // opening failed half-way, or the end
    fn drop(&mut self) {
        self.stop();
    }
}

fn connect(database: &Path, cache: i64) -> Result<Connection, OpenError> {
    // each connection stays in one thread
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // negative: KiB
    connection.pragma_update(None, "cache_size", -cache)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// The time is written down once a second; rows that were written in between tell the rest.
fn latest_time(connection: &Connection) -> rusqlite::Result<Millis> {
    let mut latest = i64::MIN;
    for sql in [
        "SELECT value FROM meta WHERE name = 'last_time'",
        "SELECT recorded_at FROM record ORDER BY id DESC LIMIT 1",
        "SELECT published_at FROM message ORDER BY seq DESC LIMIT 1",
        "SELECT last_at FROM archive_block ORDER BY last_at DESC LIMIT 1",
    ] {
        let time: Option<i64> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
        latest = latest.max(time.unwrap_or(i64::MIN));
    }
    Ok(Millis(latest))
}
