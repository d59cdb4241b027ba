//! Ports that count what goes through them, and receives that come back when the server stops.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::archived::Position;
use storybus_core::domain::delivery::{Delivery, QueueCounts, QueueKey, Settled};
use storybus_core::domain::job::Turn;
use storybus_core::domain::message::Publication;
use storybus_core::domain::trace::QueueTrace;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::queue_control::{Redelivered, Redelivery};
use storybus_core::ports::queues::Receive;
use storybus_core::ports::topic::PublishError;
use storybus_core::ports::{QueueControl, Queues, StoreError, Topic};
use storybus_protocol::id::{MessageId, WorkspaceId};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::metrics::Metrics;

/// How long a receive that is just taking messages may go on when the server stops: were it broken off then, nobody would
/// have those messages until their visibility ends.
const LAST_TAKE: Duration = Duration::from_millis(50);

/// A topic that counts.
pub(super) struct CountedTopic<T> {
    /// The topic.
    pub inner: T,
    /// Where it counts.
    pub metrics: Arc<Metrics>,
}

#[async_trait]
impl<T: Topic> Topic for CountedTopic<T> {
    async fn publish(&self, publication: &Publication, limit: Duration) -> Result<(), PublishError> {
        let result = self.inner.publish(publication, limit).await;
        match result {
            Ok(()) => self.metrics.publications.inc(),
            Err(_) => self.metrics.publications_failed.inc(),
        };
        result
    }
}

/// Queues in an operator's hands that count.
pub(super) struct CountedControl<Q> {
    /// The queues.
    pub inner: Q,
    /// Where it counts.
    pub metrics: Arc<Metrics>,
}

#[async_trait]
impl<Q: QueueControl> QueueControl for CountedControl<Q> {
    async fn redeliver(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        mark: &str,
        messages: &[Redelivery],
    ) -> Result<Redelivered, StoreError> {
        let result = self.inner.redeliver(queue, turn, mark, messages).await;
        if matches!(result, Ok(Redelivered::Done)) {
            let moved = u64::try_from(messages.len()).unwrap_or(u64::MAX);
            self.metrics.redelivered.inc_by(moved);
        }
        result
    }

    async fn purge(&self, queue: &QueueKey, audit: &AuditEntry) -> Result<Option<u64>, StoreError> {
        self.inner.purge(queue, audit).await
    }

    async fn trace(
        &self,
        workspace: &WorkspaceId,
        message_id: MessageId,
        publications: &[Position],
    ) -> Result<Vec<QueueTrace>, StoreError> {
        self.inner.trace(workspace, message_id, publications).await
    }
}

/// Queues that count.
pub(super) struct CountedQueues<Q> {
    /// The queues.
    pub inner: Q,
    /// Where it counts.
    pub metrics: Arc<Metrics>,
    /// Becomes true when the server stops.
    pub stopping: watch::Receiver<bool>,
}

fn done(settled: &Result<Vec<Settled>, StoreError>) -> u64 {
    let settled = settled.as_deref().unwrap_or_default();
    u64::try_from(settled.iter().filter(|s| **s == Settled::Done).count()).unwrap_or(u64::MAX)
}

#[async_trait]
impl<Q: Queues> Queues for CountedQueues<Q> {
    async fn receive(&self, queue: &QueueKey, receive: &Receive) -> Result<Vec<Delivery>, StoreError> {
        let mut stopping = self.stopping.clone();
        let mut receiving = self.inner.receive(queue, receive);
        let received = tokio::select! {
            biased;
            received = &mut receiving => Some(received),
            _ = stopping.wait_for(|stopping| *stopping) => None,
        };
        let received = match received {
            Some(received) => received?,
            None => timeout(LAST_TAKE, receiving).await.unwrap_or(Ok(Vec::new()))?,
        };
        self.metrics
            .deliveries
            .inc_by(u64::try_from(received.len()).unwrap_or(u64::MAX));
        Ok(received)
    }

    async fn acknowledge(&self, queue: &QueueKey, handles: &[String]) -> Result<Vec<Settled>, StoreError> {
        let settled = self.inner.acknowledge(queue, handles).await;
        self.metrics.acknowledged.inc_by(done(&settled));
        settled
    }

    async fn release(
        &self,
        queue: &QueueKey,
        handles: &[String],
        delay: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        let settled = self.inner.release(queue, handles, delay).await;
        self.metrics.released.inc_by(done(&settled));
        settled
    }

    async fn reject(
        &self,
        queue: &QueueKey,
        handles: &[String],
        reason: &str,
    ) -> Result<Vec<Settled>, StoreError> {
        let settled = self.inner.reject(queue, handles, reason).await;
        self.metrics.rejected.inc_by(done(&settled));
        settled
    }

    async fn counts(&self, queue: &QueueKey) -> Result<QueueCounts, StoreError> {
        self.inner.counts(queue).await
    }
}
