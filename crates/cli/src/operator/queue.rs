//! `storybus queue`: how full it is, and the end of everything in it.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use storybus_protocol::rule;

use super::api::{Api, Document};
use super::connections::state;
use super::flags::{Common, Yes};
use super::names::{Found, Kind};
use super::out::{self, Cell, Tone};
use crate::exit::Failure;

pub(super) const HELP: &str = "Examples:
  storybus queue rundown
  storybus queue purge rundown";

/// From this age on the oldest message, with none in flight, is worth a question, in seconds: a client that reads takes what
/// waits at once.
const OLD: u64 = 60;

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    override_usage = "storybus queue [OPTIONS] CONSUMER\n       storybus queue purge [OPTIONS] CONSUMER"
)]
pub struct QueueArgs {
    /// The consumer whose queue to look into, by id or by name
    consumer: Option<String>,
    #[command(subcommand)]
    verb: Option<QueueVerb>,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Debug, Subcommand)]
pub(super) enum QueueVerb {
    /// How full a consumer's queue is, and what to do about it; the verb may be left out
    #[command(after_help = "Example:\n  storybus queue show rundown")]
    Show {
        /// The consumer, by id or by name
        consumer: String,
    },
    /// Throw away everything in a consumer's queue; its dead letters stay
    #[command(
        after_help = "What is thrown away is still in the archive: storybus replay delivers it again.\n\nExample:\n  storybus queue purge rundown --yes"
    )]
    Purge {
        /// The consumer, by id or by name
        consumer: String,
        #[command(flatten)]
        yes: Yes,
    },
}

/// How full a queue is, and how its consumer stands.
#[derive(Debug, Clone)]
pub(super) struct Level {
    pub(super) visible: u64,
    pub(super) in_flight: u64,
    pub(super) dead_lettered: u64,
    pub(super) oldest: Option<u64>,
    disabled: bool,
    paused: bool,
    /// How long a received message is hidden, in seconds.
    visibility: u64,
    /// Whether it has no live secret.
    pub(super) shut_out: bool,
}

/// Why a consumer stands still, and the command that goes on from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hint {
    /// The kind of hint, for programs.
    pub(super) code: &'static str,
    pub(super) why: String,
    pub(super) command: Option<String>,
    pub(super) purpose: &'static str,
}

impl Level {
    pub(super) fn of(consumer: &Value, queue: &Value) -> Self {
        let number = |name: &str| queue.get(name).and_then(Value::as_u64);
        let is = |name: &str| consumer.get(name) == Some(&Value::Bool(true));
        Self {
            visible: number("visible").unwrap_or(0),
            in_flight: number("in_flight").unwrap_or(0),
            dead_lettered: number("dead_lettered").unwrap_or(0),
            oldest: number("oldest_age_seconds"),
            disabled: is("disabled"),
            paused: is("paused"),
            visibility: consumer["visibility_seconds"].as_u64().unwrap_or(0),
            shut_out: false,
        }
    }

    /// What stands out, the weightiest first.
    pub(super) fn hints(&self, id: &str, carried: &str) -> Vec<Hint> {
        let mut hints = Vec::new();
        let mut hint = |code, why: String, command: Option<String>, purpose| {
            hints.push(Hint {
                code,
                why,
                command: command.map(|c| format!("storybus {c}{carried}")),
                purpose,
            });
        };
        let oldest = self.oldest.unwrap_or(0);
        if self.disabled {
            hint(
                "disabled",
                "disabled".to_owned(),
                Some(format!("consumers update {id} --enable")),
                "let it in again",
            );
        }
        if self.paused {
            hint(
                "paused",
                "paused".to_owned(),
                Some(format!("consumers update {id} --unpause")),
                "hand out messages again",
            );
        }
        if self.shut_out {
            hint(
                "no_secret",
                "no live secret: it cannot log in".to_owned(),
                Some(format!("secrets create {id}")),
                "a new secret, which its client needs then",
            );
        } else if self.disabled || self.paused {
            // That is why.
        } else if self.visible > 0 && self.in_flight == 0 && oldest >= OLD {
            hint(
                "not_reading",
                format!("oldest {}: not reading?", out::span(oldest)),
                None,
                "is its client running? The consumer has to call the bus; the bus does not call it",
            );
        } else if self.in_flight > 0 && oldest >= OLD.max(2 * self.visibility) {
            hint(
                "not_acknowledging",
                format!("oldest {}: receives and does not acknowledge?", out::span(oldest)),
                Some(format!("consumers show {id}")),
                "its visibility, and after how many receives a message is a dead letter",
            );
        }
        if self.dead_lettered > 0 {
            hint(
                "dead_letters",
                out::count(self.dead_lettered, "dead letter", "dead letters"),
                Some(format!("dead-letters list {id}")),
                "which messages, and why",
            );
        }
        hints
    }

    /// The age of the oldest message.
    pub(super) fn age(&self) -> Cell {
        match self.oldest {
            Some(age) if age >= OLD => Cell::new(out::span(age)).toned(Tone::Warn),
            Some(age) => Cell::new(out::span(age)),
            None => Cell::new("-"),
        }
    }

    /// The number of dead letters.
    pub(super) fn dead(&self) -> Cell {
        let cell = Cell::new(self.dead_lettered.to_string());
        if self.dead_lettered > 0 {
            cell.toned(Tone::Bad)
        } else {
            cell
        }
    }
}

/// Runs it.
pub(super) fn run(args: &QueueArgs) -> Result<(), Failure> {
    let (mut api, json) = (Api::new(&args.common)?, args.common.json);
    match (&args.verb, &args.consumer) {
        (Some(_), Some(consumer)) => Err(Failure::unusable(format!(
            "{consumer:?} stands before the verb: storybus queue show CONSUMER, or purge"
        ))),
        (Some(QueueVerb::Purge { consumer, yes }), None) => purge(&mut api, consumer, yes.yes, json),
        (Some(QueueVerb::Show { consumer }), None) | (None, Some(consumer)) => show(&mut api, consumer, json),
        (None, None) => Err(Failure::unusable("which consumer? storybus queue CONSUMER")),
    }
}

/// How full the queue of a consumer is.
pub(super) fn of(api: &mut Api, found: &Found) -> Result<Document, Failure> {
    api.get(&format!("{}/queue", found.path))
}

/// Whether nobody can log in as the consumer any more. It is not asked of one that has just received something.
pub(super) fn is_shut_out(api: &mut Api, path: &str, level: &Level) -> Result<bool, Failure> {
    if level.in_flight > 0 {
        return Ok(false);
    }
    let secrets = api.find(&format!("{path}/secrets"), rule::CONSUMER_NOT_FOUND)?;
    let Some(secrets) = secrets else { return Ok(false) };
    Ok(secrets.value()?["secrets"].as_array().is_some_and(Vec::is_empty))
}

fn show(api: &mut Api, consumer: &str, json: bool) -> Result<(), Failure> {
    let found = api.named(Kind::Consumer, consumer)?;
    let queue = of(api, &found)?;
    if json {
        return out::document(&queue);
    }
    let (consumer, queue) = (found.value()?, queue.value()?);
    let mut level = Level::of(&consumer, &queue);
    level.shut_out = is_shut_out(api, &found.path, &level)?;
    let mut fields = vec![
        ("consumer", Cell::new(found.told())),
        ("state", state(&consumer)),
        ("waiting", Cell::new(level.visible.to_string())),
        ("in flight", Cell::new(level.in_flight.to_string())),
        ("dead letters", level.dead()),
        ("oldest", level.age()),
    ];
    if queue.get("queue_url").is_some() {
        fields.push(("queue", Cell::of(&queue, "queue_url")));
    }
    let hints = level.hints(&found.id, &api.carried);
    for hint in &hints {
        fields.push(("hint", Cell::new(&hint.why).toned(Tone::Warn)));
    }
    out::fields(&fields)?;
    let steps: Vec<(String, &str)> = hints
        .into_iter()
        .map(|h| (h.command.unwrap_or_default(), h.purpose))
        .collect();
    out::next(&steps)
}

fn purge(api: &mut Api, consumer: &str, yes: bool, json: bool) -> Result<(), Failure> {
    let found = api.named(Kind::Consumer, consumer)?;
    if !yes {
        let level = Level::of(&Value::Null, &of(api, &found)?.value()?);
        let messages = out::count(level.visible + level.in_flight, "message", "messages");
        out::confirm(
            &format!("Throw away {messages} of {}'s queue", found.told()),
            false,
        )?;
    }
    let look = format!("storybus queue {}{}", found.id, api.carried);
    let purged = api.post(&format!("{}/purge", found.path), &json!({}), &look)?;
    if json {
        return out::document(&purged);
    }
    let number = purged.value()?.get("purged").and_then(Value::as_u64).unwrap_or(0);
    out::text(&format!(
        "threw away {} of {}'s queue\n",
        out::count(number, "message", "messages"),
        found.told()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(consumer: Value, queue: Value) -> Vec<String> {
        Level::of(&consumer, &queue)
            .hints("c1", " -w w1")
            .into_iter()
            .map(|h| format!("{}|{}", h.why, h.command.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn a_consumer_that_stands_still_says_why() {
        let queue = |visible: u64, in_flight: u64, dead: u64, oldest: Option<u64>| json!({"visible": visible, "in_flight": in_flight, "dead_lettered": dead, "oldest_age_seconds": oldest});
        let running = || json!({"disabled": false, "paused": false});
        assert!(told(running(), queue(3, 0, 0, Some(59))).is_empty());
        assert_eq!(
            told(running(), queue(3, 0, 0, Some(60))),
            ["oldest 60 s: not reading?|"]
        );
        let slow = || json!({"visibility_seconds": 300});
        assert!(told(slow(), queue(3, 1, 0, Some(599))).is_empty());
        assert_eq!(told(slow(), queue(3, 1, 0, Some(600))).len(), 1);
        assert!(told(running(), queue(0, 0, 0, None)).is_empty());
        assert_eq!(
            told(running(), queue(3, 0, 0, Some(3 * 3600))),
            ["oldest 3 h: not reading?|"]
        );
        assert_eq!(
            told(running(), queue(3, 1, 0, Some(600))),
            ["oldest 10 min: receives and does not acknowledge?|storybus consumers show c1 -w w1"]
        );
        assert_eq!(
            told(
                json!({"disabled": true, "paused": true}),
                queue(3, 0, 1, Some(600))
            ),
            [
                "disabled|storybus consumers update c1 --enable -w w1",
                "paused|storybus consumers update c1 --unpause -w w1",
                "1 dead letter|storybus dead-letters list c1 -w w1"
            ]
        );
        assert_eq!(
            told(json!({"paused": true}), queue(3, 0, 0, Some(600))),
            ["paused|storybus consumers update c1 --unpause -w w1"]
        );
        let mut level = Level::of(&running(), &queue(3, 0, 0, Some(600)));
        level.shut_out = true;
        let hints = level.hints("c1", "");
        assert_eq!((hints.len(), hints[0].code), (1, "no_secret"));
    }
}
