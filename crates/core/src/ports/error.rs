//! What can go wrong in a store.

/// A store did not do what it was asked. Conditions that do not hold are results, not errors.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Surely nothing was written: not reached, throttled, refused, or no room.
    #[error("store is not available: {reason}")]
    Unavailable {
        /// For the log.
        reason: String,
    },
    /// A queue of a consumer is not there: somebody deleted it outside the bus, which makes it anew. Nothing was done.
    #[error("the queue {queue} is not there; the bus makes it anew")]
    QueueGone {
        /// Its name.
        queue: String,
    },
    /// The write may have happened or not: the answer was lost or did not come in time.
    #[error("outcome of the write is unknown: {reason}")]
    Unknown {
        /// For the log.
        reason: String,
    },
    /// Our own fault: something stored that cannot be read, a statement that is wrong. Nothing was written.
    #[error("store failed: {reason}")]
    Internal {
        /// For the log.
        reason: String,
    },
}
