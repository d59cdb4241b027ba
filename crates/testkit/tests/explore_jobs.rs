//! Replays and redrives in every small schedule, over the real core and the engine in memory.
//!
//! What runs by default takes about a minute on one processor without optimisation. `STORYBUS_EXPLORE=deep` goes further.

use storybus_testkit::explore::Explored;
use storybus_testkit::explore::jobs::{Ask, Budget, Scene, every, some};
use storybus_testkit::suite::MemoryFactory;

fn is_deep() -> bool {
    std::env::var("STORYBUS_EXPLORE").is_ok_and(|value| value == "deep")
}

/// The first by default, the second when it shall go deep.
fn deep<T>(shallow: T, deep: T) -> T {
    if is_deep() { deep } else { shallow }
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

/// Two jobs at once that want the same, or much of it.
fn pairs(messages: u64) -> Vec<Scene> {
    let chosen = Ask::Chosen(vec![1, 3]);
    let mut both = Scene::of_dead(messages, &[replay(1, messages + 1, false), Ask::All]);
    both.dead.retain(|n| n % 2 == 1);
    vec![
        Scene::of_dead(messages, &[Ask::All, Ask::All]),
        Scene::of_dead(messages, &[chosen.clone(), Ask::All]),
        Scene::of_dead(messages, &[Ask::All, chosen]),
        both,
    ]
}

/// One in two by default: whoever goes deep takes all.
fn some_of(scenes: &[Scene]) -> Vec<Scene> {
    scenes.iter().step_by(deep(2, 1)).cloned().collect()
}

#[expect(
    clippy::print_stdout,
    reason = "what was explored is told, as by the other explorations"
)]
fn explored(name: &str, scenes: &[Scene], budget: Budget) -> Explored {
    let mut all = Explored::default();
    for scene in scenes {
        all.add(every(&MemoryFactory, scene, budget));
    }
    println!("{name}: {all}");
    all.assert_kept();
    all
}

const NOTHING: Budget = Budget {
    faults: 0,
    events: 0,
    switches: 0,
    deletes: false,
    restarts: false,
};

/// Whatever a call meets, and another.
#[test]
fn faults() {
    let one = Budget {
        faults: 1,
        restarts: true,
        ..NOTHING
    };
    let two = Budget { faults: 2, ..NOTHING };
    let mut all = explored("one fault", &scenes(5), one);
    all.add(explored("two faults", &some_of(&scenes(deep(2, 3))), two));
    assert!(all.schedules >= 5000, "{all}");
}

/// Whatever happens beside, wherever, and a call fails as well.
#[test]
fn faults_and_events() {
    let alone = Budget {
        events: deep(1, 2),
        deletes: true,
        ..NOTHING
    };
    let both = Budget {
        faults: 1,
        events: 1,
        ..NOTHING
    };
    let mut all = explored("events", &scenes(5), alone);
    all.add(explored("faults and events", &scenes(deep(2, 3)), both));
    assert!(all.schedules >= 10_000, "{all}");
}

/// Two runners of one job, or of two, that sleep and wake at any call.
#[test]
fn switches() {
    let alone = Budget {
        switches: deep(2, 3),
        ..NOTHING
    };
    let events = Budget {
        switches: deep(1, 2),
        events: 1,
        ..NOTHING
    };
    let faults = Budget {
        switches: 1,
        faults: 1,
        ..NOTHING
    };
    let mut all = explored("switches", &scenes(3), alone);
    all.add(explored("switches and events", &scenes(3), events));
    all.add(explored(
        "switches and faults",
        &some_of(&scenes(deep(2, 3))),
        faults,
    ));
    all.add(explored("two jobs", &some_of(&pairs(3)), alone));
    let one = Budget {
        switches: 1,
        ..events
    };
    all.add(explored("two jobs and events", &some_of(&pairs(2)), one));
    assert!(all.schedules >= 10_000, "{all}");
}

/// More of everything, as seeds have it.
#[test]
fn much_at_random() {
    let budget = Budget {
        faults: 3,
        events: 4,
        switches: 6,
        restarts: true,
        ..NOTHING
    };
    let mut all = Explored::default();
    for scene in scenes(5).iter().chain(&pairs(5)) {
        all.add(some(&MemoryFactory, scene, budget, 0..deep(400, 100_000)));
        let deletes = Budget {
            deletes: true,
            ..budget
        };
        all.add(some(&MemoryFactory, scene, deletes, 0..deep(100, 10_000)));
    }
    println!("much at random: {all}");
    all.assert_kept();
}
