//! Replays and redrives in every small schedule, over the real core and the engine in memory.
//!
//! What runs by default takes about a minute on one processor without optimisation. `STORYBUS_EXPLORE=deep` goes further.

use storybus_testkit::explore::Explored;
use storybus_testkit::explore::jobs::{Ask, Budget, Scene, every, some};
use storybus_testkit::suite::MemoryFactory;

fn is_deep() -> bool {
    std::env::var("STORYBUS_EXPLORE").is_ok_and(|value| value == "deep")
}

fn replay(from: u64, to: u64, even: bool) -> Ask {
    Ask::Replay { from, to, even }
}

/// A redrive of everything; of chosen messages, some of which wait, some of which are none; a replay of everything, and of
/// some.
fn scenes(messages: u64) -> Vec<Scene> {
    let mut mixed = Scene::of_dead(messages + 1, &[Ask::Chosen(vec![1, 2, messages + 1, 99])]);
    mixed.dead.retain(|n| *n != 2);
    mixed.waiting = vec![2];
    vec![
        Scene::of_dead(messages, &[Ask::All]),
        mixed,
        Scene::of_archived(messages, &[replay(1, messages + 1, false)]),
        Scene::of_archived(messages + 1, &[replay(2, messages + 1, true)]),
    ]
}

fn explored(name: &str, scenes: &[Scene], budget: Budget) -> Explored {
    let mut all = Explored::default();
    for scene in scenes {
        all.add(every(&MemoryFactory, scene, budget));
    }
    println!("{name}: {all}");
    all.assert_kept();
    all
}

/// Whatever one call, or one and another, meets.
#[test]
fn faults() {
    let budget = Budget {
        faults: if is_deep() { 3 } else { 2 },
        ..Budget::default()
    };
    explored("faults", &scenes(3), budget);
}

/// Whatever happens beside, wherever a call fails.
#[test]
fn faults_and_events() {
    let budget = Budget {
        faults: 1,
        events: if is_deep() { 2 } else { 1 },
        deletes: true,
        ..Budget::default()
    };
    explored("faults and events", &scenes(3), budget);
}
