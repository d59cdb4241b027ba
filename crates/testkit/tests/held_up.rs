//! Attempts that were held up for longer than a window (a laptop that slept) and then went on with what they knew.
//! Both schedules broke a promise once.

use std::sync::Arc;
use std::time::Duration;

use storybus_core::ops::Caller;
use storybus_core::ops::publish::PublishRequest;
use storybus_core::ports::{Ledger, Topic};
use storybus_core::{Bus, Settings};
use storybus_testkit::executor::{run_alone, yield_now};
use storybus_testkit::explore::{Message, Verdict};
use storybus_testkit::faulty::{Call, Fault, Faulty, Plan};
use storybus_testkit::suite::{Stores, sample};
use storybus_testkit::{FakeClock, Memory, SeededRandom};

const WINDOW: Duration = Duration::from_secs(30);

struct World {
    clock: FakeClock,
    memory: Memory,
    bus: Bus,
    caller: Caller,
}

impl World {
    fn new() -> Self {
        let clock = FakeClock::new();
        let memory = Memory::new(Arc::new(clock.clone()));
        let stores = Stores::of(&Arc::new(memory.clone()));
        let ports = storybus_testkit::ports(
            &stores,
            Arc::new(clock.clone()),
            Arc::new(SeededRandom::default()),
        );
        let workspace = sample::workspace("w1", clock.now());
        let connection = sample::producer("p1", &workspace.id, &["ncs"], clock.now());
        let caller = Caller {
            workspace,
            connection,
        };
        Self {
            clock,
            memory,
            bus: Bus::new(ports, Settings::with_window(WINDOW)),
            caller,
        }
    }

    /// Publishes snapshot `n` on ports that follow a plan; `None` when the plan stopped it.
    async fn publish(&self, n: u64, plan: Plan) -> Option<Verdict> {
        let bus = self.bus.with_ports(|ports| {
            ports.ledger = Arc::new(Faulty::<dyn Ledger>::new(
                ports.ledger.clone(),
                Arc::new(plan.clone()),
            ));
            ports.topic = Arc::new(Faulty::<dyn Topic>::new(
                ports.topic.clone(),
                Arc::new(plan.clone()),
            ));
        });
        let deadline = self.clock.now().plus(Duration::from_secs(3600));
        let request = PublishRequest {
            body: Message::snapshot(n).body,
            idempotency_key: None,
            deadline,
        };
        plan.run(bus.publish(&self.caller, &request))
            .await
            .map(|answer| Verdict::of(&answer))
    }

    fn last_accepted(&self) -> Option<String> {
        self.memory
            .stories()
            .into_values()
            .next()?
            .state
            .sequence_number()
            .map(str::to_owned)
    }
}

/// Snapshot 1 is left over; 2 is recorded, surely fails, and is held up before it takes its record back. Meanwhile 1 is
/// given up for 2, which must then stay.
#[test]
fn a_removal_past_its_window_does_not_bring_back_what_was_given_up() {
    let world = World::new();
    run_alone(async {
        let stopped = world
            .publish(1, Plan::new().next(Call::Record, Fault::StopAfter))
            .await;
        assert_eq!(stopped, None);
        world.clock.advance(WINDOW);
        let failing = Plan::new().always(Call::Publish, Fault::Refused);
        let removal = failing.hold(Call::Remove);
        let second = world.publish(2, failing);
        let meanwhile = async {
            removal.reached().await;
            world.clock.advance(WINDOW);
            assert_eq!(world.publish(1, Plan::new()).await, Some(Verdict::Superseded));
            removal.release();
        };
        let (answer, ()) = futures::join!(second, meanwhile);
        assert!(matches!(answer, Some(Verdict::PublishFailed(_))), "{answer:?}");
        assert_eq!(world.last_accepted().as_deref(), Some("2"));
        assert_eq!(world.publish(2, Plan::new()).await, Some(Verdict::Accepted));
    });
}

/// Snapshot 2 reads while 3 is in flight, and is held up before it sees the answer. Meanwhile 3 surely fails and is
/// taken back, so that nothing speaks against 2.
#[test]
fn a_snapshot_is_not_refused_against_one_that_was_taken_back() {
    let world = World::new();
    run_alone(async {
        assert_eq!(world.publish(1, Plan::new()).await, Some(Verdict::Accepted));
        let failing = Plan::new().always(Call::Publish, Fault::Refused);
        let removal = failing.hold(Call::Remove);
        let reading = Plan::new();
        let answer = reading.hold_answer(Call::Read);
        let third = world.publish(3, failing);
        let second = world.publish(2, reading);
        let meanwhile = async {
            removal.reached().await;
            answer.reached().await;
            removal.release();
            while world.last_accepted().as_deref() == Some("3") {
                yield_now().await;
            }
            world.clock.advance(WINDOW);
            answer.release();
        };
        let (third, second, ()) = futures::join!(third, second, meanwhile);
        assert!(matches!(third, Some(Verdict::PublishFailed(_))), "{third:?}");
        assert_eq!(second, Some(Verdict::Contended), "judged by the time of its read");
        assert_eq!(world.publish(2, Plan::new()).await, Some(Verdict::Accepted));
    });
}
