//! The publish protocol and the steps of jobs over SQLite: a selection of the schedules that the test kit runs over its engine in memory. Each
//! on a database of its own, which is closed and opened again before all is retried.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use std::time::Duration;

use async_trait::async_trait;
use engine::SqliteEngine;
use storybus_testkit::FakeClock;
use storybus_testkit::explore::jobs::{self, Ask, Budget, Scene};
use storybus_testkit::explore::{Explored, Limits, Message, Prologue, sequence_over, wander_over};
use storybus_testkit::faulty::Call;
use storybus_testkit::suite::{Engine, Factory};

struct SqliteFactory;

#[async_trait]
impl Factory for SqliteFactory {
    async fn engine(&self, clock: FakeClock) -> Box<dyn Engine> {
        Box::new(SqliteEngine::new(&clock))
    }
}

fn prologue(attempts: &[(Message, Option<Call>)], age: u64) -> Prologue {
    Prologue {
        attempts: attempts.to_vec(),
        age: Duration::from_secs(age),
    }
}

/// Whatever one call of an attempt meets, and whoever comes next, at whatever time.
#[test]
fn one_attempt_after_the_other() {
    let snapshots = [Message::snapshot(2), Message::snapshot(3)];
    let published = prologue(&[(Message::snapshot(1), None)], 0);
    let mut all = sequence_over(&SqliteFactory, &published, &snapshots, 2);
    all.add(sequence_over(
        &SqliteFactory,
        &prologue(&[], 0),
        &[Message::event()],
        2,
    ));
    println!("sqlite, one after the other: {all}");
    all.assert_kept();
    assert!(all.schedules >= 500, "{all}");
}

/// Attempts that run into each other, with faults and pauses, as seeds have it.
#[test]
fn many_attempts_at_random() {
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
    let mut all = Explored::default();
    for scene in &scenes {
        all.add(wander_over(&SqliteFactory, scene, &cast[..2], limits, 0..100));
        all.add(wander_over(&SqliteFactory, scene, &cast, limits, 0..100));
    }
    println!("sqlite, many at random: {all}");
    all.assert_kept();
    assert_eq!(all.schedules, 800, "{all}");
}

/// A redrive of all, one of chosen messages, a replay.
fn scenes() -> [Scene; 3] {
    let replay = Ask::Replay {
        from: 1,
        to: 4,
        even: false,
    };
    [
        Scene::of_dead(3, &[Ask::All]),
        Scene::of_dead(3, &[Ask::Chosen(vec![1, 3, 9])]),
        Scene::of_archived(3, &[replay]),
    ]
}

/// What one call of a job's step meets, the end of the process too, or what happens beside, as seeds have it.
#[test]
fn jobs_that_fail_anywhere() {
    let faults = Budget {
        faults: 1,
        restarts: true,
        ..Budget::default()
    };
    let events = Budget {
        events: 1,
        deletes: true,
        ..Budget::default()
    };
    let mut all = Explored::default();
    for scene in scenes() {
        all.add(jobs::some(&SqliteFactory, &scene, faults, 0..30));
        all.add(jobs::some(&SqliteFactory, &scene, events, 0..10));
    }
    println!("sqlite, jobs: {all}");
    all.assert_kept();
    assert_eq!(all.schedules, 120, "{all}");
}

/// Runners and jobs that run into each other, with faults, restarts and events, as seeds have it.
#[test]
fn many_runners_at_random() {
    let budget = Budget {
        faults: 2,
        events: 3,
        switches: 5,
        deletes: false,
        restarts: true,
    };
    let pair = Scene::of_dead(4, &[Ask::All, Ask::Chosen(vec![1, 2])]);
    let mut all = Explored::default();
    for scene in scenes().iter().chain([&pair]) {
        all.add(jobs::some(&SqliteFactory, scene, budget, 0..20));
    }
    println!("sqlite, many runners: {all}");
    all.assert_kept();
    assert_eq!(all.schedules, 80, "{all}");
}
