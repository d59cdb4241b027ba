//! Checkpoints, away from the writer.
//!
//! A thread of its own copies the WAL into the database bit by bit. It never catches up with a busy writer, and only a WAL
//! that is copied to its end starts over. So once the WAL is long, the thread goes on until little is left, and the writer
//! copies that little between two batches: its next write starts the WAL over, in space the file already has (an overwritten
//! file is also faster to sync than a growing one).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::ffi;

use crate::durability::Durability;

/// When the thread copies, in pages of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointLimits {
    /// After so many new ones.
    pub every: u32,
    /// From so many on the WAL shall start over.
    pub bound: u32,
    /// So many are left to the writer.
    pub tail: u32,
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        Self {
            every: 4 * 1024,
            bound: 16 * 1024,
            tail: 256,
        }
    }
}

/// How long the thread waits after a checkpoint that failed (there is no room, most likely).
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What the writer and the checkpointing thread tell each other.
pub(crate) struct Checkpoints {
    limits: CheckpointLimits,
    durability: Arc<Durability>,
    frames: AtomicU32,
    copied: AtomicU32,
    /// The rest is the writer's.
    finish: AtomicBool,
    stop: Mutex<bool>,
    changed: Condvar,
}

impl Checkpoints {
    pub(crate) fn new(limits: CheckpointLimits, durability: Arc<Durability>) -> Self {
        Self {
            limits,
            durability,
            frames: AtomicU32::new(0),
            copied: AtomicU32::new(0),
            finish: AtomicBool::new(false),
            stop: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// The writer has committed: the WAL has so many frames now.
    pub(crate) fn grown(&self, frames: u32) {
        if frames < self.frames.swap(frames, Ordering::AcqRel) {
            // started over
            self.copied.store(0, Ordering::Release);
        }
        if self.wanted() {
            drop(self.stop.lock().unwrap_or_else(PoisonError::into_inner));
            self.changed.notify_one();
        }
    }

    /// The writer's part, between two batches.
    pub(crate) fn finish(&self, connection: &Connection) {
        if self.finish.load(Ordering::Acquire) {
            self.checkpoint(connection).ok();
            self.finish.store(false, Ordering::Release);
        }
    }

    /// The thread.
    pub(crate) fn run(&self, connection: &Connection) {
        loop {
            {
                let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
                while !*stop && !self.wanted() {
                    stop = self.changed.wait(stop).unwrap_or_else(PoisonError::into_inner);
                }
                if *stop || self.durability.failure().is_some() {
                    return;
                }
            }
            match self.checkpoint(connection) {
                Ok(left) if self.long() && left <= self.limits.tail => {
                    self.finish.store(true, Ordering::Release)
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "checkpoint failed");
                    let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
                    drop(
                        self.changed
                            .wait_timeout_while(stop, AFTER_FAILURE, |stop| !*stop),
                    );
                }
            }
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn long(&self) -> bool {
        self.frames.load(Ordering::Acquire) >= self.limits.bound
    }

    fn left(&self) -> u32 {
        self.frames
            .load(Ordering::Acquire)
            .saturating_sub(self.copied.load(Ordering::Acquire))
    }

    fn wanted(&self) -> bool {
        let enough = if self.long() {
            self.limits.tail.min(self.limits.every)
        } else {
            self.limits.every
        };
        self.left() >= enough && !self.finish.load(Ordering::Acquire)
    }

    /// Copies what it can without waiting for anyone; how many frames are left.
    fn checkpoint(&self, connection: &Connection) -> rusqlite::Result<u32> {
        let result = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(2));
        match result {
            Ok(copied) => {
                let copied = u32::try_from(copied).unwrap_or(0);
                // the writer may have started the WAL over meanwhile: then this is about the old one
                if copied <= self.frames.load(Ordering::Acquire) {
                    self.copied.store(copied, Ordering::Release);
                }
                Ok(self.left())
            }
            Err(error) => {
                let code = error.sqlite_error().map(|e| e.extended_code);
                if code == Some(ffi::SQLITE_IOERR_FSYNC) {
                    self.durability.fail(&format!("fsync of a checkpoint: {error}"));
                }
                Err(error)
            }
        }
    }
}
