//! The registry of workspaces: [`Workspaces`](storybus_core::ports::Workspaces).

use storybus_core::domain::connection::Workspace;
use storybus_core::domain::filter::Filter;
use storybus_core::ports::workspaces::RegistryError;

use super::sample;
use super::world::World;

super::behaviours![
    a_workspace_is_read_as_written,
    an_unknown_workspace_is_absent,
    workspaces_are_listed_by_id,
    an_update_replaces_the_version_read,
    an_update_of_another_version_changes_nothing,
    of_rival_updates_one_is_done,
    an_unknown_workspace_cannot_be_updated_or_deleted,
    a_workspace_with_connections_is_not_deleted,
    a_deleted_workspace_is_gone,
    workspaces_survive_a_reopening needs Reopen,
];

async fn actions(world: &World) -> Vec<String> {
    let (entries, _) = world.audit().list(None, 100).await.unwrap().unwrap();
    entries.into_iter().rev().map(|entry| entry.action).collect()
}

async fn update(world: &World, workspace: &Workspace) -> Result<(), RegistryError> {
    let audit = sample::audit("tenant.update", &[workspace.id.as_str()], world.now());
    world.workspaces().update(workspace, &audit).await
}

/// What was created is read as it was written; the write is in the audit.
pub async fn a_workspace_is_read_as_written(world: &mut World) {
    let mut workspace = sample::workspace("w1", world.now());
    workspace.name = "Ñews \"1\" 😀".to_owned();
    workspace.strict_message_types = true;
    let audit = sample::audit("tenant.create", &["w1"], world.now());
    world.workspaces().create(&workspace, &audit).await.unwrap();
    assert_eq!(
        world.workspaces().get(&workspace.id).await.unwrap(),
        Some(workspace)
    );
    assert_eq!(actions(world).await, ["tenant.create"]);
}

/// An id that was never given is nobody's.
pub async fn an_unknown_workspace_is_absent(world: &mut World) {
    assert_eq!(
        world.workspaces().get(&"w1".parse().unwrap()).await.unwrap(),
        None
    );
    assert!(world.workspaces().list(None, 10).await.unwrap().is_empty());
}

/// A list is in the order of the ids, goes on after the one given, known or not, and holds no more than asked.
pub async fn workspaces_are_listed_by_id(world: &mut World) {
    for id in ["w3", "wB", "w1", "wa", "w2", "w-"] {
        world.workspace(id).await;
    }
    let list = async |after: Option<&str>, limit| {
        let after = after.map(|id| id.parse().unwrap());
        let page = world.workspaces().list(after.as_ref(), limit).await.unwrap();
        page.into_iter()
            .map(|w| w.id.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(list(None, 10).await, ["w-", "w1", "w2", "w3", "wB", "wa"]);
    assert_eq!(list(None, 2).await, ["w-", "w1"]);
    assert_eq!(list(Some("w1"), 2).await, ["w2", "w3"]);
    assert_eq!(list(Some("w11"), 1).await, ["w2"]);
    assert!(list(Some("wa"), 10).await.is_empty());
}

/// An update names the version after the one it read, and replaces all members.
pub async fn an_update_replaces_the_version_read(world: &mut World) {
    world.workspace("w1").await;
    let mut workspace = world
        .workspaces()
        .get(&"w1".parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    workspace.version += 1;
    workspace.name = "Other".to_owned();
    workspace.strict_message_types = true;
    update(world, &workspace).await.unwrap();
    assert_eq!(
        world.workspaces().get(&workspace.id).await.unwrap(),
        Some(workspace)
    );
    assert_eq!(actions(world).await, ["tenant.create", "tenant.update"]);
}

/// An update of a version that is not the stored one is refused, and is not in the audit.
pub async fn an_update_of_another_version_changes_nothing(world: &mut World) {
    world.workspace("w1").await;
    let before = world
        .workspaces()
        .get(&"w1".parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    for version in [0, before.version, before.version + 2] {
        let other = Workspace {
            version,
            name: "Other".to_owned(),
            ..before.clone()
        };
        assert!(matches!(update(world, &other).await, Err(RegistryError::Changed)));
    }
    assert_eq!(world.workspaces().get(&before.id).await.unwrap(), Some(before));
    assert_eq!(actions(world).await, ["tenant.create"]);
}

/// Of two updates of one version one is done.
pub async fn of_rival_updates_one_is_done(world: &mut World) {
    world.workspace("w1").await;
    let mut one = world
        .workspaces()
        .get(&"w1".parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    one.version += 1;
    let two = Workspace {
        name: "Two".to_owned(),
        ..one.clone()
    };
    let (a, b) = futures::join!(update(world, &one), update(world, &two));
    assert!(a.is_ok() != b.is_ok());
    let winner = if a.is_ok() { one } else { two };
    assert_eq!(world.workspaces().get(&winner.id).await.unwrap(), Some(winner));
}

/// What is not there cannot be changed; the attempt is not in the audit.
pub async fn an_unknown_workspace_cannot_be_updated_or_deleted(world: &mut World) {
    let mut workspace = sample::workspace("w1", world.now());
    workspace.version = 2;
    assert!(matches!(
        update(world, &workspace).await,
        Err(RegistryError::NotFound)
    ));
    let audit = sample::audit("tenant.delete", &["w1"], world.now());
    assert!(matches!(
        world.workspaces().delete(&workspace.id, &audit).await,
        Err(RegistryError::NotFound)
    ));
    assert!(actions(world).await.is_empty());
}

/// A workspace is deleted only when its last connection is gone, producer or consumer.
pub async fn a_workspace_with_connections_is_not_deleted(world: &mut World) {
    let queue = world.queue().await;
    let id = queue.workspace;
    world.workspace("w2").await;
    let producer = sample::producer("p1", &id, &["ncs"], world.now());
    world
        .connections()
        .create(&producer, &sample::audit("producer.create", &[], world.now()))
        .await
        .unwrap();
    let audit = sample::audit("tenant.delete", &["w1"], world.now());
    for connection in [&queue.consumer, &producer.id] {
        assert!(matches!(
            world.workspaces().delete(&id, &audit).await,
            Err(RegistryError::NotEmpty)
        ));
        let audit = sample::audit("delete", &[], world.now());
        world.connections().delete(connection, &audit).await.unwrap();
    }
    assert!(world.workspaces().get(&id).await.unwrap().is_some());
    assert!(!actions(world).await.contains(&"tenant.delete".to_owned()));
    world.workspaces().delete(&id, &audit).await.unwrap();
    // another workspace's connections are no hindrance
    world.consumer("c2", &id_of("w2"), Filter::default()).await;
    assert!(world.workspaces().get(&id).await.unwrap().is_none());
}

fn id_of(text: &str) -> storybus_protocol::id::WorkspaceId {
    text.parse().unwrap()
}

/// A deleted workspace is neither read nor listed; the deletion is in the audit.
pub async fn a_deleted_workspace_is_gone(world: &mut World) {
    world.workspace("w1").await;
    world.workspace("w2").await;
    let audit = sample::audit("tenant.delete", &["w1"], world.now());
    world.workspaces().delete(&id_of("w1"), &audit).await.unwrap();
    assert_eq!(world.workspaces().get(&id_of("w1")).await.unwrap(), None);
    let left = world.workspaces().list(None, 10).await.unwrap();
    assert_eq!(left.iter().map(|w| w.id.as_str()).collect::<Vec<_>>(), ["w2"]);
    assert_eq!(
        actions(world).await,
        ["tenant.create", "tenant.create", "tenant.delete"]
    );
}

/// Workspaces are there when the engine is opened again.
pub async fn workspaces_survive_a_reopening(world: &mut World) {
    let id = world.workspace("w1").await;
    let before = world.workspaces().get(&id).await.unwrap();
    world.reopen().await;
    assert_eq!(world.workspaces().get(&id).await.unwrap(), before);
}
