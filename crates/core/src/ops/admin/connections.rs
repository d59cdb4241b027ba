//! What producers, consumers and operators have in common.

use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};
use storybus_protocol::rule;

use super::ids::prefix;
use super::secrets::{ConnectionPath, Issued};
use super::{Actor, MAX_ATTEMPTS, Page, after, overtaken, refused_connection, tenant_not_found};
use crate::bus::Bus;
use crate::domain::connection::{Connection, Role};
use crate::domain::refusal::{Refusal, RefusalKind};
use crate::ops::refused_by_store;
use crate::ports::workspaces::RegistryError;

/// The noun of a kind, as in actions and rules.
pub(super) fn noun(kind: ConnectionKind) -> &'static str {
    match kind {
        ConnectionKind::Producer => "producer",
        ConnectionKind::Consumer => "consumer",
        ConnectionKind::Operator => "operator",
    }
}

/// `404 <kind>.not_found`.
pub(super) fn not_found(kind: ConnectionKind) -> Refusal {
    let (rule, message) = match kind {
        ConnectionKind::Producer => (
            rule::PRODUCER_NOT_FOUND,
            "there is no such producer in this workspace",
        ),
        ConnectionKind::Consumer => (
            rule::CONSUMER_NOT_FOUND,
            "there is no such consumer in this workspace",
        ),
        ConnectionKind::Operator => (rule::OPERATOR_NOT_FOUND, "there is no such operator"),
    };
    Refusal::policy(RefusalKind::NotFound, rule, message)
}

/// The ids of a connection, outermost first.
pub(super) fn subject(connection: &Connection) -> Vec<String> {
    connection
        .workspace
        .iter()
        .map(WorkspaceId::to_string)
        .chain([connection.id.to_string()])
        .collect()
}

/// `400 request.invalid`, at the member that would have shut it out, if one would.
pub(super) fn last_operator(written: &Connection) -> Refusal {
    let refusal = Refusal::policy(
        RefusalKind::Invalid,
        rule::REQUEST_INVALID,
        "this is the last operator that can log in; make another one first, else nobody could run the bus any more",
    );
    if written.disabled {
        refusal.at("/disabled")
    } else {
        refusal
    }
}

impl Bus {
    /// The workspace that a path names, if it names one.
    async fn workspace_of(&self, tenant: Option<&str>) -> Result<Option<WorkspaceId>, Refusal> {
        match tenant {
            Some(tenant) => Ok(Some(self.tenant_get(tenant).await?.id)),
            None => Ok(None),
        }
    }

    /// Adds a connection with its first secret.
    pub(super) async fn connection_create(
        &self,
        actor: &Actor,
        tenant: Option<&str>,
        name: &str,
        role: &Role,
        details: serde_json::Value,
    ) -> Result<Issued, Refusal> {
        let workspace = self.workspace_of(tenant).await?;
        let (secret, new) = self.secret_make().await?;
        let mut connection = Connection {
            id: self.fresh_id(prefix(kind_of(role)))?,
            workspace,
            name: name.to_owned(),
            disabled: false,
            created_at: secret.created_at,
            secrets: vec![secret],
            role: role.clone(),
            version: 1,
        };
        for _ in 0..MAX_ATTEMPTS {
            let action = format!("{}.create", noun(connection.kind()));
            let entry = self.audit_entry(actor, &action, subject(&connection), details.clone());
            match self.ports.connections.create(&connection, &entry).await {
                Ok(()) => {
                    return Ok(Issued {
                        connection,
                        secret: new,
                    });
                }
                Err(RegistryError::Changed) => connection.id = self.fresh_id(prefix(kind_of(role)))?,
                // the workspace was deleted since
                Err(RegistryError::NotFound) => return Err(tenant_not_found()),
                Err(error) => return Err(refused_connection("connection_create", &connection, &error)),
            }
        }
        Err(overtaken())
    }

    /// The connection that a path names.
    pub(super) async fn connection_find(&self, path: &ConnectionPath<'_>) -> Result<Connection, Refusal> {
        let workspace = self.workspace_of(path.tenant).await?;
        let id: ConnectionId = path.id.parse().map_err(|_| not_found(path.kind))?;
        let found = self
            .ports
            .connections
            .get(&id)
            .await
            .map_err(|e| refused_by_store("connection_find", &e))?;
        found
            .filter(|c| c.kind() == path.kind && c.workspace == workspace)
            .ok_or_else(|| not_found(path.kind))
    }

    /// Up to `limit` connections of a kind behind the id `after`.
    pub(super) async fn connection_list(
        &self,
        kind: ConnectionKind,
        tenant: Option<&str>,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Page<Connection>, Refusal> {
        let from: Option<ConnectionId> = after(from)?;
        let workspace = self.workspace_of(tenant).await?;
        let found = self
            .ports
            .connections
            .list(workspace.as_ref(), kind, from.as_ref(), limit.saturating_add(1))
            .await;
        let found = found.map_err(|e| refused_by_store("connection_list", &e))?;
        Ok(Page::of(found, limit, |c| c.id.to_string()))
    }

    /// Reads, changes and writes, again when somebody else was faster. A change that changes nothing writes nothing.
    pub(super) async fn connection_change(
        &self,
        actor: &Actor,
        path: &ConnectionPath<'_>,
        write: &Write,
        change: impl Fn(&mut Connection) -> Result<(), Refusal>,
    ) -> Result<Connection, Refusal> {
        for _ in 0..MAX_ATTEMPTS {
            let read = self.connection_find(path).await?;
            let mut changed = read.clone();
            change(&mut changed)?;
            if changed == read {
                return Ok(read);
            }
            changed.version += 1;
            let mut subject = subject(&changed);
            subject.extend(write.part.clone());
            let entry = self.audit_entry(actor, &write.action, subject, write.details.clone());
            match self.ports.connections.update(&changed, &entry).await {
                Ok(()) => return Ok(changed),
                Err(RegistryError::Changed) => {}
                Err(error) => return Err(refused_connection("connection_change", &changed, &error)),
            }
        }
        Err(overtaken())
    }

    /// Deletes one.
    pub(super) async fn connection_delete(
        &self,
        actor: &Actor,
        path: &ConnectionPath<'_>,
    ) -> Result<(), Refusal> {
        let connection = self.connection_find(path).await?;
        let action = format!("{}.delete", noun(path.kind));
        let entry = self.audit_entry(actor, &action, subject(&connection), serde_json::json!({}));
        let deleted = self.ports.connections.delete(&connection.id, &entry).await;
        deleted.map_err(|e| refused_connection("connection_delete", &connection, &e))
    }
}

/// A write for the audit.
pub(super) struct Write {
    /// Such as `consumer.update`.
    pub(super) action: String,
    /// The id of a part of the connection, if the write is to one.
    pub(super) part: Option<String>,
    /// What was given.
    pub(super) details: serde_json::Value,
}

fn kind_of(role: &Role) -> ConnectionKind {
    match role {
        Role::Producer(_) => ConnectionKind::Producer,
        Role::Consumer(_) => ConnectionKind::Consumer,
        Role::Operator => ConnectionKind::Operator,
    }
}
