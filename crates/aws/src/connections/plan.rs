//! What each write of a connection does, in one transaction.

use std::collections::HashSet;

use storybus_core::domain::connection::{Connection, Role};
use storybus_core::ports::StoreError;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::workspaces::RegistryError;
use storybus_protocol::id::{ConnectionKind, WorkspaceId};

use super::DynamoConnections;
use crate::item::{Item, json, key, n, s};
use crate::pending::Pending;
use crate::query::one;
use crate::registry::{MAX_CONSUMERS, MOST_ACTIONS, Plan, absent_or_changed};
use crate::workspaces::overtaken;
use crate::writes::Action;
use crate::{audit, keys};

/// The `system_id`s of a connection, each once.
fn system_ids(connection: &Connection) -> Vec<&str> {
    let ids: &[String] = match &connection.role {
        Role::Producer(producer) => &producer.system_ids,
        Role::Consumer(_) | Role::Operator => &[],
    };
    let mut seen = HashSet::new();
    ids.iter()
        .map(String::as_str)
        .filter(|id| seen.insert(*id))
        .collect()
}

fn can_log_in(connection: &Connection) -> bool {
    connection.kind() == ConnectionKind::Operator && connection.can_log_in()
}

fn item(connection: &Connection) -> Result<Item, StoreError> {
    let mut item = keys::connection(connection.id.as_str());
    item.insert("doc".to_owned(), json(connection)?);
    item.insert("version".to_owned(), n(connection.version));
    Ok(item)
}

fn member(connection: &Connection) -> Item {
    let list = keys::connections_of(connection.workspace.as_ref(), connection.kind());
    key(list, connection.id.as_str())
}

/// Takes what nobody else has.
fn own(mut item: Item, owner: &Connection) -> Action {
    item.insert("owner".to_owned(), s(owner.id.as_str()));
    Action::put(item)
        .when("attribute_not_exists(pk) OR #owner = :owner")
        .value(":owner", s(owner.id.as_str()))
}

impl Plan {
    /// Takes `system_id`s and a role that the connection did not have before.
    fn take(&mut self, before: Option<&Connection>, connection: &Connection) {
        let had: HashSet<&str> = before.map(system_ids).unwrap_or_default().into_iter().collect();
        for id in system_ids(connection).into_iter().filter(|id| !had.contains(id)) {
            let mut item = keys::system(id);
            item.insert("system_id".to_owned(), s(id));
            let id = id.to_owned();
            self.add_or(own(item, connection), move |_| {
                RegistryError::SystemIdTaken(id.clone())
            });
        }
        if let (Some(workspace), Some(role)) = (&connection.workspace, connection.producer_role())
            && before.and_then(Connection::producer_role) != Some(role)
        {
            self.add_or(own(keys::role(workspace, role), connection), |_| {
                RegistryError::RoleTaken
            });
        }
    }

    /// One operator more or less that can log in.
    fn count_operators(&mut self, before: Option<&Connection>, after: Option<&Connection>) {
        match (before.is_some_and(can_log_in), after.is_some_and(can_log_in)) {
            (false, true) => {
                self.add(Action::update(keys::operators(), "ADD able :one").value(":one", one()))
            }
            (true, false) => self.add_or(
                Action::update(keys::operators(), "ADD able :less")
                    .when("able > :one")
                    .value(":less", n(-1))
                    .value(":one", one()),
                |_| RegistryError::LastOperator,
            ),
            _ => {}
        }
    }

    /// Takes the note of this change away.
    fn end(&mut self, pending: Option<&Pending>) {
        if let Some(pending) = pending {
            self.add_or(pending.end(), |_| overtaken());
        }
    }
}

/// What a workspace must be for one more connection.
fn one_more(action: Action, consumer: bool) -> Action {
    if consumer {
        action
            .when("attribute_exists(pk) AND consumers < :most")
            .value(":most", n(MAX_CONSUMERS))
    } else {
        action.when("attribute_exists(pk)")
    }
}

fn no_room(workspace: Option<&Item>) -> RegistryError {
    match workspace {
        None => RegistryError::NotFound,
        Some(_) => RegistryError::ConsumerLimit,
    }
}

/// A workspace's counters, this many connections more.
fn count(workspace: &WorkspaceId, connection: &Connection, more: i8) -> Action {
    let consumers = match connection.role {
        Role::Consumer(_) => more,
        Role::Producer(_) | Role::Operator => 0,
    };
    Action::update(
        keys::workspace(workspace),
        "ADD connections :more, consumers :consumers",
    )
    .value(":more", n(more))
    .value(":consumers", n(consumers))
}

impl DynamoConnections {
    /// The note: only whoever has it may make a consumer of this id. Asks for everything that would keep it from being made.
    pub(super) fn plan_reserve(
        &self,
        pending: &Pending,
        workspace: &WorkspaceId,
        connection: &Connection,
    ) -> Plan {
        let mut plan = Plan::default();
        plan.add_or(
            Action::check(keys::connection(connection.id.as_str())).when("attribute_not_exists(pk)"),
            |_| RegistryError::Changed,
        );
        plan.add_or(one_more(Action::check(keys::workspace(workspace)), true), no_room);
        plan.add_or(pending.begin(), |_| RegistryError::Changed);
        plan
    }

    pub(super) fn plan_create(
        &self,
        connection: &Connection,
        pending: Option<&Pending>,
        audit: &AuditEntry,
    ) -> Result<Plan, StoreError> {
        let mut plan = Plan::default();
        plan.add_or(
            Action::put(item(connection)?).when("attribute_not_exists(pk)"),
            |_| RegistryError::Changed,
        );
        if let Some(workspace) = &connection.workspace {
            let is_consumer = connection.kind() == ConnectionKind::Consumer;
            plan.add_or(one_more(count(workspace, connection, 1), is_consumer), no_room);
        }
        plan.take(None, connection);
        plan.count_operators(None, Some(connection));
        plan.end(pending);
        plan.add(Action::put(member(connection)));
        plan.add(audit::write(audit)?);
        Ok(plan)
    }

    /// The change, and the `system_id`s that it leaves and for which there is no room in one transaction.
    pub(super) fn plan_update(
        &self,
        before: &Connection,
        connection: &Connection,
        pending: Option<&Pending>,
        audit: &AuditEntry,
    ) -> Result<(Plan, Vec<String>), StoreError> {
        let mut plan = Plan::default();
        plan.add_or(
            Action::put(item(connection)?)
                .when("version = :before")
                .value(":before", n(before.version)),
            absent_or_changed,
        );
        plan.count_operators(Some(before), Some(connection));
        plan.take(Some(before), connection);
        plan.end(pending);
        plan.add(audit::write(audit)?);
        if let (Some(workspace), Some(role)) = (&before.workspace, before.producer_role())
            && connection.producer_role() != Some(role)
        {
            plan.add(Action::delete(keys::role(workspace, role)));
        }
        let kept: HashSet<&str> = system_ids(connection).into_iter().collect();
        let mut late = Vec::new();
        for id in system_ids(before).into_iter().filter(|id| !kept.contains(id)) {
            if plan.room() > 0 {
                plan.add(Action::delete(keys::system(id)));
            } else {
                late.push(id.to_owned());
            }
        }
        Ok((plan, late))
    }

    pub(super) fn plan_delete(
        &self,
        stored: &Connection,
        pending: Option<&Pending>,
        audit: &AuditEntry,
    ) -> Result<Plan, StoreError> {
        let mut plan = Plan::default();
        plan.add_or(
            Action::delete(keys::connection(stored.id.as_str()))
                .when("version = :before")
                .value(":before", n(stored.version)),
            absent_or_changed,
        );
        plan.count_operators(Some(stored), None);
        if let Some(workspace) = &stored.workspace {
            plan.add(count(workspace, stored, -1));
            if let Some(role) = stored.producer_role() {
                plan.add(Action::delete(keys::role(workspace, role)));
            }
        }
        for id in system_ids(stored) {
            plan.add(Action::delete(keys::system(id)));
        }
        plan.add(Action::delete(member(stored)));
        if let Some(pending) = pending {
            plan.add(pending.insist());
        }
        plan.add(audit::write(audit)?);
        Ok(plan)
    }

    /// Lets go of `system_id`s that an update left and could not let go of in its own transaction: as long as it is the last one.
    pub(super) async fn let_go(&self, connection: &Connection, late: Vec<String>) {
        for ids in late.chunks(MOST_ACTIONS - 1) {
            let mut plan = Plan::default();
            plan.add_or(
                Action::check(keys::connection(connection.id.as_str()))
                    .when("version = :version")
                    .value(":version", n(connection.version)),
                absent_or_changed,
            );
            for id in ids {
                plan.add(Action::delete(keys::system(id)));
            }
            if let Err(error) = self.write(plan).await {
                tracing::warn!(producer = %connection.id, %error, "system_ids that a producer has left stay taken");
            }
        }
    }
}
