//! Who goes on, what fails, what happens beside.

use std::ops::Range;

use super::scene::Scene;
use super::theatre::{Event, Runner, Theatre};
use crate::clock::FakeClock;
use crate::executor::run;
use crate::explore::witness::{Breach, Promise};
use crate::explore::{Broken, Choices, Explored};
use crate::faulty::Fault;
use crate::suite::Factory;

/// How much may happen in one schedule, beside the steps of one runner after the other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Budget {
    /// How many calls meet a fault: they fail, lose their answer, arrive late, their runner is stopped, or the whole process
    /// with the engine in it.
    pub faults: usize,
    /// How many things happen beside: a cancellation, a publication, a receive, a rejection.
    pub events: usize,
    /// How many times another runner goes on although this one could.
    pub switches: usize,
    /// Whether the consumer may be deleted.
    pub deletes: bool,
    /// Whether one of the faults may be the end of the process.
    pub restarts: bool,
}

/// A schedule that is longer goes in circles.
const LONGEST: usize = 600;

/// Every schedule of a scene's jobs within a budget, each on an engine of its own.
#[must_use]
pub fn every(factory: &dyn Factory, scene: &Scene, budget: Budget) -> Explored {
    let mut explored = Explored::default();
    let mut choices = Choices::all();
    loop {
        on_fresh(factory, scene, budget, &mut choices, &mut explored);
        if explored.is_hopeless() || !choices.next_way() {
            return explored;
        }
    }
}

/// Some schedules, one a seed.
#[must_use]
pub fn some(factory: &dyn Factory, scene: &Scene, budget: Budget, seeds: Range<u64>) -> Explored {
    let mut explored = Explored::default();
    for seed in seeds {
        if explored.is_hopeless() {
            break;
        }
        let mut choices = Choices::drawn(seed);
        on_fresh(factory, scene, budget, &mut choices, &mut explored);
    }
    explored
}

fn on_fresh(
    factory: &dyn Factory,
    scene: &Scene,
    budget: Budget,
    choices: &mut Choices,
    explored: &mut Explored,
) {
    let clock = FakeClock::new();
    let engine = run(factory.engine(clock.clone()));
    let mut theatre = Theatre::new(engine, clock, scene);
    explored.schedules += 1;
    let result = play(&mut theatre, budget, choices).and_then(|()| theatre.check());
    explored.attempts += theatre.attempts;
    if let Err((promise, seen)) = result {
        explored.broke(Broken {
            promise,
            seen,
            schedule: theatre.trace,
        });
    }
}

/// What can come next at a stop.
enum Next {
    Go(Fault),
    Happen(Event),
    /// Another goes on: one that stands somewhere, or a new one at this job.
    Switch(Switch),
    Arrive,
    Restart,
}

enum Switch {
    To(usize),
    New(usize),
}

fn play(theatre: &mut Theatre, mut budget: Budget, choices: &mut Choices) -> Result<(), Breach> {
    let mut standing: Vec<Runner> = Vec::new();
    let mut current = theatre.enter(0);
    let mut goes = theatre.go(&mut current, Fault::None);
    for _ in 0..LONGEST {
        if !goes {
            // the next one: whoever does not stand at a call of a job that is not over begins anew
            let unfinished =
                (0..theatre.jobs.len()).find(|job| theatre.job(*job).is_some_and(|j| !j.is_over()));
            let Some(job) = unfinished else {
                return finish(theatre, standing);
            };
            current = theatre.enter(job);
            goes = theatre.go(&mut current, Fault::None);
            continue;
        }
        let mut nexts = nexts(theatre, &current, &standing, budget);
        let next = nexts.swap_remove(choices.pick_rarely(nexts.len()));
        match next {
            Next::Go(fault) => {
                budget.faults -= usize::from(fault != Fault::None);
                goes = theatre.go(&mut current, fault);
            }
            Next::Happen(event) => {
                budget.events -= 1;
                theatre.happen(event);
            }
            Next::Switch(switch) => {
                budget.switches -= 1;
                let other = match switch {
                    Switch::To(place) => standing.swap_remove(place),
                    Switch::New(job) => {
                        let mut new = theatre.enter(job);
                        theatre.go(&mut new, Fault::None);
                        new
                    }
                };
                standing.push(std::mem::replace(&mut current, other));
            }
            Next::Arrive => theatre.arrive(),
            Next::Restart => {
                budget.faults -= 1;
                standing.clear();
                current.stop();
                goes = false;
                theatre.restart();
            }
        }
    }
    Err((
        Promise::Over,
        format!("not over after {LONGEST} calls without an end"),
    ))
}

/// All jobs are over; those that stand somewhere wake, and what is late arrives.
fn finish(theatre: &mut Theatre, standing: Vec<Runner>) -> Result<(), Breach> {
    theatre.arrive();
    for mut runner in standing {
        let mut calls = 0;
        while theatre.go(&mut runner, Fault::None) {
            calls += 1;
            if calls > LONGEST {
                return Err((
                    Promise::Over,
                    "a runner does not find out that its job is over".to_owned(),
                ));
            }
        }
    }
    Ok(())
}

fn nexts(theatre: &Theatre, current: &Runner, standing: &[Runner], budget: Budget) -> Vec<Next> {
    let mut nexts = vec![Next::Go(Fault::None)];
    if budget.faults > 0 {
        let writes = current.call().is_some_and(crate::faulty::Call::writes);
        let faults: &[Fault] = if writes {
            &[
                Fault::Before,
                Fault::After,
                Fault::StopBefore,
                Fault::StopAfter,
                Fault::Late,
            ]
        } else {
            &[Fault::Before, Fault::StopBefore]
        };
        nexts.extend(faults.iter().map(|fault| Next::Go(*fault)));
        if budget.restarts {
            nexts.push(Next::Restart);
        }
    }
    if budget.events > 0 {
        let jobs = 0..theatre.jobs.len();
        nexts.extend(
            jobs.filter(|job| !theatre.cancelled.contains(job))
                .map(|job| Next::Happen(Event::Cancel(job))),
        );
        nexts.extend([Event::Publish, Event::Reject, Event::Acknowledge].map(Next::Happen));
        if budget.deletes && !theatre.deleted {
            nexts.push(Next::Happen(Event::Delete));
        }
    }
    if budget.switches > 0 {
        nexts.extend((0..standing.len()).map(|place| Next::Switch(Switch::To(place))));
        nexts.extend((0..theatre.jobs.len()).map(|job| Next::Switch(Switch::New(job))));
    }
    if !theatre.late.is_empty() {
        nexts.push(Next::Arrive);
    }
    nexts
}
