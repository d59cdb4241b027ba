//! What is told while `storybus send` sends: lines of JSON, a progress bar on a terminal, or a word about each pause.

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use storybus_sender::answer::{About, Outcome, Retry};
use storybus_sender::outbox::OutboxError;
use storybus_sender::relay::{Attempted, Ended, Observer, StepTaken};

use super::note;
use crate::sender::events;

/// So many messages are told of one by one.
const FEW: usize = 20;

/// Who watches.
pub(super) struct Watch {
    json: bool,
    answered: AtomicBool,
    expected: AtomicUsize,
    bar: Mutex<Option<ProgressBar>>,
    troubled: AtomicBool,
    /// Why the partner refuses this sender, since it took something last.
    sender_refused: Mutex<Option<String>>,
}

impl Watch {
    pub(super) fn new(json: bool) -> Self {
        Self {
            json,
            answered: AtomicBool::new(false),
            expected: AtomicUsize::new(0),
            bar: Mutex::new(None),
            troubled: AtomicBool::new(false),
            sender_refused: Mutex::new(None),
        }
    }

    /// Why the partner refuses this sender itself, if that was its last word.
    pub(super) fn sender_refused(&self) -> Option<String> {
        self.refusal().clone()
    }

    fn refusal(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.sender_refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of so many messages in all, `now` are going to be sent.
    pub(super) fn expect(&self, total: usize, now: usize) {
        self.expected.store(total, Ordering::Relaxed);
        if total <= FEW || !io::stderr().is_terminal() {
            return;
        }
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("[{bar:40}] {percent:>3} %  {pos} of {len}  {msg}");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_position(total.saturating_sub(now) as u64);
        *self.bar() = Some(bar);
    }

    /// Nothing is being sent for now.
    pub(super) fn rest(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    /// Whether anything has answered since it was asked last.
    pub(super) fn has_answered(&self) -> bool {
        self.answered.swap(false, Ordering::Relaxed)
    }

    fn bar(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A word beside the result.
    fn tell(&self, text: &str) {
        match &*self.bar() {
            Some(bar) => bar.suspend(|| note(text)),
            None => note(text),
        }
    }
}

impl Observer for Watch {
    fn attempted(&self, attempt: &Attempted<'_>) {
        if attempt.answer.status.is_some() {
            self.answered.store(true, Ordering::Relaxed);
        }
        let answer = attempt.answer;
        match (answer.about, answer.outcome, answer.retry) {
            (_, outcome, _) if outcome.is_yes() => *self.refusal() = None,
            (About::Message, Outcome::Refused, _) => *self.refusal() = None,
            (About::Sender, _, Retry::No | Retry::NewToken) => *self.refusal() = Some(said(attempt)),
            _ => {}
        }
        if self.json {
            events::print(attempt);
            return;
        }
        let few = self.expected.load(Ordering::Relaxed) <= FEW;
        if let (true, Some(delay)) = (few, attempt.delay) {
            let (key, seconds) = (attempt.key, delay.as_secs_f64());
            self.tell(&format!("{key}: {}; again in {seconds:.1} s", said(attempt)));
        }
    }

    fn ended(&self, _: &Ended<'_>) {
        if let Some(bar) = &*self.bar() {
            bar.inc(1);
        }
    }

    fn troubled(&self, error: &OutboxError) {
        if !self.troubled.swap(true, Ordering::Relaxed) {
            self.tell(&format!("{error}; trying again for half a minute"));
        }
    }

    fn stepped(&self, _: &StepTaken) {
        self.troubled.store(false, Ordering::Relaxed);
    }
}

/// An answer in few words.
fn said(attempt: &Attempted<'_>) -> String {
    let answer = attempt.answer;
    let parts = [
        answer.status.map(|status| status.to_string()),
        answer.rule.clone(),
        answer.detail.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        answer.outcome.as_str().to_owned()
    } else {
        parts.join(" ")
    }
}
