//! How many requests a publish takes, through the real core: the budget of the publish protocol.

use std::sync::Arc;

use bytes::Bytes;
use storybus_core::domain::time::Millis;
use storybus_core::ops::Caller;
use storybus_core::ops::publish::{PublishRequest, Published};
use storybus_core::{Bus, Settings};
use storybus_testkit::explore::Message;
use storybus_testkit::memory::Memory;
use storybus_testkit::suite::{Stores, sample};
use storybus_testkit::{FakeClock, SeededRandom};

use crate::Wire;

struct Producer {
    bus: Bus,
    caller: Caller,
    clock: FakeClock,
}

impl Producer {
    async fn new(wire: &Wire) -> Self {
        wire.topic("w1").await;
        let clock = FakeClock::automatic();
        let shared = Arc::new(clock.clone());
        let memory = Arc::new(Memory::new(shared.clone()));
        let stores = Stores {
            ledger: Arc::new(wire.aws.ledger()),
            topic: Arc::new(wire.aws.topic()),
            ..Stores::of(&memory)
        };
        let ports = storybus_testkit::ports(&stores, shared, Arc::new(SeededRandom::default()));
        let workspace = sample::workspace("w1", clock.now());
        let connection = sample::producer("p1", &workspace.id, &["ncs"], clock.now());
        Self {
            bus: Bus::new(ports, Settings::default()),
            caller: Caller {
                workspace,
                connection,
            },
            clock,
        }
    }

    async fn publish(&self, message: &Message) -> Published {
        let request = PublishRequest {
            body: Bytes::clone(&message.body),
            idempotency_key: None,
            deadline: Millis(self.clock.now().0 + 15_000),
        };
        self.bus.publish(&self.caller, &request).await.unwrap()
    }

    async fn accepted(&self, message: &Message) {
        assert!(matches!(self.publish(message).await, Published::Accepted(_)));
    }

    async fn duplicate(&self, message: &Message) {
        assert!(matches!(self.publish(message).await, Published::Duplicate(_)));
    }
}

#[tokio::test]
async fn an_event_takes_three_requests_and_its_duplicate_one() {
    let wire = Wire::new().await;
    let producer = Producer::new(&wire).await;
    producer.accepted(&Message::event()).await;
    assert_eq!(wire.proxy.seen(), ["PutItem", "Publish", "UpdateItem"]);
    producer.duplicate(&Message::event()).await;
    assert_eq!(wire.proxy.seen(), ["PutItem"]);
}

#[tokio::test]
async fn a_snapshot_takes_five_requests_and_its_duplicate_one() {
    let wire = Wire::new().await;
    let producer = Producer::new(&wire).await;
    producer.accepted(&Message::snapshot(1)).await;
    assert_eq!(
        wire.proxy.seen(),
        ["TransactGetItems", "TransactWriteItems", "Publish", "UpdateItem"],
        "a story's first has no head to look at"
    );
    for n in 2..4 {
        producer.accepted(&Message::snapshot(n)).await;
        assert_eq!(
            wire.proxy.seen(),
            [
                "TransactGetItems",
                "GetItem",
                "TransactWriteItems",
                "Publish",
                "UpdateItem"
            ]
        );
    }
    for n in [1, 3] {
        producer.duplicate(&Message::snapshot(n)).await;
        assert_eq!(
            wire.proxy.seen(),
            ["TransactGetItems"],
            "also one that is not the head any more"
        );
    }
}
