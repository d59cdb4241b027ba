//! Entries: written, read, listed, changed, deleted.

use storybus_core::domain::connection::{Connection, Rate, Role, Secret};
use storybus_core::domain::filter::{Filter, TypePattern};
use storybus_core::ports::workspaces::RegistryError;
use storybus_protocol::id::ConnectionKind;

use super::{assert_taken, audited, create, delete, get, ids, system_ids, update};
use crate::suite::world::World;
use crate::suite::{behaviours, sample};

behaviours![
    a_producer_is_read_as_written,
    a_consumer_is_read_as_written,
    an_operator_is_read_as_written,
    an_unknown_connection_is_absent,
    connections_are_listed_by_kind_and_workspace,
    a_list_goes_on_after_its_cursor,
    an_update_replaces_the_version_read,
    an_update_of_another_version_changes_nothing,
    of_rival_updates_one_is_done,
    an_unknown_connection_cannot_be_updated_or_deleted,
    a_deleted_connection_is_gone,
    connections_survive_a_reopening needs Reopen,
];

/// A producer comes back with all its members; the write is in the audit.
pub async fn a_producer_is_read_as_written(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let mut producer = sample::producer("p1", &workspace, &["ncs-1", "éditeur 2"], world.now());
    producer.name = "Ñ \"'\\".to_owned();
    producer.disabled = true;
    producer.secrets.push(Secret {
        id: "s2".parse().unwrap(),
        hash: "$x$".to_owned(),
        created_at: world.now(),
    });
    if let Role::Producer(role) = &mut producer.role {
        role.message_types = vec![
            "story.context".parse().unwrap(),
            "telling.*".parse().unwrap(),
            TypePattern::Any,
        ];
        role.role_arn = Some("arn:aws:iam::123456789012:role/ncs".to_owned());
        role.rate = Some(Rate {
            per_second: 5,
            burst: 50,
        });
    }
    create(world, &producer).await.unwrap();
    assert_eq!(get(world, &producer).await, Some(producer));
    assert_eq!(audited(world).await, [("create".to_owned(), "p1".to_owned())]);
}

/// A consumer comes back with all its members.
pub async fn a_consumer_is_read_as_written(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let filter = Filter {
        message_types: vec!["a.*".parse().unwrap()],
        topic_prefixes: vec!["som.".to_owned(), "som.ü".to_owned()],
        sources: vec!["ncs".to_owned()],
    };
    let mut consumer = sample::consumer("c1", &workspace, filter, world.now());
    consumer.secrets.clear();
    if let Role::Consumer(role) = &mut consumer.role {
        role.max_receives = 1000;
        role.visibility_seconds = 43_200;
        role.reader_role_arn = Some("arn:aws:iam::123456789012:role/reader".to_owned());
        role.paused = true;
    }
    create(world, &consumer).await.unwrap();
    assert_eq!(get(world, &consumer).await, Some(consumer));
}

/// An operator has no workspace.
pub async fn an_operator_is_read_as_written(world: &mut World) {
    let operator = sample::operator("o1", world.now());
    create(world, &operator).await.unwrap();
    assert_eq!(get(world, &operator).await, Some(operator));
}

/// An id that was never given is nobody's.
pub async fn an_unknown_connection_is_absent(world: &mut World) {
    assert_eq!(get(world, &sample::operator("o1", world.now())).await, None);
}

/// A list holds one kind of one workspace, or the operators.
pub async fn connections_are_listed_by_kind_and_workspace(world: &mut World) {
    let (one, two) = (world.workspace("w1").await, world.workspace("w2").await);
    let now = world.now();
    for connection in [
        sample::producer("p1", &one, &["a"], now),
        sample::producer("p2", &two, &["b"], now),
        sample::consumer("c1", &one, Filter::default(), now),
        sample::consumer("c2", &one, Filter::default(), now),
        sample::operator("o1", now),
    ] {
        create(world, &connection).await.unwrap();
    }
    assert_eq!(
        ids(world, Some(&one), ConnectionKind::Producer, None, 10).await,
        ["p1"]
    );
    assert_eq!(
        ids(world, Some(&two), ConnectionKind::Producer, None, 10).await,
        ["p2"]
    );
    assert_eq!(
        ids(world, Some(&one), ConnectionKind::Consumer, None, 10).await,
        ["c1", "c2"]
    );
    assert!(
        ids(world, Some(&two), ConnectionKind::Consumer, None, 10)
            .await
            .is_empty()
    );
    assert_eq!(ids(world, None, ConnectionKind::Operator, None, 10).await, ["o1"]);
}

/// A list is in the order of the ids, goes on after the one given, known or not, and holds no more than asked.
pub async fn a_list_goes_on_after_its_cursor(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for id in ["c3", "cB", "c1", "ca", "c2"] {
        world.consumer(id, &workspace, Filter::default()).await;
    }
    let list =
        async |after, limit| ids(world, Some(&workspace), ConnectionKind::Consumer, after, limit).await;
    assert_eq!(list(None, 10).await, ["c1", "c2", "c3", "cB", "ca"]);
    assert_eq!(list(None, 2).await, ["c1", "c2"]);
    assert_eq!(list(Some("c2"), 2).await, ["c3", "cB"]);
    assert_eq!(list(Some("c20"), 1).await, ["c3"]);
    assert!(list(Some("ca"), 10).await.is_empty());
}

/// An update names the version after the one it read, and replaces all members.
pub async fn an_update_replaces_the_version_read(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let mut producer = sample::producer("p1", &workspace, &["a"], world.now());
    create(world, &producer).await.unwrap();
    producer.version += 1;
    producer.name = "Other".to_owned();
    producer.disabled = true;
    producer.secrets.clear();
    *system_ids(&mut producer) = vec!["b".to_owned()];
    update(world, &producer).await.unwrap();
    assert_eq!(get(world, &producer).await, Some(producer));
    assert_eq!(audited(world).await.len(), 2);
}

/// An update of a version that is not the stored one is refused, and is not in the audit.
pub async fn an_update_of_another_version_changes_nothing(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let producer = sample::producer("p1", &workspace, &["a"], world.now());
    create(world, &producer).await.unwrap();
    for version in [0, producer.version, producer.version + 2] {
        let mut other = Connection {
            version,
            disabled: true,
            ..producer.clone()
        };
        *system_ids(&mut other) = vec!["b".to_owned()];
        assert!(matches!(update(world, &other).await, Err(RegistryError::Changed)));
    }
    assert_eq!(audited(world).await.len(), 1);
    create(world, &sample::producer("p2", &workspace, &["b"], world.now()))
        .await
        .unwrap();
    assert_eq!(get(world, &producer).await, Some(producer));
}

/// Of two updates of one version one is done.
pub async fn of_rival_updates_one_is_done(world: &mut World) {
    let operator = sample::operator("o1", world.now());
    create(world, &operator).await.unwrap();
    let one = Connection {
        version: 2,
        name: "One".to_owned(),
        ..operator.clone()
    };
    let two = Connection {
        version: 2,
        name: "Two".to_owned(),
        ..operator
    };
    let (a, b) = futures::join!(update(world, &one), update(world, &two));
    assert!(a.is_ok() != b.is_ok());
    let winner = if a.is_ok() { one } else { two };
    assert_eq!(get(world, &winner).await, Some(winner));
}

/// What is not there cannot be changed; the attempt is not in the audit.
pub async fn an_unknown_connection_cannot_be_updated_or_deleted(world: &mut World) {
    let operator = Connection {
        version: 2,
        ..sample::operator("o1", world.now())
    };
    assert!(matches!(
        update(world, &operator).await,
        Err(RegistryError::NotFound)
    ));
    assert!(matches!(
        delete(world, &operator).await,
        Err(RegistryError::NotFound)
    ));
    assert!(audited(world).await.is_empty());
}

/// A deleted connection is neither read nor listed; the deletion is in the audit.
pub async fn a_deleted_connection_is_gone(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let stays = sample::operator("o9", world.now());
    create(world, &stays).await.unwrap();
    for connection in [
        sample::producer("p1", &workspace, &["a"], world.now()),
        sample::consumer("c1", &workspace, Filter::default(), world.now()),
        sample::operator("o1", world.now()),
    ] {
        create(world, &connection).await.unwrap();
        delete(world, &connection).await.unwrap();
        assert_eq!(get(world, &connection).await, None);
        let workspace = connection.workspace.as_ref();
        let listed = ids(world, workspace, connection.kind(), None, 10).await;
        assert!(listed.iter().all(|id| id != connection.id.as_str()));
        assert!(matches!(
            delete(world, &connection).await,
            Err(RegistryError::NotFound)
        ));
        assert_eq!(
            audited(world).await.last(),
            Some(&("delete".to_owned(), connection.id.as_str().to_owned()))
        );
    }
}

/// Connections, and who owns which `system_id`, are there when the engine is opened again.
pub async fn connections_survive_a_reopening(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let producer = sample::producer("p1", &workspace, &["a"], world.now());
    create(world, &producer).await.unwrap();
    let before = audited(world).await;
    world.reopen().await;
    assert_eq!(get(world, &producer).await, Some(producer));
    assert_eq!(audited(world).await, before);
    assert_taken(
        create(world, &sample::producer("p2", &workspace, &["a"], world.now())).await,
        "a",
    );
}
