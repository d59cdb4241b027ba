//! The same schedules over engines that cannot be copied: each from the beginning, on an engine of its own, which is
//! closed and opened again before all is retried.

use std::ops::Range;
use std::time::Duration;

use super::interleave::{Limits, play};
use super::message::Message;
use super::sequence::{lead, pauses};
use super::stage::Stage;
use super::witness::Breach;
use super::{Choices, Explored};
use crate::clock::FakeClock;
use crate::executor::run;
use crate::faulty::Call;
use crate::memory::Claims;
use crate::suite::{Ability, Factory};

/// What has happened before a schedule begins.
#[derive(Debug, Clone, Default)]
pub struct Prologue {
    /// Attempts, each stopped after its first such call, or led to its end.
    pub attempts: Vec<(Message, Option<Call>)>,
    /// How long ago.
    pub age: Duration,
}

impl Prologue {
    /// An engine in memory on which that has happened.
    #[must_use]
    pub fn in_memory(&self, claims: Claims) -> Stage {
        let mut stage = Stage::in_memory(claims).after(&self.attempts);
        stage.advance(self.age);
        stage
    }
}

/// Some schedules of these attempts that run into each other, one a seed.
#[must_use]
pub fn wander_over(
    factory: &dyn Factory,
    prologue: &Prologue,
    cast: &[(Message, i64)],
    limits: Limits,
    seeds: Range<u64>,
) -> Explored {
    let mut explored = Explored::default();
    for seed in seeds {
        if explored.is_hopeless() {
            break;
        }
        let mut choices = Choices::drawn(seed);
        on_fresh(factory, prologue, &mut explored, |stage| {
            play(stage, cast, limits, &mut choices)
        });
    }
    explored
}

/// Every sequence of `attempts` attempts to publish these messages, of which the first meets one fault at most.
#[must_use]
pub fn sequence_over(
    factory: &dyn Factory,
    prologue: &Prologue,
    messages: &[Message],
    attempts: usize,
) -> Explored {
    let mut explored = Explored::default();
    let mut choices = Choices::all();
    loop {
        on_fresh(factory, prologue, &mut explored, |stage| {
            for number in 0..attempts {
                if number > 0 {
                    let pauses = pauses(stage);
                    stage.advance(pauses[choices.pick(pauses.len())]);
                }
                let message = &messages[choices.pick(messages.len())];
                lead(stage, message, usize::from(number == 0), &mut choices)?;
                stage.check()?;
            }
            Ok(())
        });
        if explored.is_hopeless() || !choices.next_way() {
            return explored;
        }
    }
}

fn on_fresh(
    factory: &dyn Factory,
    prologue: &Prologue,
    explored: &mut Explored,
    schedule: impl FnOnce(&mut Stage) -> Result<(), Breach>,
) {
    let lacks = |ability| factory.lacks().contains(&ability);
    let claims = if lacks(Ability::Claims) {
        Claims::Trusted
    } else {
        Claims::Checked
    };
    let clock = FakeClock::new();
    let mut engine = run(factory.engine(clock.clone()));
    let mut stage = run(Stage::over(engine.stores(), clock, claims)).after(&prologue.attempts);
    stage.advance(prologue.age);
    explored.schedules += 1;
    let result = schedule(&mut stage).and_then(|()| stage.check()).and_then(|()| {
        if !lacks(Ability::Reopen) {
            stage.restock(None);
            run(engine.reopen());
            stage.restock(Some(engine.stores()));
            stage.trace.push("closed and opened again".to_owned());
        }
        stage.heal()
    });
    explored.attempts += stage.attempts;
    if let Err(breach) = result {
        explored.broke(stage.broken(breach));
    }
}
