//! `storybus dead-letters`.

use clap::Subcommand;
use serde_json::Value;
use serde_json::value::RawValue;
use storybus_protocol::rule;

use super::api::{Api, Document};
use super::connections::more;
use super::flags::{Noun, Paging, quoted};
use super::lists::ListKind;
use super::names::Kind;
use super::out::{self, Cell, Table, Tone};
use super::refusals::refused;
use crate::client::json::{Layout, layout, plain};
use crate::exit::Failure;

/// Dead letters come with their envelopes, so a page is short.
const LIST: ListKind = ListKind {
    name: "messages",
    size: ("max", 100),
    cursor: "after",
};

#[derive(Debug, Subcommand)]
pub enum DeadLettersVerb {
    /// What a consumer could not take, the oldest first, and why
    #[command(
        after_help = "A message becomes a dead letter when its consumer received it max_receives times without acknowledging it, or
rejected it. It is kept for 14 days from then on; looking at it takes nothing away. With --json the envelopes are there too.

Example:
  storybus dead-letters list rundown"
    )]
    List {
        /// The consumer, by id or by name
        consumer: String,
        #[command(flatten)]
        paging: Paging,
    },
    /// One dead letter, with its whole envelope
    #[command(
        after_help = "Example:\n  storybus dead-letters show rundown 0199b3d0-1111-7000-8000-00000000abcd"
    )]
    Show {
        /// The consumer, by id or by name
        consumer: String,
        /// The message's id
        message_id: String,
    },
}

/// Runs it.
pub(super) fn run(noun: &Noun<DeadLettersVerb>) -> Result<(), Failure> {
    let (mut api, json) = (Api::new(&noun.common)?, noun.common.json);
    match &noun.verb {
        DeadLettersVerb::List { consumer, paging } => list(&mut api, consumer, paging, json),
        DeadLettersVerb::Show { consumer, message_id } => show(&mut api, consumer, message_id, json),
    }
}

fn list(api: &mut Api, consumer: &str, paging: &Paging, json: bool) -> Result<(), Failure> {
    let found = api.named(Kind::Consumer, consumer)?;
    let all = api.gather(&format!("{}/dead-letters", found.path), LIST, &[], paging)?;
    if json {
        return out::document(&all.document()?);
    }
    let letters = all.values()?;
    let mut table = Table::new(&[
        "MESSAGE", "TYPE", "SINCE", "RECEIVED", "CAUSE", "CAME BY", "REASON",
    ]);
    for letter in &letters {
        table.row(vec![
            Cell::of(letter, "message_id"),
            Cell::of(letter, "message_type"),
            Cell::of(letter, "dead_lettered_at"),
            Cell::of(letter, "receive_count"),
            Cell::of(letter, "cause"),
            came_by(letter),
            Cell::of(letter, "reason"),
        ]);
    }
    table.print(&format!("{} has no dead letters", found.told()))?;
    more(all.next.as_deref());
    let again = letters.iter().filter(|l| of_redrive(l)).count() as u64;
    if again > 0 {
        out::note(&format!(
            "{} back from a redrive: the consumer still cannot take what it could not take before",
            out::count(again, "has come", "have come")
        ));
    }
    let Some(first) = letters.first().and_then(|l| l["message_id"].as_str()) else {
        return Ok(());
    };
    let (id, carried) = (&found.id, &api.carried);
    out::next(&[
        (
            format!("storybus dead-letters show {id} {}{carried}", quoted(first)),
            "the whole message",
        ),
        (
            format!("storybus redrive {id} --all --wait{carried}"),
            "back into the queue, when the consumer is mended",
        ),
    ])
}

/// Whether it was redriven and has died again.
fn of_redrive(letter: &Value) -> bool {
    let by = letter["redelivery"].as_str();
    by.is_some_and(|by| by.starts_with("redrive:"))
}

/// The job that had brought it, or that holds it now.
fn came_by(letter: &Value) -> Cell {
    match letter["job_id"].as_str() {
        Some(job) => Cell::new(format!("held by {job}")),
        None => Cell::of(letter, "redelivery").toned(if of_redrive(letter) {
            Tone::Warn
        } else {
            Tone::Plain
        }),
    }
}

fn show(api: &mut Api, consumer: &str, message_id: &str, json: bool) -> Result<(), Failure> {
    let found = api.named(Kind::Consumer, consumer)?;
    let path = format!("{}/dead-letters", found.path);
    let is_it = |letter: &Value| {
        letter["message_id"]
            .as_str()
            .is_some_and(|id| id.eq_ignore_ascii_case(message_id))
    };
    let Some(letter) = api.first(&path, LIST, is_it)? else {
        return Err(refused(
            rule::MESSAGE_NOT_FOUND,
            format!(
                "{} is not among the dead letters of {}\n  to do: storybus message show {}{}",
                plain(message_id),
                found.told(),
                quoted(&plain(message_id)),
                api.carried
            ),
        ));
    };
    if json {
        return out::document(&letter);
    }
    let value = letter.value()?;
    let mut fields = vec![
        ("message", Cell::of(&value, "message_id")),
        ("consumer", Cell::new(found.told())),
        ("type", Cell::of(&value, "message_type")),
        ("topic", Cell::of(&value, "topic")),
        ("correlation", Cell::of(&value, "correlation_id")),
        ("producer", api.names(Kind::Producer).field(&value, "producer_id")),
        ("enqueued", Cell::of(&value, "enqueued_at")),
        ("received", Cell::of(&value, "receive_count")),
        ("dead since", Cell::of(&value, "dead_lettered_at")),
        ("cause", Cell::of(&value, "cause")),
        ("reason", Cell::of(&value, "reason")),
    ];
    for (name, member) in [("came by", "redelivery"), ("held by job", "job_id")] {
        if value.get(member).is_some_and(|v| !v.is_null()) {
            fields.push((name, Cell::of(&value, member)));
        }
    }
    out::fields(&fields)?;
    out::text(&format!(
        "\nThe envelope with the producer's own escapes and numbers, laid out anew:\n{}\n",
        layout(&envelope(&letter), Layout::Indented)
    ))?;
    let (id, carried) = (&found.id, &api.carried);
    let message = quoted(value["message_id"].as_str().unwrap_or(message_id));
    out::next(&[
        (
            format!("storybus message show {message}{carried}"),
            "its way, also to other consumers",
        ),
        (
            format!("storybus redrive {id} --message {message} --wait{carried}"),
            "back into the queue, when the consumer is mended",
        ),
    ])
}

/// The envelope of a dead letter, as the producer wrote it.
fn envelope(letter: &Document) -> String {
    #[derive(serde::Deserialize)]
    struct Letter<'a> {
        #[serde(borrow)]
        envelope: &'a RawValue,
    }
    serde_json::from_str::<Letter<'_>>(&letter.0)
        .map(|l| l.envelope.get().to_owned())
        .unwrap_or_default()
}
