//! `storybus message`: one message's way.

use clap::Subcommand;
use serde_json::Value;
use storybus_protocol::rule;

use super::activity;
use super::api::{Api, segment};
use super::flags::{Noun, quoted};
use super::names::Kind;
use super::out::{self, Cell, Table, Tone};
use super::refusals::refused;
use crate::client::json::plain;
use crate::exit::Failure;

#[derive(Debug, Subcommand)]
pub enum MessageVerb {
    /// What became of a message: accepted, archived, and per consumer waiting, in flight, acknowledged or dead
    #[command(
        after_help = "When it was acknowledged is not kept. What was refused was never a message of the bus: its refusals are told instead.

Example:
  storybus message show 0199b3d0-1111-7000-8000-00000000abcd"
    )]
    Show {
        /// The message's id
        message_id: String,
    },
}

/// Runs it.
pub(super) fn run(noun: &Noun<MessageVerb>) -> Result<(), Failure> {
    let (mut api, json) = (Api::new(&noun.common)?, noun.common.json);
    let MessageVerb::Show { message_id } = &noun.verb;
    if !is_uuid(message_id) {
        return Err(Failure::unusable(format!(
            "{:?} is no message id, which is a UUID of 36 characters; storybus activity and storybus stories show have them",
            plain(message_id)
        )));
    }
    let workspace = api.workspace_id()?;
    let path = format!(
        "admin/tenants/{}/messages/{}",
        segment(&workspace),
        segment(message_id)
    );
    let Some(document) = api.find(&path, rule::MESSAGE_NOT_FOUND)? else {
        return Err(unknown(&mut api, message_id)?);
    };
    if json {
        return out::document(&document);
    }
    let message = document.value()?;
    let producers = api.names(Kind::Producer);
    let mut fields = Vec::new();
    for (name, member) in [
        ("message", "message_id"),
        ("state", "state"),
        ("type", "message_type"),
        ("story", "story_id"),
        ("correlation", "correlation_id"),
        ("producer", "producer_id"),
        ("recorded", "recorded_at"),
        ("published", "published_at"),
        ("archived", "archived"),
    ] {
        fields.push((
            name,
            match member {
                "producer_id" => producers.field(&message, member),
                _ => Cell::of(&message, member),
            },
        ));
    }
    out::fields(&fields)?;
    out::text("\n")?;
    let mut table = Table::new(&["CONSUMER", "NAME", "STATE", "RECEIVED", "AT", "CAME BY", "REASON"]);
    let (mut dead, mut handed_over) = (None, false);
    for consumer in message["consumers"].as_array().into_iter().flatten() {
        for delivery in consumer["deliveries"].as_array().into_iter().flatten() {
            if delivery["state"] == "dead_lettered" {
                dead = consumer["client_id"].as_str();
            }
            handed_over |= delivery["state"] == "delivered";
            table.row(vec![
                Cell::of(consumer, "client_id"),
                Cell::of(consumer, "name"),
                state(delivery),
                Cell::of(delivery, "receive_count"),
                Cell::of(delivery, "at"),
                Cell::of(delivery, "redelivery"),
                Cell::of(delivery, "reason"),
            ]);
        }
    }
    table.print(nobody(&message))?;
    if handed_over {
        out::note(HANDED_OVER);
    }
    let Some(dead) = dead else { return Ok(()) };
    out::next(&[(
        format!(
            "storybus dead-letters show {dead} {}{}",
            quoted(message_id),
            api.carried
        ),
        "the dead letter, with its envelope",
    )])
}

/// What `delivered` says on AWS.
const HANDED_OVER: &str = "handed over: the topic has passed it to the queue, as far as the bus can know, and it is no dead letter; SQS does not tell whether it was received, or lost with a queue that somebody has deleted";

/// Why no consumer is told of.
fn nobody(message: &Value) -> &'static str {
    match (message["archived"].as_bool(), message["state"].as_str()) {
        (Some(false), Some("superseded")) => {
            "no consumer has a part in it: it was superseded, and is not published"
        }
        (Some(false), _) => {
            "which consumers have a part in it is not known before it is archived: look again in a minute"
        }
        _ => "no consumer has a part in it",
    }
}

fn is_uuid(text: &str) -> bool {
    let dash = |n: usize| [8, 13, 18, 23].contains(&n);
    text.len() == 36
        && text
            .bytes()
            .enumerate()
            .all(|(n, b)| if dash(n) { b == b'-' } else { b.is_ascii_hexdigit() })
}

/// Why there is no such message: it was refused, or nothing is known of it.
fn unknown(api: &mut Api, message_id: &str) -> Result<Failure, Failure> {
    let refusals = activity::of_message(api, message_id, &activity::Choice::default())?.values()?;
    let mut text = format!(
        "{}: nothing is known of {message_id} in this workspace",
        rule::MESSAGE_NOT_FOUND
    );
    for refusal in refusals.iter().take(5) {
        let member = |name: &str| plain(refusal[name].as_str().unwrap_or("-"));
        let (named, producer) = (member("rule"), member("producer_id"));
        text.push_str(&format!(
            "\n  refused: {} of producer {producer} with {}: {named}",
            member("time"),
            refusal["status"]
        ));
        if let Some(about) = rule::about(&named) {
            text.push_str(&format!("; fault: {}; retry: {}", about.fault, about.retry));
        }
    }
    text.push_str(&match refusals.first().and_then(|r| r["rule"].as_str()) {
        Some(named) => format!("\n  to do:   storybus explain {}", quoted(named)),
        None => format!(
            "\n  means:   it was not accepted here, or long ago, and is not among the newest 10,000 entries of storybus activity{} either\n  to do:   look into another workspace with -w: storybus workspaces list",
            api.carried
        ),
    });
    Ok(refused(rule::MESSAGE_NOT_FOUND, text))
}

fn state(delivery: &Value) -> Cell {
    let tone = match delivery["state"].as_str() {
        Some("acknowledged") => Tone::Good,
        Some("dead_lettered") => Tone::Bad,
        Some("in_flight") => Tone::Warn,
        Some("gone" | "not_routed") => Tone::Faint,
        _ => Tone::Plain,
    };
    match delivery["state"].as_str() {
        // the wire's word promises more than the bus knows
        Some("delivered") => Cell::new("handed over"),
        _ => Cell::of(delivery, "state").toned(tone),
    }
}
