//! `storybus relay`: sends what is in an outbox, for as long as it runs.

mod health;
mod http;
mod lines;
mod metrics;
mod reach;
mod replaced;
mod strays;
mod told;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use storybus_sender::outbox::Outbox;
use storybus_sender::ports::{SystemClock, SystemRandom};
use storybus_sender::relay::{OnNo, Policy, Relay, Rounds};
use tokio::net::TcpListener;

use self::health::Health;
use self::http::Views;
use self::lines::Lines;
pub(super) use self::metrics::Metrics;
use self::reach::Reach;
use self::replaced::OpenFile;
use self::told::Told;
use super::settings::{self, BUS, CallArgs, Missing, OutboxArgs};
use super::spool::Spool;
use super::stop::Stop;
use super::{block_on, partners};
use crate::client::settings::BusArgs;
use crate::exit::{self, Failure};
use crate::logging::{self, LogArgs};
use crate::operator::times::Span;

/// Between a message's rounds.
const PAUSE: Duration = Duration::from_secs(60);

/// `storybus relay`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct RelayArgs {
    /// How many messages are being sent at once to each target, each of another order group
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1000))]
    concurrency: u16,
    /// How long a message is tried in rounds, since its first attempt, before it is parked
    #[arg(long, value_name = "SPAN", default_value = "24h")]
    patience: Span,
    /// What a parked message does to its order group
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnGroup::Hold)]
    on_parked: OnGroup,
    /// What a refusal does to the order group: it is released, or held, by parking the message for an operator
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnGroup::Release)]
    on_refused: OnGroup,
    /// A rule whose refusal parks the message, such as sequence_number.not_increasing; repeatable
    #[arg(long, value_name = "RULE")]
    park: Vec<String>,
    /// Where /healthz and /metrics are; port 0 lets the system choose one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9464", value_parser = parse_addr)]
    listen: SocketAddr,
    /// Allow --listen an address that other machines reach: nobody is asked who he is there
    #[arg(long)]
    listen_beyond_loopback: bool,
    /// Without /healthz and /metrics
    #[arg(long, conflicts_with = "listen")]
    no_listen: bool,
    /// Watch this directory: a file that is renamed into it is enqueued for the bus, and ends in done/ or failed/ with its answer beside it
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// A file of REST partners, which are served too: [partners.NAME] with url, headers…
    #[arg(long, value_name = "FILE")]
    partners: Option<PathBuf>,
    /// Only the partners: messages for the bus are left to another relay
    #[arg(long, requires = "partners", conflicts_with = "spool")]
    no_bus: bool,
    /// Print one line of JSON for each attempt to stdout: identifiers, never a payload
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    outbox: OutboxArgs,
    #[command(flatten)]
    call: CallArgs,
    #[command(flatten)]
    bus: BusArgs,
}

/// What happens to an order group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnGroup {
    /// Its next messages wait for an operator.
    Hold,
    /// It goes on.
    Release,
}

fn parse_addr(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "give IP:PORT, such as 127.0.0.1:9464")
}

const HELP: &str = "Any number of relays may work on one outbox on PostgreSQL; on SQLite those of one machine. SIGTERM and SIGINT stop it in good order: it claims nothing more, waits for the
attempts under way and writes down what came of them. It may also be killed at any instant: what it was sending is sent again by whichever relay runs once
the lease is over (twice --timeout-ms and 10 s), with the same bytes and the same key.

A database that fails is tried again until it works; GET /healthz answers 503 meanwhile, and also while the bus refuses the sender itself (a wrong secret,
a producer that is disabled): then nothing is refused, and one message is tried every 30 s. A secret in a file (--client-secret-file, --credentials-file) is
read again before each of these tries; one in the environment needs a new start.

With --spool: write a file under a name that begins with a dot or ends in .tmp or .part, in DIR or anywhere on its file system, then rename it into DIR. Files found
together are taken by the time they were changed, then by name. What is being sent lies in DIR/sending/MESSAGE_ID/, and stays there, with an answer that says so, while it is parked; then it goes to DIR/done/ or
DIR/failed/ with NAME.answer.json beside it. Directories, links and pipes are left alone.

Exit codes: 0 stopped in good order; 2 could not start: flags, credentials, outbox, address or directory; 1 the message says why,
such as a file of SQLite that was replaced under it.

Example:
  storybus relay --outbox postgres://relay@db.example/news --log info";

/// Runs it until it is told to stop.
pub fn run(args: &RelayArgs) -> Result<u8, Failure> {
    logging::start(&args.log);
    block_on(relay(args))
}

async fn relay(args: &RelayArgs) -> Result<u8, Failure> {
    let stop = Stop::listen()?;
    let clock = SystemClock;
    let outbox = args.outbox.place()?;
    let mut relay = Relay::new(outbox.clone(), Arc::new(clock), Arc::new(SystemRandom))
        .limits(args.call.limits())
        .policy(policy(args))
        .concurrency(usize::from(args.concurrency));
    let mut targets = Vec::new();
    if !args.no_bus {
        relay = relay.transport(settings::target(BUS)?, Arc::new(settings::bus(&args.bus, clock)?));
        targets.push(BUS.to_owned());
    }
    if let Some(file) = &args.partners {
        for (target, way) in partners::read(file, clock)? {
            targets.push(target.as_str().to_owned());
            relay = relay.transport(target, Arc::new(way));
        }
    }
    let listener = listen(args).await?;
    // A path that is mistyped must not become an empty outbox, over which a relay would be well for ever. A spool needs no other program that makes it.
    let missing = if args.spool.is_some() {
        Missing::Made
    } else {
        Missing::Told
    };
    if args.outbox.prepare(&outbox, missing).await? {
        tracing::warn!(outbox = outbox.address(), "made a new outbox");
    }
    look(&outbox).await?;

    let metrics = Arc::new(Metrics::new(&targets));
    let health = Arc::new(Health::new(clock, Reach::new(&targets)));
    let (lines, written) = if args.json {
        let started = Lines::start(io::stdout())
            .map_err(|error| Failure::unusable(format_args!("no thread for the lines of --json: {error}")))?;
        (Some(started.0), Some(started.1))
    } else {
        (None, None)
    };
    let mut told = Told::new(lines, metrics.clone(), health.clone(), clock);
    let spool = match &args.spool {
        Some(folder) => Some(
            Spool::open(folder, outbox.clone(), clock, metrics.clone())
                .map_err(|error| Failure::new(exit::UNUSABLE, error))?,
        ),
        None => None,
    };
    let spooling = spool.map(|spool| {
        let (ended, hears) = tokio::sync::mpsc::channel(super::spool::HEARD);
        told.spool = Some(ended);
        let (handle, stop) = (tokio::runtime::Handle::current(), stop.clone());
        tokio::task::spawn_blocking(move || spool.run(&handle, &stop, hears))
    });
    let strays = tokio::spawn(strays::watch(outbox.clone(), targets.clone(), clock));
    let views = listener.map(|listener| {
        let views = Views::new(outbox.clone(), metrics, health, clock);
        tokio::spawn(http::serve(listener, Arc::new(views)))
    });
    let relay = relay.observer(Arc::new(told));
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        outbox = outbox.address(),
        targets = targets.join(","),
        owner = relay.owner(),
        "relaying"
    );
    let file = outbox.file().and_then(OpenFile::of);
    let replaced = async {
        match file {
            Some(file) => file.replaced(clock).await,
            None => std::future::pending().await,
        }
    };
    let mut lost = false;
    let ran = relay
        .run(async {
            tokio::select! {
                () = stop.asked() => {}
                () = replaced => {
                    lost = true;
                    stop.ask();
                }
            }
        })
        .await;
    tracing::info!("stopping");
    // The spool hears of the last messages, and then of the end.
    drop(relay);
    if let Some(spooling) = spooling
        && spooling.await.is_err()
    {
        tracing::warn!("the spool broke off; the next start tidies up");
    }
    strays.abort();
    if let Some(views) = views {
        views.abort();
    }
    outbox.close().await;
    if let Some(written) = written {
        written.last(&clock).await;
    }
    if lost {
        let at = outbox.address();
        return Err(Failure::new(
            exit::FAILED,
            anyhow!(
                "{at}: the file was replaced or removed while the relay had it open, so what is there now was not looked at. \
                 Start the relay again; stop it first when a backup is put back. What was sent meanwhile is known to the partners by its key"
            ),
        ));
    }
    // It has begun, whatever is wrong now.
    ran.map_err(|error| Failure::new(exit::FAILED, settings::failed(&outbox, &error).error))?;
    tracing::info!("stopped");
    Ok(exit::DONE)
}

fn policy(args: &RelayArgs) -> Policy {
    Policy {
        rounds: Rounds::For {
            span: args.patience.duration(),
            pause: PAUSE,
        },
        on_refusal: match args.on_refused {
            OnGroup::Hold => OnNo::Park,
            OnGroup::Release => OnNo::Refuse,
        },
        parking_rules: args.park.clone(),
        parked_holds: args.on_parked == OnGroup::Hold,
        ..Policy::default()
    }
}

/// The listener of the views.
async fn listen(args: &RelayArgs) -> Result<Option<TcpListener>, Failure> {
    if args.no_listen {
        return Ok(None);
    }
    let address = args.listen;
    if !address.ip().is_loopback() && !args.listen_beyond_loopback {
        return Err(Failure::unusable(format_args!(
            "--listen {address}: other machines reach it, and nobody is asked who he is there: give --listen-beyond-loopback if that is meant"
        )));
    }
    let listener = TcpListener::bind(address).await.map_err(|error| {
        Failure::unusable(format_args!(
            "cannot listen on {address}: {error}; is another relay running? Choose another address with --listen (port 0: any), or --no-listen"
        ))
    })?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "listening for /healthz and /metrics");
    }
    Ok(Some(listener))
}

/// Looks whether there is an outbox that can be read and written. A database that cannot be reached now may be there later: the relay waits for it.
async fn look(outbox: &Outbox) -> Result<(), Failure> {
    let Err(error) = outbox.probe().await else {
        return Ok(());
    };
    let failure = settings::failed(outbox, &error);
    if failure.code == exit::UNUSABLE {
        return Err(failure);
    }
    tracing::warn!(%error, "the outbox cannot be read yet");
    Ok(())
}
