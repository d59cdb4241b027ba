//! What became of the messages, for people, and the exit code.

use storybus_protocol::rule;
use storybus_sender::message::{Key, Target};
use storybus_sender::outbox::{Entry, Outbox, State};
use storybus_sender::ports::{Clock, SystemClock};
use storybus_sender::relay::Fate;

use super::{Queued, SendArgs};
use crate::client::json::plain;
use crate::exit::{self, Failure};
use crate::operator::flags::quoted;
use crate::operator::out;
use crate::sender::outbox::time;
use crate::sender::rules;
use crate::sender::settings::BUS;

/// At most so many that were not delivered are told of one by one.
const MOST: usize = 100;

/// What is told and counted.
#[derive(Debug)]
pub(super) struct Report {
    json: bool,
    /// Each delivered one is told of, too.
    one_by_one: bool,
    target: String,
    /// The flags that a command to go on with needs.
    carried: String,
    /// The command that sends what is left.
    relay: String,
    interrupted: bool,
    total: usize,
    delivered: usize,
    refused: usize,
    parked: usize,
    held: usize,
    held_by_parked: bool,
    untried: usize,
    unreachable: bool,
    /// Why the partner refuses this sender itself, if it does.
    sender_refused: Option<String>,
}

impl Report {
    pub(super) fn new(args: &SendArgs) -> Self {
        let target = match args.target.as_str() {
            BUS => String::new(),
            other => format!(" --target {}", quoted(other)),
        };
        Self {
            json: args.json,
            one_by_one: args.files.iter().all(|file| file.as_os_str() != "-"),
            target: args.target.clone(),
            relay: match &args.partners {
                Some(file) if args.target != BUS => {
                    let file = quoted(&file.display().to_string());
                    format!("storybus relay --partners {file}{}", args.outbox.carried())
                }
                _ => format!("storybus relay{}", args.outbox.carried()),
            },
            carried: format!("{target}{}", args.outbox.carried()),
            interrupted: false,
            total: 0,
            delivered: 0,
            refused: 0,
            parked: 0,
            held: 0,
            held_by_parked: false,
            untried: 0,
            unreachable: false,
            sender_refused: None,
        }
    }

    /// One more is in the outbox.
    pub(super) fn enqueued(&mut self) {
        self.total += 1;
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    pub(super) fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(super) fn interrupted(&mut self) {
        self.interrupted = true;
    }

    pub(super) fn sender_refused(&mut self, why: Option<String>) {
        self.sender_refused = why;
    }

    /// Tells what became of one.
    pub(super) async fn told(
        &mut self,
        outbox: &Outbox,
        queued: &Queued,
        fate: &Fate,
    ) -> Result<(), Failure> {
        let (key, name) = (queued.key.as_str(), plain(&queued.name));
        let line = match fate {
            Fate::Delivered => {
                self.delivered += 1;
                if !self.one_by_one {
                    return Ok(());
                }
                format!("delivered  {key}  {name}")
            }
            Fate::Refused => {
                self.refused += 1;
                let entry = self.entry(outbox, queued).await;
                let said = entry.as_ref().map(said).unwrap_or_default();
                let rule = entry.and_then(|entry| entry.last.rule);
                let advice =
                    match rule.filter(|rule| rule::about(rule).is_some() || rules::page(rule).is_some()) {
                        Some(rule) => format!("\n  -> storybus explain {}", quoted(&rule)),
                        None => String::new(),
                    };
                format!("refused    {key}  {name}: {said}{advice}")
            }
            Fate::Parked => {
                self.parked += 1;
                let entry = self.entry(outbox, queued).await;
                self.unreachable |= entry.as_ref().is_some_and(|entry| entry.last.status.is_none());
                let said = entry.as_ref().map(said).unwrap_or_default();
                format!("parked     {key}  {name}: {said}")
            }
            Fate::Held { by, parked } => {
                self.held += 1;
                self.held_by_parked |= *parked;
                let why = match parked {
                    true => ", which is parked".to_owned(),
                    false => self.due(outbox, by).await,
                };
                format!("waits      {key}  {name}: behind {by} of the same order group{why}")
            }
            Fate::Untried => {
                self.untried += 1;
                let entry = self.entry(outbox, queued).await;
                match entry.as_ref().filter(|entry| entry.attempts > 0).map(said) {
                    Some(said) => format!("kept       {key}  {name}: {said}"),
                    None => format!("not tried  {key}  {name}: it stays in the outbox"),
                }
            }
            Fate::Unknown => {
                self.untried += 1;
                format!("gone       {key}  {name}: somebody took it out of the outbox meanwhile")
            }
        };
        let bad = self.refused + self.parked + self.held + self.untried;
        if self.json || (*fate != Fate::Delivered && bad > MOST) {
            return Ok(());
        }
        out::text(&format!("{}\n", line.trim_end_matches([':', ' '])))
    }

    async fn entry(&self, outbox: &Outbox, queued: &Queued) -> Option<Entry> {
        self.shown(outbox, &queued.key).await
    }

    async fn shown(&self, outbox: &Outbox, key: &Key) -> Option<Entry> {
        if self.json {
            return None;
        }
        let target = Target::new(self.target.as_str()).ok()?;
        // It is for people: without it the rest still holds.
        outbox.show(&target, key).await.ok()
    }

    /// When the message with this key, which is pending, is tried again.
    async fn due(&self, outbox: &Outbox, key: &str) -> String {
        let entry = match Key::new(key) {
            Ok(key) => self.shown(outbox, &key).await,
            Err(_) => None,
        };
        let due = entry
            .filter(|entry| entry.state == State::Pending)
            .and_then(|entry| entry.due_at);
        due.map_or_else(String::new, |due| {
            let now = SystemClock.since_epoch().as_millis();
            let left = u64::try_from(due)
                .unwrap_or(0)
                .saturating_sub(u64::try_from(now).unwrap_or(u64::MAX));
            format!(
                ", which is tried again at {} (in {})",
                time(due),
                out::span(left.div_ceil(1000))
            )
        })
    }

    /// The sum, what to do next, and the exit code.
    pub(super) fn end(&self) -> Result<u8, Failure> {
        let bad = self.refused + self.parked + self.held + self.untried;
        let counts = [
            (self.delivered, "delivered"),
            (self.refused, "refused"),
            (self.parked, "parked"),
            (self.held, "waiting behind another"),
            (self.untried, "kept for the next send or relay"),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if self.interrupted {
            out::note(
                "interrupted: what was enqueued is kept in the outbox, and the same command again goes on with it",
            );
        }
        if self.total > 1 || bad > 0 || !self.one_by_one {
            out::note(&counts.join(", "));
        }
        if bad > MOST && !self.json {
            out::note(&format!(
                "{} more were not delivered than are told of above: storybus outbox list{} shows them",
                bad - MOST,
                self.carried
            ));
        }
        let kept = self.parked + self.held + self.untried;
        if kept > 0 {
            let why = match &self.sender_refused {
                Some(why) if self.untried > 0 => format!(
                    "This sender itself is refused, no message is refused or parked for it: {}. Mend that; then send again. ",
                    plain(why)
                ),
                _ if self.unreachable && self.delivered == 0 => "Nobody answered there. ".to_owned(),
                _ => String::new(),
            };
            let (carried, relay) = (&self.carried, &self.relay);
            let resend = if self.parked > 0 || self.held_by_parked {
                format!("storybus outbox resend --all-parked{carried}    once the cause is mended\n  ")
            } else {
                String::new()
            };
            out::note(&format!(
                "{why}What is not delivered is kept in the outbox:\n  \
                 storybus outbox list{carried}    what is there, and why\n  {resend}\
                 {relay}    sends what is pending, and whatever is enqueued later; the same command again sends all of it"
            ));
        }
        Ok(if self.refused > 0 {
            exit::REFUSED
        } else if kept > 0 || self.interrupted {
            exit::GAVE_UP
        } else {
            exit::DONE
        })
    }
}

/// The last answer, in words.
fn said(entry: &Entry) -> String {
    let last = &entry.last;
    let parts = [
        last.status.map(|status| status.to_string()),
        last.rule.clone(),
        last.detail.clone().map(|detail| format!("({detail})")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().map(|part| plain(&part)).collect();
    parts.join(" ")
}
