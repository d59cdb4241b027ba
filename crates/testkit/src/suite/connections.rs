//! The registry of connections: [`Connections`](storybus_core::ports::Connections).

use std::time::Duration;

use storybus_core::domain::connection::{Connection, Rate, Role, Secret};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::filter::{Filter, TypePattern};
use storybus_core::ports::queues::Receive;
use storybus_core::ports::workspaces::RegistryError;
use storybus_protocol::id::{ConnectionKind, WorkspaceId};

use super::sample;
use super::world::{World, numbers, receive};

super::behaviours![
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
    a_system_id_belongs_to_one_producer_on_the_whole_bus,
    of_rival_owners_one_gets_the_system_id,
    an_update_cannot_take_a_system_id,
    an_update_keeps_its_own_system_ids,
    an_update_lets_go_of_system_ids,
    a_deletion_lets_go_of_system_ids,
    a_deleted_connection_is_gone,
    an_update_leaves_the_queue_alone,
    a_deletion_drops_the_queue,
    a_deletion_ends_a_waiting_receive needs Time,
    the_last_operator_that_can_log_in_stays,
    an_operator_that_cannot_log_in_may_go,
    operators_that_shut_each_other_out_do_not_both_succeed,
    a_disabled_consumer_receives_nothing,
    disabling_ends_a_waiting_receive needs Time,
    a_paused_consumer_receives_nothing,
    a_waiting_receive_of_a_paused_consumer_waits_on needs Time,
    a_pause_that_ends_lets_a_waiting_receive_go_on needs Time,
    connections_survive_a_reopening needs Reopen,
];

async fn create(world: &World, connection: &Connection) -> Result<(), RegistryError> {
    let audit = sample::audit("create", &[connection.id.as_str()], world.now());
    world.connections().create(connection, &audit).await
}

async fn update(world: &World, connection: &Connection) -> Result<(), RegistryError> {
    let audit = sample::audit("update", &[connection.id.as_str()], world.now());
    world.connections().update(connection, &audit).await
}

async fn delete(world: &World, connection: &Connection) -> Result<(), RegistryError> {
    let audit = sample::audit("delete", &[connection.id.as_str()], world.now());
    world.connections().delete(&connection.id, &audit).await
}

async fn get(world: &World, connection: &Connection) -> Option<Connection> {
    world.connections().get(&connection.id).await.unwrap()
}

/// What the audit says, oldest first, but for the making of workspaces.
async fn audited(world: &World) -> Vec<(String, String)> {
    let (entries, _) = world.audit().list(None, 100).await.unwrap().unwrap();
    let connections = entries
        .into_iter()
        .rev()
        .filter(|entry| entry.action != "tenant.create");
    connections
        .map(|entry| (entry.action, entry.subject.join("/")))
        .collect()
}

fn system_ids(connection: &mut Connection) -> &mut Vec<String> {
    match &mut connection.role {
        Role::Producer(producer) => &mut producer.system_ids,
        Role::Consumer(_) | Role::Operator => unreachable!("not a producer"),
    }
}

fn assert_taken(result: Result<(), RegistryError>, system_id: &str) {
    assert!(
        matches!(&result, Err(RegistryError::SystemIdTaken(taken)) if taken == system_id),
        "{result:?}"
    );
}

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

async fn ids(
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

/// A `system_id` is taken in every workspace; the refused producer is not made, and takes none of its other ones.
pub async fn a_system_id_belongs_to_one_producer_on_the_whole_bus(world: &mut World) {
    let (one, two) = (world.workspace("w1").await, world.workspace("w2").await);
    create(world, &sample::producer("p1", &one, &["a"], world.now()))
        .await
        .unwrap();
    for workspace in [&one, &two] {
        let rival = sample::producer("p2", workspace, &["free", "a"], world.now());
        assert_taken(create(world, &rival).await, "a");
        assert_eq!(get(world, &rival).await, None);
    }
    assert_eq!(audited(world).await.len(), 1);
    create(world, &sample::producer("p3", &two, &["free", "A"], world.now()))
        .await
        .unwrap();
}

/// Two producers ask for one `system_id` at the same moment: one gets it.
pub async fn of_rival_owners_one_gets_the_system_id(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let one = sample::producer("p1", &workspace, &["a"], world.now());
    let two = sample::producer("p2", &workspace, &["a"], world.now());
    let (a, b) = futures::join!(create(world, &one), create(world, &two));
    assert!(a.is_ok() != b.is_ok());
    let (won, lost, answer) = if a.is_ok() { (one, two, b) } else { (two, one, a) };
    assert_taken(answer, "a");
    assert!(get(world, &won).await.is_some());
    assert_eq!(get(world, &lost).await, None);
}

/// An update that asks for another producer's `system_id` changes nothing.
pub async fn an_update_cannot_take_a_system_id(world: &mut World) {
    let (one, two) = (world.workspace("w1").await, world.workspace("w2").await);
    create(world, &sample::producer("p1", &one, &["a"], world.now()))
        .await
        .unwrap();
    let producer = sample::producer("p2", &two, &["b"], world.now());
    create(world, &producer).await.unwrap();
    let mut wanting = Connection {
        version: 2,
        ..producer.clone()
    };
    *system_ids(&mut wanting) = vec!["c".to_owned(), "a".to_owned()];
    assert_taken(update(world, &wanting).await, "a");
    assert_eq!(get(world, &producer).await, Some(producer));
    assert_eq!(audited(world).await.len(), 2);
    assert_taken(
        create(world, &sample::producer("p3", &one, &["b"], world.now())).await,
        "b",
    );
    create(world, &sample::producer("p4", &one, &["c"], world.now()))
        .await
        .unwrap();
}

/// A producer that is updated may keep what it has.
pub async fn an_update_keeps_its_own_system_ids(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let mut producer = sample::producer("p1", &workspace, &["a", "b"], world.now());
    create(world, &producer).await.unwrap();
    producer.version = 2;
    system_ids(&mut producer).push("c".to_owned());
    update(world, &producer).await.unwrap();
    assert_eq!(get(world, &producer).await, Some(producer));
    for taken in ["a", "b", "c"] {
        assert_taken(
            create(world, &sample::producer("p2", &workspace, &[taken], world.now())).await,
            taken,
        );
    }
}

/// What an update leaves out is free for another producer.
pub async fn an_update_lets_go_of_system_ids(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let mut producer = sample::producer("p1", &workspace, &["a", "b"], world.now());
    create(world, &producer).await.unwrap();
    producer.version = 2;
    *system_ids(&mut producer) = vec!["b".to_owned()];
    update(world, &producer).await.unwrap();
    create(world, &sample::producer("p2", &workspace, &["a"], world.now()))
        .await
        .unwrap();
    assert_taken(
        create(world, &sample::producer("p3", &workspace, &["b"], world.now())).await,
        "b",
    );
}

/// What a deleted producer had is free for another one.
pub async fn a_deletion_lets_go_of_system_ids(world: &mut World) {
    let (one, two) = (world.workspace("w1").await, world.workspace("w2").await);
    let producer = sample::producer("p1", &one, &["a"], world.now());
    create(world, &producer).await.unwrap();
    delete(world, &producer).await.unwrap();
    create(world, &sample::producer("p2", &two, &["a"], world.now()))
        .await
        .unwrap();
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

/// What waits in a consumer's queue, hidden or not, is not touched by an update.
pub async fn an_update_leaves_the_queue_alone(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    world.send_to(&queue, 2, 2).await;
    let held = world.receive(&queue, 1).await;
    let mut consumer = world.connections().get(&queue.consumer).await.unwrap().unwrap();
    consumer.version += 1;
    consumer.disabled = true;
    update(world, &consumer).await.unwrap();
    let counts = world.counts(&queue).await;
    assert_eq!((counts.visible, counts.in_flight), (1, 1));
    assert_eq!(
        world.acknowledge(&queue, &held).await,
        [storybus_core::domain::delivery::Settled::Done]
    );
}

/// With a consumer go its messages and their handles.
pub async fn a_deletion_drops_the_queue(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    world.send_to(&queue, 2, 2).await;
    let held = world.receive(&queue, 1).await;
    let consumer = world.connections().get(&queue.consumer).await.unwrap().unwrap();
    delete(world, &consumer).await.unwrap();
    assert!(world.receive(&queue, 10).await.is_empty());
    assert_eq!(
        world.counts(&queue).await,
        storybus_core::domain::delivery::QueueCounts::default()
    );
    assert_eq!(
        world.acknowledge(&queue, &held).await,
        [storybus_core::domain::delivery::Settled::Invalid]
    );
    let other = world.consumer("c2", &queue.workspace, Filter::default()).await;
    assert!(world.receive(&other, 10).await.is_empty());
}

/// A receive that waits at the queue comes back empty at once.
pub async fn a_deletion_ends_a_waiting_receive(world: &mut World) {
    let queue = world.queue().await;
    let consumer = world.connections().get(&queue.consumer).await.unwrap().unwrap();
    let waiting = Receive {
        wait: Duration::from_secs(20),
        ..receive(10)
    };
    let deletion = async {
        world.clock.until_asleep(1).await;
        delete(world, &consumer).await.unwrap();
    };
    let before = world.now();
    let (received, ()) = futures::join!(world.receive_as(&queue, &waiting), deletion);
    assert!(received.is_empty());
    assert_eq!(world.now(), before);
}

fn next(connection: &Connection, change: impl FnOnce(&mut Connection)) -> Connection {
    let mut next = connection.clone();
    next.version += 1;
    change(&mut next);
    next
}

/// It cannot be disabled, lose its last secret or be deleted; it may be changed otherwise. Others do not count that cannot
/// log in, or are no operators. What is refused is not in the audit.
pub async fn the_last_operator_that_can_log_in_stays(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let mut last = sample::operator("o1", world.now());
    let mut disabled = sample::operator("o2", world.now());
    disabled.disabled = true;
    let mut silent = sample::operator("o0", world.now());
    silent.secrets.clear();
    for connection in [
        &last,
        &disabled,
        &silent,
        &sample::producer("p1", &workspace, &["a"], world.now()),
        &sample::consumer("c1", &workspace, Filter::default(), world.now()),
    ] {
        create(world, connection).await.unwrap();
    }
    let before = audited(world).await;
    let refused = async |world: &World, last: &Connection| {
        let answers = [
            update(world, &next(last, |o| o.disabled = true)).await,
            update(world, &next(last, |o| o.secrets.clear())).await,
            delete(world, last).await,
        ];
        for answer in answers {
            assert!(matches!(answer, Err(RegistryError::LastOperator)), "{answer:?}");
        }
        assert_eq!(get(world, last).await.as_ref(), Some(last));
    };
    refused(world, &last).await;
    assert_eq!(audited(world).await, before);
    last = next(&last, |o| o.name = "Other".to_owned());
    update(world, &last).await.unwrap();
    refused(world, &last).await;
    // with another one it may go, and that one stays
    let other = next(&disabled, |o| o.disabled = false);
    update(world, &other).await.unwrap();
    delete(world, &last).await.unwrap();
    refused(world, &other).await;
}

/// One that cannot log in is not missed, be it the only one.
pub async fn an_operator_that_cannot_log_in_may_go(world: &mut World) {
    let mut operator = sample::operator("o1", world.now());
    operator.disabled = true;
    create(world, &operator).await.unwrap();
    let operator = next(&operator, |o| o.secrets.clear());
    update(world, &operator).await.unwrap();
    delete(world, &operator).await.unwrap();
    assert_eq!(get(world, &operator).await, None);
}

/// Two operators delete or disable each other at the same moment: one is done, the other refused.
pub async fn operators_that_shut_each_other_out_do_not_both_succeed(world: &mut World) {
    let one = sample::operator("o1", world.now());
    let mut two = sample::operator("o2", world.now());
    create(world, &one).await.unwrap();
    create(world, &two).await.unwrap();
    let (disabled_one, disabled_two) = (
        next(&one, |o| o.disabled = true),
        next(&two, |o| o.disabled = true),
    );
    let (a, b) = futures::join!(update(world, &disabled_one), update(world, &disabled_two));
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
    let refused = if a.is_ok() { b } else { a };
    assert!(matches!(refused, Err(RegistryError::LastOperator)), "{refused:?}");
    let [Some(mut one), Some(found)] = [get(world, &one).await, get(world, &two).await] else {
        unreachable!("both are there");
    };
    two = found;
    for operator in [&mut one, &mut two].into_iter().filter(|o| o.disabled) {
        *operator = next(operator, |o| o.disabled = false);
        update(world, operator).await.unwrap();
    }
    let (a, b) = futures::join!(delete(world, &one), delete(world, &two));
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
    let left = async |o: &Connection| usize::from(get(world, o).await.is_some());
    assert_eq!(left(&one).await + left(&two).await, 1);
}

/// Disables or pauses the queue's consumer, or ends that.
async fn set(world: &World, queue: &QueueKey, disabled: bool, paused: bool) {
    let mut consumer = world.connections().get(&queue.consumer).await.unwrap().unwrap();
    consumer.version += 1;
    consumer.disabled = disabled;
    match &mut consumer.role {
        Role::Consumer(role) => role.paused = paused,
        Role::Producer(_) | Role::Operator => unreachable!("not a consumer"),
    }
    update(world, &consumer).await.unwrap();
}

fn waiting() -> Receive {
    Receive {
        wait: Duration::from_secs(20),
        ..receive(10)
    }
}

/// Neither anew nor by a repetition; and a long poll does not wait.
pub async fn a_disabled_consumer_receives_nothing(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    world.send_to(&queue, 2, 2).await;
    let named = Receive {
        attempt: Some("a".to_owned()),
        ..receive(1)
    };
    let held = world.receive_as(&queue, &named).await;
    set(world, &queue, true, false).await;
    for receive in [named.clone(), waiting()] {
        assert!(world.receive_as(&queue, &receive).await.is_empty());
    }
    set(world, &queue, false, false).await;
    assert_eq!(world.receive_as(&queue, &named).await, held);
    assert_eq!(numbers(&world.receive(&queue, 10).await), [2]);
}

/// It comes back empty at once; what comes then waits in the queue.
pub async fn disabling_ends_a_waiting_receive(world: &mut World) {
    let queue = world.queue().await;
    let disable = async {
        world.clock.until_asleep(1).await;
        set(world, &queue, true, false).await;
        world.send_to(&queue, 1, 1).await;
    };
    let (before, wait) = (world.now(), waiting());
    let (received, ()) = futures::join!(world.receive_as(&queue, &wait), disable);
    assert!(received.is_empty());
    assert_eq!(world.now(), before);
    assert_eq!(world.counts(&queue).await.visible, 1);
}

/// Neither anew nor by a repetition.
pub async fn a_paused_consumer_receives_nothing(world: &mut World) {
    let queue = world.queue().await;
    world.send_to(&queue, 1, 1).await;
    world.send_to(&queue, 2, 2).await;
    let named = Receive {
        attempt: Some("a".to_owned()),
        ..receive(1)
    };
    let held = world.receive_as(&queue, &named).await;
    set(world, &queue, false, true).await;
    for receive in [named.clone(), receive(10)] {
        assert!(world.receive_as(&queue, &receive).await.is_empty());
    }
    set(world, &queue, false, false).await;
    assert_eq!(world.receive_as(&queue, &named).await, held);
    assert_eq!(numbers(&world.receive(&queue, 10).await), [2]);
}

/// It waits as if nothing came, though something does, or comes back; until its end, or until the consumer is disabled.
pub async fn a_waiting_receive_of_a_paused_consumer_waits_on(world: &mut World) {
    let queue = world.queue().await;
    let clock = world.clock.clone();
    for disabled in [false, true] {
        let release = Receive {
            visibility: Duration::from_secs(5),
            ..receive(10)
        };
        world.send_to(&queue, u64::from(disabled), 1).await;
        assert_eq!(world.receive_as(&queue, &release).await.len(), 1);
        let pause = async {
            clock.until_asleep(1).await;
            set(world, &queue, false, true).await;
            world.send_to(&queue, 10 + u64::from(disabled), 2).await;
            for _ in 0..3 {
                crate::executor::yield_now().await;
                clock.until_asleep(1).await;
                clock.advance(Duration::from_secs(5));
            }
            clock.until_asleep(1).await;
            if disabled {
                set(world, &queue, true, true).await;
            } else {
                clock.advance(Duration::from_secs(5));
            }
        };
        let (before, wait) = (world.now(), waiting());
        let (received, ()) = futures::join!(world.receive_as(&queue, &wait), pause);
        assert!(received.is_empty());
        let took = Duration::from_secs(if disabled { 15 } else { 20 });
        assert_eq!(before.until(world.now()), took);
        set(world, &queue, false, false).await;
        assert_eq!(world.drain(&queue).await.len(), 2);
    }
}

/// What came meanwhile is handed out at once.
pub async fn a_pause_that_ends_lets_a_waiting_receive_go_on(world: &mut World) {
    let queue = world.queue().await;
    let pause = async {
        world.clock.until_asleep(1).await;
        set(world, &queue, false, true).await;
        world.send_to(&queue, 1, 1).await;
        world.clock.until_asleep(1).await;
        set(world, &queue, false, false).await;
    };
    let (before, wait) = (world.now(), waiting());
    let (received, ()) = futures::join!(world.receive_as(&queue, &wait), pause);
    assert_eq!(numbers(&received), [1]);
    assert_eq!(world.now(), before);
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
