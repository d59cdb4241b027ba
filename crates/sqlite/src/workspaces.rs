//! The registry of workspaces.

use std::sync::Arc;

use async_trait::async_trait;
use storybus_core::domain::connection::Workspace;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{StoreError, Workspaces};
use storybus_protocol::id::WorkspaceId;

use crate::audit;
use crate::error::Failure;
use crate::rows::Rows as _;
use crate::store::Inner;
use crate::writer::Tx;

/// What a command of the registry decided.
pub(crate) type Decision = Result<Result<(), RegistryError>, Failure>;

/// [`Workspaces`] on SQLite.
#[derive(Clone)]
pub struct SqliteWorkspaces {
    inner: Arc<Inner>,
}

impl SqliteWorkspaces {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl Workspaces for SqliteWorkspaces {
    async fn create(&self, workspace: &Workspace, audit: &AuditEntry) -> Result<(), RegistryError> {
        let (workspace, audit) = (workspace.clone(), audit.clone());
        self.inner
            .writer()
            .call(move |tx| create(tx, &workspace, &audit))
            .await?
    }

    async fn get(&self, id: &WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        Ok(self.inner.registry().workspace(id).map(Arc::unwrap_or_clone))
    }

    async fn list(&self, after: Option<&WorkspaceId>, limit: usize) -> Result<Vec<Workspace>, StoreError> {
        Ok(self.inner.registry().workspaces(after, limit))
    }

    async fn update(&self, workspace: &Workspace, audit: &AuditEntry) -> Result<(), RegistryError> {
        let (workspace, audit) = (workspace.clone(), audit.clone());
        self.inner
            .writer()
            .call(move |tx| update(tx, &workspace, &audit))
            .await?
    }

    async fn delete(&self, id: &WorkspaceId, audit: &AuditEntry) -> Result<(), RegistryError> {
        let (id, audit) = (id.clone(), audit.clone());
        self.inner
            .writer()
            .call(move |tx| delete(tx, &id, &audit))
            .await?
    }
}

fn create(tx: &mut Tx<'_>, workspace: &Workspace, audit: &AuditEntry) -> Decision {
    if exists(tx, &workspace.id)? {
        return Ok(Err(RegistryError::Changed));
    }
    tx.execute(
        "INSERT INTO workspace (id, version, entry) VALUES (?1, ?2, ?3)",
        (
            workspace.id.as_str(),
            workspace.version.cast_signed(),
            serde_json::to_string(workspace)?,
        ),
    )?;
    audit::write(tx, audit)?;
    let workspace = workspace.clone();
    tx.after_commit(move |registry| registry.put_workspace(workspace));
    Ok(Ok(()))
}

fn update(tx: &mut Tx<'_>, workspace: &Workspace, audit: &AuditEntry) -> Decision {
    let sql = "SELECT version FROM workspace WHERE id = ?1";
    let version = tx.find(sql, [workspace.id.as_str()], |row| row.get::<_, i64>(0))?;
    match version {
        None => return Ok(Err(RegistryError::NotFound)),
        Some(version) if Some(version.cast_unsigned()) != workspace.version.checked_sub(1) => {
            return Ok(Err(RegistryError::Changed));
        }
        Some(_) => {}
    }
    tx.execute(
        "UPDATE workspace SET version = ?2, entry = ?3 WHERE id = ?1",
        (
            workspace.id.as_str(),
            workspace.version.cast_signed(),
            serde_json::to_string(workspace)?,
        ),
    )?;
    audit::write(tx, audit)?;
    let workspace = workspace.clone();
    tx.after_commit(move |registry| registry.put_workspace(workspace));
    Ok(Ok(()))
}

fn delete(tx: &mut Tx<'_>, id: &WorkspaceId, audit: &AuditEntry) -> Decision {
    if !exists(tx, id)? {
        return Ok(Err(RegistryError::NotFound));
    }
    let connection = "SELECT 1 FROM connection WHERE workspace = ?1 LIMIT 1";
    if tx.find(connection, [id.as_str()], |_| Ok(()))?.is_some() {
        return Ok(Err(RegistryError::NotEmpty));
    }
    tx.execute("DELETE FROM workspace WHERE id = ?1", [id.as_str()])?;
    // its stories are the sweeper's; records and messages go by their age
    tx.execute(
        "UPDATE workspace_number SET deleted_at = ?2 WHERE workspace = ?1",
        (id.as_str(), tx.now().0),
    )?;
    audit::write(tx, audit)?;
    let id = id.clone();
    tx.after_commit(move |registry| registry.drop_workspace(&id));
    Ok(Ok(()))
}

pub(crate) fn exists(tx: &Tx<'_>, id: &WorkspaceId) -> Result<bool, Failure> {
    Ok(tx
        .find("SELECT 1 FROM workspace WHERE id = ?1", [id.as_str()], |_| Ok(()))?
        .is_some())
}
