//! A backup of a bus at work is a bus of its own; what is not whole is refused.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine::{database, open, world};
use rusqlite::Connection;
use storybus_core::domain::delivery::{Delivery, QueueKey};
use storybus_sqlite::{BackupError, OpenError, Store, StoreOptions, backup, check, restore};
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use storybus_testkit::suite::{World, sample};
use tempfile::TempDir;

const BESIDE: &[&str] = &["keys.json", "credentials.json"];

struct Place {
    clock: FakeClock,
    folder: TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let (clock, folder) = (FakeClock::new(), TempDir::new().unwrap());
        let store = open(&folder.path().join("data"), &clock);
        Self { clock, folder, store }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn world(&self) -> World {
        world(&self.store, &self.clock)
    }

    fn backup(&self, name: &str) {
        backup(&self.path("data"), &self.path(name), BESIDE).unwrap();
    }
}

fn number(delivery: &Delivery) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&delivery.message_id.as_bytes()[8..]);
    u64::from_be_bytes(bytes)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn rows(data: &Path, sql: &str) -> i64 {
    database(data).query_row(sql, [], |row| row.get(0)).unwrap()
}

/// What is in a restored bus: everything answered before the backup, in order, and nothing that was acknowledged before.
async fn goes_on(
    data: &Path,
    clock: &FakeClock,
    queue: &QueueKey,
    acknowledged: &BTreeSet<u64>,
    answered: u64,
) {
    let unpublished = "SELECT count(*) FROM record WHERE state = 1
         AND NOT EXISTS (SELECT 1 FROM message WHERE message_id = record.message_id)";
    assert_eq!(rows(data, unpublished), 0, "what is published is in the archive");
    let store = open(data, clock);
    let world = world(&store, clock);
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut came = BTreeSet::new();
    clock.advance(storybus_core::ports::queues::MAX_VISIBILITY);
    for delivery in world.drain(queue).await {
        let n = number(&delivery);
        assert!(came.insert(n), "message {n} is there twice");
        let before = last.insert(n % 7, n);
        assert!(before < Some(n), "message {n} is behind {before:?}");
    }
    assert!(came.is_disjoint(acknowledged));
    for n in (0..answered).filter(|n| !acknowledged.contains(n)) {
        assert!(came.contains(&n), "message {n} was answered before the backup");
    }
    // and it is a bus
    world.send_to(queue, 1_000_000, 1).await;
    assert_eq!(world.drain(queue).await.len(), 1);
    store.close().await;
}

#[test]
fn a_backup_of_a_bus_at_work_is_a_bus() {
    let place = Place::new();
    let queue = run(async { place.world().queue().await });
    let (answered, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut taken = Vec::new();
    let mut acknowledged = BTreeSet::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let world = place.world();
            for n in 0.. {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                run(world.send_to(&queue, n, n % 7));
                answered.store(n + 1, Ordering::Release);
            }
        });
        for n in 0..4 {
            // somebody takes, and dies with some of it in hand
            run(async {
                let received = place.world().receive(&queue, 10).await;
                place
                    .world()
                    .acknowledge(&queue, &received[..received.len() / 2])
                    .await;
                acknowledged.extend(received[..received.len() / 2].iter().map(number));
            });
            while answered.load(Ordering::Acquire) < (n + 1) * 150 {
                std::thread::yield_now();
            }
            let before = answered.load(Ordering::Acquire);
            let name = format!("backup-{n}");
            place.backup(&name);
            taken.push((name, before, acknowledged.clone()));
        }
        stop.store(true, Ordering::Release);
    });
    for (name, before, acknowledged) in taken {
        assert_eq!(check(&place.path(&name)).unwrap().findings, []);
        let data = place.path(&format!("restored-{name}"));
        restore(&place.path(&name), &data, BESIDE).unwrap();
        assert_eq!(check(&data).unwrap().findings, []);
        run(goes_on(&data, &FakeClock::new(), &queue, &acknowledged, before));
    }
    assert_eq!(check(&place.path("data")).unwrap().findings, []);
    run(place.store.close());
}

#[test]
fn a_backup_is_for_its_owner_and_never_half_there() {
    let place = Place::new();
    for name in BESIDE {
        fs::write(place.path("data").join(name), "secret").unwrap();
        fs::set_permissions(place.path("data").join(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let copied = backup(&place.path("data"), &place.path("b"), BESIDE).unwrap();
    assert_eq!(copied.files, ["bus.db", "keys.json", "credentials.json"]);
    assert_eq!(mode(&place.path("b")), 0o700);
    for file in &copied.files {
        assert_eq!(mode(&place.path("b").join(file)), 0o600, "{file}");
    }
    let again = backup(&place.path("data"), &place.path("b"), BESIDE);
    assert!(matches!(again, Err(BackupError::Exists(_))), "{again:?}");
    let nothing = backup(&place.path("none"), &place.path("c"), BESIDE);
    let no_database = matches!(
        &nothing,
        Err(BackupError::Unreadable {
            error: OpenError::NoDatabase,
            ..
        })
    );
    assert!(no_database, "{nothing:?}");
    let nowhere = backup(&place.path("data"), &place.path("none/c"), BESIDE);
    assert!(matches!(nowhere, Err(BackupError::Io { .. })), "{nowhere:?}");
    let left: BTreeSet<_> = fs::read_dir(place.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["b", "data"].map(Into::into).into());
    run(place.store.close());
}

#[test]
fn only_a_whole_backup_is_restored_and_only_into_an_empty_place() {
    let place = Place::new();
    run(async {
        let queue = place.world().queue().await;
        for n in 0..200 {
            place.world().send_to(&queue, n, n % 7).await;
        }
    });
    place.backup("b");
    let raw = restore(&place.path("data"), &place.path("r"), BESIDE);
    assert!(matches!(raw, Err(BackupError::NotABackup(_))), "{raw:?}");
    fs::create_dir(place.path("full")).unwrap();
    fs::write(place.path("full/file"), "x").unwrap();
    let full = restore(&place.path("b"), &place.path("full"), BESIDE);
    assert!(matches!(full, Err(BackupError::NotEmpty(_))), "{full:?}");
    // a page is overwritten in the middle
    let file = place.path("b/bus.db");
    let whole = fs::read(&file).unwrap();
    let mut broken = whole.clone();
    let middle = whole.len() / 2 / 4096 * 4096;
    broken[middle..middle + 4096].fill(0xa5);
    fs::write(&file, broken).unwrap();
    let damaged = restore(&place.path("b"), &place.path("r"), BESIDE);
    assert!(damaged.is_err(), "{damaged:?}");
    assert!(!place.path("r").exists());
    fs::write(&file, whole).unwrap();
    restore(&place.path("b"), &place.path("r"), BESIDE).unwrap();
    // what a restore that was killed leaves
    fs::create_dir(place.path("part")).unwrap();
    fs::copy(&file, place.path("part/bus.db.part")).unwrap();
    let options = StoreOptions::new(std::sync::Arc::new(place.clock.clone()));
    let begun = Store::open(&place.path("part"), options);
    assert!(matches!(begun, Err(OpenError::DatabaseGone { .. })), "{begun:?}");
    run(place.store.close());
}

/// Each fault is made in a copy, and found.
#[test]
fn a_check_finds_what_does_not_fit() {
    let place = Place::new();
    let queue = run(async {
        let world = place.world();
        let queue = world.queue().await;
        for n in 0..20 {
            world.send_to(&queue, n, n % 2).await;
        }
        let received = world.receive(&queue, 2).await;
        world.reject(&queue, &received, "bad").await;
        world.receive(&queue, 1).await;
        let audit = sample::audit("job.create", &[], place.clock.now());
        let job = sample::job("j1", &queue, place.clock.now());
        world.jobs().create(&job, &audit).await.unwrap();
        queue
    });
    place.backup("sound");
    let sound = check(&place.path("sound")).unwrap();
    assert_eq!(sound.findings, []);
    assert_eq!((sound.queued, sound.dead_letters, sound.jobs), (18, 2, 1));
    let consumer = queue.consumer.as_str();
    for (n, (sql, words)) in [
        (
            "DELETE FROM message WHERE seq = (SELECT max(message) FROM queue_message)",
            "has no message",
        ),
        (
            "DELETE FROM message WHERE seq = (SELECT min(message) FROM dead_letter)",
            "a dead letter",
        ),
        ("UPDATE queue SET visible = visible + 1", consumer),
        (
            "UPDATE queue SET dead_lettered = 0",
            "`dead_lettered` is 0, and 2 are there",
        ),
        (
            "UPDATE queue_message SET state = 0 WHERE state = 1",
            "not in a state to be received",
        ),
        (
            "UPDATE queue_message SET state = 1 WHERE state = 0",
            "not in a state to be received",
        ),
        ("UPDATE job SET entry = '{}'", "job j1 cannot be read"),
        ("UPDATE job SET version = 7", "job j1 does not agree"),
        (
            "UPDATE dead_letter SET job = 'j9'",
            "job j9 is over and still holds 2",
        ),
        (
            "UPDATE meta SET value = 3 WHERE name = 'positions'",
            "has position",
        ),
        ("UPDATE connection SET entry = 'x'", "workspaces and connections"),
        ("DROP INDEX queue_group", "cannot read the order groups"),
    ]
    .into_iter()
    .enumerate()
    {
        let copy = place.path(&format!("broken-{n}"));
        restore(&place.path("sound"), &copy, BESIDE).unwrap();
        let database = Connection::open(copy.join("bus.db")).unwrap();
        assert!(database.execute_batch(sql).is_ok(), "{sql}");
        drop(database);
        let found = check(&copy).unwrap().findings;
        assert!(found.iter().any(|f| f.what.contains(words)), "{sql}: {found:?}");
    }
    run(place.store.close());
}
