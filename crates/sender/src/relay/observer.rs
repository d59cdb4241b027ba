//! What a relay tells of its work: identifiers, numbers and answers, never a payload.

use std::time::Duration;

use crate::answer::Answer;
use crate::outbox::{OutboxError, State};

/// Who watches a relay. Calls come from the relay's own task, one at a time: they are quick.
pub trait Observer: Send + Sync {
    /// An attempt was answered, or was not.
    fn attempted(&self, attempt: &Attempted<'_>) {
        let _ = attempt;
    }

    /// A message is delivered, refused or parked, and that is written down.
    fn ended(&self, message: &Ended<'_>) {
        let _ = message;
    }

    /// An attempt's lease had run out, and another relay has the message: what this attempt came to is not written down.
    fn taken_over(&self, target: &str, key: &str) {
        let _ = (target, key);
    }

    /// The partner refused the sender: nothing is sent to it for so long.
    fn paused(&self, target: &str, pause: Duration) {
        let _ = (target, pause);
    }

    /// The outbox could be read and written: the relay is well.
    fn stepped(&self, step: &StepTaken) {
        let _ = step;
    }

    /// The outbox could not be read or written. The relay tries again.
    fn troubled(&self, error: &OutboxError) {
        let _ = error;
    }
}

/// Nobody watches.
#[derive(Debug, Clone, Copy)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// A step that is over: one transaction that settled, moved lines up, and claimed.
#[derive(Debug, Clone, Copy)]
pub struct StepTaken {
    /// How long it took.
    pub took: Duration,
    /// How many messages are being sent now.
    pub under_way: usize,
}

/// An attempt that is over.
#[derive(Debug, Clone, Copy)]
pub struct Attempted<'a> {
    /// The message's number in the outbox.
    pub id: i64,
    /// Whom it is for.
    pub target: &'a str,
    /// What it is known by; on a bus its `message_id`.
    pub key: &'a str,
    /// The how many-th attempt of this message, over all rounds.
    pub attempt: u64,
    /// The how many-th of this round.
    pub round_attempt: u32,
    /// How long it took.
    pub took: Duration,
    /// What came of it.
    pub answer: &'a Answer,
    /// When the next one is made, if one is: after so long.
    pub delay: Option<Duration>,
}

/// A message that is no longer pending.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// Its number in the outbox.
    pub id: i64,
    /// Whom it is for.
    pub target: &'a str,
    /// What it is known by.
    pub key: &'a str,
    /// Delivered, refused or parked.
    pub state: State,
    /// How many attempts were made.
    pub attempts: u64,
    /// The rule of the last answer, or why the relay parked it without one.
    pub rule: Option<&'a str>,
    /// For people.
    pub detail: Option<&'a str>,
}
