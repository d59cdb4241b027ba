//! Messages that are none of the bus in its queues: whoever may send to them can put some in.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{MessageAttributeValue, MessageSystemAttributeName as System};
use storybus_aws::{Arrived, Aws};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::filter::Filter;
use storybus_core::ports::queues::Receive;
use storybus_core::ports::{Clock, Connections};
use storybus_testkit::FakeClock;
use storybus_testkit::suite::sample::{self, Letter};
use storybus_testkit::suite::{Factory as _, World};

use crate::engine::{self, AwsFactory};

/// Sends a body to a queue, by the right of its owner; `typed` makes it look like a message of the bus for a while.
async fn send(url: &str, group: &str, body: &str, typed: bool) {
    let send = Client::new(&engine::shared()).send_message().queue_url(url);
    let mut send = send
        .message_group_id(group)
        .message_deduplication_id(format!("{group}-{}", body.len()))
        .message_body(body);
    if typed {
        let text = |value: &str| {
            let value = MessageAttributeValue::builder()
                .data_type("String")
                .string_value(value);
            value.build().unwrap()
        };
        send = send.message_attributes("message_type", text("story.context"));
    }
    send.send().await.unwrap();
}

/// A receive that hides nothing.
const RECEIVE: Receive = Receive {
    max: 10,
    wait: Duration::ZERO,
    visibility: Duration::ZERO,
    max_receives: 5,
    attempt: None,
};

/// A consumer with two foreign messages in its queue.
async fn world() -> (World, QueueKey) {
    let clock = FakeClock::at(AwsFactory.begins());
    let world = World::new(AwsFactory.engine(clock.clone()).await, clock);
    let workspace = world.workspace("w1").await;
    let queue = world.consumer("c1", &workspace, Filter::default()).await;
    let url = world.queue_control().queue_url(&queue).unwrap();
    send(&url, "x", "x", false).await;
    send(&url, "w1.y", "{}", true).await;
    (world, queue)
}

/// The consumer has the others, however often it asks.
#[tokio::test]
async fn a_foreign_message_keeps_none_of_the_others() {
    let (world, queue) = world().await;
    for n in [1, 2] {
        world.send(&queue.workspace, &Letter::new(n, n)).await;
    }
    for _ in 0..3 {
        let received = world.receive_as(&queue, &RECEIVE).await;
        let ids: Vec<_> = received.iter().map(|delivery| delivery.message_id).collect();
        assert_eq!(ids, [1, 2].map(sample::message_id));
    }
}

/// After five receives SQS moves it to the dead letters, as it does with all that is not acknowledged; and there it ends.
#[tokio::test]
async fn a_foreign_message_becomes_no_dead_letter() {
    let (world, queue) = world().await;
    for _ in 0..6 {
        assert_eq!(world.receive_as(&queue, &RECEIVE).await, []);
    }
    assert!(world.dead_letters(&queue).await.is_empty());
    let counts = world.counts(&queue).await;
    assert_eq!(
        (counts.visible, counts.in_flight, counts.dead_lettered),
        (0, 0, 0)
    );
}

/// All that the queue of dead letters has.
async fn dead(aws: &Aws) -> Vec<Arrived> {
    let config = aws.config();
    let receive = Client::new(&engine::shared())
        .receive_message()
        .queue_url(config.queue_url(&config.dead_letters_name()))
        .max_number_of_messages(10)
        .message_system_attribute_names(System::All)
        .message_attribute_names("All");
    let messages = receive.send().await.unwrap().messages.unwrap_or_default();
    messages
        .into_iter()
        .map(|m| Arrived::try_from(m).unwrap())
        .collect()
}

/// It is dropped and counted, and does not come again; what is behind it in its group is worked on.
#[tokio::test]
async fn a_foreign_dead_letter_does_not_come_again() {
    let aws = engine::deployment().await;
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::automatic());
    let connections: Arc<dyn Connections> = Arc::new(aws.connections(clock.clone(), engine::random()));
    let config = aws.config();
    let url = config.queue_url(&config.dead_letters_name());
    send(&url, "w1.y", "x", false).await;
    send(&url, "w1.y", &"y".repeat(200_000), true).await;
    let mut batch = dead(&aws).await;
    assert_eq!(batch.len(), 2);
    let mover = aws.mover(connections, clock);
    let moved = mover.accept(&batch).await;
    assert_eq!((moved.again, moved.foreign), (vec![], 2));
    // one that says whose it is, but is no message
    batch[0].source_queue = Some(format!(
        "arn:aws:sqs:us-east-1:000000000000:{}-c1.fifo",
        config.prefix
    ));
    assert_eq!(mover.accept(&batch[..1]).await.foreign, 1);
}
