//! Checkpoints, away from the writer.
//!
//! A thread of its own copies the WAL into the database bit by bit. It never catches up with a busy writer, and only a WAL
//! that is copied to its end starts over. So once the WAL is long, the thread goes on until little is left, and the writer
//! copies that little between two batches: its next write starts the WAL over, in space the file already has (an overwritten
//! file is also faster to sync than a growing one).
//!
//! What a reader still sees cannot be copied over: while a backup reads, the WAL grows, and looking for more to copy is work in
//! vain, which the writer must not do at all.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rustix::fs::fdatasync;

use crate::durability::Durability;
use crate::error::is_failed_sync;

/// When the thread copies, in pages of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointLimits {
    /// After so many new ones.
    pub every: u32,
    /// From so many on the WAL shall start over.
    pub bound: u32,
    /// At most so many are left to the writer, if that can be had.
    pub tail: u32,
}

impl Default for CheckpointLimits {
    /// Small steps: what one of them syncs, the syncs of the WAL have to wait for.
    fn default() -> Self {
        Self {
            every: 1024,
            bound: 16 * 1024,
            tail: 256,
        }
    }
}

/// How long the thread waits after a checkpoint that failed (there is no room, most likely).
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// How long it waits before it believes that a reader is in the way.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// How long it waits when a reader is in the way.
const BEHIND_A_READER: Duration = Duration::from_millis(100);

/// What SQLite says of the WAL after a checkpoint.
#[derive(Debug, Clone, Copy)]
struct Copied {
    /// Its frames, as the checkpoint saw it.
    frames: u32,
    /// How many of them are in the database.
    copied: u32,
}

impl Copied {
    /// Whether there was something to copy, and no more of it could be copied than before: a reader still sees it. A WAL that was copied to its end starts over at once under a busy
    /// writer, so this is told by what the checkpoint saw, not by what is there after it.
    fn is_stuck_at(self, before: u32) -> bool {
        self.copied < self.frames && self.copied <= before
    }
}

/// What the writer and the checkpointing thread tell each other.
pub(crate) struct Checkpoints {
    limits: CheckpointLimits,
    durability: Arc<Durability>,
    frames: AtomicU32,
    copied: AtomicU32,
    /// The rest is the writer's.
    finish: AtomicBool,
    /// A reader is in the way.
    pinned: AtomicBool,
    /// Held while the thread copies and syncs.
    copying: Mutex<()>,
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
            pinned: AtomicBool::new(false),
            copying: Mutex::new(()),
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

    /// The writer's part, between two batches. A writer that is so much faster than the disk that little is never left has
    /// to wait for it.
    pub(crate) fn finish(&self, connection: &Connection) {
        let too_long =
            self.frames.load(Ordering::Acquire) >= self.limits.bound.saturating_mul(2) && self.left() > 0;
        if (too_long && !self.pinned.load(Ordering::Acquire)) || self.finish.load(Ordering::Acquire) {
            let copying = self.copying.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = self.checkpoint(connection) {
                tracing::debug!(%error, "checkpoint failed");
            }
            drop(copying);
            self.finish.store(false, Ordering::Release);
        }
    }

    /// The thread. `database` is another descriptor of the database's file.
    pub(crate) fn run(&self, connection: &Connection, database: &File) {
        // Against a writer that is faster than this thread little would never be left: each time it may be more.
        let mut tail = self.limits.tail;
        let mut stuck_before = false;
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
            let copied = {
                let _copying = self.copying.lock().unwrap_or_else(PoisonError::into_inner);
                let before = self.copied.load(Ordering::Acquire);
                // SQLite syncs the database only when it has copied all of the WAL. That will be the writer, and so that it has
                // little to wait for, what was copied so far is synced here.
                self.checkpoint(connection)
                    .map(|state| (fdatasync(database), state.is_stuck_at(before)))
            };
            // Once is nothing: the transaction of a moment may have been in the way.
            let stuck = matches!(copied, Ok((_, true)));
            let pinned = stuck && stuck_before;
            stuck_before = stuck;
            self.pinned.store(pinned, Ordering::Release);
            match copied {
                Ok((Ok(()), true)) if pinned => self.rest(BEHIND_A_READER),
                Ok((Ok(()), true)) => self.rest(LOOK_AGAIN),
                Ok((Ok(()), false)) if self.long() && self.left() <= tail => {
                    tail = self.limits.tail;
                    self.finish.store(true, Ordering::Release);
                }
                Ok((Ok(()), false)) if self.long() => tail = tail.saturating_mul(2),
                Ok((Ok(()), false)) => {}
                Ok((Err(error), _)) => {
                    return self
                        .durability
                        .fail(&format!("fdatasync of the database: {error}"));
                }
                Err(error) => {
                    tracing::warn!(%error, "checkpoint failed");
                    self.rest(AFTER_FAILURE);
                }
            }
        }
    }

    /// Waits, unless the end comes.
    fn rest(&self, span: Duration) {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(stop, span, |stop| !*stop));
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

    /// Copies what it can without waiting for anyone.
    fn checkpoint(&self, connection: &Connection) -> rusqlite::Result<Copied> {
        let result = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            let number = |at| row.get::<_, i64>(at).map(|n| u32::try_from(n).unwrap_or(0));
            Ok((number(1)?, number(2)?))
        });
        match result {
            Ok((frames, copied)) => {
                // the writer may have started the WAL over meanwhile: then this is about the old one
                if copied <= self.frames.load(Ordering::Acquire) {
                    self.copied.store(copied, Ordering::Release);
                }
                Ok(Copied { frames, copied })
            }
            Err(error) => {
                if is_failed_sync(&error) {
                    self.durability.fail(&format!("fsync of a checkpoint: {error}"));
                }
                Err(error)
            }
        }
    }
}
