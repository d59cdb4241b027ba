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
        StoreError::Internal { .. } => Refusal::internal(),
    }
}
