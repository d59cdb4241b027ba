//! What jobs work on: a consumer, and an archive or dead letters of many messages of twenty stories.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use storybus_aws::Arrived;
use storybus_core::domain::job::Job;
use storybus_core::domain::time::Millis;
use storybus_core::ops::admin::Actor;
use storybus_core::ops::jobs::{RedriveMembers, ReplayMembers};
use storybus_lambda::ports::{OsRandom, WallClock};
use storybus_protocol::id::JobId;
use storybus_tests::{Answer, Ended, Function, Plan, Stack, queue, rest};

/// How many stories the messages are of.
const STORIES: usize = 20;

pub(crate) struct Ground {
    pub(crate) stack: Stack,
    /// What was published, as the consumer got it, in its order.
    published: Vec<Arrived>,
    /// Times before the first publication and after the last.
    pub(crate) range: (String, String),
}

impl Ground {
    /// Publishes so many messages by the function, and archives them.
    pub(crate) async fn new(count: usize) -> Self {
        let stack = Stack::start(Duration::from_secs(30)).await;
        let from = Millis(storybus_tests::now()).to_rfc3339();
        let function = stack
            .function(env!("CARGO_BIN_EXE_fn-publish"), Plan::default())
            .await;
        for n in 0..count {
            let (story, sequence) = (n % STORIES, n / STORIES + 1);
            let id = |kind: u32, n: usize| format!("{kind:08x}-0000-4000-8000-{n:012x}");
            let payload = json!({
                "story_id": format!("story {story}"),
                "slug": "S",
                "headline": format!("headline {sequence}"),
                "story_type": "PLANNED",
                "sequence_number": sequence,
                "updated_at": "2026-09-11T16:41:00Z",
            });
            let body = Stack::envelope(&id(1, n), &id(2, story), "story.context", &payload);
            let ended = function
                .invoke(stack.publish(&body), Duration::from_secs(15))
                .await;
            let answer = Answer::of(&ended);
            assert!(
                answer.is_some_and(|a| a.status == 202),
                "{ended:?} {}",
                function.log()
            );
        }
        rest(Duration::from_millis(100)).await;
        let until = Millis(storybus_tests::now()).to_rfc3339();
        let archived = stack.drain(&stack.aws.config().archive_queue_name()).await;
        assert_eq!(archived.len(), count);
        // in batches, as the function gets them
        for batch in archived.chunks(10) {
            assert_eq!(stack.aws.archiver().archive(batch).await, Vec::<String>::new());
        }
        let published = stack.drain(&stack.aws.config().queue_name(&stack.consumer)).await;
        assert_eq!(published.len(), count);
        rest(Duration::from_millis(1_100)).await;
        Self {
            stack,
            published,
            range: (from, until),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        u64::try_from(self.published.len()).unwrap()
    }

    pub(crate) async fn replay(&self, members: &ReplayMembers) -> Job {
        let (tenant, consumer) = (self.stack.workspace.as_str(), self.stack.consumer.as_str());
        let actor = Actor::bus();
        let started = self
            .stack
            .bus
            .replay_start(&actor, tenant, consumer, members)
            .await;
        started.unwrap()
    }

    pub(crate) async fn redrive(&self, members: &RedriveMembers) -> Job {
        let (tenant, consumer) = (self.stack.workspace.as_str(), self.stack.consumer.as_str());
        let actor = Actor::bus();
        let started = self
            .stack
            .bus
            .redrive_start(&actor, tenant, consumer, members)
            .await;
        started.unwrap()
    }

    pub(crate) async fn job(&self, id: &JobId) -> Job {
        let got = self
            .stack
            .bus
            .job_get(self.stack.workspace.as_str(), id.as_str())
            .await;
        got.unwrap()
    }

    /// How many dead letters there are.
    pub(crate) async fn dead(&self) -> u64 {
        let (tenant, consumer) = (self.stack.workspace.as_str(), self.stack.consumer.as_str());
        let queue = self.stack.bus.consumer_queue(tenant, consumer).await.unwrap();
        queue.dead_lettered
    }

    /// All messages become dead letters, as if each had been received too often.
    pub(crate) async fn let_all_die(&self) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (aws, clock) = (&self.stack.aws, Arc::new(WallClock::default()));
        let connections = aws.connections(clock.clone(), Arc::new(OsRandom));
        let mover = aws.mover(Arc::new(connections), clock);
        let from = aws
            .config()
            .queue_arn(&aws.config().queue_name(&self.stack.consumer));
        let dead: Vec<Arrived> = self
            .published
            .iter()
            .map(|message| {
                let id = format!(
                    "{:08x}-0000-4000-8000-000000000000",
                    NEXT.fetch_add(1, Ordering::Relaxed)
                );
                Arrived {
                    deduplication_id: id.clone(),
                    sqs_message_id: id,
                    source_queue: Some(from.clone()),
                    ..message.clone()
                }
            })
            .collect();
        assert_eq!(mover.accept(&dead).await, storybus_aws::Moved::default());
        assert_eq!(self.dead().await, self.count());
    }

    /// Invokes a function with a message of its queue; whether it has done it.
    pub(crate) async fn invoke(&self, function: &Function, message: &Arrived, limit: Duration) -> bool {
        match function.invoke(queue::event(message), limit).await {
            Ended::Answered(answer) => {
                let answer: Value = serde_json::from_str(&answer).unwrap();
                answer["batchItemFailures"].as_array().unwrap().is_empty()
            }
            Ended::Died => false,
            ended @ (Ended::Failed(_) | Ended::OverTime) => {
                assert_eq!(ended, Ended::Died, "{}", function.log());
                false
            }
        }
    }

    /// The consumer has got each message once, with its bytes and its attributes, those of a story in their order.
    pub(crate) async fn all_arrived_once_in_order(&self, mark: &str) {
        let queue = self.stack.aws.config().queue_name(&self.stack.consumer);
        let arrived = self.stack.drain(&queue).await;
        let by_story = |messages: &[Arrived]| {
            let mut stories: HashMap<String, Vec<String>> = HashMap::new();
            for message in messages {
                let story = stories.entry(message.group.clone()).or_default();
                story.push(message.body.clone());
            }
            stories
        };
        assert_eq!(arrived.len(), self.published.len(), "{mark}");
        assert_eq!(by_story(&arrived), by_story(&self.published), "{mark}");
        for message in &arrived {
            assert_eq!(message.redelivery(), Some(mark));
            let attributes = message.message_attributes().unwrap();
            assert_eq!(attributes.message_type, "story.context");
        }
    }
}
