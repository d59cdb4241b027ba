//! Plays the function `dead-letters`: what SQS has moved is in the table before anybody looks there.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::MessageSystemAttributeName as System;
use storybus_aws::{Arrived, Config, DynamoDeadLetters, Mover, SqsQueueControl, SqsQueues};
use storybus_core::domain::archived::Position;
use storybus_core::domain::dead_letter::DeadLetter;
use storybus_core::domain::delivery::{Delivery, QueueCounts, QueueKey, Settled};
use storybus_core::domain::job::Turn;
use storybus_core::domain::trace::QueueTrace;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::dead_letters::{DeadLetterLimits, Wanted};
use storybus_core::ports::queue_control::{Redelivered, Redelivery};
use storybus_core::ports::queues::Receive;
use storybus_core::ports::{DeadLetters, QueueControl, Queues, StoreError};
use storybus_protocol::id::{JobId, MessageId, WorkspaceId};

use super::filed::Filing;

/// The way from the queue of dead letters into the table.
pub(crate) struct Moving {
    sqs: Client,
    url: String,
    mover: Mover,
}

impl Moving {
    pub(crate) fn new(shared: &SdkConfig, config: &Config, mover: Mover) -> Arc<Self> {
        Arc::new(Self {
            sqs: Client::new(shared),
            url: config.queue_url(&config.dead_letters_name()),
            mover,
        })
    }

    /// Moves all that is there.
    pub(crate) async fn all(&self) {
        loop {
            let receive = self
                .sqs
                .receive_message()
                .queue_url(&self.url)
                .max_number_of_messages(10);
            let receive = receive
                .message_system_attribute_names(System::All)
                .message_attribute_names("All");
            let messages = receive.send().await.unwrap().messages.unwrap_or_default();
            if messages.is_empty() {
                return;
            }
            let batch: Vec<Arrived> = messages
                .into_iter()
                .map(|m| Arrived::try_from(m).unwrap())
                .collect();
            assert_eq!(self.mover.accept(&batch).await.again, Vec::<String>::new());
            for message in batch {
                let delete = self.sqs.delete_message().queue_url(&self.url);
                let handle = message.receipt_handle.unwrap();
                delete.receipt_handle(handle).send().await.unwrap();
            }
        }
    }
}

/// A port behind it.
pub(crate) struct Moved<P> {
    pub(crate) port: P,
    pub(crate) moving: Arc<Moving>,
    pub(crate) filing: Arc<Filing>,
}

impl<P> Moved<P> {
    async fn port(&self) -> &P {
        self.moving.all().await;
        &self.port
    }
}

#[async_trait]
impl Queues for Moved<SqsQueues> {
    async fn receive(&self, queue: &QueueKey, receive: &Receive) -> Result<Vec<Delivery>, StoreError> {
        self.port.receive(queue, receive).await
    }

    async fn acknowledge(&self, queue: &QueueKey, handles: &[String]) -> Result<Vec<Settled>, StoreError> {
        self.port.acknowledge(queue, handles).await
    }

    async fn release(
        &self,
        queue: &QueueKey,
        handles: &[String],
        delay: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        self.port.release(queue, handles, delay).await
    }

    async fn reject(
        &self,
        queue: &QueueKey,
        handles: &[String],
        reason: &str,
    ) -> Result<Vec<Settled>, StoreError> {
        self.filing.all().await;
        self.port.reject(queue, handles, reason).await
    }

    async fn counts(&self, queue: &QueueKey) -> Result<QueueCounts, StoreError> {
        self.port().await.counts(queue).await
    }
}

#[async_trait]
impl QueueControl for Moved<SqsQueueControl> {
    fn queue_url(&self, queue: &QueueKey) -> Option<String> {
        self.port.queue_url(queue)
    }

    async fn redeliver(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        mark: &str,
        messages: &[Redelivery],
    ) -> Result<Redelivered, StoreError> {
        self.port.redeliver(queue, turn, mark, messages).await
    }

    async fn purge(&self, queue: &QueueKey, audit: &AuditEntry) -> Result<Option<u64>, StoreError> {
        self.port.purge(queue, audit).await
    }

    async fn trace(
        &self,
        workspace: &WorkspaceId,
        message_id: MessageId,
        publications: &[Position],
    ) -> Result<Vec<QueueTrace>, StoreError> {
        self.port().await.trace(workspace, message_id, publications).await
    }
}

#[async_trait]
impl DeadLetters for Moved<DynamoDeadLetters> {
    async fn list(
        &self,
        queue: &QueueKey,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<(Vec<DeadLetter>, bool), StoreError> {
        self.port().await.list(queue, after, limits).await
    }

    async fn take(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        wanted: Wanted<'_>,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<Option<Vec<DeadLetter>>, StoreError> {
        self.port().await.take(queue, turn, wanted, after, limits).await
    }

    async fn remove(&self, queue: &QueueKey, job: &JobId, positions: &[Position]) -> Result<(), StoreError> {
        self.port.remove(queue, job, positions).await
    }

    async fn release(&self, queue: &QueueKey, job: &JobId) -> Result<(), StoreError> {
        self.port.release(queue, job).await
    }

    fn is_position(&self, position: &Position) -> bool {
        self.port.is_position(position)
    }
}
