//! Every port, wrapped.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::connection::{Connection, Workspace};
use storybus_core::domain::delivery::{Delivery, QueueCounts, QueueKey, Settled};
use storybus_core::domain::message::Publication;
use storybus_core::domain::record::{RecordKey, StoryKey};
use storybus_core::domain::time::Millis;
use storybus_core::ports::audit::{AuditCursor, AuditEntry};
use storybus_core::ports::ledger::{
    GiveBack, Marking, NewClaim, NewRecord, Reading, Recorded, Removal, Supersession, Written,
};
use storybus_core::ports::queues::Receive;
use storybus_core::ports::topic::PublishError;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{AuditLog, Connections, Ledger, Queues, StoreError, Topic, Workspaces};
use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};

use super::{Call, Faulty, Outcome};

impl Outcome for () {}
impl Outcome for Reading {}
impl Outcome for QueueCounts {}
impl<T> Outcome for Vec<T> {}
impl<T> Outcome for Option<T> {}

/// Does a call through the director; the call must not borrow, since it may arrive after its caller is gone.
macro_rules! through {
    ($self:ident, $call:ident, |$inner:ident $(, $name:ident)*| $work:expr) => {{
        let $inner = Arc::clone(&$self.inner);
        $(let $name = $name.to_owned();)*
        $self.around(Call::$call, async move { $work.await }).await
    }};
}
pub(super) use through;

#[async_trait]
impl<P: Ledger + ?Sized + 'static> Ledger for Faulty<P> {
    async fn read(
        &self,
        key: &RecordKey,
        story: Option<&StoryKey>,
        now: Millis,
    ) -> Result<Reading, StoreError> {
        let story = story.cloned();
        through!(self, Read, |inner, key| inner.read(&key, story.as_ref(), now))
    }

    async fn record(&self, new: &NewRecord) -> Result<Recorded, StoreError> {
        through!(self, Record, |inner, new| inner.record(&new))
    }

    async fn claim(&self, claim: &NewClaim) -> Result<Written, StoreError> {
        through!(self, Claim, |inner, claim| inner.claim(&claim))
    }

    async fn supersede(&self, supersession: &Supersession) -> Result<Written, StoreError> {
        through!(self, Supersede, |inner, supersession| inner
            .supersede(&supersession))
    }

    async fn remove(&self, removal: &Removal) -> Result<Written, StoreError> {
        through!(self, Remove, |inner, removal| inner.remove(&removal))
    }

    async fn give_back(&self, give_back: &GiveBack) -> Result<Written, StoreError> {
        through!(self, GiveBack, |inner, give_back| inner.give_back(&give_back))
    }

    async fn mark(&self, marking: &Marking) -> Result<Written, StoreError> {
        through!(self, Mark, |inner, marking| inner.mark(&marking))
    }
}

#[async_trait]
impl<P: Topic + ?Sized + 'static> Topic for Faulty<P> {
    async fn publish(&self, publication: &Publication, timeout: Duration) -> Result<(), PublishError> {
        through!(self, Publish, |inner, publication| inner
            .publish(&publication, timeout))
    }
}

#[async_trait]
impl<P: Queues + ?Sized + 'static> Queues for Faulty<P> {
    async fn receive(&self, queue: &QueueKey, receive: &Receive) -> Result<Vec<Delivery>, StoreError> {
        through!(self, Receive, |inner, queue, receive| inner
            .receive(&queue, &receive))
    }

    async fn acknowledge(&self, queue: &QueueKey, handles: &[String]) -> Result<Vec<Settled>, StoreError> {
        through!(self, Acknowledge, |inner, queue, handles| inner
            .acknowledge(&queue, &handles))
    }

    async fn release(
        &self,
        queue: &QueueKey,
        handles: &[String],
        delay: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        through!(self, Release, |inner, queue, handles| inner
            .release(&queue, &handles, delay))
    }

    async fn reject(
        &self,
        queue: &QueueKey,
        handles: &[String],
        reason: &str,
    ) -> Result<Vec<Settled>, StoreError> {
        through!(self, Reject, |inner, queue, handles, reason| inner
            .reject(&queue, &handles, &reason))
    }

    async fn counts(&self, queue: &QueueKey) -> Result<QueueCounts, StoreError> {
        through!(self, Counts, |inner, queue| inner.counts(&queue))
    }
}

#[async_trait]
impl<P: Workspaces + ?Sized + 'static> Workspaces for Faulty<P> {
    async fn create(&self, workspace: &Workspace, audit: &AuditEntry) -> Result<(), RegistryError> {
        through!(self, WorkspaceCreate, |inner, workspace, audit| inner
            .create(&workspace, &audit))
    }

    async fn get(&self, id: &WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        through!(self, WorkspaceGet, |inner, id| inner.get(&id))
    }

    async fn list(&self, after: Option<&WorkspaceId>, limit: usize) -> Result<Vec<Workspace>, StoreError> {
        let after = after.cloned();
        through!(self, WorkspaceList, |inner| inner.list(after.as_ref(), limit))
    }

    async fn update(&self, workspace: &Workspace, audit: &AuditEntry) -> Result<(), RegistryError> {
        through!(self, WorkspaceUpdate, |inner, workspace, audit| inner
            .update(&workspace, &audit))
    }

    async fn delete(&self, id: &WorkspaceId, audit: &AuditEntry) -> Result<(), RegistryError> {
        through!(self, WorkspaceDelete, |inner, id, audit| inner
            .delete(&id, &audit))
    }
}

#[async_trait]
impl<P: Connections + ?Sized + 'static> Connections for Faulty<P> {
    async fn create(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        through!(self, ConnectionCreate, |inner, connection, audit| inner
            .create(&connection, &audit))
    }

    async fn get(&self, id: &ConnectionId) -> Result<Option<Connection>, StoreError> {
        through!(self, ConnectionGet, |inner, id| inner.get(&id))
    }

    async fn list(
        &self,
        workspace: Option<&WorkspaceId>,
        kind: ConnectionKind,
        after: Option<&ConnectionId>,
        limit: usize,
    ) -> Result<Vec<Connection>, StoreError> {
        let (workspace, after) = (workspace.cloned(), after.cloned());
        through!(self, ConnectionList, |inner| inner.list(
            workspace.as_ref(),
            kind,
            after.as_ref(),
            limit
        ))
    }

    async fn update(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        through!(self, ConnectionUpdate, |inner, connection, audit| inner
            .update(&connection, &audit))
    }

    async fn delete(&self, id: &ConnectionId, audit: &AuditEntry) -> Result<(), RegistryError> {
        through!(self, ConnectionDelete, |inner, id, audit| inner
            .delete(&id, &audit))
    }

    async fn producer_of_role(
        &self,
        workspace: &WorkspaceId,
        account: &str,
        role_name: &str,
    ) -> Result<Option<Connection>, StoreError> {
        through!(self, ConnectionGet, |inner, workspace, account, role_name| inner
            .producer_of_role(&workspace, &account, &role_name))
    }

    fn filter_settles_in(&self) -> Duration {
        self.inner.filter_settles_in()
    }
}

#[async_trait]
impl<P: AuditLog + ?Sized + 'static> AuditLog for Faulty<P> {
    async fn list(
        &self,
        before: Option<&AuditCursor>,
        limit: usize,
    ) -> Result<Option<(Vec<AuditEntry>, Option<AuditCursor>)>, StoreError> {
        let before = before.cloned();
        through!(self, AuditList, |inner| inner.list(before.as_ref(), limit))
    }
}
