//! `storybus pull`: receive, print, acknowledge.

use std::cell::Cell;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use storybus_core::ports::Random;
use storybus_protocol::rule;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::answer::{Answer, GaveUp, NoAnswer};
use super::bus::BusClient;
use super::json::{Layout, layout, plain};
use super::settings::{BusArgs, Who};
use crate::exit::{self, Failure};
use crate::ports::OsRandom;

/// How long one receive waits with `--follow`.
const LONG_POLL: Duration = Duration::from_secs(20);
/// How long to try again without `--follow`.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long what was printed may take to be acknowledged after Ctrl-C.
const LAST_ACK: Duration = Duration::from_secs(5);
/// The most messages of one receive.
const BATCH: u64 = 10;

/// `storybus pull`.
#[derive(Debug, Args)]
#[command(
    after_help = "A message is acknowledged once it is printed; what is not acknowledged comes again after its visibility (60 s by
default), and what follows in its story waits until then. Without --follow it ends when the queue has nothing more to give.

Exit codes: 0 done, also by Ctrl-C; 3 the bus refused; 4 gave up; 2 a flag or the credentials cannot be used."
)]
pub struct PullArgs {
    /// Go on and wait for more, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// End after so many messages
    #[arg(long, value_name = "N", value_parser = parse_max)]
    max: Option<u64>,
    /// How long to try again when the bus cannot be reached, in seconds [default: 60; with --follow: without end]
    #[arg(long, value_name = "SECONDS")]
    patience: Option<u64>,
    /// Do not acknowledge what is printed: it comes again
    #[arg(long)]
    no_ack: bool,
    /// Acknowledge what is printed (the default)
    #[arg(long, conflicts_with = "no_ack")]
    ack: bool,
    /// Send what is printed to the dead letters, with this reason of 1 to 1,000 characters: what this consumer cannot use does
    /// not hold back its story. An operator looks at it and redrives it
    #[arg(long, value_name = "REASON", conflicts_with_all = ["no_ack", "ack"], value_parser = parse_reason)]
    reject: Option<String>,
    /// Print each message as one line of JSON, with its receipt handle
    #[arg(long)]
    json: bool,
    /// The bus.
    #[command(flatten)]
    bus: BusArgs,
}

fn parse_reason(text: &str) -> Result<String, &'static str> {
    if (1..=1000).contains(&text.chars().count()) {
        Ok(text.to_owned())
    } else {
        Err("give a reason of 1 to 1,000 characters")
    }
}

fn parse_max(text: &str) -> Result<u64, &'static str> {
    match text.parse() {
        Ok(max) if max > 0 => Ok(max),
        _ => Err("give a number from 1 up"),
    }
}

/// What has been done so far.
#[derive(Debug, Default)]
struct Done {
    received: AtomicU64,
    acknowledged: AtomicU64,
    /// Whether nobody wants to hear more.
    quiet: AtomicBool,
    /// What becomes of what is received.
    how: &'static str,
}

impl Done {
    fn tell(&self) {
        let (received, acknowledged) = (
            self.received.load(Ordering::SeqCst),
            self.acknowledged.load(Ordering::SeqCst),
        );
        if self.quiet.load(Ordering::SeqCst) {
            return;
        }
        say(&if received == acknowledged {
            format!("{received} received and {}", self.how)
        } else {
            format!("{received} received, {acknowledged} {}", self.how)
        });
    }
}

fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Runs it.
pub fn pull(args: PullArgs) -> Result<u8, Failure> {
    let secret = std::env::var("STORYBUS_CLIENT_SECRET").ok();
    let settings = args
        .bus
        .settings(Who::Consumer, secret)
        .map_err(|e| Failure::new(exit::UNUSABLE, e))?;
    let client = BusClient::new(settings);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    let stop = client.stop.clone();
    let done_so_far = Arc::new(Done {
        how: args.reject.as_ref().map_or("acknowledged", |_| "rejected"),
        ..Done::default()
    });
    if args.follow {
        say("waiting for messages; Ctrl-C ends");
    }
    // Whether nothing would be left undone if the process ended now.
    let idle = Arc::new(AtomicBool::new(true));
    let result = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
        let (done, mut ended) = oneshot::channel();
        let mut puller = Puller {
            client,
            args,
            idle: idle.clone(),
            done: done_so_far.clone(),
        };
        // A thread of its own: it blocks, and a receive that waits must not keep the process from ending.
        std::thread::spawn(move || done.send(puller.run()));
        tokio::select! {
            ended = &mut ended => return ended.context("the receiver broke off")?,
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.wish();
        if idle.load(Ordering::SeqCst) {
            return Ok(exit::DONE);
        }
        match timeout(LAST_ACK, ended).await {
            Ok(ended) => ended.context("the receiver broke off")?,
            Err(_) => Ok(exit::DONE),
        }
    });
    runtime.shutdown_background();
    done_so_far.tell();
    result
}

#[derive(Deserialize)]
struct Received<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

/// What is looked at; the rest of a message is only shown.
#[derive(Deserialize)]
struct Message<'a> {
    receipt_handle: String,
    message_type: String,
    topic: String,
    receive_count: u64,
    enqueued_at: String,
    #[serde(default)]
    redelivery: Option<String>,
    #[serde(borrow)]
    envelope: &'a RawValue,
}

#[derive(Serialize)]
struct Handles<'a> {
    receipt_handles: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct Acknowledged {
    failed: Vec<serde_json::Value>,
}

struct Puller {
    client: BusClient,
    args: PullArgs,
    idle: Arc<AtomicBool>,
    done: Arc<Done>,
}

fn ended(gave_up: GaveUp) -> Result<u8, Failure> {
    match gave_up {
        GaveUp::Stopped => Ok(exit::DONE),
        GaveUp::Login(reason) => Err(Failure::new(exit::REFUSED, anyhow!("{reason}"))),
        GaveUp::Wrong(reason) => Err(Failure::unusable(reason)),
        GaveUp::TimeUp(reason) | GaveUp::Unknown(reason) => {
            Err(Failure::new(exit::GAVE_UP, anyhow!("gave up: {reason}")))
        }
    }
}

fn told(reason: &str, pause: Duration) {
    let _ = writeln!(io::stderr(), "{reason}; again in {:.1} s", pause.as_secs_f64());
}

impl Puller {
    fn run(&mut self) -> Result<u8, Failure> {
        let mut printed = 0;
        loop {
            let left = self.args.max.map_or(BATCH, |max| max - printed).min(BATCH);
            let body = match self.receive(left) {
                Ok(answer) if answer.status == 200 => answer.body,
                Ok(answer) => {
                    let why: Vec<String> = answer
                        .violations()
                        .iter()
                        .map(|v| match rule::about(&v.rule) {
                            Some(about) => {
                                format!("{}: {} (fault: {})", v.rule, plain(&v.message), about.fault)
                            }
                            None => format!("{}: {}", plain(&v.rule), plain(&v.message)),
                        })
                        .collect();
                    return Err(Failure::new(
                        exit::REFUSED,
                        anyhow!("the bus refuses ({}): {}", answer.status, why.join("; ")),
                    ));
                }
                Err(gave_up) => return ended(gave_up),
            };
            let received: Received<'_> =
                serde_json::from_slice(&body).context("the answer is not a bus's")?;
            if received.messages.is_empty() && !self.args.follow {
                if printed == 0 {
                    self.done.quiet.store(true, Ordering::SeqCst);
                    say(
                        "nothing to receive now: nothing waits, an operator has paused the consumer, or earlier messages of the same stories are in flight; `storybus queue` says which",
                    );
                } else {
                    say(
                        "nothing more to receive now; what follows in a story is held back while earlier messages of it are in flight",
                    );
                }
                return Ok(exit::DONE);
            }
            let handles = match self.print(&received.messages) {
                Ok(handles) => handles,
                // Whoever read this has seen enough; what was not read comes again.
                Err(error)
                    if error
                        .downcast_ref::<io::Error>()
                        .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) =>
                {
                    self.done.quiet.store(true, Ordering::SeqCst);
                    return Ok(exit::DONE);
                }
                Err(error) => return Err(error.into()),
            };
            printed += received.messages.len() as u64;
            self.done.received.store(printed, Ordering::SeqCst);
            if !self.args.no_ack
                && !handles.is_empty()
                && let Err(gave_up) = self.acknowledge(&handles)
            {
                return ended(gave_up);
            }
            self.idle.store(true, Ordering::SeqCst);
            if self.client.stop.is_wished() || self.args.max.is_some_and(|max| printed >= max) {
                return Ok(exit::DONE);
            }
        }
    }

    /// One receive, repeated with the same attempt id when its answer was lost: its messages are not hidden then.
    fn receive(&mut self, max: u64) -> Result<Answer, GaveUp> {
        let mut id = [0; 16];
        OsRandom.fill(&mut id);
        let attempt: String = id.iter().map(|b| format!("{b:02x}")).collect();
        let wait = if self.args.follow {
            LONG_POLL
        } else {
            Duration::ZERO
        };
        let patience = match self.args.patience {
            Some(seconds) => Duration::from_secs(seconds),
            None if self.args.follow => Duration::MAX,
            None => PATIENCE,
        };
        let idle = self.idle.clone();
        let lost = Cell::new(false);
        let told = |reason: &str, pause: Duration| {
            lost.set(true);
            told(reason, pause);
        };
        self.client.until_final(patience, told, |client| {
            // After a failure it asks without waiting, so that it can say at once that the bus is back.
            let wait = if lost.get() { Duration::ZERO } else { wait };
            let Some(tenant) = client.tenant()? else {
                return Err(NoAnswer::Login(format!(
                    "{} is not a consumer: it has no workspace",
                    client.client_id()
                )));
            };
            let path = format!(
                "tenants/{tenant}/consumers/{}/messages?max={max}&wait={}&attempt={attempt}",
                client.client_id(),
                wait.as_secs()
            );
            let answer = client.call(&Method::GET, &path, b"", wait)?;
            idle.store(answer.status != 200, Ordering::SeqCst);
            if lost.get() && answer.status == 200 {
                say("connected again");
            }
            Ok(answer)
        })
    }

    /// Prints the messages; their handles.
    fn print(&self, messages: &[&RawValue]) -> anyhow::Result<Vec<String>> {
        let mut out = io::stdout().lock();
        let mut handles = Vec::new();
        for raw in messages {
            let message: Message<'_> =
                serde_json::from_str(raw.get()).context("the answer is not a bus's")?;
            if self.args.json {
                writeln!(out, "{}", layout(raw.get(), Layout::Line))?;
            } else {
                let Message {
                    message_type,
                    topic,
                    enqueued_at,
                    ..
                } = &message;
                write!(out, "{message_type}  {}  {enqueued_at}", plain(topic))?;
                if message.receive_count > 1 {
                    write!(out, "  received {} times", message.receive_count)?;
                }
                if let Some(redelivery) = &message.redelivery {
                    write!(out, "  {redelivery}")?;
                }
                writeln!(out, "\n{}\n", layout(message.envelope.get(), Layout::Indented))?;
            }
            handles.push(message.receipt_handle);
        }
        // Acknowledged is only what has been handed on.
        out.flush()?;
        Ok(handles)
    }

    /// Acknowledges, or rejects.
    fn acknowledge(&mut self, handles: &[String]) -> Result<(), GaveUp> {
        let body = serde_json::to_vec(&Handles {
            receipt_handles: handles,
            reason: self.args.reject.as_deref(),
        })
        .unwrap_or_default();
        let call = self.args.reject.as_ref().map_or("ack", |_| "reject");
        let answer = self.client.until_final(PATIENCE, told, |client| {
            let tenant = client.tenant()?.unwrap_or_default();
            let path = format!("tenants/{tenant}/consumers/{}/{call}", client.client_id());
            client.call(&Method::POST, &path, &body, Duration::ZERO)
        })?;
        let failed =
            serde_json::from_slice::<Acknowledged>(&answer.body).map_or(handles.len(), |a| a.failed.len());
        let acknowledged = handles.len().saturating_sub(failed) as u64;
        self.done.acknowledged.fetch_add(acknowledged, Ordering::SeqCst);
        if failed > 0 {
            let _ = writeln!(
                io::stderr(),
                "{failed} of {} could not be {}: they come again",
                handles.len(),
                self.done.how
            );
        }
        Ok(())
    }
}
