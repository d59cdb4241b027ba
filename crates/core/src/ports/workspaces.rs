//! The registry of workspaces.

use async_trait::async_trait;
use storybus_protocol::id::WorkspaceId;

use super::StoreError;
use super::audit::AuditEntry;
use crate::domain::connection::Workspace;

/// A write to the registry that was not done.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RegistryError {
    /// There is no such workspace or connection.
    #[error("no such entry")]
    NotFound,
    /// It is not the version that was read: read again and decide again.
    #[error("changed meanwhile")]
    Changed,
    /// The workspace still has connections.
    #[error("workspace is not empty")]
    NotEmpty,
    /// The `system_id` belongs to another producer.
    #[error("system_id is taken")]
    SystemIdTaken(String),
    /// The AWS role belongs to another producer of the workspace.
    #[error("role_arn is taken")]
    RoleTaken,
    /// The cloud knows no such reader's role.
    #[error("the reader's role does not exist")]
    NoSuchReader,
    /// There are as many workspaces as the engine carries.
    #[error("too many workspaces")]
    WorkspaceLimit,
    /// The workspace has as many consumers as the engine carries.
    #[error("too many consumers")]
    ConsumerLimit,
    /// It is the last operator that can log in, and could not any more.
    #[error("last operator that can log in")]
    LastOperator,
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The workspaces. Each write is atomic with its audit entry.
#[async_trait]
pub trait Workspaces: Send + Sync {
    /// Adds one; its id is new. [`RegistryError::WorkspaceLimit`] when the engine carries no more.
    async fn create(&self, workspace: &Workspace, audit: &AuditEntry) -> Result<(), RegistryError>;

    /// One by its id. Engines may answer from a cache of at most 60 s; the embedded one sees every write at once.
    async fn get(&self, id: &WorkspaceId) -> Result<Option<Workspace>, StoreError>;

    /// Up to `limit` in the order of their ids, after `after`.
    async fn list(&self, after: Option<&WorkspaceId>, limit: usize) -> Result<Vec<Workspace>, StoreError>;

    /// Replaces one whose stored version is `workspace.version - 1`, else [`RegistryError::Changed`].
    async fn update(&self, workspace: &Workspace, audit: &AuditEntry) -> Result<(), RegistryError>;

    /// Deletes one that has no connections.
    async fn delete(&self, id: &WorkspaceId, audit: &AuditEntry) -> Result<(), RegistryError>;
}
