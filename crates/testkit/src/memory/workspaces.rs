//! The registry of workspaces.

use std::ops::Bound;

use async_trait::async_trait;
use storybus_core::domain::connection::Workspace;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{StoreError, Workspaces};
use storybus_protocol::id::WorkspaceId;

use super::Memory;

/// What comes behind `after`.
pub(super) fn behind<T>(after: Option<&T>) -> (Bound<&T>, Bound<&T>) {
    (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

#[async_trait]
impl Workspaces for Memory {
    async fn create(&self, workspace: &Workspace, audit: &AuditEntry) -> Result<(), RegistryError> {
        let mut state = self.lock();
        if state.workspaces.contains_key(&workspace.id) {
            return Err(RegistryError::Changed);
        }
        state.workspaces.insert(workspace.id.clone(), workspace.clone());
        state.audit.push(audit.clone());
        Ok(())
    }

    async fn get(&self, id: &WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        Ok(self.lock().workspaces.get(id).cloned())
    }

    async fn list(&self, after: Option<&WorkspaceId>, limit: usize) -> Result<Vec<Workspace>, StoreError> {
        Ok(self
            .lock()
            .workspaces
            .range(behind(after))
            .take(limit)
            .map(|(_, workspace)| workspace.clone())
            .collect())
    }

    async fn update(&self, workspace: &Workspace, audit: &AuditEntry) -> Result<(), RegistryError> {
        let mut state = self.lock();
        let stored = state
            .workspaces
            .get_mut(&workspace.id)
            .ok_or(RegistryError::NotFound)?;
        if stored.version.checked_add(1) != Some(workspace.version) {
            return Err(RegistryError::Changed);
        }
        *stored = workspace.clone();
        state.audit.push(audit.clone());
        Ok(())
    }

    async fn delete(&self, id: &WorkspaceId, audit: &AuditEntry) -> Result<(), RegistryError> {
        let mut state = self.lock();
        if !state.workspaces.contains_key(id) {
            return Err(RegistryError::NotFound);
        }
        if state
            .connections
            .values()
            .any(|c| c.workspace.as_ref() == Some(id))
        {
            return Err(RegistryError::NotEmpty);
        }
        state.workspaces.remove(id);
        state.audit.push(audit.clone());
        Ok(())
    }
}
