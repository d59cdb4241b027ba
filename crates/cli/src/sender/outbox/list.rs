//! `storybus outbox list`.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use storybus_core::domain::time::Millis;
use storybus_sender::outbox::{Entry, Filter, Outbox, State};

use crate::exit::{self, Failure};
use crate::operator::flags::quoted;
use crate::operator::out::{self, Cell, Table, Tone};
use crate::sender::settings::{BUS, failed};

/// The most rows of one question to the outbox.
const PAGE: usize = 1_000;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only those of this state
    #[arg(long, value_name = "STATE", value_enum)]
    state: Option<StateName>,
    /// Only those for this target
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Only this order group's line: what of it is neither delivered nor refused, in the order in which it is sent. On a bus a group is
    /// a correlation_id
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// The latest first
    #[arg(long)]
    newest: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
}

/// A state, as the table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StateName {
    Pending,
    Delivered,
    Refused,
    Parked,
}

impl From<StateName> for State {
    fn from(name: StateName) -> Self {
        match name {
            StateName::Pending => Self::Pending,
            StateName::Delivered => Self::Delivered,
            StateName::Refused => Self::Refused,
            StateName::Parked => Self::Parked,
        }
    }
}

pub(super) async fn run(args: &ListArgs, outbox: &Outbox, carried: &str, json: bool) -> Result<u8, Failure> {
    let mut filter = Filter {
        state: args.state.map(State::from),
        target: args.target.clone(),
        group: args.group.as_ref().map(|group| {
            // A correlation_id is kept in lower case.
            match args.target.as_deref() {
                None | Some(BUS) => group.to_ascii_lowercase(),
                Some(_) => group.clone(),
            }
        }),
        after: None,
        newest_first: args.newest,
    };
    let most = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut entries: Vec<Entry> = Vec::new();
    let mut more = false;
    loop {
        // One more than is shown tells whether there are more.
        let wanted = (most - entries.len()).saturating_add(1).min(PAGE);
        let page = outbox
            .list(&filter, wanted)
            .await
            .map_err(|error| failed(outbox, &error))?;
        let last_page = page.len() < wanted;
        filter.after = page.last().map(|entry| entry.id).or(filter.after);
        entries.extend(page);
        if entries.len() > most {
            more = true;
            entries.truncate(most);
        }
        if last_page || more {
            break;
        }
    }
    if json {
        let messages: Vec<Value> = entries.iter().map(document).collect();
        out::value(&json!({"messages": messages, "more": more}))?;
        return Ok(exit::DONE);
    }
    let mut table = Table::new(&[
        "KEY",
        "TARGET",
        "STATE",
        "GROUP",
        "ATTEMPTS",
        "ENQUEUED",
        "LAST ANSWER",
    ]);
    for entry in &entries {
        table.row(vec![
            Cell::new(&entry.key),
            Cell::new(&entry.target),
            state(entry, false),
            Cell::new(entry.order_group.as_deref().unwrap_or("-")),
            Cell::new(entry.attempts.to_string()),
            Cell::new(time(entry.enqueued_at)),
            Cell::new(last_answer(entry)),
        ]);
    }
    table.print(&nothing(args))?;
    if more {
        out::note("there are more: --limit");
    }
    if let Some(parked) = entries.iter().find(|entry| entry.state == State::Parked) {
        let target = flag(&parked.target);
        let key = quoted(&parked.key);
        out::next(&[
            (
                format!("storybus outbox show {key}{target}{carried}"),
                "why it is parked",
            ),
            (
                format!("storybus outbox resend {key}{target}{carried}"),
                "once the cause is mended",
            ),
            (
                format!("storybus outbox drop {key}{target}{carried}"),
                "never send it; its group goes on",
            ),
        ])?;
    }
    Ok(exit::DONE)
}

fn nothing(args: &ListArgs) -> String {
    match (args.state, &args.target, &args.group) {
        (None, None, None) => "the outbox is empty".to_owned(),
        _ => "the outbox has no such messages".to_owned(),
    }
}

/// The flag that names a target other than the bus.
pub(super) fn flag(target: &str) -> String {
    if target == BUS {
        String::new()
    } else {
        format!(" --target {}", quoted(target))
    }
}

/// A message as a document: its times as all others have them.
pub(super) fn document(entry: &Entry) -> Value {
    let mut document = json!(entry);
    for member in [
        "due_at",
        "enqueued_at",
        "first_attempt_at",
        "last_attempt_at",
        "unsure_since",
        "finished_at",
    ] {
        if let Some(ms) = document[member].as_i64() {
            document[member] = time(ms).into();
        }
    }
    document
}

/// A point in time, from the database's milliseconds.
pub(in crate::sender) fn time(ms: i64) -> String {
    Millis(ms).to_rfc3339()
}

/// The state, and what it waits for; `waits` when it is known to wait behind another.
pub(super) fn state(entry: &Entry, waits: bool) -> Cell {
    let word = match entry.state {
        State::Pending if entry.under_way => "pending, being sent",
        State::Pending if waits || entry.waiting => "pending, behind another",
        other => other.as_str(),
    };
    Cell::new(word).toned(match entry.state {
        State::Pending => Tone::Plain,
        State::Delivered => Tone::Good,
        State::Refused => Tone::Bad,
        State::Parked => Tone::Warn,
    })
}

/// The last answer, in few words.
pub(super) fn last_answer(entry: &Entry) -> String {
    let last = &entry.last;
    let words: Vec<String> = [
        last.status.map(|status| status.to_string()),
        last.outcome.clone().filter(|_| last.rule.is_none()),
        last.rule.clone(),
    ]
    .into_iter()
    .flatten()
    .collect();
    words.join(" ")
}
