//! `storybus serve`: the bus on one machine.
//!
//! A start goes from what can fail without a trace to what cannot be taken back: look whether the credentials file can be
//! written, bind the address, open the directory (one process has it), read or make the keys, make the first clients, serve, hand the credentials over.

mod backend;
mod counted;
pub mod credentials;
#[cfg(feature = "faults")]
mod faults;
mod first_start;
mod hello;
mod jobs;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use storybus_api::Api;
use storybus_core::ports::Clock;
use storybus_core::{Bus, Ports, Settings};
use storybus_sqlite::{OpenError, Store, StoreOptions};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::backend::Embedded;
use self::counted::{CountedControl, CountedQueues, CountedTopic};
use self::credentials::Handover;
use self::first_start::FirstStart;
use self::jobs::WakingJobs;
use crate::args::ServeArgs;
use crate::exit::{self, Failure};
use crate::metrics::Metrics;
use crate::ports::{Argon2Hasher, FileKeys, MemoryRates, OsRandom, SystemClock};
use crate::server::{Limits, Server, Stopped};
use crate::{logging, private_file, process};

/// How long the store may take to close.
const CLOSING: Duration = Duration::from_secs(10);
/// How long the answers may take that tell of a failed store.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// The note of the first start, in the data directory: written only when there is a store.
const FIRST_START: &str = "first-start.json";
/// Threads that run requests. The store has its own, and hashing too.
const WORKERS: usize = 2;

/// Runs the bus until it is told to stop.
pub fn run(args: &ServeArgs) -> Result<u8, Failure> {
    logging::start(&args.log);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("storybus")
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let result = runtime.block_on(serve(args));
    // A hash that is being made is of no use any more.
    runtime.shutdown_background();
    result
}

async fn serve(args: &ServeArgs) -> Result<u8, Failure> {
    // Before anything else: a signal during the start must stop it, too.
    let mut signals = Signals::listen()?;
    let started = tokio::select! {
        biased;
        () = signals.next() => return Ok(exit::DONE),
        started = start(args) => started?,
    };
    let Started {
        mut server,
        store,
        jobs,
    } = started;
    let reason = tokio::select! {
        biased;
        reason = server.broken() => Some(reason),
        reason = store.failed() => Some(reason.to_string()),
        () = signals.next() => None,
    };
    if let Some(reason) = reason {
        // What the disk has is not known any more; the next start reads it. Whoever waits is told so, if that is quick.
        let _ = timeout(LAST_WORDS, server.stop()).await;
        return Err(Failure::new(
            exit::STORE_FAILED,
            anyhow!(
                "the store failed ({reason}); nothing more can be promised, so the bus ends. What it has answered is kept. Look after the disk, then start it again"
            ),
        ));
    }
    tracing::info!("stopping");
    tokio::select! {
        () = signals.next() => {
            tracing::warn!("stopped at once, at a second signal");
            return Ok(exit::FAILED);
        }
        stopped = server.stop() => match stopped {
            Stopped::Clean => {}
            Stopped::CutOff => tracing::warn!("some requests took too long and were cut off"),
        }
    }
    let close = async {
        // a step that is cut off is taken again by the next start
        let _ = jobs.await;
        store.close().await;
    };
    if timeout(CLOSING, close).await.is_err() {
        tracing::warn!("the store took too long to close; the next start tidies up");
    }
    tracing::info!("stopped");
    Ok(exit::DONE)
}

struct Started {
    server: Server,
    store: Store,
    /// Ends after its step when the server stops.
    jobs: JoinHandle<()>,
}

async fn start(args: &ServeArgs) -> Result<Started, Failure> {
    let limits = Limits {
        connections: usize::try_from(args.connections).unwrap_or(usize::MAX),
        ..Limits::default()
    };
    if let Some(files) = process::allow_files(limits.connections) {
        tracing::warn!(
            files,
            connections = limits.connections,
            "the system allows fewer open files than there may be connections"
        );
    }
    if let Some(file) = &args.credentials_file {
        writable(file, &args.data)?;
    }
    let listener = TcpListener::bind(args.addr)
        .await
        .map_err(|error| unbound(args.addr, &error))?;
    let address = listener.local_addr().context("cannot tell the address")?;
    let clock = Arc::new(SystemClock::new());
    let store = open(args, clock.clone()).await?;
    clock.not_before(store.last_time());
    let keys =
        FileKeys::open(args.data.join("keys.json")).map_err(|error| Failure::new(exit::UNUSABLE, error))?;

    let (metrics, stopping) = (Arc::new(Metrics::default()), watch::Sender::new(false));
    let random = Arc::new(OsRandom);
    let wake = Arc::new(Notify::new());
    let ports = Ports {
        clock: clock.clone(),
        random: random.clone(),
        ledger: Arc::new(store.ledger()),
        topic: Arc::new(CountedTopic {
            inner: store.topic(),
            metrics: metrics.clone(),
        }),
        queues: Arc::new(CountedQueues {
            inner: store.queues(),
            metrics: metrics.clone(),
            stopping: stopping.subscribe(),
        }),
        queue_control: Arc::new(CountedControl {
            inner: store.queue_control(),
            metrics: metrics.clone(),
        }),
        dead_letters: Arc::new(store.dead_letters()),
        archive: Arc::new(store.archive()),
        stories: Arc::new(store.stories()),
        jobs: Arc::new(WakingJobs {
            inner: store.jobs(),
            wake: wake.clone(),
        }),
        activity: Arc::new(store.activity_log()),
        workspaces: Arc::new(store.workspaces()),
        connections: Arc::new(store.connections()),
        audit: Arc::new(store.audit_log()),
        rates: Arc::new(MemoryRates::default()),
        hasher: Arc::new(Argon2Hasher::new(random.clone())),
        keys: Arc::new(keys),
    };
    let bus = Bus::new(
        ports,
        Settings::with_window(Duration::from_secs(args.in_flight_seconds)),
    );

    let on_disk = async || store.barrier().await.map_err(anyhow::Error::from);
    let mut first = FirstStart::open(&bus, on_disk, args.data.join(FIRST_START))
        .map_err(|error| Failure::new(exit::UNUSABLE, error))?;
    let clients = first
        .run(args.demo, args.new_operator)
        .await
        .map_err(|error| Failure::new(exit::UNUSABLE, error))?;
    store.barrier().await.context("the disk failed")?;

    let backend = Embedded {
        api: Api::new(bus.clone()),
        store: store.clone(),
        health: tokio::sync::Mutex::default(),
        #[cfg(feature = "faults")]
        faults: args.faults,
    };
    let jobs = jobs::start(bus.clone(), wake, stopping.subscribe());
    let server = Server::start(
        listener,
        Arc::new(backend),
        limits,
        metrics,
        args.proxies.iter().map(std::net::IpAddr::to_canonical).collect(),
        stopping,
    );
    let base_url = format!("http://{}/v1/", reachable(address));
    tracing::info!(version = env!("CARGO_PKG_VERSION"), base_url, data = %args.data.display(), "listening");

    let handover = match &args.credentials_file {
        Some(file) => Handover::Given(file.clone()),
        None => Handover::Own(args.data.join("credentials.json")),
    };
    let credentials = handover
        .write(&base_url, &clients)
        .map_err(|error| Failure::new(exit::UNUSABLE, error))?;
    first.done().await?;
    let text = match args.demo {
        true => Some(hello::demo(
            &hello::program(),
            &credentials,
            handover.path(),
            &*random,
            clock.now(),
        )),
        false => clients
            .holds_secrets()
            .then(|| hello::first(&credentials, handover.path())),
    };
    if let Some(text) = text {
        // It is in the file; a bus that runs does not end because nobody reads this.
        let mut stdout = std::io::stdout();
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }
    Ok(Started { server, store, jobs })
}

/// Looks whether the credentials can be handed over in this file. The data directory may still be to come.
fn writable(file: &Path, data: &Path) -> Result<(), Failure> {
    if file.parent() == Some(data) && !data.exists() {
        return Ok(());
    }
    private_file::check(file).map_err(|error| {
        Failure::unusable(format_args!(
            "the credentials cannot be written to {}: {error}; give --credentials-file a regular file, or a new name, in a directory that is there and that this user may write to",
            file.display()
        ))
    })
}

/// Opens the store, on a thread that may block.
async fn open(args: &ServeArgs, clock: Arc<SystemClock>) -> Result<Store, Failure> {
    let data: PathBuf = args.data.clone();
    let mut options = StoreOptions::new(clock);
    options.traces = vec![FIRST_START];
    let opened = tokio::task::spawn_blocking(move || Store::open(&data, options)).await;
    let data = args.data.display();
    opened.context("opening the store broke off")?.map_err(|error| {
        let advice = match &error {
            OpenError::Locked { .. } => ": stop that one first, or give this one another --data",
            OpenError::NotWritable(_) | OpenError::NotADirectory(_) => {
                ": give the user that runs the bus a directory of its own with --data"
            }
            OpenError::NoRoom => ": make room, or give it another --data",
            _ => "",
        };
        Failure::unusable(format_args!(
            "cannot open the data directory {data}: {error}{advice}"
        ))
    })
}

/// Why the address cannot be had.
fn unbound(addr: SocketAddr, error: &std::io::Error) -> Failure {
    let advice = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another program listens there; stop it, or choose another port with --addr (port 0: any)"
        }
        std::io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address; choose one of its own with --addr"
        }
        std::io::ErrorKind::PermissionDenied => {
            "this user may not listen there; choose a port from 1024 up with --addr"
        }
        _ => "choose another address with --addr",
    };
    Failure::unusable(format_args!("cannot listen on {addr}: {error}; {advice}"))
}

/// An address that a client on this machine can use: one that means *any* is reached at the loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let mut reachable = address;
    if address.ip().is_unspecified() {
        reachable.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    reachable
}

/// SIGTERM and SIGINT.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
