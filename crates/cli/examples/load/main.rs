//! Load for a bus that runs: how many snapshots a second it takes, and how fast they are pulled again.
//!
//! ```sh
//! # a bus of its own, in a directory for temporary files
//! cargo build --release -p storybus-cli
//! cargo run --release -p storybus-cli --example load -- --serve target/release/storybus
//! # a bus that runs; the file is of the first start of its directory
//! storybus serve --demo --credentials-file demo.json &
//! cargo run --release -p storybus-cli --example load -- demo.json
//! ```
//!
//! The snapshots are of many stories in turn, about 4 kB each, each story on one connection, as newsroom systems send
//! them. The tool speaks HTTP over plain sockets and does next to nothing itself: it shares the machine with the bus.

#![expect(clippy::print_stdout, reason = "a tool for the terminal")]

mod connection;
mod replay;
mod served;
mod story;

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use storybus_cli::serve::credentials::{self, Credentials};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::served::Served;
use crate::story::{Story, assets};

/// Load for a bus that runs.
#[derive(Debug, Parser)]
struct Args {
    /// The credentials file of a demo bus's first start
    #[arg(required_unless_present = "serve")]
    credentials: Option<PathBuf>,
    /// Start this program as a bus of its own, and stop it at the end
    #[arg(long, value_name = "STORYBUS", conflicts_with = "credentials")]
    serve: Option<PathBuf>,
    /// Connections that publish
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Stories
    #[arg(long, default_value_t = 2000)]
    stories: usize,
    /// Messages in all
    #[arg(long, default_value_t = 40_000)]
    messages: u64,
    /// The longest time for each half, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Connections that pull
    #[arg(long, default_value_t = 4)]
    pullers: usize,
    /// Publish only
    #[arg(long)]
    no_pull: bool,
    /// Publish as many once more, alone, and once more beside a replay of all of them
    #[arg(long)]
    replay: bool,
}

#[derive(Default)]
struct Tally {
    /// How long each took, sorted in the end.
    micros: Vec<u32>,
    refused: u64,
    bytes: u64,
    /// How long all of it took, in seconds.
    took: f64,
    connections: usize,
}

impl Tally {
    fn rate(&self) -> f64 {
        self.micros.len() as f64 / self.took
    }

    fn tell(&self, what: &str) {
        println!(
            "{what}: {} messages of {} bytes in {:.1} s over {} connections: {:.0}/s; p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms; {} refused",
            self.micros.len(),
            self.bytes.checked_div(self.micros.len() as u64).unwrap_or(0),
            self.took,
            self.connections,
            self.rate(),
            quantile(&self.micros, 0.5),
            quantile(&self.micros, 0.99),
            quantile(&self.micros, 1.0),
            self.refused,
        );
    }
}

async fn publisher(
    args: Arc<Args>,
    credentials: Arc<Credentials>,
    number: usize,
    token: String,
    left: Arc<AtomicU64>,
    end: Instant,
) -> Result<Tally> {
    let mut connection = Connection::open(&credentials).await?;
    let mut stories: Vec<Story> = (number..args.stories)
        .step_by(args.connections)
        .map(Story::new)
        .collect();
    let (assets, mut tally, mut body, mut request) =
        (assets(), Tally::default(), String::new(), String::new());
    for turn in 0_usize.. {
        let mine = left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
            .is_ok();
        if !mine || Instant::now() >= end || stories.is_empty() {
            break;
        }
        let count = stories.len();
        stories[turn % count].next(&assets, &mut body);
        request.clear();
        let _ = write!(
            request,
            "POST /v1/jwt/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let began = Instant::now();
        let (status, answer) = connection.ask(request.as_bytes()).await?;
        tally
            .micros
            .push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
        tally.bytes += body.len() as u64;
        if status != 202 {
            tally.refused += 1;
            if tally.refused == 1 {
                println!(
                    "refused: {status} {}",
                    String::from_utf8_lossy(&connection.read[answer])
                );
            }
        }
    }
    Ok(tally)
}

/// Pulls until nothing is left; how many.
async fn puller(credentials: Arc<Credentials>, token: String, end: Instant) -> Result<u64> {
    let mut connection = Connection::open(&credentials).await?;
    let tenant = credentials.clients.tenant.clone().unwrap_or_default();
    let consumer = credentials
        .clients
        .consumer
        .as_ref()
        .map(|c| c.client_id.clone())
        .unwrap_or_default();
    let receive = format!(
        "GET /v1/tenants/{tenant}/consumers/{consumer}/messages?wait=1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    let mut pulled = 0;
    while Instant::now() < end {
        let (status, body) = connection.ask(receive.as_bytes()).await?;
        if status != 200 {
            bail!("receive: {status}");
        }
        let text = std::str::from_utf8(&connection.read[body])?;
        let handles: Vec<&str> = text
            .split("\"receipt_handle\":\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        if handles.is_empty() {
            break;
        }
        pulled += handles.len() as u64;
        let body = format!("{{\"receipt_handles\":[\"{}\"]}}", handles.join("\",\""));
        let ack = format!(
            "POST /v1/tenants/{tenant}/consumers/{consumer}/ack HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let (status, _) = connection.ask(ack.as_bytes()).await?;
        if status != 200 {
            bail!("ack: {status}");
        }
    }
    Ok(pulled)
}

fn quantile(sorted: &[u32], q: f64) -> f64 {
    let at = ((sorted.len().saturating_sub(1)) as f64 * q).round() as usize;
    f64::from(sorted.get(at).copied().unwrap_or(0)) / 1000.0
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let args = Arc::new(Args::parse());
    let mut served = args.serve.as_deref().map(Served::start).transpose()?;
    let credentials = match (&mut served, &args.credentials) {
        (Some(served), _) => served.credentials().await?,
        (None, Some(path)) => credentials::read(path)?.context("there is no such file")?,
        (None, None) => bail!("which bus?"),
    };
    load(args, credentials).await?;
    if let Some(served) = served {
        println!("{}", served.stop()?);
    }
    Ok(())
}

/// Publishes as many as were asked for.
async fn publish(args: &Arc<Args>, credentials: &Arc<Credentials>) -> Result<Tally> {
    let mut connection = Connection::open(credentials).await?;
    let token = connection.token(credentials.clients.producer.as_ref()).await?;
    let (began, left) = (Instant::now(), Arc::new(AtomicU64::new(args.messages)));
    let end = began + Duration::from_secs(args.seconds);
    let publishers: Vec<_> = (0..args.connections)
        .map(|n| {
            tokio::spawn(publisher(
                args.clone(),
                credentials.clone(),
                n,
                token.clone(),
                left.clone(),
                end,
            ))
        })
        .collect();
    let mut all = Tally {
        connections: args.connections,
        ..Tally::default()
    };
    for publisher in publishers {
        let tally = publisher.await??;
        all.micros.extend(tally.micros);
        all.refused += tally.refused;
        all.bytes += tally.bytes;
    }
    all.took = began.elapsed().as_secs_f64();
    all.micros.sort_unstable();
    Ok(all)
}

async fn load(args: Arc<Args>, credentials: Credentials) -> Result<()> {
    let credentials = Arc::new(credentials);
    publish(&args, &credentials).await?.tell("publish");
    if args.replay {
        replay::measure(&args, &credentials).await?;
    }
    if args.no_pull {
        return Ok(());
    }
    let mut connection = Connection::open(&credentials).await?;
    let token = connection.token(credentials.clients.consumer.as_ref()).await?;
    let began = Instant::now();
    let end = began + Duration::from_secs(args.seconds);
    let pullers: Vec<_> = (0..args.pullers)
        .map(|_| tokio::spawn(puller(credentials.clone(), token.clone(), end)))
        .collect();
    let mut pulled = 0;
    for puller in pullers {
        pulled += puller.await??;
    }
    // The last second was spent waiting for more.
    let took = (began.elapsed().as_secs_f64() - 1.0).max(0.001);
    println!(
        "pull: {pulled} messages received and acknowledged in {took:.1} s over {} connections: {:.0}/s",
        args.pullers,
        pulled as f64 / took
    );
    Ok(())
}
