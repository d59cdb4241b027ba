//! One attempt to publish, led from stop to stop.

use std::sync::Arc;

use futures::future::BoxFuture;
use storybus_core::domain::refusal::Refusal;
use storybus_core::domain::time::Millis;
use storybus_core::ops::publish::Published;

use super::gate::{Gate, Place};
use super::led::{Way, lead};
use super::message::Message;
use super::stage::Stage;
use crate::clock::FakeClock;
use crate::faulty::Fault;

/// An attempt that has not ended.
pub(super) struct Actor {
    pub(super) message: Message,
    pub(super) gate: Arc<Gate>,
    future: Option<BoxFuture<'static, Result<Published, Refusal>>>,
    /// When its function ends, by its own clock.
    deadline: Millis,
    started: bool,
    ended: bool,
    /// Whether it stands before an answer that stays on its way for now.
    pub(super) held: bool,
}

/// How far a step led.
pub(super) type Step = Way<Result<Published, Refusal>>;

impl Actor {
    pub(super) fn new(stage: &Stage, message: &Message, skew: i64, stops_after: bool) -> Self {
        let gate = Gate::new(stage.clock.clone(), skew, stops_after);
        Self {
            message: message.clone(),
            gate,
            future: None,
            deadline: Millis(0),
            started: false,
            ended: false,
            held: false,
        }
    }

    /// Whether it can still go on.
    pub(super) fn is_live(&self) -> bool {
        !self.ended
    }

    /// Where it stands; `None` before its first step.
    pub(super) fn place(&self) -> Option<Place> {
        self.started.then(|| self.gate.place())
    }

    /// Goes on to the next stop. One that sleeps takes the time to its waking with it.
    pub(super) fn step(&mut self, stage: &Stage, fault: Fault) -> Step {
        if self.started {
            if let Place::Sleeping(until) = self.gate.place() {
                stage.clock.set(self.gate.true_time(until));
            }
            self.gate.grant(fault);
        } else {
            let (future, deadline) = stage.attempt(&self.message, &self.gate);
            self.future = Some(future);
            self.deadline = deadline;
        }
        self.started = true;
        self.held = false;
        let Some(future) = self.future.as_mut() else {
            return Step::Stopped;
        };
        let way = lead(future, &self.gate);
        if !matches!(way, Way::Stands) {
            self.kill();
        }
        way
    }

    /// Ends it where it stands.
    pub(super) fn kill(&mut self) {
        self.ended = true;
        self.future = None;
    }

    /// Whether its function has ended by now.
    pub(super) fn is_overdue(&self, clock: &FakeClock) -> bool {
        clock.now() >= self.gate.true_time(self.deadline)
    }
}
