//! The publish protocol in every small schedule, over the real core and the engine in memory.
//!
//! What runs by default takes less than a minute on one processor without optimisation. `STORYBUS_EXPLORE=deep` goes
//! further, for hours if it must.

use std::time::Duration;

use storybus_testkit::explore::{
    Depth, Explored, Limits, Message, Prologue, Stage, interleave, sequence, wander,
};
use storybus_testkit::faulty::{Call, Fault};
use storybus_testkit::memory::Claims;

const BOTH: [Claims; 2] = [Claims::Checked, Claims::Trusted];
const WINDOW: u64 = 30;
const MINUTES: u64 = 301;

fn is_deep() -> bool {
    std::env::var("STORYBUS_EXPLORE").is_ok_and(|value| value == "deep")
}

/// The first by default, the second when it shall go deep.
fn deep<T>(shallow: T, deep: T) -> T {
    if is_deep() { deep } else { shallow }
}

fn prologue(attempts: &[(Message, Option<Call>)], age: u64) -> Prologue {
    Prologue {
        attempts: attempts.to_vec(),
        age: Duration::from_secs(age),
    }
}

fn snapshot(n: u64) -> Message {
    Message::snapshot(n)
}

/// Whatever one call of an attempt meets, and whoever comes next, at whatever time.
#[test]
fn snapshots_one_after_the_other() {
    let messages = [
        snapshot(2),
        snapshot(3),
        snapshot(1),
        Message::altered_snapshot(2),
    ];
    let mut all = Explored::default();
    for claims in BOTH {
        let depth = match claims {
            Claims::Checked => deep(4, 5),
            Claims::Trusted => deep(3, 4),
        };
        for before in [prologue(&[], 0), prologue(&[(snapshot(1), None)], 0)] {
            let depth = Depth {
                attempts: depth,
                faulty: 1,
                faults: 1,
            };
            all.add(sequence(&before.in_memory(claims), &messages, depth));
        }
    }
    println!("snapshots, one after the other: {all}");
    all.assert_kept();
    assert!(all.schedules >= 20_000, "{all}");
}

/// Two calls of one attempt fail, or one call of each of two attempts.
#[test]
fn snapshots_with_two_faults() {
    let messages = [snapshot(2), snapshot(3)];
    let start = prologue(&[(snapshot(1), None)], 0).in_memory(Claims::Checked);
    let mut all = Explored::default();
    let attempts = deep(2, 4);
    all.add(sequence(
        &start,
        &messages,
        Depth {
            attempts,
            faulty: 1,
            faults: 2,
        },
    ));
    all.add(sequence(
        &start,
        &messages,
        Depth {
            attempts: attempts + 1,
            faulty: 2,
            faults: 1,
        },
    ));
    println!("snapshots, two faults: {all}");
    all.assert_kept();
    assert!(all.schedules >= 3_000, "{all}");
}

/// The same for messages that no story orders.
#[test]
fn events_one_after_the_other() {
    let messages = [Message::event(), Message::altered_event()];
    let mut all = Explored::default();
    for claims in BOTH {
        let start = Stage::in_memory(claims);
        all.add(sequence(
            &start,
            &messages,
            Depth {
                attempts: deep(4, 6),
                faulty: 2,
                faults: 1,
            },
        ));
        all.add(sequence(
            &start,
            &messages,
            Depth {
                attempts: 3,
                faulty: 1,
                faults: 2,
            },
        ));
    }
    println!("events, one after the other: {all}");
    all.assert_kept();
    assert!(all.schedules >= 6_000, "{all}");
}

/// What has happened, and two attempts that come then.
fn scenes() -> Vec<(Prologue, [Message; 2])> {
    let first = (snapshot(1), None);
    let published = prologue(std::slice::from_ref(&first), 0);
    let left = |n, call| (snapshot(n), Some(call));
    let event_left = (Message::event(), Some(Call::Record));
    vec![
        (published.clone(), [snapshot(2), snapshot(3)]),
        (published, [snapshot(2), snapshot(2)]),
        (
            prologue(&[first.clone(), left(2, Call::Record)], WINDOW),
            [snapshot(2), snapshot(3)],
        ),
        (
            prologue(&[first.clone(), left(2, Call::Record)], WINDOW),
            [snapshot(2), snapshot(2)],
        ),
        (
            prologue(&[first.clone(), left(2, Call::Publish)], WINDOW),
            [snapshot(2), snapshot(3)],
        ),
        (
            prologue(&[first.clone(), left(2, Call::Publish)], MINUTES),
            [snapshot(2), snapshot(3)],
        ),
        (
            prologue(&[first, left(2, Call::Record)], WINDOW - 1),
            [snapshot(3), snapshot(2)],
        ),
        (
            prologue(&[left(1, Call::Record)], WINDOW),
            [snapshot(2), snapshot(1)],
        ),
        (
            prologue(&[event_left], WINDOW),
            [Message::event(), Message::event()],
        ),
        (prologue(&[], 0), [Message::event(), Message::altered_event()]),
    ]
}

/// The same cast, all clocks alike.
fn cast<const N: usize>(messages: &[Message; N]) -> [(Message, i64); N] {
    messages.clone().map(|message| (message, 0))
}

/// Two attempts run into each other in every way; an attempt sleeps through the other, a call fails, or a long time
/// passes anywhere.
#[test]
fn two_attempts_at_once() {
    let mut all = Explored::default();
    for (number, (before, messages)) in scenes().into_iter().enumerate() {
        for claims in BOTH {
            if claims == Claims::Trusted && number % 2 == 1 && !is_deep() {
                continue;
            }
            let start = before.in_memory(claims);
            let mut run = |limits| all.add(interleave(&start, &cast(&messages), limits));
            run(Limits {
                jumps: 1,
                ..Limits::default()
            });
            // what fails is the same whether or not the topic looks at claims
            if claims == Claims::Checked || is_deep() {
                run(Limits {
                    naps: deep(1, 2),
                    ..Limits::default()
                });
                run(Limits {
                    faults: 1,
                    ..Limits::default()
                });
            }
            if is_deep() {
                run(Limits {
                    faults: 1,
                    jumps: 1,
                    ..Limits::default()
                });
                run(Limits {
                    faults: 1,
                    jumps: 1,
                    holds: 1,
                    kinds: &[Fault::Refused],
                    ..Limits::default()
                });
            }
        }
    }
    println!("two attempts at once: {all}");
    all.assert_kept();
    assert!(all.schedules >= 60_000, "{all}");
}

/// Three clients retry one left-over at the same moment, or two of them and a newer snapshot.
#[test]
fn three_attempts_at_once() {
    let mut all = Explored::default();
    let left = prologue(&[(Message::event(), Some(Call::Record))], WINDOW);
    let messages = [Message::event(), Message::event(), Message::event()];
    all.add(interleave(
        &left.in_memory(Claims::Checked),
        &cast(&messages),
        Limits::default(),
    ));
    let left = prologue(&[(snapshot(1), None), (snapshot(2), Some(Call::Publish))], WINDOW);
    let messages = [snapshot(2), snapshot(3), snapshot(2)];
    let start = left.in_memory(Claims::Trusted);
    if is_deep() {
        all.add(interleave(&start, &cast(&messages), Limits::default()));
    }
    println!("three attempts at once: {all}");
    all.assert_kept();
    assert!(all.schedules >= 7_700, "{all}");
}

/// Nodes whose clocks are 5 s apart, on a topic that relies on the time limits alone.
#[test]
fn clocks_apart() {
    let mut all = Explored::default();
    for (before, messages) in scenes() {
        let start = before.in_memory(Claims::Trusted);
        for lead in [[0, 5], [5, 0]] {
            let cast: Vec<_> = messages.iter().cloned().zip(lead).collect();
            if is_deep() {
                all.add(interleave(
                    &start,
                    &cast,
                    Limits {
                        jumps: 1,
                        ..Limits::default()
                    },
                ));
            }
            let limits = Limits {
                faults: 1,
                jumps: 2,
                naps: 2,
                holds: 2,
                kinds: &[],
            };
            all.add(wander(&start, &cast, limits, 0..deep(300, 100_000)));
        }
    }
    println!("clocks apart: {all}");
    all.assert_kept();
    assert!(all.schedules >= 6_000, "{all}");
}

/// Up to four attempts with several faults and pauses: too many ways to try all, so some are drawn.
#[test]
fn many_attempts_at_random() {
    let mut all = Explored::default();
    let limits = Limits {
        faults: 2,
        jumps: 2,
        naps: 3,
        holds: 2,
        kinds: &[],
    };
    let messages = [snapshot(2), snapshot(3), snapshot(2), snapshot(1)];
    let events = [Message::event(), Message::event(), Message::altered_event()];
    for (before, pair) in scenes() {
        for claims in BOTH {
            let start = before.in_memory(claims);
            let seeds = deep(300, 100_000);
            all.add(wander(&start, &cast(&pair), limits, 0..seeds));
            if pair[0].snapshot.is_some() {
                all.add(wander(&start, &cast(&messages), limits, 0..seeds));
            } else {
                all.add(wander(&start, &cast(&events), limits, 0..seeds));
            }
        }
    }
    println!("many attempts at random: {all}");
    all.assert_kept();
    assert!(all.schedules >= 12_000, "{all}");
}
