//! What a relay tells of its work goes to the log, the metrics, the health, the lines of JSON and the spool.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use storybus_core::domain::time::Millis;
use storybus_sender::outbox::{OutboxError, State};
use storybus_sender::ports::{Clock, SystemClock};
use storybus_sender::relay::{Attempted, Ended, Observer, StepTaken};
use tokio::sync::mpsc;

use super::health::{Health, Standing};
use super::lines::Lines;
use super::metrics::Metrics;
use super::reach::Moment;
use crate::sender::events;
use crate::sender::settings::BUS;

/// How often a trouble that lasts is logged.
const AGAIN: Duration = Duration::from_secs(60);

pub(super) struct Told {
    lines: Option<Lines>,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    clock: SystemClock,
    logged_at: Mutex<Option<Duration>>,
    /// The keys of messages that are no longer pending, for the spool. What does not fit is found by its next look.
    pub(super) spool: Option<mpsc::Sender<String>>,
}

impl Told {
    pub(super) fn new(
        lines: Option<Lines>,
        metrics: Arc<Metrics>,
        health: Arc<Health>,
        clock: SystemClock,
    ) -> Self {
        Self {
            lines,
            metrics,
            health,
            clock,
            logged_at: Mutex::new(None),
            spool: None,
        }
    }
}

impl Observer for Told {
    fn attempted(&self, attempt: &Attempted<'_>) {
        if let Some(lines) = &self.lines {
            lines.put(events::line(attempt));
        }
        self.metrics.attempted(attempt);
        let answer = attempt.answer;
        let (target, rule) = (attempt.target, answer.rule.as_deref());
        tracing::debug!(
            target_name = target,
            key = attempt.key,
            attempt = attempt.attempt,
            status = answer.status,
            outcome = answer.outcome.as_str(),
            rule,
            delay_ms = attempt.delay.map(events::milliseconds),
            "attempted"
        );
        let now = Moment {
            elapsed: self.clock.elapsed(),
            time: Millis(i64::try_from(self.clock.since_epoch().as_millis()).unwrap_or(i64::MAX)),
        };
        if let Some(away) = self.health.reach.answered(target, answer, now) {
            tracing::info!(
                target_name = target,
                seconds = away.as_secs(),
                "the target can be reached again"
            );
        }
        match self.health.answered(target, answer, attempt.delay) {
            Some(Standing::Refused) => tracing::error!(
                target_name = target,
                status = answer.status,
                rule,
                detail = answer.detail.as_deref(),
                "the partner refuses this sender; nothing is refused for it, and one message is tried every 30 s"
            ),
            Some(Standing::Welcome) => {
                tracing::info!(target_name = target, "the partner takes messages again");
            }
            None => {}
        }
    }

    fn ended(&self, message: &Ended<'_>) {
        self.metrics.ended(message);
        let (target, key) = (message.target, message.key);
        let (rule, detail) = (message.rule, message.detail);
        match message.state {
            State::Delivered => tracing::debug!(target_name = target, key, "delivered"),
            State::Refused => tracing::warn!(target_name = target, key, rule, detail, "refused"),
            State::Parked => {
                tracing::warn!(
                    target_name = target,
                    key,
                    rule,
                    detail,
                    attempts = message.attempts,
                    "parked"
                );
            }
            State::Pending => {}
        }
        if let (Some(spool), true) = (&self.spool, target == BUS) {
            // A full channel: the spool finds it by itself.
            let _ = spool.try_send(key.to_owned());
        }
    }

    fn taken_over(&self, target: &str, key: &str) {
        self.metrics.taken_over();
        tracing::warn!(
            target_name = target,
            key,
            "another relay has taken this message over: the lease was over before the attempt was written down"
        );
    }

    fn paused(&self, target: &str, pause: Duration) {
        tracing::debug!(target_name = target, seconds = pause.as_secs(), "paused");
    }

    fn stepped(&self, step: &StepTaken) {
        self.metrics.stepped(step);
        for lost in self.health.reach.lost(self.clock.elapsed()) {
            tracing::warn!(
                target_name = lost.target,
                since = lost.since,
                detail = lost.why,
                "nothing gets through to this target; its messages are kept, and tried again until it works"
            );
        }
        if self.health.stepped() {
            tracing::info!("the outbox works again");
            *self.logged_at.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    fn troubled(&self, error: &OutboxError) {
        let text = error.to_string();
        self.metrics.troubled();
        let first = self.health.troubled(&text);
        let now = self.clock.elapsed();
        let mut logged_at = self.logged_at.lock().unwrap_or_else(PoisonError::into_inner);
        if first || logged_at.is_none_or(|at| now.saturating_sub(at) >= AGAIN) {
            *logged_at = Some(now);
            tracing::error!(error = text, "the outbox fails; trying again until it works");
        }
    }
}
