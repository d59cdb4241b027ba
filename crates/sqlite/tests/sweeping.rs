//! What is too old goes, and nothing that is needed.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use std::time::Duration;

use engine::{database, open, world};
use storybus_core::domain::record::{RECORD_LIFETIME, RecordKey, StoryKey};
use storybus_core::ports::Queues as _;
use storybus_core::ports::ledger::{NewRecord, Recorded, StoryMove};
use storybus_core::ports::queues::{RETENTION, Receive};
use storybus_sqlite::Store;
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use storybus_testkit::suite::World;
use storybus_testkit::suite::sample::{self, Letter};
use tempfile::TempDir;

const DAY: Duration = Duration::from_secs(24 * 3600);

struct Place {
    clock: FakeClock,
    directory: TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let (clock, directory) = (FakeClock::new(), TempDir::new().unwrap());
        let store = open(directory.path(), &clock);
        Self {
            clock,
            directory,
            store,
        }
    }

    fn world(&self) -> World {
        world(&self.store, &self.clock)
    }

    /// How many rows a table has after a sweep.
    async fn left(&self, table: &str) -> i64 {
        self.store.sweep().await.unwrap();
        let sql = format!("SELECT count(*) FROM {table}");
        database(self.directory.path())
            .query_row(&sql, [], |row| row.get(0))
            .unwrap()
    }
}

#[test]
fn records_go_when_they_expire() {
    run(async {
        let place = Place::new();
        let world = place.world();
        let queue = world.queue().await;
        for n in 0..250 {
            world.send_to(&queue, n, n).await;
        }
        place.clock.advance(DAY);
        for n in 250..300 {
            world.send_to(&queue, n, n).await;
        }
        assert_eq!(place.left("record").await, 300);
        place.clock.advance(RECORD_LIFETIME - DAY);
        assert_eq!(place.left("record").await, 50);
        place.clock.advance(DAY);
        assert_eq!(place.left("record").await, 0);
        place.store.close().await;
    });
}

#[test]
fn a_removed_record_stays_as_long_as_the_topic_has_to_know_it() {
    run(async {
        let place = Place::new();
        let world = place.world();
        let queue = world.queue().await;
        let new = world.record_of(&queue.workspace, &Letter::new(1, 1));
        world.ledger().record(&new).await.unwrap();
        world
            .publish(&world.publication(&queue.workspace, &Letter::new(1, 1), new.record.attempt))
            .await
            .unwrap();
        let removal = storybus_core::ports::ledger::Removal {
            key: new.key,
            attempt: new.record.attempt,
            story: None,
            now: place.clock.now(),
            window: Duration::from_secs(30),
        };
        world.ledger().remove(&removal).await.unwrap();
        place.clock.advance(Duration::from_secs(299));
        assert_eq!(place.left("record").await, 1);
        place.clock.advance(Duration::from_secs(1));
        assert_eq!(place.left("record").await, 0);
        place.store.close().await;
    });
}

#[test]
fn messages_go_after_thirty_days() {
    run(async {
        let place = Place::new();
        let world = place.world();
        let queue = world.queue().await;
        for n in 0..250 {
            world.send_to(&queue, n, n).await;
        }
        place.clock.advance(DAY * 30 - Duration::from_millis(1));
        assert_eq!(place.left("message").await, 250);
        place.clock.advance(Duration::from_millis(1));
        assert_eq!(place.left("message").await, 0);
        world.send_to(&queue, 1000, 1).await;
        assert_eq!(world.drain(&queue).await.len(), 1);
        place.store.close().await;
    });
}

#[test]
fn a_dead_letter_keeps_its_message() {
    run(async {
        let place = Place::new();
        let world = place.world();
        let queue = world.queue().await;
        world.send_to(&queue, 1, 1).await;
        world.send_to(&queue, 2, 2).await;
        place.clock.advance(DAY * 13);
        let held = world.receive(&queue, 1).await;
        world.reject(&queue, &held, "bad").await;
        place.clock.advance(DAY * 14 - Duration::from_secs(1));
        assert_eq!(
            (place.left("dead_letter").await, place.left("message").await),
            (1, 2)
        );
        assert_eq!(world.counts(&queue).await.dead_lettered, 1);
        place.clock.advance(DAY * 4);
        assert_eq!(
            (place.left("dead_letter").await, place.left("message").await),
            (0, 0)
        );
        assert_eq!(world.counts(&queue).await.dead_lettered, 0);
        place.store.close().await;
    });
}

#[test]
fn handles_attempts_and_old_queue_rows_go() {
    run(async {
        let place = Place::new();
        let world = place.world();
        let queue = world.queue().await;
        for n in 0..30 {
            world.send_to(&queue, n, n).await;
        }
        let receive = Receive {
            max: 10,
            wait: Duration::ZERO,
            visibility: Duration::from_secs(60),
            max_receives: 5,
            attempt: Some("a".to_owned()),
        };
        let held = place.store.queues().receive(&queue, &receive).await.unwrap();
        world.acknowledge(&queue, &held).await;
        assert_eq!(
            (
                place.left("queue_message").await,
                place.left("receive_attempt").await
            ),
            (30, 1)
        );
        place.clock.advance(Duration::from_secs(60));
        assert_eq!(
            (
                place.left("queue_message").await,
                place.left("receive_attempt").await
            ),
            (20, 1)
        );
        place.clock.advance(Duration::from_secs(240));
        assert_eq!(
            (
                place.left("queue_message").await,
                place.left("receive_attempt").await
            ),
            (20, 0)
        );
        place.clock.advance(RETENTION);
        assert_eq!(place.left("queue_message").await, 0);
        let counts = world.counts(&queue).await;
        assert_eq!((counts.visible, counts.in_flight, counts.oldest_at), (0, 0, None));
        place.store.close().await;
    });
}

#[test]
fn a_deleted_workspaces_stories_go() {
    run(async {
        let place = Place::new();
        let world = place.world();
        let (one, two) = (world.workspace("w1").await, world.workspace("w2").await);
        for (n, workspace) in [(1_u8, &one), (2, &one), (3, &two)] {
            let mut new = world.record_of(workspace, &Letter::new(u64::from(n), 1));
            let key = StoryKey {
                workspace: workspace.clone(),
                digest: [n; 16],
            };
            new = NewRecord {
                story: Some(StoryMove {
                    key,
                    story_id: n.to_string(),
                    read: None,
                    state: sample::story_state(1),
                    version: world.token(),
                }),
                ..new
            };
            assert_eq!(world.ledger().record(&new).await.unwrap(), Recorded::Done);
        }
        let audit = sample::audit("tenant.delete", &["w1"], place.clock.now());
        world.workspaces().delete(&one, &audit).await.unwrap();
        assert_eq!(place.left("story").await, 1);
        let key = RecordKey {
            workspace: two.clone(),
            message_id: sample::message_id(3),
        };
        let story = StoryKey {
            workspace: two,
            digest: [3; 16],
        };
        assert!(
            world
                .ledger()
                .read(&key, Some(&story), place.clock.now())
                .await
                .unwrap()
                .story
                .is_some()
        );
        place.store.close().await;
    });
}
