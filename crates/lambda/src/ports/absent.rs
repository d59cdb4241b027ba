//! What stands where a function has no business.

use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::activity::RefusedPublish;
use storybus_core::domain::archived::{Head, Part, Position, Selection, TimeRange};
use storybus_core::domain::connection::{Connection, Rate, Workspace};
use storybus_core::domain::dead_letter::DeadLetter;
use storybus_core::domain::delivery::{Delivery, QueueCounts, QueueKey, Settled};
use storybus_core::domain::job::{Job, Turn};
use storybus_core::domain::message::Publication;
use storybus_core::domain::record::{RecordKey, StoryKey};
use storybus_core::domain::time::Millis;
use storybus_core::domain::trace::QueueTrace;
use storybus_core::ports::archive::PartLimits;
use storybus_core::ports::audit::{AuditCursor, AuditEntry};
use storybus_core::ports::dead_letters::{DeadLetterLimits, Wanted};
use storybus_core::ports::keys::SigningKey;
use storybus_core::ports::ledger::{
    GiveBack, Marking, NewClaim, NewRecord, Reading, Recorded, Removal, Supersession, Written,
};
use storybus_core::ports::queue_control::{Redelivered, Redelivery};
use storybus_core::ports::queues::Receive;
use storybus_core::ports::secret_hasher::Busy;
use storybus_core::ports::stories::NamedStory;
use storybus_core::ports::topic::PublishError;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{
    ActivityLog, Archive, AuditLog, Connections, DeadLetters, Jobs, Ledger, QueueControl, Queues, Rates,
    SecretHasher, SigningKeys, StoreError, Stories, Topic, Workspaces,
};
use storybus_protocol::id::{ConnectionId, ConnectionKind, CorrelationId, JobId, MessageId, WorkspaceId};

/// Every port, and none: each call fails as our own fault, since the function's role could not do it either. A request that comes
/// here was routed to the wrong function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Absent;

const REASON: &str = "this function has no such port; the request belongs to another one";

fn absent<T>() -> Result<T, StoreError> {
    Err(StoreError::Internal {
        reason: REASON.to_owned(),
    })
}

fn unregistered<T>() -> Result<T, RegistryError> {
    Ok(absent()?)
}

#[async_trait]
impl Ledger for Absent {
    async fn read(&self, _: &RecordKey, _: Option<&StoryKey>, _: Millis) -> Result<Reading, StoreError> {
        absent()
    }

    async fn record(&self, _: &NewRecord) -> Result<Recorded, StoreError> {
        absent()
    }

    async fn claim(&self, _: &NewClaim) -> Result<Written, StoreError> {
        absent()
    }

    async fn supersede(&self, _: &Supersession) -> Result<Written, StoreError> {
        absent()
    }

    async fn remove(&self, _: &Removal) -> Result<Written, StoreError> {
        absent()
    }

    async fn give_back(&self, _: &GiveBack) -> Result<Written, StoreError> {
        absent()
    }

    async fn mark(&self, _: &Marking) -> Result<Written, StoreError> {
        absent()
    }
}

#[async_trait]
impl Topic for Absent {
    async fn publish(&self, _: &Publication, _: Duration) -> Result<(), PublishError> {
        Err(PublishError::Refused {
            reason: REASON.to_owned(),
            retryable: false,
        })
    }
}

#[async_trait]
impl Queues for Absent {
    async fn receive(&self, _: &QueueKey, _: &Receive) -> Result<Vec<Delivery>, StoreError> {
        absent()
    }

    async fn acknowledge(&self, _: &QueueKey, _: &[String]) -> Result<Vec<Settled>, StoreError> {
        absent()
    }

    async fn release(&self, _: &QueueKey, _: &[String], _: Duration) -> Result<Vec<Settled>, StoreError> {
        absent()
    }

    async fn reject(&self, _: &QueueKey, _: &[String], _: &str) -> Result<Vec<Settled>, StoreError> {
        absent()
    }

    async fn counts(&self, _: &QueueKey) -> Result<QueueCounts, StoreError> {
        absent()
    }
}

#[async_trait]
impl QueueControl for Absent {
    async fn redeliver(
        &self,
        _: &QueueKey,
        _: &Turn,
        _: &str,
        _: &[Redelivery],
    ) -> Result<Redelivered, StoreError> {
        absent()
    }

    async fn purge(&self, _: &QueueKey, _: &AuditEntry) -> Result<Option<u64>, StoreError> {
        absent()
    }

    async fn trace(
        &self,
        _: &WorkspaceId,
        _: MessageId,
        _: &[Position],
    ) -> Result<Vec<QueueTrace>, StoreError> {
        absent()
    }
}

#[async_trait]
impl DeadLetters for Absent {
    async fn list(
        &self,
        _: &QueueKey,
        _: Option<&Position>,
        _: DeadLetterLimits,
    ) -> Result<(Vec<DeadLetter>, bool), StoreError> {
        absent()
    }

    async fn take(
        &self,
        _: &QueueKey,
        _: &Turn,
        _: Wanted<'_>,
        _: Option<&Position>,
        _: DeadLetterLimits,
    ) -> Result<Option<Vec<DeadLetter>>, StoreError> {
        absent()
    }

    async fn remove(&self, _: &QueueKey, _: &JobId, _: &[Position]) -> Result<(), StoreError> {
        absent()
    }

    async fn release(&self, _: &QueueKey, _: &JobId) -> Result<(), StoreError> {
        absent()
    }

    fn is_position(&self, _: &Position) -> bool {
        false
    }
}

#[async_trait]
impl Archive for Absent {
    fn retention(&self) -> Duration {
        Duration::ZERO
    }

    async fn read(
        &self,
        _: &WorkspaceId,
        _: TimeRange,
        _: Option<&Position>,
        _: &Selection,
        _: PartLimits,
    ) -> Result<Part, StoreError> {
        absent()
    }

    async fn find(&self, _: &WorkspaceId, _: MessageId) -> Result<Vec<Head>, StoreError> {
        absent()
    }

    async fn about(
        &self,
        _: &WorkspaceId,
        _: &[u8; 16],
        _: Option<CorrelationId>,
        _: Option<&Position>,
        _: usize,
    ) -> Result<Vec<Head>, StoreError> {
        absent()
    }

    async fn latest(&self, _: &WorkspaceId, _: Option<&Position>, _: usize) -> Result<Vec<Head>, StoreError> {
        absent()
    }

    fn is_position(&self, _: &Position) -> bool {
        false
    }
}

#[async_trait]
impl Stories for Absent {
    async fn list(
        &self,
        _: &WorkspaceId,
        _: Option<&Position>,
        _: usize,
    ) -> Result<Vec<NamedStory>, StoreError> {
        absent()
    }

    async fn get(&self, _: &StoryKey) -> Result<Option<NamedStory>, StoreError> {
        absent()
    }

    fn is_position(&self, _: &Position) -> bool {
        false
    }
}

#[async_trait]
impl Jobs for Absent {
    async fn create(&self, _: &Job, _: &AuditEntry) -> Result<Written, StoreError> {
        absent()
    }

    async fn get(&self, _: &JobId) -> Result<Option<Job>, StoreError> {
        absent()
    }

    async fn list(
        &self,
        _: &WorkspaceId,
        _: Option<(Millis, &JobId)>,
        _: usize,
    ) -> Result<Vec<Job>, StoreError> {
        absent()
    }

    async fn update(&self, _: &Job, _: Option<&AuditEntry>) -> Result<Written, StoreError> {
        absent()
    }

    async fn unfinished(&self, _: Option<&WorkspaceId>) -> Result<Vec<JobId>, StoreError> {
        absent()
    }
}

#[async_trait]
impl ActivityLog for Absent {
    fn note(&self, _: RefusedPublish) {
        tracing::error!(REASON)
    }

    async fn list(
        &self,
        _: &WorkspaceId,
        _: Option<&Position>,
        _: usize,
    ) -> Result<Vec<(Position, RefusedPublish)>, StoreError> {
        absent()
    }

    fn is_position(&self, _: &Position) -> bool {
        false
    }
}

#[async_trait]
impl Workspaces for Absent {
    async fn create(&self, _: &Workspace, _: &AuditEntry) -> Result<(), RegistryError> {
        unregistered()
    }

    async fn get(&self, _: &WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        absent()
    }

    async fn list(&self, _: Option<&WorkspaceId>, _: usize) -> Result<Vec<Workspace>, StoreError> {
        absent()
    }

    async fn update(&self, _: &Workspace, _: &AuditEntry) -> Result<(), RegistryError> {
        unregistered()
    }

    async fn delete(&self, _: &WorkspaceId, _: &AuditEntry) -> Result<(), RegistryError> {
        unregistered()
    }
}

#[async_trait]
impl Connections for Absent {
    async fn producer_of_role(
        &self,
        _: &WorkspaceId,
        _: &str,
        _: &str,
    ) -> Result<Option<Connection>, StoreError> {
        absent()
    }

    async fn create(&self, _: &Connection, _: &AuditEntry) -> Result<(), RegistryError> {
        unregistered()
    }

    async fn get(&self, _: &ConnectionId) -> Result<Option<Connection>, StoreError> {
        absent()
    }

    async fn list(
        &self,
        _: Option<&WorkspaceId>,
        _: ConnectionKind,
        _: Option<&ConnectionId>,
        _: usize,
    ) -> Result<Vec<Connection>, StoreError> {
        absent()
    }

    async fn update(&self, _: &Connection, _: &AuditEntry) -> Result<(), RegistryError> {
        unregistered()
    }

    async fn delete(&self, _: &ConnectionId, _: &AuditEntry) -> Result<(), RegistryError> {
        unregistered()
    }
}

#[async_trait]
impl AuditLog for Absent {
    async fn list(
        &self,
        _: Option<&AuditCursor>,
        _: usize,
    ) -> Result<Option<(Vec<AuditEntry>, Option<AuditCursor>)>, StoreError> {
        absent()
    }
}

#[async_trait]
impl Rates for Absent {
    async fn take(&self, _: &str, _: Rate, _: Millis) -> Result<Option<Millis>, StoreError> {
        absent()
    }

    async fn peek(&self, _: &str, _: Rate, _: Millis) -> Result<Option<Millis>, StoreError> {
        absent()
    }
}

#[async_trait]
impl SecretHasher for Absent {
    async fn hash(&self, _: &str) -> Result<String, Busy> {
        Err(Busy)
    }

    async fn verify(&self, _: &str, _: &str) -> Result<bool, Busy> {
        Err(Busy)
    }
}

#[async_trait]
impl SigningKeys for Absent {
    async fn load(&self) -> Result<Vec<SigningKey>, StoreError> {
        absent()
    }
}
