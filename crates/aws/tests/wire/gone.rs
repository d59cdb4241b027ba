//! A consumer whose queue is not there any more: deleted by hand, or with the consumer while a cache still knows it.

use std::sync::Arc;
use std::time::Duration;

use storybus_core::domain::archived::Position;
use storybus_core::domain::connection::Role;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::filter::Filter;
use storybus_core::ports::queue_control::{Redelivered, Redelivery};
use storybus_core::ports::queues::Receive;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{Clock, Connections, QueueControl as _, Queues as _, StoreError, Workspaces as _};
use storybus_testkit::FakeClock;
use storybus_testkit::suite::sample::{self, Letter};

use crate::proxy::Fault;
use crate::{Wire, engine};

/// It is answered as by an empty queue. What an operator or a job asks of it is not available, for it will be made anew: a job
/// goes on then. A queue that is nobody's is none.
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
    let control = aws.queue_control(clock.clone());
    let queues = aws.queues(connections.clone(), archive, clock, random);
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

    let letter = Letter::new(1, 1);
    let messages = [Redelivery {
        position: Position("1".to_owned()),
        message_id: letter.message_id,
        correlation_id: letter.correlation_id,
        body: letter.body,
        attributes: letter.attributes,
    }];
    let turn = sample::job("j1", &queue, now).turn();
    let purged = control.purge(&queue, &audit("c1")).await;
    let redelivered = control.redeliver(&queue, &turn, "replay:j1", &messages).await;
    for error in [purged.map(drop).unwrap_err(), redelivered.map(drop).unwrap_err()] {
        assert!(
            matches!(&error, StoreError::QueueGone { queue } if queue.ends_with("-c1.fifo")),
            "{error:?}"
        );
    }
    connections.delete(&queue.consumer, &audit("c1")).await.unwrap();
    assert_eq!(control.purge(&queue, &audit("c1")).await.unwrap(), None);
    let redelivered = control.redeliver(&queue, &turn, "replay:j1", &messages).await;
    assert_eq!(redelivered.unwrap(), Redelivered::NoQueue);
}

/// SQS gives a queue's name again 60 s after it was deleted: a change within them says why it is not done.
#[tokio::test]
async fn a_queue_that_has_just_gone_is_told_as_that() {
    let wire = Wire::new().await;
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::automatic());
    let (random, now) = (engine::random(), clock.now());
    let audit = |subject: &str| sample::audit("change", &[subject], now);
    let workspace = sample::workspace("w1", now);
    let workspaces = wire.direct.workspaces(clock.clone(), random.clone());
    workspaces.create(&workspace, &audit("w1")).await.unwrap();
    let connections = wire.aws.connections(clock, random);
    let mut consumer = sample::consumer("c1", &workspace.id, Filter::default(), now);
    connections.create(&consumer, &audit("c1")).await.unwrap();

    let config = wire.direct.config();
    let url = config.queue_url(&config.queue_name(&consumer.id));
    let sqs = aws_sdk_sqs::Client::new(&engine::shared());
    let mut change = async || {
        sqs.delete_queue().queue_url(&url).send().await.unwrap();
        wire.proxy.seen();
        consumer.version += 1;
        if let Role::Consumer(role) = &mut consumer.role {
            role.visibility_seconds += 1;
        }
        connections.update(&consumer, &audit("c1")).await
    };
    change().await.unwrap();
    let before = wire
        .proxy
        .seen()
        .iter()
        .rposition(|name| name == "CreateQueue")
        .unwrap();
    wire.proxy
        .plan(std::iter::repeat_n(Fault::None, before).chain([Fault::Answered(400, "QueueDeletedRecently")]));
    let changed = change().await;
    assert!(
        matches!(
            &changed,
            Err(RegistryError::Store(StoreError::QueueGone { queue })) if queue.ends_with("-c1.fifo")
        ),
        "{changed:?}"
    );
}
