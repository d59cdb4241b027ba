//! *The function ends just after recording*, for real: the function `publish` meets every fault at every call of AWS that it makes, then
//! clients retry on other instances of it, on either side of the window, and the guarantees are looked for in answers, tables and queue.
//!
//! A part of it at a window of 6 s; `STORYBUS_PROOF=whole` all of it at that window, `STORYBUS_PROOF=deep` all of it at the real one.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it does and stops at the first surprise"
)]

mod scene;
mod trial;
mod verdict;

use std::time::Duration;

use futures::stream::{StreamExt, iter};
use scene::{Retries, SCENES, Trial, faults};
use storybus_tests::{Fault, Length, Stack, Where};
use trial::Pool;
use verdict::Delivered;

/// The function.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_fn-publish");

/// Every scene, every call, every fault, both ways to retry.
async fn trials(stack: &Stack, pool: &Pool) -> Vec<Trial> {
    let mut all = Vec::new();
    for (number, scene) in (0_u32..).zip(SCENES) {
        let mut trial = Trial {
            scene: *scene,
            call: 0,
            place: Where::Call(0),
            call_name: String::new(),
            fault_name: "nothing",
            fault: Fault::RequestLost,
            retries: Retries::InTurn,
        };
        let calls = trial::calls(stack, pool, &trial, 0xffff_0000 + number).await;
        println!("{}: {calls:?}", scene.name);
        let mut unsteady = false;
        for (call, name) in calls.iter().enumerate() {
            // how often a call is repeated that fails is a matter of time: after two of them a call has no number
            let fails = scene.always.is_some_and(|(always, _)| always == name);
            unsteady |= fails && calls[..call].iter().filter(|c| *c == name).count() > 1;
            trial.place = match (unsteady, name.as_str()) {
                (false, _) => Where::Call(call),
                (true, "DeleteItem") => Where::Named("DeleteItem"),
                (true, _) => continue,
            };
            for (fault_name, fault) in faults(stack.window, name) {
                for retries in [Retries::InTurn, Retries::AtOnce] {
                    trial.call = call;
                    trial.call_name.clone_from(name);
                    trial.fault_name = fault_name;
                    trial.fault = fault;
                    trial.retries = retries;
                    all.push(trial.clone());
                }
            }
        }
    }
    all
}

/// What is run: all; or of each write and each publication what is likeliest to break a guarantee, and of everything else a part, the
/// same in each run. `STORYBUS_PROOF_ONLY` is a part of the names of those that are wanted.
fn chosen(all: Vec<Trial>, length: Length) -> Vec<Trial> {
    const ONE_IN: usize = 37;
    if let Ok(wanted) = std::env::var("STORYBUS_PROOF_ONLY") {
        return all
            .into_iter()
            .filter(|trial| trial.name().contains(&wanted))
            .collect();
    }
    if length != Length::Short {
        return all;
    }
    let (keen, rest): (Vec<Trial>, Vec<Trial>) = all.into_iter().partition(|trial| {
        let writes = !trial.call_name.contains("Get");
        writes && ["killed after", "frozen long, done"].contains(&trial.fault_name)
    });
    // one way to retry each
    let keen = keen.chunks(2).zip([0, 1].iter().cycle());
    let keen = keen.filter_map(|(ways, n)| ways.get(*n).cloned());
    keen.chain(rest.into_iter().step_by(ONE_IN)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_an_attempt_the_guarantees_hold() {
    let length = Length::of_run();
    let (window, at_once) = match length {
        Length::Deep => (Duration::from_secs(30), 96),
        Length::Whole => (Duration::from_secs(6), 48),
        Length::Short => (Duration::from_secs(6), 32),
    };
    let stack = Stack::start(window).await;
    let pool = Pool::start(&stack, at_once / 4).await;
    let all = trials(&stack, &pool).await;
    let (whole, chosen) = (all.len(), chosen(all, length));
    println!("{} of {whole} trials", chosen.len());
    let mut wrong = Vec::new();
    let (mut struck, mut sent, count) = (0, 0, chosen.len());
    let queue = stack.aws.config().queue_name(&stack.consumer);
    let numbered: Vec<(u32, Trial)> = (1..).zip(chosen).collect();
    // a queue is drained while what was put in is still known to the deduplication
    for part in numbered.chunks(at_once * 3) {
        let outcomes: Vec<_> = iter(part.to_vec())
            .map(|(number, trial)| trial::run(&stack, &pool, trial, number))
            .buffer_unordered(at_once)
            .collect()
            .await;
        let delivered = Delivered::of(&stack.drain(&queue).await);
        for outcome in &outcomes {
            struck += usize::from(outcome.struck);
            sent += outcome.sent.len();
            let faults = verdict::faults(&stack, outcome, &delivered).await;
            if !faults.is_empty() {
                let told: Vec<String> = outcome
                    .sent
                    .iter()
                    .map(|s| {
                        format!(
                            "    {} {} {} {}..{} ({})",
                            s.id,
                            s.status(),
                            s.rule(),
                            s.from,
                            s.until,
                            s.invocation
                        )
                    })
                    .collect();
                wrong.push(format!(
                    "{}\n  {}\n{}",
                    outcome.trial.name(),
                    faults.join("\n  "),
                    told.join("\n")
                ));
            }
        }
        println!(
            "{} trials, {struck} faults struck, {sent} publishes, {} wrong",
            outcomes.len(),
            wrong.len()
        );
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} trials:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // where an attempt was held up, it may not have come to its call
    assert!(struck * 100 >= count * 97, "{struck} of {count} faults struck");
}
