//! Workspaces and consumers that are made, changed and removed with what they have on AWS: what is left when a call of them fails or
//! the process dies, at every call; and the limits.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "../engine/mod.rs"]
mod engine;
mod gate;
mod mended;

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use storybus_aws::Aws;
use storybus_aws::registry::{MAX_CONSUMERS, MAX_WORKSPACES};
use storybus_core::domain::connection::{Connection, Role, Workspace};
use storybus_core::domain::filter::Filter;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{Connections as _, Jobs as _, Random, Workspaces as _};
use storybus_protocol::id::WorkspaceId;
use storybus_testkit::FakeClock;
use storybus_testkit::suite::sample;

use gate::{Fate, Gate};

/// The engine's factory is the suites'; here only its deployments are used.
const _: &dyn storybus_testkit::suite::Factory = &engine::AwsFactory;

/// More than what is left alone is left alone for.
const LATER: Duration = Duration::from_secs(16 * 60);

struct World {
    aws: Aws,
    clock: FakeClock,
    random: Arc<dyn Random>,
}

type Answer = Result<(), RegistryError>;
type Work = for<'a> fn(&'a World, &'a Aws, &'a str) -> BoxFuture<'a, Answer>;

impl World {
    async fn new() -> Self {
        Self {
            aws: engine::deployment().await,
            clock: FakeClock::new(),
            random: engine::random(),
        }
    }

    fn gated(&self, gate: &Gate) -> Aws {
        let shared = engine::shared().to_builder().endpoint_url(gate.address()).build();
        Aws::new(&shared, self.aws.config().clone())
    }

    fn workspaces(&self, aws: &Aws) -> storybus_aws::DynamoWorkspaces {
        aws.workspaces(Arc::new(self.clock.clone()), self.random.clone())
    }

    fn connections(&self, aws: &Aws) -> storybus_aws::DynamoConnections {
        aws.connections(Arc::new(self.clock.clone()), self.random.clone())
    }

    async fn sweep(&self) -> storybus_aws::sweeper::Swept {
        let sweeper = self
            .aws
            .sweeper(Arc::new(self.clock.clone()), self.random.clone());
        sweeper.sweep().await.unwrap()
    }

    fn workspace(&self, n: &str) -> Workspace {
        sample::workspace(&format!("w{n}"), self.clock.now())
    }

    fn consumer(&self, n: &str) -> Connection {
        let workspace: WorkspaceId = format!("w{n}").parse().unwrap();
        sample::consumer(&format!("c{n}"), &workspace, Filter::default(), self.clock.now())
    }

    async fn make_workspace(&self, aws: &Aws, n: &str) -> Answer {
        let audit = sample::audit("tenant.create", &[n], self.clock.now());
        self.workspaces(aws).create(&self.workspace(n), &audit).await
    }

    async fn remove_workspace(&self, aws: &Aws, n: &str) -> Answer {
        let audit = sample::audit("tenant.delete", &[n], self.clock.now());
        self.workspaces(aws).delete(&self.workspace(n).id, &audit).await
    }

    async fn make_consumer(&self, aws: &Aws, n: &str) -> Answer {
        let audit = sample::audit("consumer.create", &[n], self.clock.now());
        self.connections(aws).create(&self.consumer(n), &audit).await
    }

    async fn change_consumer(&self, aws: &Aws, n: &str) -> Answer {
        let audit = sample::audit("consumer.update", &[n], self.clock.now());
        let mut consumer = self.consumer(n);
        consumer.version = 2;
        if let Role::Consumer(role) = &mut consumer.role {
            role.visibility_seconds = 77;
            role.filter.message_types = vec!["a.b".parse().unwrap()];
        }
        self.connections(aws).update(&consumer, &audit).await
    }

    async fn remove_consumer(&self, aws: &Aws, n: &str) -> Answer {
        let audit = sample::audit("consumer.delete", &[n], self.clock.now());
        self.connections(aws).delete(&self.consumer(n).id, &audit).await
    }

    /// The names of all topics, queues and subscribed queues of the deployment that have this in their names.
    async fn resources(&self, part: &str) -> Vec<String> {
        let prefix = &self.aws.config().prefix;
        let ours = |name: &str| name.contains(&format!("{prefix}-{part}"));
        let sqs = aws_sdk_sqs::Client::new(&engine::shared());
        let queues = sqs
            .list_queues()
            .queue_name_prefix(format!("{prefix}-"))
            .send()
            .await
            .unwrap();
        let sns = aws_sdk_sns::Client::new(&engine::shared());
        let (mut topics, mut next) = (Vec::new(), None);
        loop {
            let page = sns.list_topics().set_next_token(next).send().await.unwrap();
            topics.extend(
                page.topics()
                    .iter()
                    .filter_map(|t| t.topic_arn().map(str::to_owned)),
            );
            next = page.next_token().filter(|t| !t.is_empty()).map(str::to_owned);
            if next.is_none() {
                break;
            }
        }
        let mut all: Vec<String> = queues.queue_urls().iter().filter(|q| ours(q)).cloned().collect();
        all.extend(topics.into_iter().filter(|t| ours(t)));
        all
    }

    /// What the queue of a consumer has for visibility.
    async fn visibility(&self, n: &str) -> String {
        let config = self.aws.config();
        let url = config.queue_url(&config.queue_name(&self.consumer(n).id));
        let sqs = aws_sdk_sqs::Client::new(&engine::shared());
        let name = QueueAttributeName::VisibilityTimeout;
        let got = sqs
            .get_queue_attributes()
            .queue_url(url)
            .attribute_names(name.clone());
        got.send().await.unwrap().attributes.unwrap()[&name].clone()
    }

    /// That the registry and AWS have the same of a consumer.
    async fn consumer_agrees(&self, n: &str, what: &str) {
        let stored = self
            .connections(&self.aws)
            .get(&self.consumer(n).id)
            .await
            .unwrap();
        let there = self.resources(&format!("c{n}")).await;
        match stored.map(|stored| stored.role) {
            Some(Role::Consumer(role)) => {
                assert_eq!(there.len(), 2, "{what}: {there:?}");
                assert_eq!(
                    self.visibility(n).await,
                    role.visibility_seconds.to_string(),
                    "{what}"
                );
            }
            _ => assert!(there.is_empty(), "{what}: {there:?}"),
        }
    }

    async fn workspace_agrees(&self, n: &str, what: &str) {
        let stored = self
            .workspaces(&self.aws)
            .get(&self.workspace(n).id)
            .await
            .unwrap();
        let there = self.resources(&format!("w{n}")).await;
        assert_eq!(there.len(), usize::from(stored.is_some()), "{what}: {there:?}");
    }
}

/// Does some work, stopped at each of its calls in each way, and looks what is left.
async fn at_every_call(before: &[Work], work: Work, consumer: bool) {
    let world = World::new().await;
    for fate in [Fate::Refused, Fate::DiesBefore, Fate::DiesAfter] {
        for at in 0.. {
            let n = format!("{}x{at}x", fate as u8);
            for before in before {
                before(&world, &world.aws, &n).await.unwrap();
            }
            let gate = Gate::new(&world.aws.config().queue_endpoint, at, fate).await;
            let aws = world.gated(&gate);
            let what = format!("{fate:?} at call {at}");
            let answer = tokio::select! {
                answer = work(&world, &aws, &n) => Some(answer),
                () = gate.died() => None,
            };
            if gate.calls() <= at {
                assert!(matches!(answer, Some(Ok(()))), "{what}: {answer:?}");
                assert!(at > 1);
                break;
            }
            let agrees = async || {
                if consumer {
                    world.consumer_agrees(&n, &what).await;
                } else {
                    world.workspace_agrees(&n, &what).await;
                }
            };
            // a failure that was told is cleaned up in the call; one of a removal is left to the sweeper
            if matches!(answer, Some(Err(_))) {
                agrees().await;
            }
            world.clock.advance(LATER);
            let swept = world.sweep().await;
            assert_eq!(swept.unsettled, 0, "{what}");
            agrees().await;
            assert_eq!(world.sweep().await.settled, 0, "{what}");
        }
    }
}

macro_rules! work {
    ($name:ident) => {
        |world, aws, n| async move { world.$name(aws, n).await }.boxed()
    };
}

#[tokio::test]
async fn a_workspace_is_made_or_not() {
    at_every_call(&[], work!(make_workspace), false).await;
}

#[tokio::test]
async fn a_workspace_is_removed_or_not() {
    at_every_call(&[work!(make_workspace)], work!(remove_workspace), false).await;
}

#[tokio::test]
async fn a_consumer_is_made_or_not() {
    at_every_call(&[work!(make_workspace)], work!(make_consumer), true).await;
}

#[tokio::test]
async fn a_consumer_is_changed_or_not() {
    at_every_call(
        &[work!(make_workspace), work!(make_consumer)],
        work!(change_consumer),
        true,
    )
    .await;
}

#[tokio::test]
async fn a_consumer_is_removed_or_not() {
    at_every_call(
        &[work!(make_workspace), work!(make_consumer)],
        work!(remove_consumer),
        true,
    )
    .await;
}

#[tokio::test]
async fn a_workspace_has_99_consumers() {
    let world = World::new().await;
    world.make_workspace(&world.aws, "1").await.unwrap();
    let connections = world.connections(&world.aws);
    let audit = sample::audit("x", &[], world.clock.now());
    let consumer = |n: u32| {
        let workspace: WorkspaceId = "w1".parse().unwrap();
        sample::consumer(&format!("c{n}"), &workspace, Filter::default(), world.clock.now())
    };
    for n in 0..MAX_CONSUMERS {
        connections.create(&consumer(n), &audit).await.unwrap();
    }
    let answer = connections.create(&consumer(MAX_CONSUMERS), &audit).await;
    assert!(matches!(answer, Err(RegistryError::ConsumerLimit)), "{answer:?}");
    assert!(world.resources(&format!("c{MAX_CONSUMERS}")).await.is_empty());
    connections.delete(&consumer(0).id, &audit).await.unwrap();
    connections
        .create(&consumer(MAX_CONSUMERS), &audit)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_deployment_has_1000_workspaces() {
    let world = World::new().await;
    world.make_workspace(&world.aws, "1").await.unwrap();
    // as if there were all but one of them
    let update = aws_sdk_dynamodb::Client::new(&engine::shared())
        .update_item()
        .table_name(&world.aws.config().table)
        .key("pk", AttributeValue::S("WORKSPACES#".to_owned()))
        .key("sk", AttributeValue::S("-".to_owned()))
        .update_expression("SET #count = :most")
        .condition_expression("#count = :one")
        .expression_attribute_names("#count", "count")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .expression_attribute_values(":most", AttributeValue::N((MAX_WORKSPACES - 1).to_string()));
    update.send().await.unwrap();
    world.make_workspace(&world.aws, "2").await.unwrap();
    for _ in 0..2 {
        let answer = world.make_workspace(&world.aws, "3").await;
        assert!(matches!(answer, Err(RegistryError::WorkspaceLimit)), "{answer:?}");
        world.workspace_agrees("3", "above the limit").await;
    }
    world.remove_workspace(&world.aws, "1").await.unwrap();
    world.make_workspace(&world.aws, "3").await.unwrap();
    let answer = world.make_workspace(&world.aws, "4").await;
    assert!(matches!(answer, Err(RegistryError::WorkspaceLimit)), "{answer:?}");
}

#[tokio::test]
async fn a_teardown_leaves_nothing() {
    let world = World::new().await;
    for n in ["1", "2"] {
        world.make_workspace(&world.aws, n).await.unwrap();
        world.make_consumer(&world.aws, n).await.unwrap();
    }
    // half made
    let gate = Gate::new(&world.aws.config().queue_endpoint, 3, Fate::DiesAfter).await;
    let aws = world.gated(&gate);
    world.make_workspace(&world.aws, "3").await.unwrap();
    tokio::select! {
        answer = world.make_consumer(&aws, "3") => panic!("it died: {answer:?}"),
        () = gate.died() => {}
    }
    assert!(!world.resources("c3").await.is_empty());
    for _ in 0..2 {
        world.aws.teardown().await.unwrap();
        assert!(world.resources("c").await.is_empty());
        assert!(world.resources("w").await.is_empty());
    }
}

#[tokio::test]
async fn a_job_whose_message_is_lost_is_sent_again() {
    let world = World::new().await;
    let jobs = world
        .aws
        .jobs(Arc::new(world.clock.clone()), world.random.clone());
    let queue = storybus_core::domain::delivery::QueueKey {
        workspace: "w1".parse().unwrap(),
        consumer: "c1".parse().unwrap(),
    };
    let job = sample::job("j1", &queue, world.clock.now());
    let audit = sample::audit("job.create", &[], world.clock.now());
    jobs.create(&job, &audit).await.unwrap();
    assert_eq!(world.sweep().await, storybus_aws::sweeper::Swept::default());
    world.clock.advance(Duration::from_secs(4 * 60));
    let swept = world.sweep().await;
    assert_eq!((swept.sent_again.len(), swept.stuck.len()), (1, 0));
    world.clock.advance(LATER);
    let swept = world.sweep().await;
    assert_eq!((swept.sent_again.len(), swept.stuck.len()), (1, 1));
    // each was a message of its own
    let config = world.aws.config();
    let url = config.queue_url(&config.job_queue_name("redrive"));
    let sqs = aws_sdk_sqs::Client::new(&engine::shared());
    let receive = sqs.receive_message().queue_url(url).max_number_of_messages(10);
    let messages = receive.send().await.unwrap().messages.unwrap();
    assert_eq!(messages.len(), 3);
    assert!(messages.iter().all(|m| m.body() == Some(r#"{"job_id":"j1"}"#)));
}
