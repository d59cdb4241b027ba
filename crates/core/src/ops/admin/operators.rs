//! Operators.

use serde::Serialize;
use storybus_protocol::Violation;
use storybus_protocol::id::ConnectionKind;

use super::connections::Write;
use super::secrets::{ConnectionPath, Issued};
use super::{Actor, Page, Purpose, details, limits, refuse_faults};
use crate::bus::Bus;
use crate::domain::connection::{Connection, Role};
use crate::domain::refusal::Refusal;

/// What an operator says of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct OperatorMembers {
    /// 1–200 characters; a new one must have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it is shut out; only in a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

impl OperatorMembers {
    /// Everything that is wrong with them.
    #[must_use]
    pub fn faults(&self, purpose: Purpose) -> Vec<Violation> {
        let mut faults = Vec::new();
        match &self.name {
            Some(name) => limits::name(&mut faults, name),
            None if purpose == Purpose::Create => faults.push(limits::missing("/name")),
            None => {}
        }
        faults
    }
}

fn path(id: &str) -> ConnectionPath<'_> {
    ConnectionPath {
        kind: ConnectionKind::Operator,
        tenant: None,
        id,
    }
}

impl Bus {
    /// Makes the first operator of a new bus, on the bus's own behalf; `None` when there is one already. For the start of
    /// a node, before anyone can call: two nodes that do it at once make two.
    ///
    /// # Errors
    ///
    /// `503` when a store cannot be reached.
    pub async fn operator_bootstrap(&self, name: &str) -> Result<Option<Issued>, Refusal> {
        if !self.operator_list(None, 1).await?.entries.is_empty() {
            return Ok(None);
        }
        let members = OperatorMembers {
            name: Some(name.to_owned()),
            disabled: None,
        };
        self.operator_create(&Actor::bus(), &members).await.map(Some)
    }

    /// Makes an operator with its first secret.
    ///
    /// # Errors
    ///
    /// `400 request.invalid`.
    pub async fn operator_create(&self, actor: &Actor, members: &OperatorMembers) -> Result<Issued, Refusal> {
        refuse_faults(members.faults(Purpose::Create))?;
        let name = members.name.clone().unwrap_or_default();
        self.connection_create(actor, None, &name, &Role::Operator, details(members))
            .await
    }

    /// One operator.
    ///
    /// # Errors
    ///
    /// `404 operator.not_found`.
    pub async fn operator_get(&self, id: &str) -> Result<Connection, Refusal> {
        self.connection_find(&path(id)).await
    }

    /// Up to `limit` operators behind the id `after`.
    ///
    /// # Errors
    ///
    /// `400 request.invalid` when `after` is not an id.
    pub async fn operator_list(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<Connection>, Refusal> {
        self.connection_list(ConnectionKind::Operator, None, after, limit)
            .await
    }

    /// Changes an operator; what is not given stays. A change that changes nothing writes nothing.
    ///
    /// # Errors
    ///
    /// `400 request.invalid`, also at `/disabled` for the last operator that can log in; `404 operator.not_found`.
    pub async fn operator_update(
        &self,
        actor: &Actor,
        id: &str,
        members: &OperatorMembers,
    ) -> Result<Connection, Refusal> {
        refuse_faults(members.faults(Purpose::Change))?;
        let write = Write {
            action: "operator.update".to_owned(),
            part: None,
            details: details(members),
        };
        self.connection_change(actor, &path(id), &write, |connection| {
            if let Some(name) = &members.name {
                connection.name.clone_from(name);
            }
            if let Some(disabled) = members.disabled {
                connection.disabled = disabled;
            }
            Ok(())
        })
        .await
    }

    /// Deletes an operator.
    ///
    /// # Errors
    ///
    /// `404 operator.not_found`; `400 request.invalid` for the last operator that can log in.
    pub async fn operator_delete(&self, actor: &Actor, id: &str) -> Result<(), Refusal> {
        self.connection_delete(actor, &path(id)).await
    }
}
