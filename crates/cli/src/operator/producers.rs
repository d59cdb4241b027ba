//! `storybus producers`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::api::Api;
use super::connections::{body, create, deleted, in_words, list, show_found, state, written};
use super::flags::{self, Noun, Paging, Yes, either};
use super::names::Kind;
use super::out::{self, Cell, Table};
use super::secret::SecretFile;
use crate::exit::Failure;

#[derive(Debug, Subcommand)]
pub enum ProducersVerb {
    /// The producers of the workspace
    #[command(after_help = "Example:\n  storybus producers list")]
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// One producer
    #[command(after_help = "Example:\n  storybus producers show planning")]
    Show {
        /// Its id or name
        producer: String,
    },
    /// Make a producer; its secret is shown once
    #[command(
        after_help = "Example:\n  storybus producers create planning --system-id ncs-1 --type 'story.*,telling.*' --secret-file planning.secret"
    )]
    Create {
        /// Its name, 1 to 200 characters
        name: String,
        /// The systems that it speaks for; each belongs to one producer on the whole bus. Repeatable, or a,b
        #[arg(long = "system-id", value_name = "ID", required = true, value_delimiter = ',')]
        system_ids: Vec<String>,
        /// What it may publish: exact types, family.* or *. Repeatable, or a,b
        #[arg(long = "type", value_name = "TYPE", required = true, value_delimiter = ',')]
        message_types: Vec<String>,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        secret: SecretFile,
    },
    /// Change a producer; what is not named stays
    #[command(
        after_help = "A list that is given replaces the whole list; an empty value empties it, and grants nothing.
A producer that is disabled can do nothing, from the next request on.

Examples:
  storybus producers update planning --disable
  storybus producers update planning --type 'story.*,link.*' --rate 50/100"
    )]
    Update {
        /// Its id or name
        producer: String,
        /// Its new name
        #[arg(long)]
        name: Option<String>,
        /// The systems that it speaks for, instead of those before
        #[arg(long = "system-id", value_name = "ID", value_delimiter = ',')]
        system_ids: Option<Vec<String>>,
        /// What it may publish, instead of what it might before
        #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
        message_types: Option<Vec<String>>,
        #[command(flatten)]
        settings: Settings,
        /// Without a limit on its rate
        #[arg(long, conflicts_with = "rate")]
        no_rate: bool,
        /// Shut it out
        #[arg(long, conflicts_with = "enable")]
        disable: bool,
        /// Let it in again
        #[arg(long)]
        enable: bool,
    },
    /// Delete a producer
    #[command(
        after_help = "What it has published stays.\n\nExample:\n  storybus producers delete planning --yes"
    )]
    Delete {
        /// Its id or name
        producer: String,
        #[command(flatten)]
        yes: Yes,
    },
}

#[derive(Debug, Args)]
pub struct Settings {
    /// Its rate: messages a second, and how many at once, such as 50/100
    #[arg(long, value_name = "PER_SECOND/BURST", value_parser = parse_rate)]
    rate: Option<Value>,
    /// The AWS role that may publish for it; an empty value resets it
    #[arg(long, value_name = "ARN")]
    role_arn: Option<String>,
}

fn parse_rate(text: &str) -> Result<Value, &'static str> {
    let parsed = text
        .split_once('/')
        .and_then(|(per_second, burst)| Some((per_second.parse().ok()?, burst.parse().ok()?)));
    let (per_second, burst): (u32, u32) = parsed.ok_or("give PER_SECOND/BURST, such as 50/100")?;
    Ok(json!({ "per_second": per_second, "burst": burst }))
}

/// Runs it.
pub(super) fn run(noun: &Noun<ProducersVerb>) -> Result<(), Failure> {
    let (mut api, json) = (Api::new(&noun.common)?, noun.common.json);
    let kind = Kind::Producer;
    match &noun.verb {
        ProducersVerb::List { paging } => list(&mut api, kind, paging, json, table),
        ProducersVerb::Show { producer } => {
            let found = api.named(kind, producer)?;
            show_found(&found.document, json, |one| fields(&in_words(&mut api, one)))
        }
        ProducersVerb::Create {
            name,
            system_ids,
            message_types,
            settings,
            secret,
        } => {
            let body = body(vec![
                ("name", Some(name.as_str().into())),
                ("system_ids", Some(flags::list(system_ids).into())),
                ("message_types", Some(flags::list(message_types).into())),
                ("rate", settings.rate.clone()),
                ("role_arn", settings.role_arn.as_deref().map(flags::or_null)),
            ]);
            let file = secret.secret_file.as_deref();
            create(&mut api, kind, &Value::Object(body), file, json, fields)
        }
        ProducersVerb::Update {
            producer,
            name,
            system_ids,
            message_types,
            settings,
            no_rate,
            disable,
            enable,
        } => {
            let list = |l: &Option<Vec<String>>| l.as_deref().map(|l| Value::from(flags::list(l)));
            let body = body(vec![
                ("name", name.as_deref().map(Value::from)),
                ("system_ids", list(system_ids)),
                ("message_types", list(message_types)),
                (
                    "rate",
                    settings.rate.clone().or_else(|| no_rate.then_some(Value::Null)),
                ),
                ("role_arn", settings.role_arn.as_deref().map(flags::or_null)),
                ("disabled", either(*disable, *enable).map(Value::from)),
            ]);
            let found = api.named(kind, producer)?;
            let answer = written(&mut api, &found, body)?;
            show_found(&answer, json, fields)
        }
        ProducersVerb::Delete { producer, yes } => {
            let found = api.named(kind, producer)?;
            out::confirm(&format!("Delete the producer {}", found.told()), yes.yes)?;
            deleted(&mut api, kind, &found, json)
        }
    }
}

fn table(all: &[Value]) -> Table {
    let mut table = Table::new(&["PRODUCER", "NAME", "STATE", "SYSTEMS", "TYPES"]);
    for p in all {
        table.row(vec![
            Cell::of(p, "client_id"),
            Cell::of(p, "name"),
            state(p),
            Cell::list(p, "system_ids", "none"),
            Cell::list(p, "message_types", "none"),
        ]);
    }
    table
}

fn fields(p: &Value) -> Vec<(&'static str, Cell)> {
    let number = |name: &str| p.pointer(name).and_then(Value::as_u64);
    let rate = match (number("/rate/per_second"), number("/rate/burst")) {
        (Some(per_second), Some(burst)) => Cell::new(format!("{per_second} a second, {burst} at once")),
        _ => Cell::new("no limit"),
    };
    vec![
        ("producer", Cell::of(p, "client_id")),
        ("name", Cell::of(p, "name")),
        ("workspace", Cell::of(p, "tenant")),
        ("state", state(p)),
        (
            "systems",
            Cell::list(p, "system_ids", "none: it can publish nothing"),
        ),
        (
            "types",
            Cell::list(p, "message_types", "none: it can publish nothing"),
        ),
        ("rate", rate),
        ("role", Cell::of(p, "role_arn")),
        ("created", Cell::of(p, "created_at")),
    ]
}
