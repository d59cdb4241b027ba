//! What somebody has deleted by hand is made anew; and until a topic has all its subscriptions again, nothing can be published to it.

use std::time::Duration;

use storybus_aws::sweeper::Swept;
use storybus_core::domain::connection::{Connection, Role};
use storybus_core::domain::message::{Claim, Publication};
use storybus_core::domain::record::Token;
use storybus_core::domain::time::Millis;
use storybus_core::ports::topic::PublishError;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{Connections as _, StoreError, Topic as _};
use storybus_testkit::suite::sample::{self, Letter};

use super::gate::{Fate, Gate};
use super::{Answer, LATER, World, engine};

/// Old enough that SQS and SNS would list what is there.
const OLD: Duration = Duration::from_secs(10 * 60);

impl World {
    /// Publishes a message of a group of its own.
    async fn publish(&self, workspace: &str, number: u64) -> Result<(), PublishError> {
        let letter = Letter::new(number, number);
        let publication = Publication {
            workspace: format!("w{workspace}").parse().unwrap(),
            message_id: letter.message_id,
            correlation_id: letter.correlation_id,
            story: None,
            body: number.to_string().into(),
            attributes: letter.attributes.clone(),
            about: letter.about.clone(),
            claim: Claim {
                attempt: Token([1; 16]),
                until: Millis(i64::MAX),
            },
        };
        let topic = self.aws.topic();
        topic.publish(&publication, Duration::from_secs(2)).await
    }

    /// Takes what is in a queue, and says which numbers.
    async fn drain(&self, name: &str) -> Vec<u64> {
        let sqs = aws_sdk_sqs::Client::new(&engine::shared());
        let url = self.aws.config().queue_url(name);
        let mut numbers = Vec::new();
        loop {
            let receive = sqs.receive_message().queue_url(&url).max_number_of_messages(10);
            let messages = receive.send().await.unwrap().messages.unwrap_or_default();
            if messages.is_empty() {
                numbers.sort_unstable();
                return numbers;
            }
            for message in messages {
                numbers.push(message.body().unwrap().parse().unwrap());
                let delete = sqs.delete_message().queue_url(&url);
                let delete = delete.receipt_handle(message.receipt_handle().unwrap());
                delete.send().await.unwrap();
            }
        }
    }

    /// What consumers of these names, and the archive, have got.
    async fn drain_all(&self, consumers: &[&str]) -> Vec<Vec<u64>> {
        let config = self.aws.config();
        let mut all = Vec::new();
        for consumer in consumers {
            all.push(self.drain(&config.queue_name(&consumer.parse().unwrap())).await);
        }
        all.push(self.drain(&config.archive_queue_name()).await);
        all
    }

    async fn delete_queue(&self, name: &str) {
        let sqs = aws_sdk_sqs::Client::new(&engine::shared());
        let url = self.aws.config().queue_url(name);
        sqs.delete_queue().queue_url(url).send().await.unwrap();
    }

    /// Ends the subscription of a queue.
    async fn unsubscribe(&self, workspace: &str, name: &str) {
        let (config, sns) = (self.aws.config(), aws_sdk_sns::Client::new(&engine::shared()));
        let topic = config.topic_arn(&format!("w{workspace}").parse().unwrap());
        let list = sns.list_subscriptions_by_topic().topic_arn(topic);
        let list = list.send().await.unwrap();
        let queue = config.queue_arn(name);
        let mut ours = list
            .subscriptions()
            .iter()
            .filter(|it| it.endpoint() == Some(&queue));
        let arn = ours.next().unwrap().subscription_arn().unwrap();
        sns.unsubscribe().subscription_arn(arn).send().await.unwrap();
    }

    async fn remove_topic(&self, n: &str) {
        let workspace = format!("w{n}").parse().unwrap();
        self.aws.remove_topic(&workspace).await.unwrap();
    }

    /// A second consumer of a workspace, of one type.
    fn second(&self, n: &str) -> Connection {
        let mut consumer = self.consumer(n);
        consumer.id = format!("c{n}b").parse().unwrap();
        if let Role::Consumer(role) = &mut consumer.role {
            role.filter.message_types = vec!["never.sent".parse().unwrap()];
        }
        consumer
    }

    async fn make(&self, consumer: &Connection) -> Answer {
        let audit = sample::audit("consumer.create", &[consumer.id.as_str()], self.clock.now());
        self.connections(&self.aws).create(consumer, &audit).await
    }
}

fn nothing_anew(swept: &Swept) -> bool {
    (
        swept.topics_anew.len(),
        swept.consumers_anew.len(),
        swept.unsettled,
    ) == (0, 0, 0)
}

#[tokio::test]
async fn what_a_consumer_lacks_is_made_anew() {
    let world = World::new().await;
    world.make_workspace(&world.aws, "1").await.unwrap();
    world.make_consumer(&world.aws, "1").await.unwrap();
    let consumer = world.consumer("1").id;
    let (queue, undelivered) = {
        let config = world.aws.config();
        (config.queue_name(&consumer), config.undelivered_name(&consumer))
    };
    world.delete_queue(&queue).await;
    // it was made so lately that SQS may not list it yet
    assert!(nothing_anew(&world.sweep().await));
    world.clock.advance(OLD);
    for (number, lost) in ["", "queue", "undelivered", "subscription", "all"]
        .into_iter()
        .enumerate()
    {
        if matches!(lost, "queue" | "all") {
            world.delete_queue(&queue).await;
        }
        if matches!(lost, "undelivered" | "all") {
            world.delete_queue(&undelivered).await;
        }
        if matches!(lost, "subscription" | "all") {
            world.unsubscribe("1", &queue).await;
        }
        let swept = world.sweep().await;
        assert_eq!(swept.consumers_anew, std::slice::from_ref(&consumer), "{lost}");
        assert_eq!((swept.topics_anew.len(), swept.unsettled), (0, 0), "{lost}");
        world.consumer_agrees("1", lost).await;
        let number = number as u64;
        world.publish("1", number).await.unwrap();
        assert_eq!(world.drain_all(&["c1"]).await, [[number], [number]], "{lost}");
        assert!(nothing_anew(&world.sweep().await), "{lost}");
    }
}

#[tokio::test]
async fn a_change_makes_a_missing_queue_anew() {
    let world = World::new().await;
    world.make_workspace(&world.aws, "1").await.unwrap();
    world.make_consumer(&world.aws, "1").await.unwrap();
    let queue = world.aws.config().queue_name(&world.consumer("1").id);
    world.delete_queue(&queue).await;
    world.change_consumer(&world.aws, "1").await.unwrap();
    world.consumer_agrees("1", "changed").await;
    assert_eq!(world.visibility("1").await, "77");
}

#[tokio::test]
async fn the_archive_is_subscribed_again() {
    let world = World::new().await;
    world.make_workspace(&world.aws, "1").await.unwrap();
    world.clock.advance(OLD);
    world
        .unsubscribe("1", &world.aws.config().archive_queue_name())
        .await;
    let swept = world.sweep().await;
    assert_eq!(swept.topics_anew, [world.workspace("1").id]);
    world.publish("1", 1).await.unwrap();
    assert_eq!(world.drain_all(&[]).await, [[1]]);
    assert!(nothing_anew(&world.sweep().await));
}

#[tokio::test]
async fn a_topic_is_made_anew_with_all_its_subscriptions() {
    let world = World::new().await;
    world.make_workspace(&world.aws, "1").await.unwrap();
    world.make_workspace(&world.aws, "2").await.unwrap();
    world.make_consumer(&world.aws, "1").await.unwrap();
    world.make(&world.second("1")).await.unwrap();
    world.clock.advance(OLD);
    world.remove_topic("1").await;
    let refused = world.publish("1", 1).await;
    let topic = world.aws.config().topic_name(&world.workspace("1").id);
    assert!(
        matches!(&refused, Err(PublishError::Refused { reason, retryable: false }) if reason.contains(&topic)),
        "{refused:?}"
    );
    // whoever becomes a consumer meanwhile waits for it, and leaves nothing behind
    let mut third = world.consumer("1");
    third.id = "c1c".parse().unwrap();
    let unavailable = world.make(&third).await;
    assert!(
        matches!(&unavailable, Err(RegistryError::Store(StoreError::Unavailable { reason })) if reason.contains(&topic)),
        "{unavailable:?}"
    );
    assert!(world.resources("c1c").await.is_empty());

    let swept = world.sweep().await;
    assert_eq!(swept.topics_anew, [world.workspace("1").id]);
    assert_eq!((swept.consumers_anew.len(), swept.unsettled), (0, 0));
    world.publish("1", 2).await.unwrap();
    assert_eq!(world.drain_all(&["c1", "c1b"]).await, [vec![2], vec![], vec![2]]);
    world.make(&third).await.unwrap();
    assert!(nothing_anew(&world.sweep().await));
}

/// Whoever makes it anew may die at any call: what is accepted reaches everybody, and the next sweep goes on.
#[tokio::test]
async fn nothing_is_published_to_a_topic_that_is_half_made() {
    let world = World::new().await;
    let mut number = 0;
    for fate in [Fate::Refused, Fate::DiesBefore, Fate::DiesAfter] {
        for at in 0.. {
            let n = format!("{}x{at}x", fate as u8);
            let what = format!("{fate:?} at call {at}");
            world.make_workspace(&world.aws, &n).await.unwrap();
            world.make_consumer(&world.aws, &n).await.unwrap();
            world.make(&world.second(&n)).await.unwrap();
            world.clock.advance(OLD);
            world.remove_topic(&n).await;
            let gate = Gate::new(&world.aws.config().queue_endpoint, at, fate).await;
            let aws = world.gated(&gate);
            let sweeper = aws.sweeper(std::sync::Arc::new(world.clock.clone()), world.random.clone());
            tokio::select! {
                swept = sweeper.sweep() => drop(swept),
                () = gate.died() => {}
            }
            let consumer = format!("c{n}");
            let mut reaches_all = async |must: bool| {
                number += 1;
                let accepted = world.publish(&n, number).await.is_ok();
                assert!(accepted || !must, "{what}");
                let expected = if accepted { vec![number] } else { vec![] };
                assert_eq!(
                    world.drain_all(&[&consumer]).await,
                    [expected.clone(), expected],
                    "{what}"
                );
            };
            let done = gate.calls() <= at;
            reaches_all(done).await;
            world.clock.advance(LATER);
            assert_eq!(world.sweep().await.unsettled, 0, "{what}");
            reaches_all(true).await;
            assert!(nothing_anew(&world.sweep().await), "{what}");
            for id in [&world.consumer(&n).id, &world.second(&n).id] {
                let audit = sample::audit("consumer.delete", &[id.as_str()], world.clock.now());
                world.connections(&world.aws).delete(id, &audit).await.unwrap();
            }
            world.remove_workspace(&world.aws, &n).await.unwrap();
            if done {
                assert!(at > 5);
                break;
            }
        }
    }
}
