//! Replays and redrives whose function is killed at every call of AWS that it makes, with hundreds of messages of twenty stories on the
//! way: none is lost, none doubled, the order is kept, the counts are exact.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it does and stops at the first surprise"
)]

mod ground;

use std::time::Duration;

use ground::Ground;
use storybus_core::domain::job::{Job, JobState};
use storybus_core::ops::jobs::{RedriveMembers, ReplayMembers};
use storybus_tests::{Fault, Freeze, Length, Plan, Where};

/// How long an invocation may take: long enough, or so short that it has to send itself a message.
const LIMITS: [Duration; 2] = [Duration::from_secs(60), Duration::from_millis(20_050)];

/// What happens to the invocations of a job, one after the other.
enum Script {
    /// Nothing.
    Nothing,
    /// The first is killed at this call.
    One(usize, Fault),
    /// Each is killed some calls later than the one before, before and after the call in turn.
    Each { from: usize, step: usize },
}

impl Script {
    fn plan(&self, invocation: usize) -> Plan {
        match self {
            Self::One(call, fault) if invocation == 0 => Plan::at(Where::Call(*call), *fault),
            Self::Nothing | Self::One(..) => Plan::default(),
            Self::Each { from, step } => {
                let kill = [Fault::KillBefore, Fault::KillAfter][invocation % 2];
                Plan::at(Where::Call(from + invocation * step), kill)
            }
        }
    }
}

/// What a job came to.
struct Run {
    job: Job,
    /// How many invocations ended without an answer.
    died: usize,
    /// The calls of the last invocation.
    calls: Vec<String>,
}

fn binary(job: &Job) -> &'static str {
    match job.kind() {
        "replay" => env!("CARGO_BIN_EXE_fn-replay"),
        _ => env!("CARGO_BIN_EXE_fn-redrive"),
    }
}

/// Gives the job's messages to functions, as Lambda does, until it is over.
async fn work(ground: &Ground, job: &Job, script: &Script) -> Run {
    let queue = ground.stack.aws.config().job_queue_name(job.kind());
    let (mut died, mut invocation, mut calls) = (0, 0, Vec::new());
    loop {
        let Some(message) = ground.stack.take_one(&queue).await else {
            let job = ground.job(&job.id).await;
            assert!(job.is_over(), "nobody works at {job:?}");
            return Run { job, died, calls };
        };
        let function = ground.stack.function(binary(job), script.plan(invocation)).await;
        let limit = LIMITS[invocation % LIMITS.len()];
        if ground.invoke(&function, &message, limit).await {
            ground.stack.done(&queue, &message).await;
        } else {
            died += 1;
            ground.stack.again(&queue, &message).await;
        }
        calls = function.calls();
        invocation += 1;
        assert!(invocation < 2_000, "the job does not end: {}", function.log());
    }
}

/// A function is frozen at a call; its message comes back, and another does the whole job meanwhile. Then the first goes on.
async fn overtaken(ground: &Ground, job: &Job, place: Where, freeze: Freeze) -> Run {
    let queue = ground.stack.aws.config().job_queue_name(job.kind());
    let message = ground.stack.take_one(&queue).await.unwrap();
    let plan = Plan::at(place, Fault::Frozen(freeze, Duration::from_secs(4)));
    let first = ground.stack.function(binary(job), plan).await;
    let mut struck = first.struck();
    let meanwhile = async {
        struck.wait_for(|struck| *struck).await.unwrap();
        ground.stack.again(&queue, &message).await;
        work(ground, job, &Script::Nothing).await
    };
    let (_, run) = futures::join!(ground.invoke(&first, &message, LIMITS[0]), meanwhile);
    let job = ground.job(&job.id).await;
    Run { job, ..run }
}

async fn begin_replay(ground: &Ground) -> Job {
    let members = ReplayMembers {
        from: Some(ground.range.0.clone()),
        to: Some(ground.range.1.clone()),
        ..ReplayMembers::default()
    };
    ground.replay(&members).await
}

async fn begin_redrive(ground: &Ground) -> Job {
    ground.let_all_die().await;
    ground.redrive(&RedriveMembers::default()).await
}

async fn replay(ground: &Ground, script: &Script) -> Run {
    let job = begin_replay(ground).await;
    let run = work(ground, &job, script).await;
    assert_eq!(run.job.scanned, ground.count(), "{:?}", run.job);
    ended(ground, &run).await;
    run
}

async fn redrive(ground: &Ground, script: &Script) -> Run {
    let job = begin_redrive(ground).await;
    let run = work(ground, &job, script).await;
    assert_eq!(ground.dead().await, 0, "{:?}", run.job);
    ended(ground, &run).await;
    run
}

async fn ended(ground: &Ground, run: &Run) {
    assert_eq!(run.job.state, JobState::Done, "{:?}", run.job);
    assert_eq!(run.job.moved, ground.count(), "{:?}", run.job);
    let mark = format!("{}:{}", run.job.kind(), run.job.id);
    ground.all_arrived_once_in_order(&mark).await;
}

/// How many messages there are: more than one step takes.
fn messages() -> usize {
    match Length::of_run() {
        Length::Short => 220,
        Length::Whole | Length::Deep => 500,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_that_dies_anywhere() {
    let ground = Ground::new(messages()).await;
    let clean = replay(&ground, &Script::Nothing).await;
    println!("replay: {} calls: {:?}", clean.calls.len(), clean.calls);
    assert_eq!(clean.died, 0);
    let chain = replay(&ground, &Script::Each { from: 0, step: 1 }).await;
    println!("replay: died {} times", chain.died);
    assert!(chain.died >= 10, "{}", chain.died);
    for (call, freeze) in [
        ("Query", Freeze::Delivered),
        ("SendMessageBatch", Freeze::Held),
        ("PutItem", Freeze::Held),
        ("PutItem", Freeze::Delivered),
    ] {
        let job = begin_replay(&ground).await;
        let run = overtaken(&ground, &job, Where::Named(call), freeze).await;
        assert_eq!(
            run.job.scanned,
            ground.count(),
            "{call} {freeze:?}: {:?}",
            run.job
        );
        ended(&ground, &run).await;
    }
    if Length::of_run() != Length::Short {
        replay(&ground, &Script::Each { from: 1, step: 1 }).await;
        let step = if Length::of_run() == Length::Deep { 1 } else { 7 };
        one_by_one(&ground, clean.calls.len(), step, true).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redrive_that_dies_anywhere() {
    let ground = Ground::new(messages()).await;
    let clean = redrive(&ground, &Script::Nothing).await;
    println!("redrive: {} calls", clean.calls.len());
    assert_eq!(clean.died, 0);
    let step = match Length::of_run() {
        Length::Short => 7,
        Length::Whole | Length::Deep => 3,
    };
    let chain = redrive(&ground, &Script::Each { from: 0, step }).await;
    println!("redrive: died {} times", chain.died);
    assert!(chain.died >= 8, "{}", chain.died);
    for (call, freeze) in [
        ("TransactWriteItems", Freeze::Held), // the first letter is taken
        ("SendMessageBatch", Freeze::Held),
        ("PutItem", Freeze::Held),
        ("DeleteItem", Freeze::Held),
    ] {
        let job = begin_redrive(&ground).await;
        let run = overtaken(&ground, &job, Where::Named(call), freeze).await;
        assert_eq!(ground.dead().await, 0, "{call} {freeze:?}: {:?}", run.job);
        ended(&ground, &run).await;
    }
    if Length::of_run() != Length::Short {
        redrive(&ground, &Script::Each { from: 1, step }).await;
        // a letter is taken and removed like the next: some of each
        let step = if Length::of_run() == Length::Deep { 13 } else { 101 };
        one_by_one(&ground, clean.calls.len(), step, false).await;
    }
}

/// A job for each call, and for what happens to it.
async fn one_by_one(ground: &Ground, calls: usize, step: usize, replays: bool) {
    const FAULTS: [Fault; 5] = [
        Fault::KillBefore,
        Fault::KillAfter,
        Fault::AnswerLost,
        Fault::RequestLost,
        Fault::DeliveredBut(500, "InternalServerError"),
    ];
    for call in (0..calls).step_by(step) {
        for fault in FAULTS {
            let script = Script::One(call, fault);
            match replays {
                true => replay(ground, &script).await,
                false => redrive(ground, &script).await,
            };
        }
        println!("call {call} of {calls}");
    }
}
