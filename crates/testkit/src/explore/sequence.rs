//! Attempts one after the other, each with its faults, with time between them.

use std::collections::HashMap;
use std::time::Duration;

use super::message::Message;
use super::stage::{Stage, pick_fault};
use super::witness::{Breach, Promise, Verdict};
use super::{Choices, Explored};
use crate::faulty::{Call, Fault};

/// How far a sequence goes.
#[derive(Debug, Clone, Copy)]
pub struct Depth {
    /// How many attempts in a row, at most.
    pub attempts: usize,
    /// How many of them, from the first, meet faults; the others meet none.
    pub faulty: usize,
    /// How many faults such an attempt meets, at most.
    pub faults: usize,
}

/// Just before an edge.
const MOMENT: Duration = Duration::from_millis(1);
/// Past what the topic drops.
const MINUTES: Duration = Duration::from_secs(301);
/// Past what the ledger remembers.
const WEEK: Duration = Duration::from_secs((7 * 24 + 2) * 3600);

/// Every sequence of attempts to publish these messages, from a state on. States that were met before are not gone on
/// from again: what can happen from there has been tried.
///
/// # Panics
///
/// When the stage cannot be forked.
#[must_use]
pub fn sequence(start: &Stage, messages: &[Message], depth: Depth) -> Explored {
    let mut walk = Walk {
        messages,
        depth,
        met: HashMap::new(),
        explored: Explored::default(),
    };
    walk.go(start, 0);
    walk.explored
}

struct Walk<'a> {
    messages: &'a [Message],
    depth: Depth,
    /// States, and how many attempts they were gone on from.
    met: HashMap<u64, usize>,
    explored: Explored,
}

impl Walk<'_> {
    fn go(&mut self, from: &Stage, level: usize) {
        let pauses = if level == 0 {
            vec![Duration::ZERO]
        } else {
            pauses(from)
        };
        for pause in pauses {
            for message in self.messages {
                let mut choices = Choices::all();
                loop {
                    self.attempt(from, pause, message, level, &mut choices);
                    if self.explored.is_hopeless() || !choices.next_way() {
                        break;
                    }
                }
            }
        }
    }

    fn attempt(
        &mut self,
        from: &Stage,
        pause: Duration,
        message: &Message,
        level: usize,
        choices: &mut Choices,
    ) {
        let Some(mut stage) = from.fork() else {
            unreachable!("a sequence goes over an engine in memory")
        };
        stage.advance(pause);
        self.explored.schedules += 1;
        let budget = if level < self.depth.faulty {
            self.depth.faults
        } else {
            0
        };
        let led = lead(&mut stage, message, budget, choices).and_then(|()| stage.check());
        self.explored.attempts += stage.attempts;
        if let Err(breach) = led {
            self.explored.broke(stage.broken(breach));
            return;
        }
        let left = self.depth.attempts - level - 1;
        let Some(fingerprint) = stage.fingerprint() else {
            return;
        };
        let met = self.met.get(&fingerprint).copied();
        if met.is_some_and(|before| before >= left) {
            return;
        }
        self.met.insert(fingerprint, left);
        if met.is_none() {
            self.explored.states += 1;
            self.heal(&stage);
        }
        if left > 0 {
            self.go(&stage, level + 1);
        }
    }

    fn heal(&mut self, stage: &Stage) {
        let Some(mut healed) = stage.fork() else { return };
        let breach = healed.heal();
        self.explored.attempts += healed.attempts;
        if let Err(breach) = breach {
            self.explored.broke(healed.broken(breach));
        }
    }
}

/// Leads one attempt, with at most so many faults; what is surely undone must leave no trace.
pub(super) fn lead(
    stage: &mut Stage,
    message: &Message,
    budget: usize,
    choices: &mut Choices,
) -> Result<(), Breach> {
    let before = stage.substance();
    let undecided = stage.head_in_flight(message);
    let (foreseen, began) = (stage.foresee(message), stage.clock.now());
    if stage.substance() != before {
        return Err((
            Promise::D,
            format!("a dry run of {} left something behind", message.name),
        ));
    }
    let mut met: Vec<(Call, Fault)> = Vec::new();
    let verdict = stage.lead(message, |call| {
        if met.len() == budget {
            return Fault::None;
        }
        let fault = pick_fault(choices, call);
        if fault != Fault::None {
            met.push((call, fault));
        }
        fault
    })?;
    if verdict == Some(Verdict::Superseded) && undecided {
        let seen = format!("{} was superseded by one that may still fail", message.name);
        return Err((Promise::Honest, seen));
    }
    let undisturbed = met.is_empty() && stage.clock.now() == began;
    if undisturbed && verdict != Some(foreseen) {
        return Err((
            Promise::Honest,
            format!("{} was foreseen {foreseen:?} and got {verdict:?}", message.name),
        ));
    }
    let surely = met.iter().all(|(call, fault)| {
        let undone = matches!(fault, Fault::Before | Fault::Refused);
        undone && (*call == Call::Publish || !call.writes())
    });
    let untouched = match verdict {
        Some(Verdict::PublishFailed(_)) => surely,
        Some(
            Verdict::Duplicate
            | Verdict::InFlight(_)
            | Verdict::Contended
            | Verdict::Reused
            | Verdict::OutOfOrder
            | Verdict::Unavailable
            | Verdict::Internal,
        ) => !met.iter().any(|(call, _)| *call == Call::Supersede),
        Some(Verdict::Accepted | Verdict::Superseded | Verdict::Other) | None => false,
    };
    let after = stage.substance();
    if untouched && before != after {
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        return Err((
            Promise::D,
            format!("{} {verdict:?} changed\n{before}\ninto\n{after}", message.name),
        ));
    }
    Ok(())
}

/// How long the next attempt may wait.
pub(super) fn pauses(stage: &Stage) -> Vec<Duration> {
    let mut pauses = vec![Duration::ZERO];
    for edge in stage.edges() {
        pauses.extend([edge.saturating_sub(MOMENT), edge]);
    }
    pauses.extend([MINUTES, WEEK]);
    pauses.dedup();
    pauses
}
