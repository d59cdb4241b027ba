//! What the bus does, one module a verb.

pub mod admin;
mod authorise;
pub mod history;
pub mod jobs;
pub mod message_state;
pub mod publish;
pub mod pull;
pub mod token;

use crate::domain::connection::{Connection, Workspace};
use crate::domain::refusal::Refusal;
use crate::ports::StoreError;

/// A client that has shown who it is and may do what the operation does.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Its workspace.
    pub workspace: Workspace,
    /// Itself.
    pub connection: Connection,
}

/// A store that fails before anything was written.
pub(crate) fn refused_by_store(operation: &'static str, error: &StoreError) -> Refusal {
    tracing::error!(operation, %error, "store failed");
    match error {
        StoreError::Unavailable { .. } | StoreError::Unknown { .. } => Refusal::unavailable(),
        StoreError::QueueGone { .. } => Refusal::queue_gone(),
        StoreError::Internal { .. } => Refusal::internal(),
    }
}

#[cfg(test)]
mod tests {
    use storybus_protocol::rule;

    use super::*;

    /// Which queue it is, is for the log: the request named the consumer.
    #[test]
    fn a_queue_that_was_deleted_is_told_as_that() {
        let gone = StoreError::QueueGone {
            queue: "bus-c1.fifo".to_owned(),
        };
        let refusal = refused_by_store("queue_purge", &gone);
        let told = &refusal.violations[0];
        assert_eq!(
            (told.rule.as_ref(), refusal.retry_after),
            (rule::BUS_UNAVAILABLE, Some(60))
        );
        assert!(told.message.contains("deleted it outside the bus") && !told.message.contains("bus-c1"));
    }
}
