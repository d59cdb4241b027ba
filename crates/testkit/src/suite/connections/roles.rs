//! Which AWS role is whose.

use storybus_core::domain::connection::{Connection, Role};
use storybus_core::domain::filter::Filter;
use storybus_core::ports::workspaces::RegistryError;
use storybus_protocol::id::WorkspaceId;

use super::{audited, create, delete, get, next, update};
use crate::suite::world::World;
use crate::suite::{behaviours, sample};

behaviours![
    a_producer_is_found_by_its_role,
    a_role_belongs_to_one_producer_of_a_workspace,
    of_rival_owners_one_gets_the_role,
    an_update_keeps_takes_and_lets_go_of_a_role,
    a_deletion_lets_go_of_its_role,
];

const ACCOUNT: &str = "123456789012";

fn arn(account: &str, path_and_name: &str) -> String {
    format!("arn:aws:iam::{account}:role/{path_and_name}")
}

/// The same producer with a role of the account.
fn with_role(mut producer: Connection, path_and_name: &str) -> Connection {
    set_role(&mut producer, Some(arn(ACCOUNT, path_and_name)));
    producer
}

fn set_role(producer: &mut Connection, role_arn: Option<String>) {
    match &mut producer.role {
        Role::Producer(role) => role.role_arn = role_arn,
        Role::Consumer(_) | Role::Operator => unreachable!("not a producer"),
    }
}

async fn of_role(world: &World, workspace: &WorkspaceId, account: &str, name: &str) -> Option<Connection> {
    let found = world.connections().producer_of_role(workspace, account, name);
    found.await.unwrap()
}

fn assert_taken(answer: Result<(), RegistryError>) {
    assert!(matches!(answer, Err(RegistryError::RoleTaken)), "{answer:?}");
}

/// By account and name, whatever its path is; in its workspace only, disabled or not, and as it was written last.
pub async fn a_producer_is_found_by_its_role(world: &mut World) {
    let (one, two) = (world.workspace("w1").await, world.workspace("w2").await);
    let producer = with_role(
        sample::producer("p1", &one, &["a"], world.now()),
        "desk/sport/ncs",
    );
    create(world, &producer).await.unwrap();
    create(world, &sample::producer("p2", &one, &["b"], world.now()))
        .await
        .unwrap();
    let mut reader = sample::consumer("c1", &one, Filter::default(), world.now());
    if let Role::Consumer(consumer) = &mut reader.role {
        consumer.reader_role_arn = Some(arn(ACCOUNT, "reader"));
    }
    create(world, &reader).await.unwrap();
    assert_eq!(of_role(world, &one, ACCOUNT, "ncs").await, Some(producer.clone()));
    for (workspace, account, name) in [
        (&two, ACCOUNT, "ncs"),
        (&one, "210987654321", "ncs"),
        (&one, ACCOUNT, "NCS"),
        (&one, ACCOUNT, "sport"),
        (&one, ACCOUNT, "desk/sport/ncs"),
        (&one, ACCOUNT, "reader"),
        (&one, ACCOUNT, ""),
    ] {
        assert_eq!(
            of_role(world, workspace, account, name).await,
            None,
            "{account} {name}"
        );
    }
    let disabled = next(&producer, |p| p.disabled = true);
    update(world, &disabled).await.unwrap();
    assert_eq!(of_role(world, &one, ACCOUNT, "ncs").await, Some(disabled));
}

/// Its path does not tell roles apart; another workspace's producer may have the same one. What is refused is not made.
pub async fn a_role_belongs_to_one_producer_of_a_workspace(world: &mut World) {
    let (one, two) = (world.workspace("w1").await, world.workspace("w2").await);
    let first = with_role(sample::producer("p1", &one, &["a"], world.now()), "ncs");
    create(world, &first).await.unwrap();
    let rival = with_role(sample::producer("p2", &one, &["b"], world.now()), "path/ncs");
    assert_taken(create(world, &rival).await);
    assert_eq!(get(world, &rival).await, None);
    assert_eq!(audited(world).await.len(), 1);
    let other = with_role(sample::producer("p3", &two, &["b"], world.now()), "ncs");
    create(world, &other).await.unwrap();
    assert_eq!(of_role(world, &one, ACCOUNT, "ncs").await, Some(first));
    assert_eq!(of_role(world, &two, ACCOUNT, "ncs").await, Some(other));
}

/// Two producers ask for one role at the same moment: one gets it.
pub async fn of_rival_owners_one_gets_the_role(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let one = with_role(sample::producer("p1", &workspace, &["a"], world.now()), "ncs");
    let two = with_role(sample::producer("p2", &workspace, &["b"], world.now()), "ncs");
    let (a, b) = futures::join!(create(world, &one), create(world, &two));
    assert!(a.is_ok() != b.is_ok());
    let (won, lost) = if a.is_ok() { (one, b) } else { (two, a) };
    assert_taken(lost);
    assert_eq!(of_role(world, &workspace, ACCOUNT, "ncs").await, Some(won));
}

/// A change keeps what it has, may not take another's, and frees what it leaves.
pub async fn an_update_keeps_takes_and_lets_go_of_a_role(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let mut one = with_role(sample::producer("p1", &workspace, &["a"], world.now()), "ncs");
    let two = sample::producer("p2", &workspace, &["b"], world.now());
    create(world, &one).await.unwrap();
    create(world, &two).await.unwrap();
    one = next(&one, |p| p.name = "Other".to_owned());
    update(world, &one).await.unwrap();
    assert_eq!(
        of_role(world, &workspace, ACCOUNT, "ncs").await,
        Some(one.clone())
    );
    let wanting = next(&two, |p| set_role(p, Some(arn(ACCOUNT, "ncs"))));
    assert_taken(update(world, &wanting).await);
    assert_eq!(get(world, &two).await, Some(two));
    one = next(&one, |p| set_role(p, Some(arn(ACCOUNT, "path/ncs"))));
    update(world, &one).await.unwrap();
    one = next(&one, |p| set_role(p, Some(arn(ACCOUNT, "mam"))));
    update(world, &one).await.unwrap();
    assert_eq!(
        of_role(world, &workspace, ACCOUNT, "mam").await,
        Some(one.clone())
    );
    assert_eq!(of_role(world, &workspace, ACCOUNT, "ncs").await, None);
    update(world, &wanting).await.unwrap();
    assert_eq!(of_role(world, &workspace, ACCOUNT, "ncs").await, Some(wanting));
    update(world, &next(&one, |p| set_role(p, None))).await.unwrap();
    assert_eq!(of_role(world, &workspace, ACCOUNT, "mam").await, None);
}

/// What a deleted producer had is free for another one.
pub async fn a_deletion_lets_go_of_its_role(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let one = with_role(sample::producer("p1", &workspace, &["a"], world.now()), "ncs");
    create(world, &one).await.unwrap();
    delete(world, &one).await.unwrap();
    assert_eq!(of_role(world, &workspace, ACCOUNT, "ncs").await, None);
    let two = with_role(sample::producer("p2", &workspace, &["b"], world.now()), "ncs");
    create(world, &two).await.unwrap();
    assert_eq!(of_role(world, &workspace, ACCOUNT, "ncs").await, Some(two));
}
