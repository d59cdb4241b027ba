//! Batches: many commands, one commit.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use storybus_core::domain::time::Millis;
use storybus_core::ports::StoreError;
use storybus_protocol::id::WorkspaceId;

use super::Command;
use super::positions::Positions;
use super::tx::{Effects, Tx};
use crate::activity::{self, Notes};
use crate::checkpoint::Checkpoints;
use crate::durability::Durability;
use crate::error::{Failure, is_failed_sync, surely_not_committed};
use crate::registry::Registry;
use crate::sweep::Sweeper;
use crate::time::EngineClock;

/// How often the store writes down the time.
const SAVE_TIME_EVERY: Duration = Duration::from_secs(1);
/// How often the sweeper looks whether it has work.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How often the log of refusals is written, unless it is asked for.
const WRITE_NOTES_EVERY: Duration = Duration::from_millis(200);
/// Notes of one transaction.
const NOTES: usize = 500;
/// A WAL's header, and what goes before each page in it. <https://www.sqlite.org/fileformat.html#the_write_ahead_log>
const WAL_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;

/// Why a transaction did not happen.
enum Stop {
    /// One of its commands failed; rolled back.
    Failed(Failure),
    /// COMMIT failed.
    Commit(rusqlite::Error),
}

thread_local! {
    /// What SQLite's hook told of the last commit on this thread: the frames of the WAL, until they are asked for. The hook is a plain
    /// function, and runs inside the commit.
    static WAL_FRAMES: Cell<Option<u32>> = const { Cell::new(None) };
}

/// The write connection and all that a commit has to be told to.
pub(crate) struct Batches {
    connection: Connection,
    registry: Arc<Registry>,
    clock: Arc<EngineClock>,
    durability: Arc<Durability>,
    checkpoints: Arc<Checkpoints>,
    frame_bytes: u64,
    numbers: HashMap<WorkspaceId, i64>,
    positions: Positions,
    time_saved: Millis,
    sweeper: Sweeper,
    archive_retention: Duration,
    sweep_next: Millis,
    notes: Arc<Notes>,
    notes_next: Millis,
}

impl Batches {
    pub(crate) fn new(
        connection: Connection,
        registry: Arc<Registry>,
        clock: Arc<EngineClock>,
        durability: Arc<Durability>,
        checkpoints: Arc<Checkpoints>,
        notes: Arc<Notes>,
        archive_retention: Duration,
    ) -> rusqlite::Result<Self> {
        connection.wal_hook(Some(|_, frames| {
            WAL_FRAMES.set(Some(u32::try_from(frames).unwrap_or(0)));
            Ok(())
        }));
        let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let positions = Positions::load(&connection)?;
        let mut batches = Self {
            connection,
            registry,
            clock,
            durability,
            checkpoints,
            frame_bytes: u64::from(page) + FRAME_HEADER,
            numbers: HashMap::new(),
            positions,
            time_saved: Millis(i64::MIN),
            sweeper: Sweeper::new(archive_retention),
            archive_retention,
            sweep_next: Millis(i64::MIN),
            notes,
            notes_next: Millis(i64::MIN),
        };
        // Makes the WAL, which the syncers open, and shows whether one can write at all.
        batches.save_time()?;
        Ok(batches)
    }

    fn save_time(&mut self) -> rusqlite::Result<()> {
        let now = self.clock.now();
        self.connection.execute(SAVE_TIME, [now.0])?;
        self.time_saved = now;
        self.note_commit();
        Ok(())
    }

    /// Runs what waits, and a bit of the housekeeping.
    pub(crate) fn run(&mut self, waiting: &mut Vec<Box<dyn Command>>) {
        if let Some(reason) = self.durability.failure() {
            let reason = format!("the store has failed: {reason}");
            for command in waiting.drain(..) {
                command.answer(Err(StoreError::Unavailable {
                    reason: reason.clone(),
                }));
            }
            return;
        }
        if self.notes.is_asked() {
            self.write_notes(usize::MAX);
        }
        if !waiting.is_empty() {
            self.batch(waiting);
        }
        if self.clock.now() >= self.notes_next {
            self.write_notes(NOTES);
        }
        self.checkpoints.finish(&self.connection);
        self.sweep();
    }

    /// How long there is nothing to do unless a command comes.
    pub(crate) fn idle_for(&self, longest: Duration) -> Duration {
        if self.sweeper.has_more() {
            Duration::from_millis(1)
        } else {
            longest
        }
    }

    /// See [`Durability::fail`].
    pub(crate) fn fail(&self, reason: &str) {
        self.durability.fail(reason);
    }

    /// Ends with the connection, which checkpoints what is left, as the last one does.
    pub(crate) fn close(mut self) {
        if self.durability.failure().is_none() {
            self.write_notes(usize::MAX);
            self.save_time().ok();
        } else if let Err(error) = self
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        {
            // What the WAL's pages hold is not sure any more: better to leave the copying to the next start, which checks them.
            tracing::error!(%error, "left open");
            std::mem::forget(self.connection);
            return;
        }
        if let Err((_, error)) = self.connection.close() {
            tracing::warn!(%error, "closing the database failed");
        }
    }

    fn batch(&mut self, waiting: &mut Vec<Box<dyn Command>>) {
        let outcome = self.transaction(|tx| {
            waiting
                .iter_mut()
                .try_for_each(|command| guarded(command.as_mut(), tx))
        });
        match outcome {
            Ok(effects) => {
                waiting.drain(..).for_each(|command| command.answer(Ok(())));
                self.wake(effects);
            }
            Err(stop) if waiting.len() > 1 && stop.nothing_written() => {
                for command in waiting.drain(..) {
                    self.batch(&mut vec![command]);
                }
            }
            Err(stop) => {
                let error = stop.into_error();
                tracing::warn!(%error, commands = waiting.len(), "transaction failed");
                waiting
                    .drain(..)
                    .for_each(|command| command.answer(Err(error.clone())));
            }
        }
    }

    /// One transaction: what it left to do is done, but for waking.
    fn transaction(
        &mut self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<(), Failure>,
    ) -> Result<Effects, Stop> {
        let now = self.clock.now();
        let result = self.begin_to_commit(now, work);
        if let Err(Stop::Commit(error) | Stop::Failed(Failure::Sqlite(error))) = &result
            && is_failed_sync(error)
        {
            // a WAL that starts over syncs its header
            self.durability
                .fail(&format!("sync of the write-ahead log: {error}"));
        }
        if result.is_err() && !self.connection.is_autocommit() {
            // SQLite has rolled back by itself after some errors; after the others we do
            self.connection.execute_batch("ROLLBACK").ok();
        }
        let mut effects = result?;
        self.numbers.extend(effects.numbers.drain(..));
        self.positions.reserved_until(effects.reserved);
        effects.after.drain(..).for_each(|effect| effect(&self.registry));
        self.note_commit();
        Ok(effects)
    }

    fn begin_to_commit(
        &mut self,
        now: Millis,
        work: impl FnOnce(&mut Tx<'_>) -> Result<(), Failure>,
    ) -> Result<Effects, Stop> {
        let sql = |sql| self.connection.prepare_cached(sql)?.execute([]);
        sql("BEGIN IMMEDIATE")?;
        let changes = self.connection.total_changes();
        let mut tx = Tx::new(
            &self.connection,
            &self.registry,
            &self.numbers,
            &self.positions,
            now,
        );
        work(&mut tx)?;
        let effects = tx.finish()?;
        let save_time =
            self.connection.total_changes() != changes && now >= self.time_saved.plus(SAVE_TIME_EVERY);
        if save_time {
            self.connection.prepare_cached(SAVE_TIME)?.execute([now.0])?;
        }
        sql("COMMIT").map_err(Stop::Commit)?;
        if save_time {
            self.time_saved = now;
        }
        Ok(effects)
    }

    /// Numbers the commit, if it wrote anything.
    fn note_commit(&self) {
        if let Some(frames) = WAL_FRAMES.take() {
            self.durability
                .committed(WAL_HEADER + u64::from(frames) * self.frame_bytes);
            self.checkpoints.grown(frames);
        }
    }

    fn wake(&self, effects: Effects) {
        for (queue, time) in effects.hidden {
            if let Some(queue) = self.registry.queue_of_id(queue) {
                queue.signal().hidden_until(time);
            }
        }
        for queue in effects.ready {
            if let Some(queue) = self.registry.queue_of_id(queue) {
                queue.signal().wake();
            }
        }
    }

    /// Writes up to so many of the notes that wait by now, or all.
    fn write_notes(&mut self, most: usize) {
        self.notes_next = self.clock.now().plus(WRITE_NOTES_EVERY);
        let mut left = self.notes.len().min(most);
        while left > 0 {
            let notes = self.notes.oldest(left.min(NOTES));
            match self.transaction(|tx| activity::write(tx, &notes)) {
                Ok(_) => self.notes.written(notes.len()),
                Err(stop) => {
                    // most likely there is no room; they wait, or are dropped when there are too many
                    tracing::debug!(error = %stop.into_error(), "writing the log of refusals failed");
                    return;
                }
            }
            left = left.saturating_sub(NOTES);
        }
    }

    fn sweep(&mut self) {
        let now = self.clock.now();
        if !self.sweeper.has_more() && now < self.sweep_next {
            return;
        }
        self.sweep_next = now.plus(SWEEP_EVERY);
        let mut sweeper = self.sweeper.clone();
        match self.transaction(|tx| sweeper.step(tx)) {
            Ok(effects) => {
                self.sweeper = sweeper;
                self.wake(effects);
            }
            Err(stop) => {
                // most likely there is no room; nothing depends on it
                tracing::debug!(error = %stop.into_error(), "sweeping failed");
                self.sweeper = Sweeper::new(self.archive_retention);
            }
        }
    }
}

const SAVE_TIME: &str = "INSERT INTO meta (name, value) VALUES ('last_time', ?1)
     ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)";

fn guarded(command: &mut dyn Command, tx: &mut Tx<'_>) -> Result<(), Failure> {
    catch_unwind(AssertUnwindSafe(|| command.run(tx))).unwrap_or(Err(Failure::Panicked))
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Stop {
    fn nothing_written(&self) -> bool {
        match self {
            Self::Failed(_) => true,
            Self::Commit(error) => surely_not_committed(error),
        }
    }

    fn into_error(self) -> StoreError {
        match self {
            Self::Failed(failure) => (&failure).into(),
            Self::Commit(error) if surely_not_committed(&error) => (&Failure::Sqlite(error)).into(),
            Self::Commit(error) => StoreError::Unknown {
                reason: error.to_string(),
            },
        }
    }
}

#[cfg(test)]
mod tests;
