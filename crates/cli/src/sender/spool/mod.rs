//! The directory that a relay watches: `storybus relay --spool DIR`, for programs that can write a file and nothing more.
//!
//! A message's way through the directory, each step a rename on one file system:
//!
//! ```text
//! DIR/NAME               renamed there by the program
//! DIR/taking/NAME        taken: from here on the program cannot put another one in its place
//! DIR/sending/KEY/NAME   in the outbox (KEY is the message_id); with NAME.answer.json while it is parked
//! DIR/done/NAME          delivered, NAME.answer.json beside it
//! DIR/failed/NAME        refused, or no message at all, NAME.answer.json beside it
//! ```
//!
//! Whatever ends the relay between two steps, the next start finds the file where it was: what lies in `taking` is enqueued (again: the same key with the same bytes
//! is known), and what lies in `sending` is looked up in the outbox. The answer is written before the file is moved beside it, so
//! that whoever sees the file in `done` finds its answer. Nothing about files is kept in memory but one batch of names, so their number does not
//! matter.
//!
//! - `folder`: names, scans, moves. `answer`: the file with the answer.
//! - `intake`: from the directory into the outbox. `settle`: from the outbox to the end.

mod answer;
mod folder;
mod intake;
mod settle;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use storybus_sender::message::Target;
use storybus_sender::outbox::Outbox;
use storybus_sender::ports::{Clock, SystemClock};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use self::folder::Folder;
use self::settle::Sweep;
use super::relay::Metrics;
use super::settings::BUS;
use super::stop::Stop;

/// How many keys of messages that are no longer pending may wait for the spool.
pub(super) const HEARD: usize = 10_000;
/// How often the directory is looked into.
const LOOK: Duration = Duration::from_millis(500);
/// The pause after an outbox that failed.
const TROUBLE: Duration = Duration::from_secs(1);

/// A directory that is watched.
pub(super) struct Spool {
    folder: Folder,
    outbox: Outbox,
    target: Target,
    clock: SystemClock,
    metrics: Arc<Metrics>,
    sweep: Sweep,
}

impl Spool {
    /// Makes the directories, and takes the directory for this relay alone.
    pub(super) fn open(
        path: &Path,
        outbox: Outbox,
        clock: SystemClock,
        metrics: Arc<Metrics>,
    ) -> Result<Self> {
        Ok(Self {
            folder: Folder::open(path)?,
            outbox,
            target: Target::new(BUS)?,
            clock,
            metrics,
            sweep: Sweep::default(),
        })
    }

    /// Works until it is stopped, and then until `ended`, from which it hears the keys of messages that are no longer pending, is closed. On a thread of its
    /// own: it reads and writes files.
    pub(super) fn run(mut self, handle: &Handle, stop: &Stop, mut ended: mpsc::Receiver<String>) {
        tracing::info!(folder = %self.folder.root().display(), "watching for files");
        while !stop.is_asked() {
            let mut pause = LOOK;
            match handle.block_on(self.take()) {
                Ok(true) => pause = Duration::ZERO,
                Ok(false) => {}
                Err(error) => pause = self.troubled(&error),
            }
            while let Ok(key) = ended.try_recv() {
                self.settle_logged(handle, &key);
            }
            match handle.block_on(self.sweep()) {
                Ok(true) => pause = Duration::ZERO,
                Ok(false) => {}
                Err(error) => pause = pause.max(self.troubled(&error)),
            }
            if pause.is_zero() {
                continue;
            }
            let heard = handle.block_on(async {
                tokio::select! {
                    key = ended.recv() => key,
                    () = stop.asked() => None,
                    () = self.clock.sleep(pause) => None,
                }
            });
            if let Some(key) = heard {
                self.settle_logged(handle, &key);
            }
        }
        // What it cannot settle any more is settled by the next start.
        while let Some(key) = handle.block_on(ended.recv()) {
            if !self.settle_logged(handle, &key) {
                break;
            }
        }
    }

    /// Whether it went well.
    fn settle_logged(&mut self, handle: &Handle, key: &str) -> bool {
        let settled = handle.block_on(self.settle(key));
        if let Err(error) = &settled {
            settle::stays(key, error);
        }
        settled.is_ok()
    }

    /// Logs it; how long to wait.
    fn troubled(&self, error: &anyhow::Error) -> Duration {
        tracing::warn!(error = format!("{error:#}"), "the spool rests; nothing is lost");
        TROUBLE
    }
}
