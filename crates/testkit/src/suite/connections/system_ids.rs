//! Who owns which `system_id`.

use storybus_core::domain::connection::Connection;

use super::{assert_taken, audited, create, delete, get, system_ids, update};
use crate::suite::world::World;
use crate::suite::{behaviours, sample};

behaviours![
    a_system_id_belongs_to_one_producer_on_the_whole_bus,
    of_rival_owners_one_gets_the_system_id,
    an_update_cannot_take_a_system_id,
    an_update_keeps_its_own_system_ids,
    an_update_lets_go_of_system_ids,
    a_deletion_lets_go_of_system_ids,
];

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
