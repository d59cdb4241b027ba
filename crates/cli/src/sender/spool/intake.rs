//! From the directory into the outbox.

use std::ffi::{OsStr, OsString};

use anyhow::Result;
use storybus_core::domain::time::Millis;
use storybus_sender::envelope::for_bus;
use storybus_sender::message::Message;
use storybus_sender::outbox::{EnqueueError, Enqueued, OperatorError, State};
use storybus_sender::ports::Clock;

use super::Spool;
use super::answer::{Answer, is_about};
use super::folder::End;

/// The rule of a file that cannot be read.
const UNREADABLE: &str = "spool.unreadable";
/// The rule of a file that is no message.
const NOT_AN_ENVELOPE: &str = "spool.not_an_envelope";
/// The rule of a file whose `message_id` stands for other content.
const KEY_REUSED: &str = "outbox.key_reused";
/// How many bytes are enqueued together; what was taken beyond them comes next.
const BYTES: usize = 4 * 1024 * 1024;
/// How often a batch is tried when another transaction comes in between.
const TRIES: usize = 5;

impl Spool {
    /// Takes the next files and enqueues them. Whether there were any.
    pub(super) async fn take(&mut self) -> Result<bool> {
        let names = self.folder.take()?;
        if names.is_empty() {
            return Ok(false);
        }
        let (mut taken, mut messages) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        for name in names {
            if bytes >= BYTES {
                break;
            }
            let read = match self.folder.read(&name) {
                Err(why) => Err((UNREADABLE, why)),
                Ok(bytes) => {
                    for_bus(self.target.clone(), bytes).map_err(|error| (NOT_AN_ENVELOPE, error.to_string()))
                }
            };
            match read {
                Ok(message) => {
                    bytes += message.body.len();
                    taken.push(name);
                    messages.push(message);
                }
                Err((rule, why)) => self.fail(&name, None, rule, why)?,
            }
        }
        self.enqueue(taken, messages).await?;
        Ok(true)
    }

    /// Enqueues them together; those whose key is taken fail alone.
    async fn enqueue(&mut self, mut names: Vec<OsString>, mut messages: Vec<Message>) -> Result<()> {
        let mut tries = 0;
        let enqueued = loop {
            match self.outbox.enqueue_together(&messages).await {
                Ok(enqueued) => break enqueued,
                Err((_, EnqueueError::Conflict(_))) if tries < TRIES => tries += 1,
                Err((place, error @ (EnqueueError::KeyReused { .. } | EnqueueError::Invalid(_)))) => {
                    let (name, message) = (names.remove(place), messages.remove(place));
                    self.fail(&name, Some(message.key.as_str()), KEY_REUSED, error.to_string())?;
                }
                Err((_, error)) => return Err(error.into()),
            }
        };
        for ((name, message), enqueued) in names.iter().zip(&messages).zip(enqueued) {
            let key = message.key.as_str();
            self.folder.to_sending(name, key)?;
            self.metrics.spooled("enqueued");
            let Enqueued::Known { state, .. } = enqueued else {
                continue;
            };
            if state == State::Parked {
                // Whoever puts it in again wants it sent. What may have been forgotten there stays for a person to look at.
                let resent = self.outbox.resend(&self.target, &message.key, None).await;
                if let Err(OperatorError::Outbox(error)) = resent {
                    return Err(error.into());
                }
            }
            self.settle(key).await?;
        }
        Ok(())
    }

    /// Moves a file that was taken to `failed`.
    fn fail(&self, name: &OsStr, key: Option<&str>, rule: &'static str, why: String) -> Result<()> {
        let now = i64::try_from(self.clock.since_epoch().as_millis()).unwrap_or(i64::MAX);
        let tag = now.to_string();
        tracing::warn!(name = %name.display(), key, rule, why, "a file of the spool is no message that can be sent");
        let answer = Answer {
            key: key.map(str::to_owned),
            ..Answer::not_enqueued(rule, why, Millis(now))
        };
        self.folder.finish(
            &self.folder.taking().join(name),
            End::Failed,
            &tag,
            |_| answer.text(name),
            |text| is_about(text, key),
        )?;
        self.metrics.spooled(End::Failed.name());
        Ok(())
    }
}
