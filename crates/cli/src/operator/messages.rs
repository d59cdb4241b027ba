//! `storybus message`: one message's way.

use clap::Subcommand;
use serde_json::Value;

use super::api::{Api, segment};
use super::flags::{Noun, quoted};
use super::out::{self, Cell, Table, Tone};
use crate::exit::Failure;

#[derive(Debug, Subcommand)]
pub enum MessageVerb {
    /// What became of a message: accepted, archived, and per consumer waiting, in flight, acknowledged or dead
    #[command(after_help = "Example:\n  storybus message show 0199b3d0-1111-7000-8000-00000000abcd")]
    Show {
        /// The message's id
        message_id: String,
    },
}

/// Runs it.
pub(super) fn run(noun: &Noun<MessageVerb>) -> Result<(), Failure> {
    let (mut api, json) = (Api::new(&noun.common)?, noun.common.json);
    let MessageVerb::Show { message_id } = &noun.verb;
    let workspace = api.workspace_id()?;
    let document = api.get(&format!(
        "admin/tenants/{}/messages/{}",
        segment(&workspace),
        segment(message_id)
    ))?;
    if json {
        return out::document(&document);
    }
    let message = document.value()?;
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
        fields.push((name, Cell::of(&message, member)));
    }
    out::fields(&fields)?;
    out::text("\n")?;
    let mut table = Table::new(&["CONSUMER", "NAME", "STATE", "RECEIVED", "AT", "CAME BY", "REASON"]);
    let mut dead = None;
    for consumer in message["consumers"].as_array().into_iter().flatten() {
        for delivery in consumer["deliveries"].as_array().into_iter().flatten() {
            if delivery["state"] == "dead_lettered" {
                dead = consumer["client_id"].as_str();
            }
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
    table.print("no consumer has a part in it")?;
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

fn state(delivery: &Value) -> Cell {
    let tone = match delivery["state"].as_str() {
        Some("acknowledged") => Tone::Good,
        Some("dead_lettered") => Tone::Bad,
        Some("in_flight") => Tone::Warn,
        Some("gone" | "not_routed") => Tone::Faint,
        _ => Tone::Plain,
    };
    Cell::of(delivery, "state").toned(tone)
}
