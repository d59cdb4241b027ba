//! The registry of connections.

use std::sync::Arc;

use async_trait::async_trait;
use storybus_core::domain::connection::{Connection, Role};
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{Connections, StoreError};
use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};

use crate::audit;
use crate::error::Failure;
use crate::rows::Rows as _;
use crate::store::Inner;
use crate::workspaces::{self, Decision};
use crate::writer::Tx;

/// [`Connections`] on SQLite.
#[derive(Clone)]
pub struct SqliteConnections {
    inner: Arc<Inner>,
}

impl SqliteConnections {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl Connections for SqliteConnections {
    async fn create(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        let (connection, audit) = (connection.clone(), audit.clone());
        self.inner
            .writer()
            .call(move |tx| create(tx, &connection, &audit))
            .await?
    }

    async fn get(&self, id: &ConnectionId) -> Result<Option<Connection>, StoreError> {
        Ok(self.inner.registry().connection(id).map(Arc::unwrap_or_clone))
    }

    async fn list(
        &self,
        workspace: Option<&WorkspaceId>,
        kind: ConnectionKind,
        after: Option<&ConnectionId>,
        limit: usize,
    ) -> Result<Vec<Connection>, StoreError> {
        Ok(self.inner.registry().connections(workspace, kind, after, limit))
    }

    async fn update(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        let (connection, audit) = (connection.clone(), audit.clone());
        self.inner
            .writer()
            .call(move |tx| update(tx, &connection, &audit))
            .await?
    }

    async fn delete(&self, id: &ConnectionId, audit: &AuditEntry) -> Result<(), RegistryError> {
        let (id, audit) = (id.clone(), audit.clone());
        self.inner
            .writer()
            .call(move |tx| delete(tx, &id, &audit))
            .await?
    }
}

fn create(tx: &mut Tx<'_>, connection: &Connection, audit: &AuditEntry) -> Decision {
    if version(tx, &connection.id)?.is_some() {
        return Ok(Err(RegistryError::Changed));
    }
    if let Some(workspace) = &connection.workspace
        && !workspaces::exists(tx, workspace)?
    {
        return Ok(Err(RegistryError::NotFound));
    }
    if let Some(taken) = taken_system_id(tx, connection)? {
        return Ok(Err(RegistryError::SystemIdTaken(taken)));
    }
    if is_role_taken(tx, connection)? {
        return Ok(Err(RegistryError::RoleTaken));
    }
    tx.execute(
        "INSERT INTO connection (id, workspace, version, entry) VALUES (?1, ?2, ?3, ?4)",
        (
            connection.id.as_str(),
            connection.workspace.as_ref().map(WorkspaceId::as_str),
            connection.version.cast_signed(),
            serde_json::to_string(connection)?,
        ),
    )?;
    own_system_ids(tx, connection)?;
    let queue = match connection.role {
        Role::Consumer(_) => {
            tx.execute(
                "INSERT INTO queue (consumer) VALUES (?1)",
                [connection.id.as_str()],
            )?;
            Some(tx.last_id())
        }
        Role::Producer(_) | Role::Operator => None,
    };
    audit::write(tx, audit)?;
    let connection = connection.clone();
    tx.after_commit(move |registry| registry.put_connection(connection, queue));
    Ok(Ok(()))
}

fn update(tx: &mut Tx<'_>, connection: &Connection, audit: &AuditEntry) -> Decision {
    match version(tx, &connection.id)? {
        None => return Ok(Err(RegistryError::NotFound)),
        Some(version) if Some(version) != connection.version.checked_sub(1) => {
            return Ok(Err(RegistryError::Changed));
        }
        Some(_) => {}
    }
    if !can_log_in(connection) && is_last_operator(tx, &connection.id)? {
        return Ok(Err(RegistryError::LastOperator));
    }
    if let Some(taken) = taken_system_id(tx, connection)? {
        return Ok(Err(RegistryError::SystemIdTaken(taken)));
    }
    if is_role_taken(tx, connection)? {
        return Ok(Err(RegistryError::RoleTaken));
    }
    tx.execute(
        "UPDATE connection SET version = ?2, entry = ?3 WHERE id = ?1",
        (
            connection.id.as_str(),
            connection.version.cast_signed(),
            serde_json::to_string(connection)?,
        ),
    )?;
    tx.execute(
        "DELETE FROM system_id WHERE producer = ?1",
        [connection.id.as_str()],
    )?;
    own_system_ids(tx, connection)?;
    audit::write(tx, audit)?;
    let connection = connection.clone();
    tx.after_commit(move |registry| registry.put_connection(connection, None));
    Ok(Ok(()))
}

fn delete(tx: &mut Tx<'_>, id: &ConnectionId, audit: &AuditEntry) -> Decision {
    if is_last_operator(tx, id)? {
        return Ok(Err(RegistryError::LastOperator));
    }
    if tx.execute("DELETE FROM connection WHERE id = ?1", [id.as_str()])? == 0 {
        return Ok(Err(RegistryError::NotFound));
    }
    tx.execute("DELETE FROM system_id WHERE producer = ?1", [id.as_str()])?;
    // a queue can be long: its rows are the sweeper's
    tx.execute(
        "UPDATE queue SET closed = 1, consumer = '#' || id WHERE consumer = ?1",
        [id.as_str()],
    )?;
    audit::write(tx, audit)?;
    let id = id.clone();
    tx.after_commit(move |registry| registry.drop_connection(&id));
    Ok(Ok(()))
}

fn version(tx: &Tx<'_>, id: &ConnectionId) -> Result<Option<u64>, Failure> {
    let sql = "SELECT version FROM connection WHERE id = ?1";
    Ok(tx
        .find(sql, [id.as_str()], |row| row.get::<_, i64>(0))?
        .map(i64::cast_unsigned))
}

fn can_log_in(connection: &Connection) -> bool {
    connection.kind() == ConnectionKind::Operator && connection.can_log_in()
}

/// Whether it is the only operator that can log in.
fn is_last_operator(tx: &Tx<'_>, id: &ConnectionId) -> Result<bool, Failure> {
    let sql = "SELECT workspace IS NULL FROM connection WHERE id = ?1";
    if tx.find(sql, [id.as_str()], |row| row.get(0))? != Some(true) {
        return Ok(false);
    }
    let sql = "SELECT entry FROM connection WHERE workspace IS NULL ORDER BY id";
    let mut itself = false;
    for entry in tx.all(sql, [], |row| row.get::<_, String>(0))? {
        let operator: Connection = serde_json::from_str(&entry)?;
        match can_log_in(&operator) {
            true if operator.id != *id => return Ok(false),
            true => itself = true,
            false => {}
        }
    }
    Ok(itself)
}

fn system_ids(connection: &Connection) -> &[String] {
    match &connection.role {
        Role::Producer(producer) => &producer.system_ids,
        Role::Consumer(_) | Role::Operator => &[],
    }
}

/// The first of its `system_id`s that is another's.
fn taken_system_id(tx: &Tx<'_>, connection: &Connection) -> Result<Option<String>, Failure> {
    let sql = "SELECT 1 FROM system_id WHERE system_id = ?1 AND producer <> ?2";
    for system_id in system_ids(connection) {
        if tx
            .find(sql, (system_id, connection.id.as_str()), |_| Ok(()))?
            .is_some()
        {
            return Ok(Some(system_id.clone()));
        }
    }
    Ok(None)
}

/// Whether the AWS role that it registers is another producer's of the workspace. One that it has already stays: a bus that
/// checked this later may have two of it.
fn is_role_taken(tx: &Tx<'_>, connection: &Connection) -> Result<bool, Failure> {
    let Some(wanted) = connection.producer_role() else {
        return Ok(false);
    };
    let sql = "SELECT entry FROM connection WHERE workspace = ?1 ORDER BY id";
    let workspace = connection.workspace.as_ref().map(WorkspaceId::as_str);
    let mut taken = false;
    for entry in tx.all(sql, [workspace], |row| row.get::<_, String>(0))? {
        let other: Connection = serde_json::from_str(&entry)?;
        match (other.producer_role() == Some(wanted), other.id == connection.id) {
            (true, true) => return Ok(false),
            (true, false) => taken = true,
            (false, _) => {}
        }
    }
    Ok(taken)
}

fn own_system_ids(tx: &Tx<'_>, connection: &Connection) -> Result<(), Failure> {
    for system_id in system_ids(connection) {
        // a list may name one twice
        let sql = "INSERT OR IGNORE INTO system_id (system_id, producer) VALUES (?1, ?2)";
        tx.execute(sql, (system_id, connection.id.as_str()))?;
    }
    Ok(())
}
