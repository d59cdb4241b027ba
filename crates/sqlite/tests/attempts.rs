//! Receives of one attempt that meet: the newest never misses what another has hidden.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use std::sync::Barrier;
use std::time::Duration;

use engine::{open, world};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::ports::queues::Receive;
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use tempfile::TempDir;

const ROUNDS: u64 = 300;

/// The clock stands still: a receive that misses the message waits for good.
#[test]
fn of_receives_that_meet_none_is_left_waiting() {
    let directory = TempDir::new().unwrap();
    let clock = FakeClock::new();
    let store = open(directory.path(), &clock);
    let queue: QueueKey = run(world(&store, &clock).queue());
    for round in 0..ROUNDS {
        let receive = Receive {
            max: 10,
            wait: Duration::from_secs(20),
            visibility: Duration::from_secs(60),
            max_receives: 5,
            attempt: Some(format!("a{round}")),
        };
        let start = Barrier::new(4);
        let received = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let world = world(&store, &clock);
                        start.wait();
                        run(world.receive_as(&queue, &receive))
                    })
                })
                .collect();
            start.wait();
            run(world(&store, &clock).send_to(&queue, round, round % 7));
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect::<Vec<_>>()
        });
        // those that were given up before it came have nothing; the others have the same
        let got: Vec<_> = received.iter().filter(|received| !received.is_empty()).collect();
        assert!(
            !got.is_empty() && got.iter().all(|other| *other == got[0]),
            "{got:?}"
        );
        run(async {
            world(&store, &clock).acknowledge(&queue, got[0]).await;
        });
    }
    run(store.close());
}
