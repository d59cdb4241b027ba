//! `storybus send`: enqueue, send, end.
//!
//! What is given is checked, then written into the outbox, and only then sent. So whatever ends this command, a message that it has begun
//! with is in the outbox, and the same command again goes on with it.

mod input;
mod maker;
mod report;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use storybus_sender::message::Key;
use storybus_sender::outbox::{EnqueueError, Enqueued, OperatorError, Outbox, State};
use storybus_sender::ports::{SystemClock, SystemRandom};
use storybus_sender::relay::{Fate, Policy, Relay, Rounds};

use self::input::{Input, Portion};
use self::report::Report;
use self::watch::Watch;
use super::settings::{self, BUS, CallArgs, Missing, OutboxArgs, not_enqueued};
use super::stop::Stop;
use super::{block_on, partners};
use crate::client::settings::BusArgs;
use crate::exit::{self, Failure};
use crate::operator::out;
use crate::operator::times::Span;

/// How many messages are handed to a relay at once.
const AT_ONCE: usize = 1_000;
/// How many are enqueued before the first of them are sent.
const AHEAD: usize = 20_000;
/// How often a portion is enqueued anew when another transaction comes in between.
const TRIES: usize = 5;
/// Between the rounds of `--patience`.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(10);

/// `storybus send`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct SendArgs {
    /// The messages' files; - is the standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The key of a single message. For a bus it is the envelope's message_id, and has to be the same; a partner's message needs one
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Whom it is for: the bus, or a partner of --partners
    #[arg(long, value_name = "NAME", default_value = BUS)]
    target: String,
    /// The order group of a partner's message: those of one group are sent one after another. On a bus it is the correlation_id
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// A file of REST partners: [partners.NAME] with url, headers…
    #[arg(long, value_name = "FILE")]
    partners: Option<PathBuf>,
    /// Go on in rounds for so long before a message is parked, such as 10m [default: one round]
    #[arg(long, value_name = "SPAN")]
    patience: Option<Span>,
    /// Print one line of JSON for each attempt and nothing else: identifiers, never a payload
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    outbox: OutboxArgs,
    #[command(flatten)]
    call: CallArgs,
    #[command(flatten)]
    bus: BusArgs,
}

const HELP: &str = "A file holds one SOM envelope. The standard input holds one too, or one a line (NDJSON): when its first line is whole JSON by itself, every line is a message,
without its line end, and empty lines are passed over. The bytes are kept and sent as they are. All files are checked before the first is enqueued; the standard input is taken in
portions of 4 MiB, each of which is checked before it is enqueued; of what is delivered of it only the sum is told. At most 100 that are not delivered are told of one by one.

Every message is in the outbox before it is sent. What is there under its key already is not enqueued again: delivered and refused stay so, and what was parked is tried again. So after
anything (a crash, Ctrl-C, a bus that was away) the same command is safe, and goes on.

Time-outs, network errors, 408, 429, 5xx and 409 commit.contention are tried again, with the same bytes, up to --max-attempts; then the message is parked: kept, and its order group waits
behind it. When the bus refuses the sender itself (a wrong secret, a producer that is disabled) no message is refused or parked: they stay pending, and the same command again, or a
relay, goes on with them once that is mended. When nobody answers, what was tried is parked, and the rest stays pending.

Exit codes: 0 all are delivered; 3 some were refused, whatever became of the others; 4 none was refused, but some are parked, or are pending still; 2 nothing was begun: a file, a flag, the credentials or a key (with other content) cannot be used; 1 the message says why.

Examples:
  storybus send story.json
  storybus send --json - < messages.ndjson";

/// A message that is in the outbox and to be sent.
#[derive(Debug)]
struct Queued {
    id: i64,
    key: Key,
    /// What it was read from.
    name: String,
    /// What had become of it before, if that is final.
    known: Option<Fate>,
}

/// Runs it.
pub fn run(args: &SendArgs) -> Result<u8, Failure> {
    block_on(send(args))
}

async fn send(args: &SendArgs) -> Result<u8, Failure> {
    let stop = Stop::listen()?;
    let target = settings::target(&args.target)?;
    let limits = args.call.limits();
    let watch = Arc::new(Watch::new(args.json));
    // Everything that can be wrong is found before the outbox is touched.
    let outbox = args.outbox.place()?;
    let mut relay = Relay::new(outbox.clone(), Arc::new(SystemClock), Arc::new(SystemRandom))
        .limits(limits)
        .policy(policy(args))
        .observer(watch.clone());
    if args.target == BUS {
        relay = relay.transport(target.clone(), Arc::new(settings::bus(&args.bus, SystemClock)?));
    } else {
        let partners = match &args.partners {
            Some(file) => partners::read(file, SystemClock)?,
            None => Vec::new(),
        };
        let Some((_, way)) = partners.into_iter().find(|(name, _)| *name == target) else {
            return Err(Failure::unusable(format_args!(
                "there is no partner {target}: name it in the file of --partners, with a table [partners.{target}]"
            )));
        };
        relay = relay.transport(target.clone(), Arc::new(way));
    }
    let mut input = Input::open(args, &target)?;
    if args.outbox.prepare(&outbox, Missing::Made).await? {
        note(&format!("made a new outbox: {}", outbox.address()));
    }

    let mut sending = Sending {
        outbox,
        relay,
        report: Report::new(args),
        watch,
        stop,
        queue: Vec::new(),
        given_up: false,
    };
    let broken = sending.all(&mut input).await;
    sending.outbox.close().await;
    let Sending { report, .. } = sending;
    match broken {
        Some(failure) if report.is_empty() => Err(failure),
        Some(failure) => {
            report.end()?;
            Err(Failure::new(
                exit::FAILED,
                failure.error.context(
                    "not everything was read; what came before is in the outbox. Mend it and give all of it again: nothing is sent twice for it",
                ),
            ))
        }
        None => report.end(),
    }
}

fn policy(args: &SendArgs) -> Policy {
    match args.patience {
        None => Policy::one_round(),
        Some(span) => Policy {
            rounds: Rounds::For {
                span: span.duration(),
                pause: PAUSE,
            },
            ..Policy::default()
        },
    }
}

struct Sending {
    outbox: Outbox,
    relay: Relay,
    report: Report,
    watch: Arc<Watch>,
    stop: Stop,
    /// Enqueued and not handed to the relay yet.
    queue: Vec<Queued>,
    /// Nobody answers, or the sender is refused: what comes now is only enqueued.
    given_up: bool,
}

impl Sending {
    /// Enqueues and sends everything. What is wrong with the input, if something is.
    async fn all(&mut self, input: &mut Input) -> Option<Failure> {
        loop {
            let portion = tokio::select! {
                biased;
                () = self.stop.asked() => {
                    self.report.interrupted();
                    break;
                }
                portion = input.next() => portion,
            };
            let enqueued = match portion {
                Ok(None) => break,
                Ok(Some(portion)) => self.enqueue(portion).await,
                Err(failure) => Err(failure),
            };
            if let Err(failure) = enqueued {
                let sent = self.send_queued().await;
                return Some(sent.err().unwrap_or(failure));
            }
            if self.queue.len() >= AHEAD
                && let Err(failure) = self.send_queued().await
            {
                return Some(failure);
            }
        }
        self.send_queued().await.err()
    }

    async fn enqueue(&mut self, mut portion: Portion) -> Result<(), Failure> {
        let mut tries = 0;
        let enqueued = loop {
            let messages = portion.messages();
            match self.outbox.enqueue_together(messages).await {
                Ok(enqueued) => break enqueued,
                Err((_, EnqueueError::Conflict(_))) if tries < TRIES => tries += 1,
                Err((place, EnqueueError::KeyReused { kept, .. })) if portion.mend(place, kept) => {}
                Err((place, error)) => {
                    return Err(not_enqueued(&self.outbox, portion.name(place), &error));
                }
            }
        };
        for (enqueued, (name, message)) in enqueued.into_iter().zip(portion.into_named()) {
            let state = match enqueued {
                Enqueued::New { .. } => State::Pending,
                Enqueued::Known { state, .. } => state,
            };
            if state == State::Parked {
                match self.outbox.resend(&message.target, &message.key, None).await {
                    // Somebody was quicker, or a person has to look first: its state says the rest.
                    Ok(())
                    | Err(
                        OperatorError::Final { .. }
                        | OperatorError::MayRepeat { .. }
                        | OperatorError::UnderWay { .. }
                        | OperatorError::NotFound { .. },
                    ) => {}
                    Err(OperatorError::Outbox(error)) => {
                        return Err(settings::failed(&self.outbox, &error));
                    }
                }
            }
            self.report.enqueued();
            self.queue.push(Queued {
                id: enqueued.id(),
                key: message.key,
                name,
                known: match state {
                    State::Delivered => Some(Fate::Delivered),
                    State::Refused => Some(Fate::Refused),
                    State::Pending | State::Parked => None,
                },
            });
        }
        Ok(())
    }

    /// Sends what was enqueued, and reports it.
    async fn send_queued(&mut self) -> Result<(), Failure> {
        let queue = std::mem::take(&mut self.queue);
        self.watch.expect(self.report.total(), queue.len());
        let mut chunks = queue.chunks(AT_ONCE);
        let result = loop {
            let Some(chunk) = chunks.next() else {
                break Ok(());
            };
            if self.given_up || self.stop.is_asked() {
                for queued in chunk {
                    let fate = queued.known.as_ref().unwrap_or(&Fate::Untried);
                    self.report.told(&self.outbox, queued, fate).await?;
                }
                continue;
            }
            let ids: Vec<i64> = chunk.iter().map(|queued| queued.id).collect();
            let sent = match self.relay.send(&ids, self.stop.asked()).await {
                Ok(sent) => sent,
                Err(error) => break Err(settings::failed(&self.outbox, &error)),
            };
            let mut got_through = false;
            for (queued, sent) in chunk.iter().zip(&sent) {
                got_through |= matches!(sent.fate, Fate::Delivered | Fate::Refused);
                self.report.told(&self.outbox, queued, &sent.fate).await?;
            }
            let refused = sent.iter().any(|sent| sent.fate == Fate::Untried);
            self.report.sender_refused(self.watch.sender_refused());
            self.given_up = !got_through && (refused || !self.watch.has_answered());
        };
        self.watch.rest();
        if self.stop.is_asked() {
            self.report.interrupted();
        }
        result
    }
}

/// What is wrong with what was given.
fn unusable(name: &str, reason: impl std::fmt::Display) -> Failure {
    Failure::new(exit::UNUSABLE, anyhow!("{name}: {reason}"))
}

/// Tells something beside the result.
fn note(text: &str) {
    out::note(&crate::client::json::plain(text));
}
