//! The consumers' queues on SQS: [`Queues`].
//!
//! A receive is one ReceiveMessage, an acknowledgement one DeleteMessageBatch, a release one ChangeMessageVisibilityBatch. Limits of
//! receives, retention and order are the queue's own, as `resources` makes it; [`Receive::max_receives`] is not looked at.

mod handle;
mod receive;
mod reject;
mod seal;
mod settle;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::types::QueueAttributeName as Name;
use storybus_core::domain::connection::{Connection, Consumer, Role};
use storybus_core::domain::delivery::{Delivery, QueueCounts, QueueKey, Settled};
use storybus_core::domain::time::Millis;
use storybus_core::ports::queues::{MAX_VISIBILITY, Receive};
use storybus_core::ports::{Clock, Connections, Queues, Random, StoreError};
use tokio::sync::OnceCell;

use crate::call::Failed;
use crate::dead_letters::DynamoDeadLetters;
use crate::{Aws, DynamoArchive};
use handle::Handle;
use seal::Seal;
use settle::Asked;
pub(crate) use settle::of_entry;

/// The consumers' queues.
#[derive(Clone)]
pub struct SqsQueues {
    aws: Aws,
    connections: Arc<dyn Connections>,
    archive: Arc<DynamoArchive>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    dead_letters: DynamoDeadLetters,
    /// Read once: what came of it.
    seal: Arc<OnceCell<Option<Seal>>>,
}

impl Aws {
    /// The consumers' queues. Whether a consumer may receive is asked of `connections` with every call (so let it answer from a
    /// cache), the bytes of what is rejected of the archive.
    #[must_use]
    pub fn queues(
        &self,
        connections: Arc<dyn Connections>,
        archive: Arc<DynamoArchive>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> SqsQueues {
        SqsQueues {
            aws: self.clone(),
            dead_letters: self.dead_letters(clock.clone()),
            connections,
            archive,
            clock,
            random,
            seal: Arc::default(),
        }
    }
}

impl SqsQueues {
    /// What handles are sealed with. One that cannot be read is asked for again.
    async fn seal(&self) -> Result<Option<&Seal>, StoreError> {
        let seal = self.seal.get_or_try_init(|| self.aws.seal()).await?;
        Ok(seal.as_ref())
    }

    /// The consumer of a queue, if there is such a queue.
    async fn consumer(&self, queue: &QueueKey) -> Result<Option<(Connection, Consumer)>, StoreError> {
        let Some(connection) = self.connections.get(&queue.consumer).await? else {
            return Ok(None);
        };
        if connection.workspace.as_ref() != Some(&queue.workspace) {
            return Ok(None);
        }
        match connection.role.clone() {
            Role::Consumer(consumer) => Ok(Some((connection, consumer))),
            Role::Producer(_) | Role::Operator => Ok(None),
        }
    }

    fn url(&self, queue: &QueueKey) -> String {
        let config = self.aws.config();
        config.queue_url(&config.queue_name(&queue.consumer))
    }
}

#[async_trait]
impl Queues for SqsQueues {
    async fn receive(&self, queue: &QueueKey, receive: &Receive) -> Result<Vec<Delivery>, StoreError> {
        self.receive_by(queue, receive).await
    }

    async fn acknowledge(&self, queue: &QueueKey, handles: &[String]) -> Result<Vec<Settled>, StoreError> {
        let asked = Asked::of(handles, queue, self.seal().await?);
        Ok(asked.answers(&self.delete(queue, &asked.handles).await?))
    }

    async fn release(
        &self,
        queue: &QueueKey,
        handles: &[String],
        delay: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        let asked = Asked::of(handles, queue, self.seal().await?);
        Ok(asked.answers(&self.hide(queue, &asked.handles, delay).await?))
    }

    async fn reject(
        &self,
        queue: &QueueKey,
        handles: &[String],
        reason: &str,
    ) -> Result<Vec<Settled>, StoreError> {
        let asked = Asked::of(handles, queue, self.seal().await?);
        if asked.handles.is_empty() {
            return Ok(asked.answers(&[]));
        }
        let Some((_, consumer)) = self.consumer(queue).await? else {
            return Ok(asked.answers(&[]));
        };
        Ok(asked.answers(&self.bury(queue, &consumer, &asked.handles, reason).await?))
    }

    async fn counts(&self, queue: &QueueKey) -> Result<QueueCounts, StoreError> {
        if self.consumer(queue).await?.is_none() {
            return Ok(QueueCounts::default());
        }
        let (visible, in_flight) = waiting(&self.aws, queue).await?.unwrap_or_default();
        Ok(QueueCounts {
            visible,
            in_flight,
            dead_lettered: self.dead_letters.count(&queue.consumer).await?,
            // SQS tells it to CloudWatch alone, minutes late
            oldest_at: None,
        })
    }
}

/// How many messages of a queue can be received, and how many are hidden, by SQS's approximate counts; `None` without a queue.
pub(crate) async fn waiting(aws: &Aws, queue: &QueueKey) -> Result<Option<(u64, u64)>, StoreError> {
    let url = aws.config.queue_url(&aws.config.queue_name(&queue.consumer));
    let attributes = aws
        .caller
        .read(|| async {
            let get = aws.sqs.get_queue_attributes().queue_url(&url);
            let get = get
                .attribute_names(Name::ApproximateNumberOfMessages)
                .attribute_names(Name::ApproximateNumberOfMessagesNotVisible)
                .attribute_names(Name::ApproximateNumberOfMessagesDelayed);
            match get.send().await {
                Ok(answer) => Ok(Some(answer.attributes.unwrap_or_default())),
                Err(error) => {
                    let failed = Failed::from(error);
                    if failed.is_absent() { Ok(None) } else { Err(failed) }
                }
            }
        })
        .await?;
    let Some(attributes) = attributes else {
        return Ok(None);
    };
    let number = |name: Name| {
        attributes
            .get(&name)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    };
    Ok(Some((
        number(Name::ApproximateNumberOfMessages) + number(Name::ApproximateNumberOfMessagesDelayed),
        number(Name::ApproximateNumberOfMessagesNotVisible),
    )))
}

/// How long a message may be hidden from now on, of what was asked: to 12 hours from its receive.
fn cut(asked: Duration, hidden_since: Millis, now: Millis) -> Duration {
    asked.min(now.until(hidden_since.plus(MAX_VISIBILITY)))
}
