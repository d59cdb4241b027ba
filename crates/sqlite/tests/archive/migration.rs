//! A directory that the first release left.

use rusqlite::Connection;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::filter::Filter;
use storybus_core::domain::record::{StoryKey, story_digest};
use storybus_core::ports::{Archive as _, Stories as _};
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use storybus_testkit::suite::sample;
use tempfile::TempDir;

use crate::engine::world;
use crate::place::{everything, numbers, open};

/// What version 1 held after 30 publications to a consumer: the first ten acknowledged, one of the next a dead letter.
fn version_1(directory: &std::path::Path, clock: &FakeClock) -> QueueKey {
    let mut database = Connection::open(directory.join("bus.db")).unwrap();
    database
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .unwrap();
    let tx = database.transaction().unwrap();
    tx.execute_batch(include_str!("../../src/schema/001_initial.sql"))
        .unwrap();
    tx.pragma_update(None, "application_id", 0x7374_7279).unwrap();
    tx.pragma_update(None, "user_version", 1).unwrap();
    let now = clock.now();
    let workspace = sample::workspace("w1", now);
    let consumer = sample::consumer("c1", &workspace.id, Filter::default(), now);
    let entry = serde_json::to_string(&workspace).unwrap();
    tx.execute(
        "INSERT INTO workspace (id, version, entry) VALUES ('w1', ?1, ?2)",
        (workspace.version.cast_signed(), entry),
    )
    .unwrap();
    let entry = serde_json::to_string(&consumer).unwrap();
    tx.execute(
        "INSERT INTO connection (id, workspace, version, entry) VALUES ('c1', 'w1', ?1, ?2)",
        (consumer.version.cast_signed(), entry),
    )
    .unwrap();
    tx.execute_batch(
        "INSERT INTO workspace_number (workspace) VALUES ('w1');
         INSERT INTO queue (consumer, visible, dead_lettered) VALUES ('c1', 19, 1)",
    )
    .unwrap();
    for n in 1_i64..=30 {
        let (id, group) = (
            sample::message_id(n.cast_unsigned()),
            sample::correlation_id(n.cast_unsigned()),
        );
        let story = (n % 3 == 0).then(|| story_digest("one"));
        tx.execute(
            "INSERT INTO message (workspace, message_id, published_at, story, message_type, family, topic, correlation_id,
                                  producer, system_id, som_version, body)
             VALUES (1, ?1, ?2, ?3, 'telling.started', NULL, 'som.telling', ?4, 'p1', 'ncs-1', '1.0.0', ?5)",
            (id.as_bytes(), now.0, story, group.to_string(), format!("body {n}").into_bytes()),
        )
        .unwrap();
        if n == 11 {
            tx.execute(
                "INSERT INTO dead_letter (queue, position, grp, message, enqueued_at, receives, reason, dead_at)
                 VALUES (1, ?1, ?2, ?1, ?3, 1, 'bad', ?3)",
                (n, group.as_bytes(), now.0),
            )
            .unwrap();
        } else if n > 10 {
            tx.execute(
                "INSERT INTO queue_message (queue, position, grp, message, enqueued_at, state) VALUES (1, ?1, ?2, ?1, ?3, 1)",
                (n, group.as_bytes(), now.0),
            )
            .unwrap();
        }
    }
    let state = serde_json::to_vec(&sample::story_state(3)).unwrap();
    tx.execute(
        "INSERT INTO story (workspace, digest, head, version, state) VALUES (1, ?1, ?2, ?2, ?3)",
        (story_digest("one"), sample::message_id(30).as_bytes(), state),
    )
    .unwrap();
    tx.commit().unwrap();
    QueueKey {
        workspace: workspace.id,
        consumer: consumer.id,
    }
}

#[test]
fn a_directory_of_version_1_is_taken_over_with_all_it_has() {
    run(async {
        let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
        let queue = version_1(directory.path(), &clock);
        let store = open(directory.path(), &clock, |_| {});
        let (archive, stories) = (store.archive(), store.stories());
        for compacted in [false, true] {
            if compacted {
                store.compact().await.unwrap();
            }
            let all = everything(&store, &queue.workspace).await;
            assert_eq!(all.len(), 30);
            assert!(
                all.iter()
                    .zip(1..)
                    .all(|(message, n)| message.body == format!("body {n}"))
            );
            let story = story_digest("one");
            let about = archive.about(&queue.workspace, &story, None, None, 99);
            assert_eq!(about.await.unwrap().len(), 10);
            let found = archive
                .find(&queue.workspace, sample::message_id(17))
                .await
                .unwrap();
            assert_eq!(numbers(&found), [17]);
            assert_eq!(found[0].about.story_id, None, "version 1 kept no names");
        }
        let listed = stories.list(&queue.workspace, None, 10).await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!((&listed[0].story_id, listed[0].begun_at), (&None, None));
        let key = StoryKey {
            workspace: queue.workspace.clone(),
            digest: story_digest("one"),
        };
        assert_eq!(stories.get(&key).await.unwrap().as_ref(), listed.first());
        let world = world(&store, &clock);
        let letters = world.dead_letters(&queue).await;
        assert_eq!(
            (letters.len(), letters[0].body.as_ref()),
            (1, "body 11".as_bytes())
        );
        world.send_to(&queue, 31, 31).await;
        let drained = world.drain(&queue).await;
        assert_eq!(drained.len(), 20);
        assert_eq!(drained[0].body, "body 12");
        store.close().await;
    });
}
