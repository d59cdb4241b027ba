//! Remembers what a relay tells.

use std::sync::Arc;
use std::time::Duration;

use storybus_sender::outbox::{OutboxError, State};
use storybus_sender::relay::{Attempted, Ended, Observer};
use tokio::sync::watch;

/// What a relay told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    Attempted {
        key: String,
        attempt: u64,
        status: Option<u16>,
        outcome: &'static str,
        delay: Option<Duration>,
    },
    Ended {
        key: String,
        state: State,
        attempts: u64,
    },
    TakenOver(String),
    Paused,
    Troubled(String),
}

/// All that was told.
#[derive(Default)]
pub(crate) struct Recorder(watch::Sender<Vec<Told>>);

impl Recorder {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn told(&self) -> Vec<Told> {
        self.0.borrow().clone()
    }

    /// Comes back when what was told is so.
    pub(crate) async fn until(&self, what: impl Fn(&[Told]) -> bool) {
        let mut told = self.0.subscribe();
        let waited = tokio::time::timeout(super::SOON, told.wait_for(|told| what(told))).await;
        assert!(waited.is_ok(), "it was not told; what was: {:#?}", self.told());
    }

    /// Comes back when so many messages are no longer pending.
    pub(crate) async fn ended(&self, count: usize) {
        self.until(|told| {
            told.iter()
                .filter(|told| matches!(told, Told::Ended { .. }))
                .count()
                >= count
        })
        .await;
    }

    /// Comes back when so many attempts were answered.
    pub(crate) async fn attempted(&self, count: usize) {
        self.until(|told| attempts(told) >= count).await;
    }

    pub(crate) fn attempts(&self) -> usize {
        attempts(&self.0.borrow())
    }

    fn push(&self, told: Told) {
        self.0.send_modify(|all| all.push(told));
    }
}

fn attempts(told: &[Told]) -> usize {
    told.iter()
        .filter(|told| matches!(told, Told::Attempted { .. }))
        .count()
}

impl Observer for Recorder {
    fn attempted(&self, attempt: &Attempted<'_>) {
        self.push(Told::Attempted {
            key: attempt.key.to_owned(),
            attempt: attempt.attempt,
            status: attempt.answer.status,
            outcome: attempt.answer.outcome.as_str(),
            delay: attempt.delay,
        });
    }

    fn ended(&self, message: &Ended<'_>) {
        self.push(Told::Ended {
            key: message.key.to_owned(),
            state: message.state,
            attempts: message.attempts,
        });
    }

    fn taken_over(&self, _target: &str, key: &str) {
        self.push(Told::TakenOver(key.to_owned()));
    }

    fn paused(&self, _target: &str, _pause: Duration) {
        self.push(Told::Paused);
    }

    fn troubled(&self, error: &OutboxError) {
        self.push(Told::Troubled(error.to_string()));
    }
}
