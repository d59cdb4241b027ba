//! How large the archive is, how fast, and what it costs those who publish, on this machine.
//!
//! ```sh
//! cargo run --release -p storybus-sqlite --example bench_archive -- size|cost|history|retention [MESSAGES] [DIR]
//! ```
//!
//! - `size`: publishes 4 kB snapshots of 1,000 stories, and weighs what becomes of them.
//! - `cost`: publishes with the archivist and without it, in turn.
//! - `history`: fills a history with short bodies, and looks into it.
//! - `retention`: fills a history, lets a month go by, and publishes 500 a second while it is swept.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]
#![expect(clippy::panic, reason = "a wrong word")]

mod bus;
mod story;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection as Database;
use storybus_core::domain::archived::{Selection, TimeRange};
use storybus_core::domain::record::story_digest;
use storybus_core::ports::archive::PartLimits;
use storybus_core::ports::{Archive as _, Clock as _, Stories as _};
use storybus_testkit::suite::sample;

use self::bus::{Bus, bytes_of, threads};
use self::story::{Snapshot, scatter, sixteen};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn main() {
    let mut words = std::env::args().skip(1);
    let what = words.next().unwrap_or_default();
    let messages = words.next().and_then(|word| word.parse().ok());
    let temporary = tempfile::tempdir().unwrap();
    let dir = words.next().map_or(temporary.path().to_owned(), PathBuf::from);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        match what.as_str() {
            "size" => size(&dir, messages.unwrap_or(50_000)).await,
            "cost" => cost(&dir, messages.unwrap_or(64_000)).await,
            "history" => history(&dir, messages.unwrap_or(10_000_000)).await,
            "retention" => retention(&dir, messages.unwrap_or(1_000_000)).await,
            other => panic!("{other}? one of size, cost, history, retention"),
        }
    });
}

async fn size(dir: &Path, count: u64) {
    let bus = Bus::open(dir, usize::MAX, 1000).await;
    let rate = bus.publishes(count).await;
    let count = count / 64 * 64;
    let body = Snapshot::new(7, 1000, true).body.len();
    println!("published {count} messages with bodies of {body} bytes, {rate:.0}/s");
    let before = bytes_of(dir, "message*");
    let begun = Instant::now();
    bus.store.compact().await.unwrap();
    let took = begun.elapsed().as_secs_f64();
    bus.store.sweep().await.unwrap();
    let each = |bytes: i64| bytes as f64 / count as f64;
    println!("compacted in {took:.2} s, {:.0} messages/s", count as f64 / took);
    println!("as rows: {:.0} bytes a message", each(before));
    for names in [
        "archive_block",
        "archive_block_*",
        "archive_[rs]*",
        "archive*",
        "message*",
    ] {
        println!("{names}: {:.1} bytes a message", each(bytes_of(dir, names)));
    }
    let begun = Instant::now();
    let read = read_all(&bus).await;
    let took = begun.elapsed().as_secs_f64();
    println!("a replay reads {read} messages, {:.0}/s", read as f64 / took);
    bus.store.close().await;
}

/// As a replay's steps do.
async fn read_all(bus: &Bus) -> usize {
    let range = TimeRange {
        from: bus.clock.now().minus(DAY),
        to: bus.clock.now(),
    };
    let limits = PartLimits {
        messages: 100,
        scanned: 10_000,
        bytes: 4 << 20,
    };
    let (archive, selection) = (bus.store.archive(), Selection::default());
    let (mut after, mut read) = (None, 0);
    loop {
        let part = archive
            .read(&bus.workspace, range, after.as_ref(), &selection, limits)
            .await
            .unwrap();
        read += part.messages.len();
        if part.end {
            return read;
        }
        after = part.last;
    }
}

async fn cost(dir: &Path, count: u64) {
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..6 {
        let with = round % 2;
        let tail = [usize::MAX, 4096][with];
        let dir = dir.join(round.to_string());
        std::fs::create_dir(&dir).unwrap();
        let bus = Bus::open(&dir, tail, 1000).await;
        bus.publishes(count / 8).await;
        let rate = bus.publishes(count).await;
        println!(
            "{}: {rate:.0} publishes/s",
            ["without the archivist", "with it"][with]
        );
        let used: Vec<String> = threads()
            .iter()
            .map(|(name, seconds)| format!("{name} {:.1}", seconds * 1e6 / (count + count / 8) as f64))
            .collect();
        println!("    processor time, µs a message: {}", used.join(", "));
        rates[with].push(rate);
        bus.store.close().await;
        std::fs::remove_dir_all(&dir).unwrap();
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    println!("that is {:.3} of it", mean(&rates[1]) / mean(&rates[0]));
}

/// Times a look 200 times.
async fn time<F: Future<Output = usize>>(what: &str, look: impl Fn(u64) -> F) {
    let (mut took, mut found) = (Vec::new(), 0);
    for n in 0..200 {
        let begun = Instant::now();
        found += look(scatter(n)).await;
        took.push(begun.elapsed());
    }
    report(what, took);
    println!("    ({found} found)");
}

fn report(what: &str, mut took: Vec<Duration>) {
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{what}: p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

async fn history(dir: &Path, count: u64) {
    let stories = count / 50;
    let bus = Bus::open(dir, 4096, stories).await;
    let begun = Instant::now();
    bus.fill(count, false).await;
    println!(
        "filled {count} messages in {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    let begun = Instant::now();
    bus.store.compact().await.unwrap();
    println!(
        "the rest of the index took {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    bus.publishes(4032).await;
    println!(
        "archive: {:.1} bytes a message",
        bytes_of(dir, "archive*") as f64 / count as f64
    );
    let runs = bytes_of(dir, "archive_run*");
    println!("of them the index: {:.1}", runs as f64 / count as f64);
    let archive = &bus.store.archive();
    let bus = &bus;
    time("find a message", async |n| {
        let id = Snapshot::new(n % count, stories, false).message_id;
        archive.find(&bus.workspace, id).await.unwrap().len()
    })
    .await;
    time("find one that is not there", async |n| {
        let id = storybus_protocol::id::MessageId::from_bytes(sixteen(n));
        archive.find(&bus.workspace, id).await.unwrap().len()
    })
    .await;
    time("a story's first 50", async |n| {
        let snapshot = Snapshot::new(n % stories, stories, false);
        let (story, id) = (snapshot.about.story.unwrap(), snapshot.correlation_id);
        archive
            .about(&bus.workspace, &story, Some(id), None, 50)
            .await
            .unwrap()
            .len()
    })
    .await;
    time("a story that is not there", async |n| {
        let story = story_digest(&n.to_string());
        archive
            .about(&bus.workspace, &story, None, None, 50)
            .await
            .unwrap()
            .len()
    })
    .await;
    time("the latest 100", async |_| {
        archive.latest(&bus.workspace, None, 100).await.unwrap().len()
    })
    .await;
    time("100 before any", async |n| {
        let before = storybus_core::domain::archived::Position((n % count).to_string());
        archive
            .latest(&bus.workspace, Some(&before), 100)
            .await
            .unwrap()
            .len()
    })
    .await;
    let begun = Instant::now();
    let read = read_all(bus).await;
    println!(
        "a replay reads {:.0} messages/s",
        read as f64 / begun.elapsed().as_secs_f64()
    );
    bus.store.close().await;
    stories_list(dir, count / 5).await;
}

async fn stories_list(dir: &Path, count: u64) {
    let mut database = Database::open(dir.join("bus.db")).unwrap();
    let tx = database.transaction().unwrap();
    let state = serde_json::to_vec(&sample::story_state(1)).unwrap();
    for n in 0..count {
        let sql = "INSERT INTO story (workspace, digest, head, version, state, story_id, begun_at)
                   VALUES (1, ?1, ?1, ?1, ?2, ?3, ?4)";
        let id = format!("story-{n}");
        tx.prepare_cached(sql)
            .unwrap()
            .execute((sixteen(n), &state, &id, i64::try_from(n).unwrap()))
            .unwrap();
    }
    tx.commit().unwrap();
    drop(database);
    let options = storybus_sqlite::StoreOptions::new(std::sync::Arc::new(bus::Shifted::default()));
    let store = storybus_sqlite::Store::open(dir, options).unwrap();
    let (stories, workspace) = (&store.stories(), &"w1".parse().unwrap());
    time(&format!("100 of {count} stories"), async |n| {
        let after = storybus_core::domain::archived::Position((n % count).to_string());
        stories.list(workspace, Some(&after), 100).await.unwrap().len()
    })
    .await;
    store.close().await;
}

async fn retention(dir: &Path, count: u64) {
    let bus = Bus::open(dir, 4096, 1000).await;
    let begun = Instant::now();
    bus.fill(count, true).await;
    bus.store.compact().await.unwrap();
    println!(
        "filled {count} messages in {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    let blocks = || bytes_of(dir, "archive_block");
    println!("{} MB of blocks", blocks() / 1_000_000);
    let quiet = paced(&bus, 10, || false).await;
    report("publish, nothing to sweep", quiet);
    bus.clock.advance(DAY * 31);
    let begun = Instant::now();
    let during = paced(&bus, 300, || blocks() < 1_000_000).await;
    println!("swept in {:.0} s", begun.elapsed().as_secs_f64());
    report("publish meanwhile", during);
    bus.store.close().await;
}

/// 500 publishes a second for so long, or until it is enough.
async fn paced(bus: &Bus, seconds: u64, enough: impl Fn() -> bool) -> Vec<Duration> {
    let mut took = Vec::new();
    for second in 0..seconds {
        let mut tick = tokio::time::interval(Duration::from_millis(2));
        let mut going = Vec::new();
        for _ in 0..500 {
            tick.tick().await;
            let bus = bus.clone();
            going.push(tokio::spawn(async move { bus.publish().await }));
        }
        for one in going {
            took.push(one.await.unwrap());
        }
        if second % 5 == 4 && enough() {
            break;
        }
    }
    took
}
