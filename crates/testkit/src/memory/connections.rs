//! The registry of connections.

use async_trait::async_trait;
use storybus_core::domain::connection::{Connection, Role};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{Connections, StoreError};
use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};

use super::workspaces::behind;
use super::{Memory, State};

/// The queue of a connection, if it is a consumer.
fn queue_of(connection: &Connection) -> Option<QueueKey> {
    match &connection.role {
        Role::Consumer(_) => Some(QueueKey {
            workspace: connection.workspace.clone()?,
            consumer: connection.id.clone(),
        }),
        Role::Producer(_) | Role::Operator => None,
    }
}

fn system_ids(connection: &Connection) -> &[String] {
    match &connection.role {
        Role::Producer(producer) => &producer.system_ids,
        Role::Consumer(_) | Role::Operator => &[],
    }
}

impl State {
    /// Each `system_id` belongs to one producer on the whole bus.
    fn check_system_ids(&self, connection: &Connection) -> Result<(), RegistryError> {
        for wanted in system_ids(connection) {
            let others = self
                .connections
                .values()
                .filter(|other| other.id != connection.id);
            if others.flat_map(system_ids).any(|taken| taken == wanted) {
                return Err(RegistryError::SystemIdTaken(wanted.clone()));
            }
        }
        Ok(())
    }
}

impl State {
    /// Each AWS role belongs to one producer of a workspace.
    fn check_role(&self, connection: &Connection) -> Result<(), RegistryError> {
        let Some(wanted) = connection.producer_role() else {
            return Ok(());
        };
        let taken = self.connections.values().any(|other| {
            other.id != connection.id
                && other.workspace == connection.workspace
                && other.producer_role() == Some(wanted)
        });
        if taken {
            return Err(RegistryError::RoleTaken);
        }
        Ok(())
    }
}

impl State {
    /// Some operator can log in, always, once one could: `after` is what becomes of this connection.
    fn check_operators(&self, stored: &Connection, after: Option<&Connection>) -> Result<(), RegistryError> {
        let can_log_in = |c: &Connection| c.kind() == ConnectionKind::Operator && c.can_log_in();
        let mut others = self.connections.values().filter(|c| c.id != stored.id);
        if can_log_in(stored) && !after.is_some_and(can_log_in) && !others.any(can_log_in) {
            return Err(RegistryError::LastOperator);
        }
        Ok(())
    }
}

#[async_trait]
impl Connections for Memory {
    async fn create(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        let mut state = self.lock();
        if state.connections.contains_key(&connection.id) {
            return Err(RegistryError::Changed);
        }
        if connection
            .workspace
            .as_ref()
            .is_some_and(|id| !state.workspaces.contains_key(id))
        {
            return Err(RegistryError::NotFound);
        }
        state.check_system_ids(connection)?;
        state.check_role(connection)?;
        if let Some(queue) = queue_of(connection) {
            state.queues.insert(queue, super::Queue::default());
        }
        state
            .connections
            .insert(connection.id.clone(), connection.clone());
        state.audit.push(audit.clone());
        Ok(())
    }

    async fn get(&self, id: &ConnectionId) -> Result<Option<Connection>, StoreError> {
        Ok(self.lock().connections.get(id).cloned())
    }

    async fn list(
        &self,
        workspace: Option<&WorkspaceId>,
        kind: ConnectionKind,
        after: Option<&ConnectionId>,
        limit: usize,
    ) -> Result<Vec<Connection>, StoreError> {
        let state = self.lock();
        let found = state
            .connections
            .range(behind(after))
            .map(|(_, connection)| connection);
        Ok(found
            .filter(|c| c.workspace.as_ref() == workspace && c.kind() == kind)
            .take(limit)
            .cloned()
            .collect())
    }

    async fn update(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        {
            let mut state = self.lock();
            let stored = state
                .connections
                .get(&connection.id)
                .ok_or(RegistryError::NotFound)?;
            if stored.version.checked_add(1) != Some(connection.version) {
                return Err(RegistryError::Changed);
            }
            state.check_operators(stored, Some(connection))?;
            state.check_system_ids(connection)?;
            state.check_role(connection)?;
            state
                .connections
                .insert(connection.id.clone(), connection.clone());
            state.audit.push(audit.clone());
        }
        // a consumer's receives that wait look at it
        self.changed();
        Ok(())
    }

    async fn delete(&self, id: &ConnectionId, audit: &AuditEntry) -> Result<(), RegistryError> {
        {
            let mut state = self.lock();
            let connection = state.connections.get(id).ok_or(RegistryError::NotFound)?;
            state.check_operators(connection, None)?;
            let connection = state.connections.remove(id).ok_or(RegistryError::NotFound)?;
            if let Some(queue) = queue_of(&connection) {
                state.queues.remove(&queue);
            }
            state.audit.push(audit.clone());
        }
        // a receive that waits at the queue comes back
        self.changed();
        Ok(())
    }
}
