//! Receipt handles that a consumer has changed.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use storybus_core::domain::connection::Role;
use storybus_core::domain::delivery::{QueueKey, Settled};
use storybus_core::domain::filter::Filter;
use storybus_core::ports::queues::Receive;
use storybus_testkit::FakeClock;
use storybus_testkit::suite::sample::{self, Letter};
use storybus_testkit::suite::{Factory as _, World};

use crate::engine::AwsFactory;

/// A handle without its seal that says something else at one place.
fn changed(handle: &str, place: usize, value: serde_json::Value) -> String {
    let (open, _) = handle.split_once('.').unwrap();
    let json = URL_SAFE_NO_PAD.decode(open).unwrap();
    let mut wire: Vec<serde_json::Value> = serde_json::from_slice(&json).unwrap();
    let before = std::mem::replace(&mut wire[place], value);
    if place == 6 {
        let id = before.as_str().unwrap();
        assert!(id.parse::<storybus_protocol::id::MessageId>().is_ok());
    }
    URL_SAFE_NO_PAD.encode(serde_json::to_string(&wire).unwrap())
}

/// A handle that names another message.
fn forged(handle: &str, n: u64) -> String {
    changed(handle, 6, sample::message_id(n).to_string().into())
}

/// Nobody sees, among its dead letters, what its filter does not take.
#[tokio::test]
async fn a_forged_handle_brings_no_message_past_the_filter() {
    let clock = FakeClock::at(AwsFactory.begins());
    let world = World::new(AwsFactory.engine(clock.clone()).await, clock);
    let workspace = world.workspace("w1").await;
    let filter = Filter {
        message_types: vec!["a.b".parse().unwrap()],
        ..Filter::default()
    };
    let queue: QueueKey = world.consumer("c1", &workspace, filter).await;
    let others = [Letter::new(1, 1), Letter::new(2, 1).of_type("a.b")];
    for letter in &others {
        world.send(&workspace, letter).await;
    }
    let receive = Receive {
        max: 1,
        wait: Duration::ZERO,
        visibility: Duration::from_secs(60),
        max_receives: 5,
        attempt: None,
    };
    let received = world.receive_as(&queue, &receive).await;
    let handle = &received[0].receipt_handle;
    let reject = async |handle: String| world.queues().reject(&queue, &[handle], "no").await.unwrap();
    assert_eq!(reject(forged(handle, 1)).await, [Settled::NotArchived]);
    assert_eq!(reject(forged(handle, 9)).await, [Settled::NotArchived]);
    // what would become a dead letter's key or time has the form that SQS gives it
    let parts = [
        (4, "".into()),
        (5, "a-b".into()),
        (5, "9".repeat(40).into()),
        (8, i64::MAX.into()),
        (10, "else".into()),
    ];
    for (place, value) in parts {
        assert_eq!(
            reject(changed(handle, place, value)).await,
            [Settled::Invalid],
            "{place}"
        );
    }
    assert!(world.dead_letters(&queue).await.is_empty());
    assert_eq!(reject(handle.clone()).await, [Settled::Done]);
    let dead = world.dead_letters(&queue).await;
    assert_eq!((dead.len(), dead[0].message_id), (1, sample::message_id(2)));
}

/// A sealed handle names the message that was received, so it may be rejected although the filter does not take it any more; and
/// whoever changes one has none.
#[tokio::test]
async fn what_was_received_can_be_rejected_though_the_filter_was_narrowed() {
    let clock = FakeClock::at(AwsFactory.begins());
    let world = World::new(AwsFactory.engine(clock.clone()).await, clock);
    let workspace = world.workspace("w1").await;
    let queue = world.consumer("c1", &workspace, Filter::default()).await;
    for n in [1, 2] {
        world.send(&workspace, &Letter::new(n, n)).await;
    }
    let received = world.receive(&queue, 2).await;
    let (one, two) = (&received[0], &received[1]);

    let connections = world.connections();
    let mut consumer = connections.get(&queue.consumer).await.unwrap().unwrap();
    if let Role::Consumer(role) = &mut consumer.role {
        role.filter.message_types = vec!["never.sent".parse().unwrap()];
    }
    consumer.version += 1;
    let audit = sample::audit("consumer.update", &["w1", "c1"], world.now());
    connections.update(&consumer, &audit).await.unwrap();

    let reject = async |handle: String| world.queues().reject(&queue, &[handle], "no").await.unwrap();
    let changed = changed(&one.receipt_handle, 6, two.message_id.to_string().into());
    let (_, seal) = one.receipt_handle.split_once('.').unwrap();
    assert_eq!(reject(format!("{changed}.{seal}")).await, [Settled::Invalid]);
    // an open one brings nothing past the filter
    assert_eq!(reject(changed).await, [Settled::NotArchived]);
    assert!(world.dead_letters(&queue).await.is_empty());
    assert_eq!(reject(one.receipt_handle.clone()).await, [Settled::Done]);
    let dead = world.dead_letters(&queue).await;
    assert_eq!((dead.len(), dead[0].message_id), (1, one.message_id));
    assert_eq!(world.acknowledge(&queue, &received[1..]).await, [Settled::Done]);
}
