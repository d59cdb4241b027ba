//! Attempts that run into each other, call by call.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use super::actor::Actor;
use super::gate::{Late, Place};
use super::message::Message;
use super::stage::{ABANDONED, Stage, faults_of};
use super::witness::Breach;
use super::{Choices, Explored};
use crate::faulty::{Call, Fault};

/// How much may happen in one schedule, beside the attempts' own steps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// How many calls meet a fault.
    pub faults: usize,
    /// How many times a long time passes while attempts stand where they are.
    pub jumps: usize,
    /// How many times an attempt that sleeps wakes although others could go on.
    pub naps: usize,
    /// How many times an answer stays on its way while others go on.
    pub holds: usize,
    /// Which faults may be met; empty: all.
    pub kinds: &'static [Fault],
}

/// How long one call of the topic may take.
const CALL: Duration = Duration::from_secs(5);

/// Every schedule of these attempts, each with the lead of its node's clock in seconds.
#[must_use]
pub fn interleave(start: &Stage, cast: &[(Message, i64)], limits: Limits) -> Explored {
    let mut explored = Explored::default();
    let mut healed = HashSet::new();
    let mut choices = Choices::all();
    loop {
        schedule(start, cast, limits, &mut choices, &mut healed, &mut explored);
        if explored.is_hopeless() || !choices.next_way() {
            return explored;
        }
    }
}

/// Some schedules of these attempts, one a seed.
#[must_use]
pub fn wander(start: &Stage, cast: &[(Message, i64)], limits: Limits, seeds: Range<u64>) -> Explored {
    let mut explored = Explored::default();
    let mut healed = HashSet::new();
    for seed in seeds {
        if explored.is_hopeless() {
            break;
        }
        schedule(
            start,
            cast,
            limits,
            &mut Choices::drawn(seed),
            &mut healed,
            &mut explored,
        );
    }
    explored
}

fn schedule(
    start: &Stage,
    cast: &[(Message, i64)],
    limits: Limits,
    choices: &mut Choices,
    healed: &mut HashSet<u64>,
    explored: &mut Explored,
) {
    let Some(mut stage) = start.fork() else {
        unreachable!("attempts interleave over an engine in memory")
    };
    explored.schedules += 1;
    let result = play(&mut stage, cast, limits, choices).and_then(|()| {
        stage.check()?;
        let new = stage
            .fingerprint()
            .is_none_or(|fingerprint| healed.insert(fingerprint));
        explored.states += usize::from(new);
        if new { stage.heal() } else { Ok(()) }
    });
    explored.attempts += stage.attempts;
    if let Err(breach) = result {
        explored.broke(stage.broken(breach));
    }
}

/// What the scheduler can do next.
enum Move {
    Step(usize, Fault),
    Nap(usize),
    Jump(Duration),
    Arrive(usize),
}

/// Plays one schedule of these attempts on a stage.
pub(super) fn play(
    stage: &mut Stage,
    cast: &[(Message, i64)],
    limits: Limits,
    choices: &mut Choices,
) -> Result<(), Breach> {
    let mut limits = limits;
    let skew = cast
        .iter()
        .map(|(_, seconds)| seconds.unsigned_abs())
        .max()
        .unwrap_or(0);
    stage.skewed(Duration::from_secs(2 * skew));
    let slow = limits.jumps > 0 || limits.holds > 0;
    let mut actors: Vec<Actor> = cast
        .iter()
        .map(|(message, seconds)| stage.enter(message, seconds * 1000, slow))
        .collect();
    let mut late: Vec<Late> = Vec::new();
    let mut last = 0;
    loop {
        for actor in &actors {
            late.extend(actor.gate.take_late());
        }
        retire(stage, &mut actors);
        let answered = |a: &Actor| a.is_live() && !a.held && matches!(a.place(), Some(Place::After(_)));
        if let Some(at) = actors.iter().position(answered) {
            // an answer on its way concerns nobody else, but may be seen late
            match answer(stage, limits, choices) {
                Answer::Seen => {
                    stage.step(&mut actors[at], Fault::None)?;
                }
                Answer::Late(span) => {
                    limits.jumps -= 1;
                    stage.advance(span);
                    retire(stage, &mut actors);
                    if actors[at].is_live() {
                        stage.step(&mut actors[at], Fault::None)?;
                    }
                }
                Answer::Held => {
                    limits.holds -= 1;
                    stage
                        .trace
                        .push(format!("{}: its answer is on its way", actors[at].message.name));
                    actors[at].held = true;
                }
            }
            continue;
        }
        let (steps, extras) = moves(stage, &actors, limits, &late, last);
        let moves = match (steps.is_empty(), extras.is_empty()) {
            (true, true) => return Ok(()),
            (false, true) => steps,
            (true, false) => extras,
            (false, false) if choices.rarely() => extras,
            (false, false) => steps,
        };
        match moves[choices.pick(moves.len())] {
            Move::Step(at, fault) => {
                limits.faults -= usize::from(fault != Fault::None);
                note(stage, &actors[at], fault);
                last = at;
                stage.step(&mut actors[at], fault)?;
            }
            Move::Nap(at) => {
                limits.naps -= 1;
                note(stage, &actors[at], Fault::None);
                last = at;
                stage.step(&mut actors[at], Fault::None)?;
            }
            Move::Jump(span) => {
                limits.jumps -= 1;
                stage.advance(span);
            }
            Move::Arrive(at) => stage.arrive(late.remove(at)),
        }
        stage.look();
    }
}

/// On a node whose functions end at their limit, an attempt that stood for too long does not go on.
fn retire(stage: &mut Stage, actors: &mut [Actor]) {
    if !stage.is_trusting() {
        return;
    }
    for actor in actors {
        if actor.is_live() && actor.place().is_some() && actor.is_overdue(&stage.clock) {
            stage
                .trace
                .push(format!("{}: its function has ended", actor.message.name));
            actor.kill();
        }
    }
}

fn note(stage: &mut Stage, actor: &Actor, fault: Fault) {
    if fault == Fault::None {
        let what = match actor.place() {
            None => "begins".to_owned(),
            Some(Place::Before(call)) => format!("{call:?}"),
            Some(Place::Sleeping(_)) => "wakes".to_owned(),
            Some(Place::After(_) | Place::Running | Place::Stopped) => "goes on".to_owned(),
        };
        stage.trace.push(format!("{}: {what}", actor.message.name));
    }
}

/// The jumps that are worth a try.
fn jumps(stage: &Stage) -> Vec<Duration> {
    let mut jumps: Vec<Duration> = Vec::new();
    for edge in stage.edges() {
        jumps.extend([edge.saturating_sub(Duration::from_millis(1)), edge]);
    }
    jumps.extend([Duration::from_secs(301), Duration::from_secs((7 * 24 + 2) * 3600)]);
    jumps.dedup();
    jumps
}

/// When an answer is seen.
#[derive(Clone, Copy)]
enum Answer {
    /// At once.
    Seen,
    /// Later.
    Late(Duration),
    /// When others have gone on.
    Held,
}

fn answer(stage: &Stage, limits: Limits, choices: &mut Choices) -> Answer {
    let mut answers = Vec::new();
    if limits.holds > 0 {
        answers.push(Answer::Held);
    }
    if limits.jumps > 0 {
        answers.extend(jumps(stage).into_iter().map(Answer::Late));
    }
    if answers.is_empty() || !choices.rarely() {
        return Answer::Seen;
    }
    answers[choices.pick(answers.len())]
}

/// What can happen next: first of all, that the one who went on goes on; and what happens besides.
fn moves(
    stage: &Stage,
    actors: &[Actor],
    limits: Limits,
    late: &[Late],
    last: usize,
) -> (Vec<Move>, Vec<Move>) {
    let mut moves = Vec::new();
    let mut extras = Vec::new();
    let sleeps = |actor: &Actor| matches!(actor.place(), Some(Place::Sleeping(_)));
    let live: Vec<usize> = (0..actors.len()).filter(|at| actors[*at].is_live()).collect();
    let awake: Vec<usize> = live.iter().copied().filter(|at| !sleeps(&actors[*at])).collect();
    let order = |list: &[usize]| {
        let mut list = list.to_vec();
        list.sort_by_key(|at| (*at != last, *at));
        list
    };
    for at in order(&awake) {
        let only = forced(stage, &actors[at]);
        if only.is_empty() {
            moves.push(Move::Step(at, Fault::None));
        }
        moves.extend(only.iter().map(|fault| Move::Step(at, *fault)));
    }
    let sleeping: Vec<usize> = live.iter().copied().filter(|at| sleeps(&actors[*at])).collect();
    for at in order(&sleeping) {
        if awake.is_empty() {
            // the first to wake wakes first
            let Some(Place::Sleeping(until)) = actors[at].place() else {
                continue;
            };
            let wakes = actors[at].gate.true_time(until);
            let earliest = sleeping.iter().all(|other| match actors[*other].place() {
                Some(Place::Sleeping(until)) => wakes <= actors[*other].gate.true_time(until),
                _ => true,
            });
            if earliest {
                moves.push(Move::Step(at, Fault::None));
            }
        } else if limits.naps > 0 {
            moves.push(Move::Nap(at));
        }
    }
    extras.extend((0..late.len()).map(Move::Arrive));
    if limits.faults > 0 {
        for at in awake
            .into_iter()
            .filter(|at| forced(stage, &actors[*at]).is_empty())
        {
            if let Some(Place::Before(call)) = actors[at].place() {
                let faults = faults_of(call)
                    .iter()
                    .filter(|f| limits.kinds.is_empty() || limits.kinds.contains(f));
                extras.extend(faults.map(|fault| Move::Step(at, *fault)));
            }
        }
    }
    if limits.jumps > 0 && !live.is_empty() {
        extras.extend(jumps(stage).into_iter().map(Move::Jump));
    }
    (moves, extras)
}

/// On a node whose calls end at their time-out, what is left to a publication that has stood for longer: it arrived in
/// the meantime or not, and its caller cannot know.
fn forced(stage: &Stage, actor: &Actor) -> &'static [Fault] {
    let Some(Place::Before(Call::Publish)) = actor.place() else {
        return &[];
    };
    if !stage.is_trusting() {
        return &[];
    }
    let stood = actor.gate.since().until(stage.clock.now());
    if stood <= CALL {
        &[]
    } else if stood <= CALL + ABANDONED {
        &[Fault::After, Fault::Lost]
    } else {
        &[Fault::Lost]
    }
}
