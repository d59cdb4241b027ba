//! The publish protocol over DynamoDB's ledger: a selection of the schedules that the test kit runs over its engine in memory, on the
//! wire as it is and with lost answers. The topic and the queues are in memory: SNS and SQS have their own time, which no test moves.

use std::time::Duration;

use storybus_testkit::explore::{Explored, Limits, Message, Prologue, sequence_over, wander_over};
use storybus_testkit::faulty::Call;

use crate::Lossy;
use crate::proxy::Fault;

fn prologue(attempts: &[(Message, Option<Call>)], age: u64) -> Prologue {
    Prologue {
        attempts: attempts.to_vec(),
        age: Duration::from_secs(age),
    }
}

/// The explorations wait on their own thread; what is on the wire goes on beside it.
fn beside<T>(work: impl FnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    work()
}

/// Whatever one call of an attempt meets, and whoever comes next, at whatever time.
#[test]
fn one_attempt_after_the_other() {
    let all = beside(|| {
        let published = prologue(&[(Message::snapshot(1), None)], 0);
        let mut all = sequence_over(&Lossy(&[]), &published, &[Message::snapshot(2)], 2);
        all.add(sequence_over(
            &Lossy(&[]),
            &prologue(&[], 0),
            &[Message::event()],
            2,
        ));
        all
    });
    println!("aws, one after the other: {all}");
    all.assert_kept();
    assert!(all.schedules >= 100, "{all}");
}

/// Attempts that run into each other, with faults and pauses, as seeds have it.
fn at_random(faults: &'static [Fault], seeds: u64) -> Explored {
    let first = (Message::snapshot(1), None);
    let limits = Limits {
        faults: 2,
        jumps: 1,
        naps: 2,
        holds: 1,
        kinds: &[],
    };
    let scenes = [
        prologue(std::slice::from_ref(&first), 0),
        prologue(&[first.clone(), (Message::snapshot(2), Some(Call::Record))], 30),
        prologue(&[first, (Message::snapshot(2), Some(Call::Publish))], 301),
        prologue(&[(Message::snapshot(1), Some(Call::Record))], 30),
    ];
    let cast = [2, 3, 2, 1].map(|n| (Message::snapshot(n), 0));
    let all = beside(|| {
        let mut all = Explored::default();
        for scene in &scenes {
            all.add(wander_over(&Lossy(faults), scene, &cast[..2], limits, 0..seeds));
            all.add(wander_over(&Lossy(faults), scene, &cast, limits, 0..seeds));
        }
        all
    });
    all.assert_kept();
    assert_eq!(all.schedules as u64, 8 * seeds, "{all}");
    all
}

#[test]
fn many_attempts_at_random() {
    println!("aws, many at random: {}", at_random(&[], 25));
}

#[test]
fn many_attempts_whose_answers_are_lost() {
    let all = at_random(&[Fault::AnswerLost, Fault::None, Fault::None], 5);
    println!("aws, many whose answers are lost: {all}");
}
