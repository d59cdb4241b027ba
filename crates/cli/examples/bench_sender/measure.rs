//! The measurements, each with a bus and an outbox of its own.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use storybus_cli::serve::credentials::Credentials;
use tokio::time::{Instant, sleep_until};

use crate::Args;
use crate::database::{Place, Producer, Stories};
use crate::machine;
use crate::served::Served;

/// How long an outbox may take to become empty.
const LONGEST: Duration = Duration::from_secs(600);
/// How long a relay with a backlog runs before its rate is measured, and until when.
const WARM: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(20);
/// How many transactions are timed.
const TIMED: usize = 5_000;

const FIRST: &str = "SELECT min(first_attempt_at) FROM sender_log";
const LAST: &str = "SELECT max(finished_at) FROM sender_log WHERE state = 'delivered'";
const DELIVERED: &str = "SELECT count(*) FROM sender_log WHERE state = 'delivered'";

/// A relay at work.
pub(crate) struct Worked {
    /// Messages a second.
    pub(crate) rate: f64,
    /// Processor time a message, in microseconds: of the relay (and, on SQLite, of the database),
    pub(crate) relay_micros: f64,
    /// of the server's process that works for it,
    pub(crate) server_micros: Option<f64>,
    /// and of the bus.
    pub(crate) bus_micros: f64,
    /// The most memory that the relay had, in MiB.
    pub(crate) memory: f64,
}

/// Processor time so far, in seconds.
#[derive(Debug, Clone, Copy)]
struct Spent {
    relay: f64,
    server: Option<f64>,
    bus: f64,
}

impl Spent {
    async fn now(producer: &mut Producer, relay: &Relay, bus: &Served) -> Result<Self> {
        let processes = producer.server_processes().await?;
        let server = !processes.is_empty();
        Ok(Self {
            relay: machine::processor_time(relay.0.id()),
            server: server.then(|| processes.into_iter().map(machine::processor_time).sum()),
            bus: machine::processor_time(bus.id()),
        })
    }

    /// What was spent since `before` for so many messages.
    fn since(self, before: Self, messages: f64, rate: f64, relay: &Relay) -> Worked {
        Worked {
            rate,
            relay_micros: (self.relay - before.relay) * 1e6 / messages,
            server_micros: self
                .server
                .map(|server| (server - before.server.unwrap_or(0.0)) * 1e6 / messages),
            bus_micros: (self.bus - before.bus) * 1e6 / messages,
            memory: machine::memory(relay.0.id()),
        }
    }
}

/// `storybus relay`, as users start it.
struct Relay(Child);

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Relay {
    fn start(args: &Args, place: &Place, bus: &Credentials) -> Result<Self> {
        let Some(producer) = &bus.clients.producer else {
            bail!("the bus has no producer");
        };
        let child = Command::new(&args.storybus)
            .args([
                "relay",
                "--log",
                "warn",
                "--listen",
                "127.0.0.1:0",
                "--outbox",
                &place.url,
            ])
            .args(["--url", &bus.base_url, "--client-id", &producer.client_id])
            .env(
                "STORYBUS_CLIENT_SECRET",
                producer.client_secret.as_deref().unwrap_or_default(),
            )
            .env_remove("STORYBUS_CREDENTIALS")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Self(child))
    }

    fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.0), Signal::TERM)?;
        let ended = self.0.wait()?;
        if !ended.success() {
            bail!("the relay ended with {ended}");
        }
        Ok(())
    }
}

async fn pause(span: Duration) {
    sleep_until(Instant::now() + span).await;
}

/// Comes back when nothing is pending behind this number.
async fn until_done(producer: &mut Producer, relay: &mut Relay, behind: i64) -> Result<()> {
    let began = Instant::now();
    while producer.is_pending(behind).await? {
        if began.elapsed() > LONGEST {
            bail!("the outbox is not empty after {} s", LONGEST.as_secs());
        }
        if let Some(ended) = relay.0.try_wait()? {
            bail!("the relay ended with {ended}");
        }
        pause(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The outbox is filled, then a relay empties it.
pub(crate) async fn drained(args: &Args, place: &Place) -> Result<Worked> {
    let mut producer = place.open().await?;
    producer
        .fill(&mut Stories::new(args.stories), args.messages)
        .await?;
    empty(args, place, &mut producer, 0).await
}

async fn empty(args: &Args, place: &Place, producer: &mut Producer, behind: i64) -> Result<Worked> {
    let mut bus = Served::start(&args.storybus)?;
    let credentials = bus.credentials().await?;
    let mut relay = Relay::start(args, place, &credentials)?;
    let before = Spent {
        relay: 0.0,
        server: None,
        bus: machine::processor_time(bus.id()),
    };
    until_done(producer, &mut relay, behind).await?;
    let spent = Spent::now(producer, &relay, &bus).await?;
    let delivered = producer.number(DELIVERED).await? as f64;
    let took = producer.number(LAST).await? - producer.number(FIRST).await?;
    let worked = spent.since(before, delivered, delivered * 1000.0 / took.max(1) as f64, &relay);
    relay.stop()?;
    bus.stop()?;
    Ok(worked)
}

/// A relay runs while the messages are enqueued as fast as they can be: a second.
pub(crate) async fn beside(args: &Args, place: &Place) -> Result<f64> {
    let mut producer = place.open().await?;
    let mut bus = Served::start(&args.storybus)?;
    let mut relay = Relay::start(args, place, &bus.credentials().await?)?;
    let mut stories = Stories::new(args.stories);
    let began = Instant::now();
    producer.fill(&mut stories, args.messages).await?;
    until_done(&mut producer, &mut relay, 0).await?;
    let took = began.elapsed().as_secs_f64();
    relay.stop()?;
    bus.stop()?;
    Ok(args.messages as f64 / took)
}

/// Of many enqueues, in microseconds.
pub(crate) struct Enqueued {
    pub(crate) median: f64,
    pub(crate) p99: f64,
    /// The median of the shortest statement there is.
    pub(crate) least: f64,
}

/// Each message is enqueued in a transaction that commits anyway.
pub(crate) async fn enqueued(args: &Args, place: &Place) -> Result<Enqueued> {
    let mut producer = place.open().await?;
    producer.run("CREATE TABLE desk (stories BIGINT)").await?;
    producer.run("INSERT INTO desk VALUES (0)").await?;
    let mut stories = Stories::new(args.stories);
    let mut micros = Vec::with_capacity(TIMED);
    for _ in 0..TIMED {
        let message = stories.next()?;
        micros.push(producer.enqueue(&message).await?.as_secs_f64() * 1e6);
    }
    let mut least = Vec::with_capacity(TIMED);
    for _ in 0..TIMED {
        least.push(producer.ask().await?.as_secs_f64() * 1e6);
    }
    micros.sort_by(f64::total_cmp);
    least.sort_by(f64::total_cmp);
    Ok(Enqueued {
        median: micros[TIMED / 2],
        p99: micros[TIMED * 99 / 100],
        least: least[TIMED / 2],
    })
}

/// A story whose first message is parked, with many behind it, and as many of other stories as elsewhere: those.
pub(crate) async fn stuck(args: &Args, place: &Place) -> Result<Worked> {
    let mut producer = place.open().await?;
    let behind = producer.stuck(args.stuck).await?;
    producer
        .fill(&mut Stories::new(args.stories), args.messages)
        .await?;
    empty(args, place, &mut producer, behind).await
}

/// A relay with a backlog that it will not see the end of.
pub(crate) async fn backlog(args: &Args, place: &Place) -> Result<Worked> {
    let mut producer = place.open().await?;
    producer
        .fill(&mut Stories::new(args.stories), args.backlog)
        .await?;
    let mut bus = Served::start(&args.storybus)?;
    let relay = Relay::start(args, place, &bus.credentials().await?)?;
    pause(WARM).await;
    let before = Spent::now(&mut producer, &relay, &bus).await?;
    let (delivered, began) = (producer.number(DELIVERED).await?, Instant::now());
    pause(MEASURED).await;
    let delivered = (producer.number(DELIVERED).await? - delivered) as f64;
    let rate = delivered / began.elapsed().as_secs_f64();
    let spent = Spent::now(&mut producer, &relay, &bus).await?;
    let worked = spent.since(before, delivered, rate, &relay);
    relay.stop()?;
    bus.stop()?;
    Ok(worked)
}
