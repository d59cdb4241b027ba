//! Every small schedule of the publish protocol, over the real core.
//!
//! The guarantees of publishing (nothing lost, nothing doubled, no story told backwards) must hold whatever happens at
//! any instant: an answer lost, a process stopped, a node paused for an hour, three clients retrying at once. So the
//! real `Bus::publish` runs here on ports that stop at every call, and a scheduler decides at each stop who goes on,
//! what fails and how much time passes. [`Choices`] turns a scheduler into all its schedules, or into some drawn by a
//! seed. [`sequence`] takes attempts one after the other, each with its faults; [`interleave`] lets several attempts
//! run into each other call by call. After each schedule, `witness` checks the promises from outside: what the
//! clients were told, and what the consumers' queue holds.
//!
//! [`jobs`] does the same with the steps of replays and redrives.
//!
//! A broken promise is reported with its schedule, the shortest first: it can be read from top to bottom.

mod actor;
mod choices;
mod gate;
mod interleave;
pub mod jobs;
mod led;
mod message;
mod over;
mod sequence;
mod stage;
mod state;
mod witness;

use std::fmt;

pub use choices::Choices;
pub use interleave::{Limits, interleave, wander};
pub use message::Message;
pub use over::{Prologue, sequence_over, wander_over};
pub use sequence::{Depth, sequence};
pub use stage::Stage;
pub use witness::{Promise, Verdict};

/// A promise that a schedule broke.
#[derive(Debug, Clone)]
pub struct Broken {
    /// Which.
    pub promise: Promise,
    /// What was seen.
    pub seen: String,
    /// How it came to that, step by step.
    pub schedule: Vec<String>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.promise, self.seen)?;
        self.schedule
            .iter()
            .try_for_each(|step| writeln!(f, "    {step}"))
    }
}

/// What an exploration came to.
#[derive(Debug, Clone, Default)]
pub struct Explored {
    /// How many schedules were run.
    pub schedules: usize,
    /// How many attempts to publish they held.
    pub attempts: usize,
    /// How many different states they ended in.
    pub states: usize,
    /// What was broken, shortest schedule first, at most a handful of each promise.
    pub broken: Vec<Broken>,
    breaches: usize,
}

/// How many broken schedules of one promise are kept.
const KEPT: usize = 3;
/// After how many broken schedules an exploration gives up.
const HOPELESS: usize = 100;

impl Explored {
    fn broke(&mut self, broken: Broken) {
        self.breaches += 1;
        self.broken.push(broken);
        self.broken.sort_by_key(|b| (b.promise, b.schedule.len()));
        let mut kept = Vec::new();
        for broken in std::mem::take(&mut self.broken) {
            if kept
                .iter()
                .filter(|b: &&Broken| b.promise == broken.promise)
                .count()
                < KEPT
            {
                kept.push(broken);
            }
        }
        self.broken = kept;
    }

    fn is_hopeless(&self) -> bool {
        self.breaches >= HOPELESS
    }

    /// Adds what another exploration came to.
    pub fn add(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.attempts += other.attempts;
        self.states += other.states;
        other.broken.into_iter().for_each(|broken| self.broke(broken));
    }

    /// Stops the test if a promise was broken.
    ///
    /// # Panics
    ///
    /// With the shortest schedules that broke each promise.
    pub fn assert_kept(&self) {
        let texts: Vec<String> = self.broken.iter().map(ToString::to_string).collect();
        assert!(self.broken.is_empty(), "broken promises:\n{}", texts.join("\n"));
    }
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            schedules,
            attempts,
            states,
            ..
        } = self;
        write!(f, "{schedules} schedules, {attempts} attempts, {states} states")
    }
}
