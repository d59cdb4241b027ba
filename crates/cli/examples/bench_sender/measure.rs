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

/// A relay that empties an outbox.
pub(crate) struct Drained {
    pub(crate) rate: f64,
    pub(crate) relay_micros: f64,
    pub(crate) bus_micros: f64,
    pub(crate) memory: f64,
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
pub(crate) async fn drained(args: &Args, place: &Place) -> Result<Drained> {
    let mut producer = place.open().await?;
    producer
        .fill(&mut Stories::new(args.stories), args.messages)
        .await?;
    empty(args, place, &mut producer, 0).await
}

async fn empty(args: &Args, place: &Place, producer: &mut Producer, behind: i64) -> Result<Drained> {
    let mut bus = Served::start(&args.storybus)?;
    let credentials = bus.credentials().await?;
    let idle = machine::processor_time(bus.id());
    let mut relay = Relay::start(args, place, &credentials)?;
    until_done(producer, &mut relay, behind).await?;
    let delivered = producer.number(DELIVERED).await? as f64;
    let took = producer.number(LAST).await? - producer.number(FIRST).await?;
    let drained = Drained {
        rate: delivered * 1000.0 / took.max(1) as f64,
        relay_micros: machine::processor_time(relay.0.id()) * 1e6 / delivered,
        bus_micros: (machine::processor_time(bus.id()) - idle) * 1e6 / delivered,
        memory: machine::memory(relay.0.id()),
    };
    relay.stop()?;
    bus.stop()?;
    Ok(drained)
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
    micros.sort_by(f64::total_cmp);
    Ok(Enqueued {
        median: micros[TIMED / 2],
        p99: micros[TIMED * 99 / 100],
    })
}

/// A story whose first message is parked, with many behind it, and as many of other stories as elsewhere: messages a second of those.
pub(crate) async fn stuck(args: &Args, place: &Place) -> Result<f64> {
    let mut producer = place.open().await?;
    let behind = producer.stuck(args.stuck).await?;
    producer
        .fill(&mut Stories::new(args.stories), args.messages)
        .await?;
    Ok(empty(args, place, &mut producer, behind).await?.rate)
}

/// A relay with a backlog that it will not see the end of.
pub(crate) struct Backlog {
    pub(crate) rate: f64,
    pub(crate) memory: f64,
}

/// Its rate and its memory.
pub(crate) async fn backlog(args: &Args, place: &Place) -> Result<Backlog> {
    let mut producer = place.open().await?;
    producer
        .fill(&mut Stories::new(args.stories), args.backlog)
        .await?;
    let mut bus = Served::start(&args.storybus)?;
    let relay = Relay::start(args, place, &bus.credentials().await?)?;
    pause(WARM).await;
    let (before, began) = (producer.number(DELIVERED).await?, Instant::now());
    pause(MEASURED).await;
    let after = producer.number(DELIVERED).await?;
    let rate = (after - before) as f64 / began.elapsed().as_secs_f64();
    let memory = machine::memory(relay.0.id());
    relay.stop()?;
    bus.stop()?;
    Ok(Backlog { rate, memory })
}
