//! A consumer whose queue is not there any more: deleted by hand, or with the consumer while a cache still knows it.

use std::sync::Arc;
use std::time::Duration;

use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::filter::Filter;
use storybus_core::ports::queues::Receive;
use storybus_core::ports::{Clock, Connections, Queues as _, Workspaces as _};
use storybus_testkit::FakeClock;
use storybus_testkit::suite::sample;

use crate::engine;

/// It is answered as by an empty queue.
#[tokio::test]
async fn a_queue_that_has_gone_is_empty() {
    let aws = engine::deployment().await;
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::automatic());
    let (random, now) = (engine::random(), clock.now());
    let connections: Arc<dyn Connections> = Arc::new(aws.connections(clock.clone(), random.clone()));
    let workspace = sample::workspace("w1", now);
    let workspaces = aws.workspaces(clock.clone(), random.clone());
    let audit = |subject: &str| sample::audit("create", &[subject], now);
    workspaces.create(&workspace, &audit("w1")).await.unwrap();
    let consumer = sample::consumer("c1", &workspace.id, Filter::default(), now);
    connections.create(&consumer, &audit("c1")).await.unwrap();
    aws.remove_consumer(&workspace.id, &consumer.id).await.unwrap();

    let archive = Arc::new(aws.archive(clock.clone()));
    let queues = aws.queues(connections, archive, clock, random);
    let queue = QueueKey {
        workspace: workspace.id,
        consumer: consumer.id,
    };
    let receive = Receive {
        max: 10,
        wait: Duration::ZERO,
        visibility: Duration::from_secs(60),
        max_receives: 5,
        attempt: None,
    };
    assert_eq!(queues.receive(&queue, &receive).await.unwrap(), []);
}
