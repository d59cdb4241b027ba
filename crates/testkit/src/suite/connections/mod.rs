//! The registry of connections: [`Connections`](storybus_core::ports::Connections).

pub mod consumers;
pub mod entries;
pub mod operators;
pub mod roles;
pub mod system_ids;

use storybus_core::domain::connection::{Connection, Role};
use storybus_core::ports::workspaces::RegistryError;
use storybus_protocol::id::{ConnectionKind, WorkspaceId};

use crate::suite::sample;
use crate::suite::world::World;

pub(super) async fn create(world: &World, connection: &Connection) -> Result<(), RegistryError> {
    let audit = sample::audit("create", &[connection.id.as_str()], world.now());
    world.connections().create(connection, &audit).await
}

pub(super) async fn update(world: &World, connection: &Connection) -> Result<(), RegistryError> {
    let audit = sample::audit("update", &[connection.id.as_str()], world.now());
    world.connections().update(connection, &audit).await
}

pub(super) async fn delete(world: &World, connection: &Connection) -> Result<(), RegistryError> {
    let audit = sample::audit("delete", &[connection.id.as_str()], world.now());
    world.connections().delete(&connection.id, &audit).await
}

pub(super) async fn get(world: &World, connection: &Connection) -> Option<Connection> {
    world.connections().get(&connection.id).await.unwrap()
}

/// What the audit says, oldest first, but for the making of workspaces.
pub(super) async fn audited(world: &World) -> Vec<(String, String)> {
    let (entries, _) = world.audit().list(None, 100).await.unwrap().unwrap();
    let connections = entries
        .into_iter()
        .rev()
        .filter(|entry| entry.action != "tenant.create");
    connections
        .map(|entry| (entry.action, entry.subject.join("/")))
        .collect()
}

pub(super) fn system_ids(connection: &mut Connection) -> &mut Vec<String> {
    match &mut connection.role {
        Role::Producer(producer) => &mut producer.system_ids,
        Role::Consumer(_) | Role::Operator => unreachable!("not a producer"),
    }
}

pub(super) fn assert_taken(result: Result<(), RegistryError>, system_id: &str) {
    assert!(
        matches!(&result, Err(RegistryError::SystemIdTaken(taken)) if taken == system_id),
        "{result:?}"
    );
}

pub(super) async fn ids(
    world: &World,
    workspace: Option<&WorkspaceId>,
    kind: ConnectionKind,
    after: Option<&str>,
    limit: usize,
) -> Vec<String> {
    let after = after.map(|id| id.parse().unwrap());
    let page = world
        .connections()
        .list(workspace, kind, after.as_ref(), limit)
        .await
        .unwrap();
    page.into_iter().map(|c| c.id.as_str().to_owned()).collect()
}

pub(super) fn next(connection: &Connection, change: impl FnOnce(&mut Connection)) -> Connection {
    let mut next = connection.clone();
    next.version += 1;
    change(&mut next);
    next
}
