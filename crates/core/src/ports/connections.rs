//! The registry of connections: producers, consumers, operators.

use std::time::Duration;

use async_trait::async_trait;
use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};

use super::StoreError;
use super::audit::AuditEntry;
use super::workspaces::RegistryError;
use crate::domain::connection::{AwsAccount, AwsRole, Connection};

/// The connections. Each write is atomic with its audit entry and with the ownership of `system_id`s and AWS roles: a
/// `system_id` belongs to one producer on the whole bus, a role to one producer of its workspace.
///
/// A consumer's queue lives with it: once `create` came back, every message accepted from then on goes to it if its
/// filter matches; `delete` closes and drops the queue. An update that disables or pauses it is seen by the receives that
/// wait (see [`Queues::receive`](super::Queues::receive)).
///
/// Once an operator [can log in](Connection::can_log_in), one always can: a write to an operator after which none could,
/// though one could before, is [`RegistryError::LastOperator`]. That too is atomic: of two operators that shut each other
/// out at the same moment one succeeds.
#[async_trait]
pub trait Connections: Send + Sync {
    /// Adds one; its id is new, its workspace exists.
    async fn create(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError>;

    /// One by its id. Engines may answer from a cache of at most 60 s; the embedded one sees every write at once.
    async fn get(&self, id: &ConnectionId) -> Result<Option<Connection>, StoreError>;

    /// Up to `limit` of one kind in the order of their ids, after `after`; operators have no workspace.
    async fn list(
        &self,
        workspace: Option<&WorkspaceId>,
        kind: ConnectionKind,
        after: Option<&ConnectionId>,
        limit: usize,
    ) -> Result<Vec<Connection>, StoreError>;

    /// Replaces one whose stored version is `connection.version - 1`, else [`RegistryError::Changed`]. The last operator that
    /// can log in must still be able to.
    async fn update(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError>;

    /// Deletes one, its `system_id`s and its queue; not the last operator that can log in.
    async fn delete(&self, id: &ConnectionId, audit: &AuditEntry) -> Result<(), RegistryError>;

    /// The producer of a workspace that has registered an AWS role of this account and name, disabled or not. Engines may answer
    /// from a cache of at most 60 s.
    async fn producer_of_role(
        &self,
        workspace: &WorkspaceId,
        account: &str,
        role_name: &str,
    ) -> Result<Option<Connection>, StoreError> {
        const PAGE: usize = 1000;
        let wanted = AwsRole {
            account,
            name: role_name,
        };
        let mut after = None;
        loop {
            let kind = ConnectionKind::Producer;
            let page = self.list(Some(workspace), kind, after.as_ref(), PAGE).await?;
            after = page.last().map(|last| last.id.clone());
            let is_last = page.len() < PAGE;
            let found = page.into_iter().find(|c| c.producer_role() == Some(wanted));
            if found.is_some() || is_last {
                return Ok(found);
            }
        }
    }

    /// How long after a consumer was made, or its filter changed, what is accepted may still be judged by no filter or the
    /// former one. Zero where `create` and `update` come back when it holds.
    fn filter_settles_in(&self) -> Duration {
        Duration::ZERO
    }

    /// The account in which the roles of connections have to lie; none where a role is a note and no more.
    fn account_of_roles(&self) -> Option<AwsAccount<'_>> {
        None
    }
}
