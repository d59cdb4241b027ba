//! The process ends after any step of its first start, and the next one hands out secrets that hold.

use std::sync::Arc;

use storybus_core::domain::time::Millis;
use storybus_core::ops::token::TokenRequest;
use storybus_core::{Ports, Settings};
use storybus_testkit::{FakeClock, FixedKeys, FreeRates, Memory, PlainHasher, SeededRandom};

use super::*;

fn bus() -> Bus {
    let clock = Arc::new(FakeClock::at(Millis(1_800_000_000_000)));
    let memory = Arc::new(Memory::new(clock.clone()));
    let ports = Ports {
        clock,
        random: Arc::new(SeededRandom::new(7)),
        ledger: memory.clone(),
        topic: memory.clone(),
        queues: memory.clone(),
        queue_control: memory.clone(),
        dead_letters: memory.clone(),
        archive: memory.clone(),
        stories: memory.clone(),
        jobs: memory.clone(),
        activity: memory.clone(),
        workspaces: memory.clone(),
        connections: memory.clone(),
        audit: memory,
        rates: Arc::new(FreeRates),
        hasher: Arc::new(PlainHasher),
        keys: Arc::new(FixedKeys::default()),
    };
    Bus::new(ports, Settings::default())
}

async fn on_disk() -> Result<()> {
    Ok(())
}

async fn logs_in(bus: &Bus, client: &Client) -> bool {
    let request = TokenRequest {
        client_id: client.client_id.clone(),
        client_secret: client.client_secret.clone().unwrap(),
        scope: None,
        source: "test".to_owned(),
    };
    bus.token_issue(&request).await.is_ok()
}

async fn all_log_in(bus: &Bus, clients: &Clients) -> bool {
    let mut all = true;
    for client in [&clients.operator, &clients.producer, &clients.consumer]
        .into_iter()
        .flatten()
    {
        all &= logs_in(bus, client).await;
    }
    all
}

#[tokio::test]
async fn secrets_are_handed_out_once_and_again_only_while_nobody_has_them() {
    let (bus, folder) = (bus(), tempfile::tempdir().unwrap());
    let path = folder.path().join("note.json");
    let first = FirstStart::open(&bus, on_disk, path.clone())
        .unwrap()
        .run(true, false)
        .await
        .unwrap();
    assert!(
        all_log_in(&bus, &first).await
            && first.producer.as_ref().unwrap().system_id.as_deref() == Some("demo-ncs")
    );
    // It ends before the credentials file is written.
    let mut second = FirstStart::open(&bus, on_disk, path.clone()).unwrap();
    assert_eq!(second.run(true, false).await.unwrap(), first);
    second.done().await.unwrap();
    let third = FirstStart::open(&bus, on_disk, path.clone())
        .unwrap()
        .run(true, false)
        .await
        .unwrap();
    assert_eq!(third, first.shut());
    let text = std::fs::read_to_string(path).unwrap();
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_demo_can_come_later_once() {
    let (bus, folder) = (bus(), tempfile::tempdir().unwrap());
    let path = folder.path().join("note.json");
    let mut start = FirstStart::open(&bus, on_disk, path.clone()).unwrap();
    let plain = start.run(false, false).await.unwrap();
    assert!(plain.tenant.is_none() && plain.producer.is_none());
    start.done().await.unwrap();
    let mut start = FirstStart::open(&bus, on_disk, path.clone()).unwrap();
    let demo = start.run(true, false).await.unwrap();
    assert!(
        demo.operator.as_ref().unwrap().client_secret.is_none(),
        "handed out before"
    );
    assert!(
        logs_in(&bus, demo.producer.as_ref().unwrap()).await
            && logs_in(&bus, demo.consumer.as_ref().unwrap()).await
    );
    start.done().await.unwrap();
    // An operator takes the demo away: it does not come back.
    let tenant = demo.tenant.clone().unwrap();
    bus.producer_delete(&Actor::bus(), &tenant, &demo.producer.unwrap().client_id)
        .await
        .unwrap();
    let later = FirstStart::open(&bus, on_disk, path)
        .unwrap()
        .run(true, false)
        .await
        .unwrap();
    assert!(later.producer.is_none() && later.consumer.is_some());
}

#[tokio::test]
async fn it_may_end_between_any_creation_and_its_note() {
    for lost in 0..4 {
        let (bus, folder) = (bus(), tempfile::tempdir().unwrap());
        let path = folder.path().join("note.json");
        let mut start = FirstStart::open(&bus, on_disk, path.clone()).unwrap();
        let made = start.run(true, false).await.unwrap();
        // The note as it was just before it learnt of one client, and of all after that one.
        let clients = &mut start.note.clients;
        clients.consumer = None;
        if lost <= 2 {
            clients.producer = None;
        }
        if lost <= 1 {
            clients.tenant = None;
        }
        if lost == 0 {
            clients.operator = None;
            start.note.demo_begun = false;
            bus.producer_delete(
                &Actor::bus(),
                made.tenant.as_deref().unwrap(),
                &made.producer.clone().unwrap().client_id,
            )
            .await
            .unwrap();
        }
        start.save().await.unwrap();
        let again = FirstStart::open(&bus, on_disk, path)
            .unwrap()
            .run(true, false)
            .await
            .unwrap();
        assert!(all_log_in(&bus, &again).await, "{lost}");
        let ids = |c: &Clients| [&c.operator, &c.consumer].map(|c| c.as_ref().map(|c| c.client_id.clone()));
        assert_eq!(ids(&again)[0], ids(&made)[0], "no second operator");
        if lost > 0 {
            assert_eq!(
                (again.tenant.as_ref(), ids(&again)),
                (made.tenant.as_ref(), ids(&made)),
                "nothing is made twice"
            );
        }
        assert!(
            !logs_in(&bus, &made.consumer.unwrap()).await || lost == 0,
            "the secret that nobody has seen is gone"
        );
    }
}

#[tokio::test]
async fn a_directory_of_somebody_else_s_is_left_alone() {
    let (bus, folder) = (bus(), tempfile::tempdir().unwrap());
    let theirs = bus.operator_bootstrap("theirs").await.unwrap().unwrap();
    let clients = FirstStart::open(&bus, on_disk, folder.path().join("note.json"))
        .unwrap()
        .run(false, false)
        .await
        .unwrap();
    assert_eq!(clients.operator, Some(known(&theirs.connection)));
    assert_eq!(bus.operator_list(None, 10).await.unwrap().entries.len(), 1);
    assert_eq!(
        bus.operator_get(theirs.connection.id.as_str())
            .await
            .unwrap()
            .secrets
            .len(),
        1
    );
}

#[tokio::test]
async fn a_taken_system_id_is_told() {
    let (bus, folder) = (bus(), tempfile::tempdir().unwrap());
    let members = TenantMembers {
        name: Some("theirs".to_owned()),
        ..TenantMembers::default()
    };
    let tenant = bus.tenant_create(&Actor::bus(), &members).await.unwrap().id;
    let members = ProducerMembers {
        name: Some("theirs".to_owned()),
        system_ids: Some(vec![DEMO_SYSTEM.to_owned()]),
        message_types: Some(vec![]),
        ..ProducerMembers::default()
    };
    bus.producer_create(&Actor::bus(), tenant.as_str(), &members)
        .await
        .unwrap();
    let mut start = FirstStart::open(&bus, on_disk, folder.path().join("note.json")).unwrap();
    let error = format!("{:#}", start.run(true, false).await.unwrap_err());
    assert!(error.contains("demo-ncs belongs to"), "{error}");
}

#[tokio::test]
async fn a_lost_secret_is_replaced_by_a_new_operator() {
    let (bus, folder) = (bus(), tempfile::tempdir().unwrap());
    let path = folder.path().join("note.json");
    let mut first = FirstStart::open(&bus, on_disk, path.clone()).unwrap();
    let lost = first.run(false, true).await.unwrap().operator;
    assert_eq!(
        bus.operator_list(None, 9).await.unwrap().entries.len(),
        1,
        "one is enough"
    );
    first.done().await.unwrap();
    let mut second = FirstStart::open(&bus, on_disk, path.clone()).unwrap();
    let new = second.run(false, true).await.unwrap();
    assert!(all_log_in(&bus, &new).await && new.operator != lost);
    // It ends before the file is written: the same is handed out again.
    let mut third = FirstStart::open(&bus, on_disk, path.clone()).unwrap();
    assert_eq!(third.run(false, true).await.unwrap(), new);
    third.done().await.unwrap();
    let mut fourth = FirstStart::open(&bus, on_disk, path).unwrap();
    assert_eq!(fourth.run(false, false).await.unwrap(), new.shut());
}
