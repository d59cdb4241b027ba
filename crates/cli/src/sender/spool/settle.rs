//! From the outbox to the end: what became of a file's message.

use std::fs::{self, ReadDir};
use std::io::ErrorKind;
use std::time::Duration;

use anyhow::Result;
use storybus_core::domain::time::Millis;
use storybus_sender::message::Key;
use storybus_sender::outbox::{OperatorError, State};
use storybus_sender::ports::Clock;

use super::Spool;
use super::answer::{Answer, is_about};
use super::folder::{End, answer_of, put};

/// How many of those that wait are looked up at once.
const SLICE: usize = 200;
/// How long after a look at all of them the next one begins, at least; and how many times as long as the look took.
const REST: Duration = Duration::from_secs(10);
const RESTS: u32 = 10;
/// The rule of a file whose message the outbox does not know.
const FORGOTTEN: &str = "outbox.forgotten";

/// A look at everything that waits, a slice at a time: for what another relay has sent, an operator has changed, or an earlier run has left.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    under_way: Option<(ReadDir, Duration)>,
    /// Not before, by the steady clock.
    next_at: Duration,
    /// The last one could not be settled.
    failing: bool,
}

/// Tells of a file that could not be settled.
pub(super) fn stays(key: &str, error: &anyhow::Error) {
    tracing::warn!(
        key,
        error = format!("{error:#}"),
        "a file stays in sending/ for now"
    );
}

impl Spool {
    /// Takes the next slice. Whether there is more to do at once.
    pub(super) async fn sweep(&mut self) -> Result<bool> {
        let now = self.clock.elapsed();
        if now < self.sweep.next_at {
            return Ok(false);
        }
        if self.sweep.under_way.is_none() {
            self.sweep.under_way = Some((fs::read_dir(self.folder.sending())?, now));
        }
        for _ in 0..SLICE {
            let Some((entries, began)) = &mut self.sweep.under_way else {
                return Ok(false);
            };
            let Some(entry) = entries.next() else {
                let now = self.clock.elapsed();
                let took = now.saturating_sub(*began);
                self.sweep.next_at = now + REST.max(took * RESTS);
                self.sweep.under_way = None;
                return Ok(false);
            };
            let name = match entry {
                Ok(entry) => entry.file_name(),
                Err(error) => {
                    self.sweep.under_way = None;
                    self.sweep.next_at = self.clock.elapsed() + REST;
                    return Err(error.into());
                }
            };
            let Some(key) = name.to_str() else {
                continue;
            };
            let Err(error) = self.settle(key).await else {
                self.sweep.failing = false;
                continue;
            };
            stays(key, &error);
            // One that always fails must not stop those behind it. A second in a row looks like a database or a disk that fails: after a rest it
            // goes on behind that one.
            if std::mem::replace(&mut self.sweep.failing, true) {
                self.sweep.next_at = self.clock.elapsed() + REST;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves the files of this key to their end, if the outbox has one.
    pub(super) async fn settle(&mut self, key: &str) -> Result<()> {
        let names = self.folder.waiting(key)?;
        if names.is_empty() {
            // Nothing waits, or a run ended after the last file had been moved.
            match self.folder.clear(key) {
                Err(error)
                    if error.kind() != ErrorKind::NotFound && error.kind() != ErrorKind::NotADirectory =>
                {
                    return Err(error.into());
                }
                _ => return Ok(()),
            }
        }
        let Ok(kept) = Key::new(key) else {
            return Ok(());
        };
        let (end, answer) = match self.outbox.show(&self.target, &kept).await {
            Ok(entry) => {
                let answer = Answer::of(&entry);
                match entry.state {
                    State::Delivered => (End::Done, answer),
                    State::Refused => (End::Failed, answer),
                    state @ (State::Pending | State::Parked) => {
                        for name in names {
                            let beside = answer_of(&self.folder.sending().join(key).join(&name));
                            if state == State::Parked {
                                let text = answer.text(&name);
                                if fs::read(&beside).ok().as_deref() != Some(&*text) {
                                    put(&beside, &text)?;
                                    self.metrics.spooled("parked");
                                }
                            } else if let Err(error) = fs::remove_file(beside)
                                && error.kind() != ErrorKind::NotFound
                            {
                                return Err(error.into());
                            }
                        }
                        return Ok(());
                    }
                }
            }
            Err(OperatorError::NotFound { .. }) => {
                let now = i64::try_from(self.clock.since_epoch().as_millis()).unwrap_or(i64::MAX);
                let why = "the outbox does not know this message (any more): it was purged, or this is another outbox. Look whether it has arrived, and put it in again if it has not";
                tracing::warn!(
                    key,
                    rule = FORGOTTEN,
                    "a file of the spool whose message the outbox does not know"
                );
                let answer = Answer {
                    key: Some(key.to_owned()),
                    ..Answer::not_enqueued(FORGOTTEN, why.to_owned(), Millis(now))
                };
                (End::Failed, answer)
            }
            Err(error) => return Err(error.into()),
        };
        for name in names {
            self.folder.finish(
                &self.folder.sending().join(key).join(&name),
                end,
                key,
                |_| answer.text(&name),
                |text| is_about(text, Some(key)),
            )?;
            self.metrics.spooled(end.name());
        }
        self.folder.clear(key)?;
        Ok(())
    }
}
