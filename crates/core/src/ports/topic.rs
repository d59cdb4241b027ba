//! Publication to every consumer of a workspace.

use std::time::Duration;

use async_trait::async_trait;

use crate::domain::message::Publication;

/// A publication that was not confirmed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PublishError {
    /// Surely not published by this call: refused, throttled, denied, not found, or the request never left.
    #[error("publication refused: {reason}")]
    Refused {
        /// For the log.
        reason: String,
        /// Whether the same call may succeed in a moment.
        retryable: bool,
    },
    /// It may have been published or not: the answer was lost or did not come in time.
    #[error("outcome of the publication is unknown: {reason}")]
    Unknown {
        /// For the log.
        reason: String,
    },
}

/// The topics, one a workspace.
#[async_trait]
pub trait Topic: Send + Sync {
    /// Publishes one message to every consumer whose filter matches, in one attempt that takes at most `timeout`.
    ///
    /// Messages of one correlation id reach each queue in the order in which their publications were confirmed. A message
    /// id that was published within the last 5 minutes is confirmed and dropped. An engine that can check the claim does,
    /// in the same transaction, and refuses when it is lost or over; the others rely on `timeout` alone.
    async fn publish(&self, publication: &Publication, timeout: Duration) -> Result<(), PublishError>;
}
