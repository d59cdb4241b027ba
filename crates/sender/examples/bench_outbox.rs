//! The outbox and the relay by themselves, with a partner in the same process: `bench_outbox ADDRESS [--messages N] [--backlog N]`.
//!
//! ADDRESS is that of an outbox that holds nothing else. It reports how long an enqueue takes inside a transaction of ten, how many
//! messages a second the relay sends, and what memory the process has, behind a backlog or without one.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement: it prints, and it takes the time"
)]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use storybus_sender::answer::{About, Answer, Left, Outcome, Retry};
use storybus_sender::message::{Group, Key, Message, Target};
use storybus_sender::outbox::{Conn, Outbox, enqueue};
use storybus_sender::ports::{SystemClock, SystemRandom};
use storybus_sender::relay::Relay;
use storybus_sender::transport::{Attempt, Outgoing, Transport};
use tokio::sync::Notify;

/// A partner that says yes after so long.
struct Partner {
    takes: Duration,
    got: AtomicU64,
    all: u64,
    done: Notify,
}

#[async_trait]
impl Transport for Partner {
    async fn attempt(&self, _message: Outgoing<'_>, _how: Attempt) -> Answer {
        tokio::time::sleep(self.takes).await;
        if self.got.fetch_add(1, Ordering::Relaxed) + 1 == self.all {
            self.done.notify_one();
        }
        Answer {
            outcome: Outcome::Accepted,
            status: Some(202),
            rule: None,
            detail: None,
            retry: Retry::No,
            retry_after: None,
            about: About::Message,
            left: Left::Maybe,
        }
    }

    fn memory(&self) -> Duration {
        Duration::from_secs(7 * 24 * 3600)
    }
}

enum Caller {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Caller {
    fn conn(&mut self) -> Conn<'_> {
        match self {
            Self::Sqlite(conn) => conn.into(),
            Self::Postgres(conn) => conn.into(),
        }
    }

    async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(conn) => sqlx::raw_sql(sql).execute(conn).await.map(drop),
            Self::Postgres(conn) => sqlx::raw_sql(sql).execute(conn).await.map(drop),
        }
    }
}

struct Settings {
    address: String,
    messages: u64,
    backlog: u64,
    takes: Duration,
}

fn settings() -> Result<Settings, Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut settings = Settings {
        address: args.next().ok_or("which outbox?")?,
        messages: 20_000,
        backlog: 0,
        takes: Duration::from_millis(5),
    };
    while let (Some(name), Some(value)) = (args.next(), args.next()) {
        match name.as_str() {
            "--messages" => settings.messages = value.parse()?,
            "--backlog" => settings.backlog = value.parse()?,
            "--takes-ms" => settings.takes = Duration::from_millis(value.parse()?),
            other => return Err(format!("what is {other}?").into()),
        }
    }
    Ok(settings)
}

/// Enqueues so many messages of 2,000 bytes in 200 groups. How long each took.
async fn fill(
    caller: &mut Caller,
    target: &Target,
    kind: &str,
    count: u64,
    at_once: u64,
) -> Result<Vec<Duration>, Box<dyn Error>> {
    let mut took = Vec::new();
    let began = Instant::now();
    for n in 0..count {
        if n % at_once == 0 {
            caller.run("BEGIN").await?;
        }
        let mut body = format!("{{\"message\": \"{kind}-{n}\", \"padding\": \"").into_bytes();
        body.resize(1_998, b'x');
        body.extend_from_slice(b"\"}");
        let message = Message {
            target: target.clone(),
            key: Key::new(format!("{kind}-{n}"))?,
            group: Some(Group::new(format!("story-{}", n % 200))?),
            body,
            content_type: None,
        };
        let before = Instant::now();
        enqueue(caller.conn(), &message).await?;
        took.push(before.elapsed());
        if n % at_once == at_once - 1 || n == count - 1 {
            caller.run("COMMIT").await?;
        }
    }
    if count > 0 {
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "{kind}: {count} enqueued, {at_once} a transaction: {:.0}/s",
            count as f64 / seconds
        );
    }
    took.sort();
    Ok(took)
}

fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| {
        status
            .lines()
            .find(|line| line.starts_with(name))
            .map(|line| line.trim_start_matches(name).trim().to_owned())
            .unwrap_or_default()
    };
    format!("{} now, {} at most", line("VmRSS:"), line("VmHWM:"))
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = settings()?;
    let outbox = Outbox::open(&settings.address)?;
    outbox.migrate().await?;
    let target = Target::new("bus")?;
    let mut caller = if settings.address.starts_with("postgres") {
        Caller::Postgres(PgConnection::connect(&settings.address).await?)
    } else {
        Caller::Sqlite(SqliteConnection::connect(&settings.address).await?)
    };
    drop(fill(&mut caller, &target, "backlog", settings.backlog, 1_000).await?);
    let took = fill(&mut caller, &target, "message", settings.messages, 10).await?;
    if let (Some(median), Some(slow)) = (took.get(took.len() / 2), took.get(took.len() * 99 / 100)) {
        println!("an enqueue: median {median:?}, 99 of 100 within {slow:?}");
    }
    drop(took);
    println!("memory before the relay: {}", memory());

    let partner = Arc::new(Partner {
        takes: settings.takes,
        got: AtomicU64::new(0),
        all: settings.messages,
        done: Notify::new(),
    });
    let relay = Relay::new(outbox.clone(), Arc::new(SystemClock), Arc::new(SystemRandom))
        .transport(target, Arc::clone(&partner) as _);
    let began = Instant::now();
    relay.run(partner.done.notified()).await?;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "relay: {} sent, {:.0}/s",
        settings.messages,
        settings.messages as f64 / seconds
    );
    println!("memory after the relay: {}", memory());
    let before = Instant::now();
    let stats = outbox.stats().await?;
    println!("stats in {:?}: {:?}", before.elapsed(), stats.counts);
    Ok(())
}
