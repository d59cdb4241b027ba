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

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Parser;
use rustix::process::{Pid, Signal};
use storybus_cli::ports::OsRandom;
use storybus_cli::serve::credentials::{self, Client, Credentials};
use storybus_core::ports::Random;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

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
}

/// One keep-alive connection.
struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
    filled: usize,
}

impl Connection {
    async fn open(credentials: &Credentials) -> Result<Self> {
        let host = credentials
            .base_url
            .trim_start_matches("http://")
            .split('/')
            .next()
            .unwrap_or_default();
        let stream = TcpStream::connect(host)
            .await
            .with_context(|| format!("cannot connect to {host}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            read: vec![0; 64 * 1024],
            filled: 0,
        })
    }

    /// Sends a request; the status and where the body is.
    async fn ask(&mut self, request: &[u8]) -> Result<(u16, std::ops::Range<usize>)> {
        self.stream.write_all(request).await?;
        self.filled = 0;
        loop {
            let n = self.stream.read(&mut self.read[self.filled..]).await?;
            if n == 0 {
                bail!("the bus closed the connection");
            }
            self.filled += n;
            let Some(end) = self.read[..self.filled].windows(4).position(|w| w == b"\r\n\r\n") else {
                continue;
            };
            let head = std::str::from_utf8(&self.read[..end])?;
            let length: usize = head
                .lines()
                .find_map(|l| l.strip_prefix("content-length: "))
                .unwrap_or("0")
                .parse()?;
            let (status, body) = (head[9..12].parse()?, end + 4..end + 4 + length);
            if self.read.len() < body.end {
                self.read.resize(body.end, 0);
            }
            while self.filled < body.end {
                let n = self.stream.read(&mut self.read[self.filled..]).await?;
                if n == 0 {
                    bail!("the bus closed the connection");
                }
                self.filled += n;
            }
            return Ok((status, body));
        }
    }

    async fn token(&mut self, client: Option<&Client>) -> Result<String> {
        let client = client.context("the credentials file is not one of a demo")?;
        let secret = client
            .client_secret
            .as_deref()
            .context("the credentials file has no secrets")?;
        let basic = STANDARD.encode(format!("{}:{secret}", client.client_id));
        let form = "grant_type=client_credentials";
        let request = format!(
            "POST /v1/oauth/token HTTP/1.1\r\nhost: x\r\nauthorization: Basic {basic}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            form.len()
        );
        let (status, body) = self.ask(request.as_bytes()).await?;
        if status != 200 {
            bail!("no token: {status}");
        }
        let answer: serde_json::Value = serde_json::from_slice(&self.read[body])?;
        Ok(answer["access_token"].as_str().unwrap_or_default().to_owned())
    }
}

fn uuid() -> String {
    let mut b = [0; 16];
    OsRandom.fill(&mut b);
    let hex: String = b.iter().fold(String::new(), |mut hex, b| {
        let _ = write!(hex, "{b:02x}");
        hex
    });
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// The part of a snapshot that does not change: assets as a story under way has them.
fn assets() -> String {
    let assets: Vec<String> = (0..14)
        .map(|n| {
            format!(
                r#"{{"asset_id":"harbour-camera-{n}","asset_type":"VIDEO","status":"IN_PRODUCTION","evidential_position":"PRIMARY","acquisition_state":"CAPTURING","media_refs":[{{"source":"tams://harbour-store/camera-{n}/segment","label":"Harbour camera {n}, quay side, live since the morning"}}]}}"#
            )
        })
        .collect();
    assets.join(",")
}

/// A story that is told snapshot by snapshot.
struct Story {
    id: String,
    correlation: String,
    sequence: u64,
}

impl Story {
    fn next(&mut self, assets: &str, out: &mut String) {
        self.sequence += 1;
        let (n, id, correlation) = (self.sequence, &self.id, &self.correlation);
        let (message, hour, minute) = (uuid(), n / 60 % 24, n % 60);
        out.clear();
        let _ = write!(
            out,
            r#"{{"som_version":"1.0.0","message_id":"{message}","correlation_id":"{correlation}","message_type":"story.context","timestamp":"2026-10-05T06:30:00.120000Z","originating_system":{{"system_id":"demo-ncs","system_type":"ncs","system_name":"Load"}},"topic":"som.story.context.load","payload":{{"story_id":"{id}","slug":"FERRY-STRIKE","headline":"Ferry crews vote on a strike, update {n}","story_type":"ACTIVE","lifecycle":{{"phase":"DEVELOPING","phase_entered_at":"2026-10-05T06:30:00Z"}},"sequence_number":{n},"updated_at":"2026-10-05T{hour:02}:{minute:02}:00Z","assets":[{assets}]}}}}"#
        );
    }
}

#[derive(Default)]
struct Tally {
    micros: Vec<u32>,
    refused: u64,
    bytes: u64,
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
        .map(|n| Story {
            id: format!("load-{n}-{}", uuid()),
            correlation: uuid(),
            sequence: 0,
        })
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

/// A bus of our own.
struct Served {
    process: Child,
    folder: TempDir,
}

impl Served {
    fn start(program: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let process = Command::new(program)
            .args([
                "serve",
                "--demo",
                "--addr",
                "127.0.0.1:0",
                "--log",
                "warn",
                "--data",
            ])
            .arg(folder.path().join("data"))
            .arg("--credentials-file")
            .arg(folder.path().join("demo.json"))
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { process, folder })
    }

    async fn credentials(&mut self) -> Result<Credentials> {
        loop {
            if let Some(credentials) = credentials::read(&self.folder.path().join("demo.json"))? {
                return Ok(credentials);
            }
            if let Some(status) = self.process.try_wait()? {
                bail!("the bus ended with {status}");
            }
            tokio::time::sleep_until(Instant::now() + Duration::from_millis(20)).await;
        }
    }

    /// Stops it; what it has used.
    fn stop(mut self) -> Result<String> {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let peak = status
            .lines()
            .find_map(|l| l.strip_prefix("VmHWM:"))
            .unwrap_or(" unknown")
            .trim()
            .to_owned();
        rustix::process::kill_process(Pid::from_child(&self.process), Signal::TERM)?;
        let status = self.process.wait()?;
        let disk =
            std::fs::metadata(self.folder.path().join("data/bus.db")).map_or(0, |m| m.len() / 1_000_000);
        Ok(format!(
            "the bus ended with {status}; its memory was at most {peak}, its database is {disk} MB"
        ))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
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

async fn load(args: Arc<Args>, credentials: Credentials) -> Result<()> {
    let credentials = Arc::new(credentials);
    let mut connection = Connection::open(&credentials).await?;
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
    let mut all = Tally::default();
    for publisher in publishers {
        let tally = publisher.await??;
        all.micros.extend(tally.micros);
        all.refused += tally.refused;
        all.bytes += tally.bytes;
    }
    let took = began.elapsed().as_secs_f64();
    all.micros.sort_unstable();
    println!(
        "publish: {} messages of {} bytes in {took:.1} s over {} connections: {:.0}/s; p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms; {} refused",
        all.micros.len(),
        all.bytes.checked_div(all.micros.len() as u64).unwrap_or(0),
        args.connections,
        all.micros.len() as f64 / took,
        quantile(&all.micros, 0.5),
        quantile(&all.micros, 0.99),
        quantile(&all.micros, 1.0),
        all.refused,
    );
    if args.no_pull {
        return Ok(());
    }
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
