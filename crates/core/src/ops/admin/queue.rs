//! How full a consumer's queue is, and emptying it.

use std::time::Duration;

use storybus_protocol::id::ConnectionKind;

use super::connections::{not_found, subject};
use super::{Actor, refused_by_registry};
use crate::bus::Bus;
use crate::domain::delivery::QueueKey;
use crate::domain::refusal::Refusal;
use crate::ops::refused_by_store;

/// A queue's counts, which may be a moment old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStatus {
    /// Messages that wait.
    pub visible: u64,
    /// Messages that were received and not settled, or nacked with a delay.
    pub in_flight: u64,
    /// Dead letters.
    pub dead_lettered: u64,
    /// How long the oldest message that is no dead letter has been in the queue.
    pub oldest_age: Option<Duration>,
    /// Where a consumer's program in AWS finds it.
    pub url: Option<String>,
}

impl Bus {
    /// Empties a consumer's queue; its dead letters stay. How many messages went.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`, `404 consumer.not_found`.
    pub async fn consumer_purge(&self, actor: &Actor, tenant: &str, consumer: &str) -> Result<u64, Refusal> {
        let connection = self.consumer_get(tenant, consumer).await?;
        let entry = self.audit_entry(
            actor,
            "consumer.purge",
            subject(&connection),
            serde_json::json!({}),
        );
        let key = QueueKey {
            workspace: connection.workspace.ok_or_else(Refusal::internal)?,
            consumer: connection.id,
        };
        let purged = self.ports.queue_control.purge(&key, &entry).await;
        purged
            .map_err(|e| refused_by_registry("consumer_purge", &e))?
            .ok_or_else(|| not_found(ConnectionKind::Consumer))
    }

    /// The counts of a consumer's queue.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`, `404 consumer.not_found`.
    pub async fn consumer_queue(&self, tenant: &str, consumer: &str) -> Result<QueueStatus, Refusal> {
        let connection = self.consumer_get(tenant, consumer).await?;
        let workspace = connection.workspace.ok_or_else(Refusal::internal)?;
        let key = QueueKey {
            workspace,
            consumer: connection.id,
        };
        let counts = self
            .ports
            .queues
            .counts(&key)
            .await
            .map_err(|e| refused_by_store("consumer_queue", &e))?;
        let now = self.ports.clock.now();
        Ok(QueueStatus {
            visible: counts.visible,
            in_flight: counts.in_flight,
            dead_lettered: counts.dead_lettered,
            oldest_age: counts.oldest_at.map(|at| at.until(now)),
            url: self.ports.queue_control.queue_url(&key),
        })
    }
}
