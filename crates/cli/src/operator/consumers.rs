//! `storybus consumers`.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::api::Api;
use super::connections::{body, create, deleted, in_words, list, show_found, state, written};
use super::flags::{self, Noun, Paging, Yes, either};
use super::names::Kind;
use super::out::{self, Cell, Table};
use super::secret::SecretFile;
use crate::exit::Failure;

#[derive(Debug, Subcommand)]
pub enum ConsumersVerb {
    /// The consumers of the workspace; `storybus status` shows how they do
    #[command(after_help = "Example:\n  storybus consumers list")]
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// One consumer
    #[command(after_help = "Example:\n  storybus consumers show rundown")]
    Show {
        /// Its id or name
        consumer: String,
    },
    /// Make a consumer and its queue; its secret is shown once
    #[command(
        after_help = "Without a filter it gets everything that is published from now on. A message that was received --max-receives times becomes a
dead letter when the consumer next asks for messages; until then it counts as waiting.

Example:
  storybus consumers create rundown --type story.context --secret-file rundown.secret"
    )]
    Create {
        /// Its name, 1 to 200 characters
        name: String,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        secret: SecretFile,
    },
    /// Change a consumer; what is not named stays
    #[command(
        after_help = "A list that is given replaces the whole list; an empty value empties it, and lets everything through.
While it is paused its receives are empty and messages wait; a consumer that is disabled cannot even ask.

Examples:
  storybus consumers update rundown --pause
  storybus consumers update rundown --type 'story.*,link.*' --max-receives 10"
    )]
    Update {
        /// Its id or name
        consumer: String,
        /// Its new name
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        settings: Settings,
        /// Hand out nothing more; messages wait
        #[arg(long, conflicts_with = "unpause")]
        pause: bool,
        /// Hand out messages again
        #[arg(long)]
        unpause: bool,
        /// Shut it out
        #[arg(long, conflicts_with = "enable")]
        disable: bool,
        /// Let it in again
        #[arg(long)]
        enable: bool,
    },
    /// Delete a consumer with its queue and its dead letters
    #[command(after_help = "Example:\n  storybus consumers delete rundown --yes")]
    Delete {
        /// Its id or name
        consumer: String,
        #[command(flatten)]
        yes: Yes,
    },
}

#[derive(Debug, Args)]
pub struct Settings {
    /// Only these message types: exact types, family.* or *. Repeatable, or a,b
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    message_types: Option<Vec<String>>,
    /// Only topics that begin so. Repeatable, or a,b
    #[arg(long = "topic-prefix", value_name = "PREFIX", value_delimiter = ',')]
    topic_prefixes: Option<Vec<String>>,
    /// Only messages of these systems (system_id). Repeatable, or a,b
    #[arg(long = "source", value_name = "SYSTEM_ID", value_delimiter = ',')]
    sources: Option<Vec<String>>,
    /// After so many receives without an acknowledgement a message is a dead letter, 1 to 1,000; a new consumer has 5
    #[arg(long, value_name = "N")]
    max_receives: Option<u32>,
    /// How long a received message is hidden before it comes back, in seconds, 1 to 43,200; a new consumer has 60
    #[arg(long, value_name = "SECONDS")]
    visibility: Option<u32>,
    /// The AWS role that may read the queue itself; an empty value resets it
    #[arg(long, value_name = "ARN")]
    reader_role_arn: Option<String>,
}

impl Settings {
    /// The members that were given. A new consumer's lists must be there.
    fn members(&self, new: bool) -> Vec<(&'static str, Option<Value>)> {
        let list = |l: &Option<Vec<String>>| match l {
            Some(l) => Some(Value::from(flags::list(l))),
            None => new.then(|| Value::Array(Vec::new())),
        };
        vec![
            ("message_types", list(&self.message_types)),
            ("topic_prefixes", list(&self.topic_prefixes)),
            ("sources", list(&self.sources)),
            ("max_receives", self.max_receives.map(Value::from)),
            ("visibility_seconds", self.visibility.map(Value::from)),
            (
                "reader_role_arn",
                self.reader_role_arn.as_deref().map(flags::or_null),
            ),
        ]
    }
}

/// Runs it.
pub(super) fn run(noun: &Noun<ConsumersVerb>) -> Result<(), Failure> {
    let (mut api, json) = (Api::new(&noun.common)?, noun.common.json);
    let kind = Kind::Consumer;
    match &noun.verb {
        ConsumersVerb::List { paging } => list(&mut api, kind, paging, json, table),
        ConsumersVerb::Show { consumer } => {
            let found = api.named(kind, consumer)?;
            show_found(&found.document, json, |one| fields(&in_words(&mut api, one)))
        }
        ConsumersVerb::Create {
            name,
            settings,
            secret,
        } => {
            let mut members = settings.members(true);
            members.push(("name", Some(name.as_str().into())));
            let file = secret.secret_file.as_deref();
            create(&mut api, kind, &Value::Object(body(members)), file, json, fields)
        }
        ConsumersVerb::Update {
            consumer,
            name,
            settings,
            pause,
            unpause,
            disable,
            enable,
        } => {
            let mut members = settings.members(false);
            members.push(("name", name.as_deref().map(Value::from)));
            members.push(("paused", either(*pause, *unpause).map(Value::from)));
            members.push(("disabled", either(*disable, *enable).map(Value::from)));
            let found = api.named(kind, consumer)?;
            let answer = written(&mut api, &found, body(members))?;
            show_found(&answer, json, fields)
        }
        ConsumersVerb::Delete { consumer, yes } => {
            let found = api.named(kind, consumer)?;
            if !yes.yes {
                let queue = api.get(&format!("{}/queue", found.path))?.value()?;
                let number = |name: &str| queue.get(name).and_then(Value::as_u64).unwrap_or(0);
                let waiting = number("visible") + number("in_flight");
                out::confirm(
                    &format!(
                        "Delete the consumer {} with {} in its queue and {}",
                        found.told(),
                        out::count(waiting, "message", "messages"),
                        out::count(number("dead_lettered"), "dead letter", "dead letters")
                    ),
                    false,
                )?;
            }
            deleted(&mut api, kind, &found, json)
        }
    }
}

fn table(all: &[Value]) -> Table {
    let mut table = Table::new(&["CONSUMER", "NAME", "STATE", "TYPES", "TOPICS", "SOURCES"]);
    for c in all {
        table.row(vec![
            Cell::of(c, "client_id"),
            Cell::of(c, "name"),
            state(c),
            Cell::list(c, "message_types", "all"),
            Cell::list(c, "topic_prefixes", "all"),
            Cell::list(c, "sources", "all"),
        ]);
    }
    table
}

fn fields(c: &Value) -> Vec<(&'static str, Cell)> {
    let number = |name: &str| c.get(name).and_then(Value::as_u64).unwrap_or(0);
    let mut fields = vec![
        ("consumer", Cell::of(c, "client_id")),
        ("name", Cell::of(c, "name")),
        ("workspace", Cell::of(c, "tenant")),
        ("state", state(c)),
        ("types", Cell::list(c, "message_types", "all")),
        ("topics", Cell::list(c, "topic_prefixes", "all")),
        ("sources", Cell::list(c, "sources", "all")),
        (
            "dead letter",
            Cell::new(format!(
                "after {}",
                out::count(number("max_receives"), "receive", "receives")
            )),
        ),
        (
            "visibility",
            Cell::new(format!("{} s", number("visibility_seconds"))),
        ),
        ("role", Cell::of(c, "reader_role_arn")),
        ("created", Cell::of(c, "created_at")),
    ];
    if c.get("settled_by").is_some() {
        fields.push(("settled by", Cell::of(c, "settled_by")));
    }
    fields
}
