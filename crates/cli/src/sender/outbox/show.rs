//! `storybus outbox show`.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anyhow::anyhow;
use clap::Args;
use storybus_protocol::rule;
use storybus_sender::message::{Key, Target};
use storybus_sender::outbox::{Entry, Filter, OperatorError, Outbox, State};

use super::TargetArgs;
use super::list::{document, flag, last_answer, state, time};
use crate::exit::{self, Failure};
use crate::operator::flags::quoted;
use crate::operator::out::{self, Cell};
use crate::sender::rules;
use crate::sender::settings::{self, failed, not_done};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Its key; on a bus its message_id
    key: String,
    /// Print the message's exact bytes and nothing else
    #[arg(long)]
    payload: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// A key as it is kept: a bus's keys are UUIDs, in lower case.
pub(super) fn key(text: &str, target: &TargetArgs) -> Result<Key, Failure> {
    let text = if target.target == settings::BUS {
        text.to_ascii_lowercase()
    } else {
        text.to_owned()
    };
    Key::new(text).map_err(|error| Failure::new(exit::UNUSABLE, error))
}

pub(super) async fn run(args: &ShowArgs, outbox: &Outbox, carried: &str, json: bool) -> Result<u8, Failure> {
    let target = settings::target(&args.target.target)?;
    let key = key(&args.key, &args.target)?;
    let wrong = async |error| match error {
        OperatorError::NotFound { .. } => elsewhere(outbox, &key, &error).await,
        other => not_done(outbox, &other),
    };
    if args.payload {
        if json {
            return Err(Failure::unusable(
                "--payload prints the message's bytes and nothing else: leave out --json",
            ));
        }
        let bytes = match outbox.payload(&target, &key).await {
            Ok(bytes) => bytes,
            Err(error) => return Err(wrong(error).await),
        };
        let mut out = io::stdout().lock();
        return match out.write_all(&bytes).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(anyhow::Error::new(error).context("cannot write").into())
            }
            _ => Ok(exit::DONE),
        };
    }
    let entry = match outbox.show(&target, &key).await {
        Ok(entry) => entry,
        Err(error) => return Err(wrong(error).await),
    };
    if json {
        out::value(&document(&entry))?;
        return Ok(exit::DONE);
    }
    let before = before(outbox, &entry).await?;
    out::fields(&fields(&entry, before.is_some()))?;
    let mut steps = Vec::new();
    let (word, flags) = (quoted(&entry.key), format!("{}{carried}", flag(&entry.target)));
    if entry.state == State::Parked {
        steps.push((
            format!("storybus outbox resend {word}{flags}"),
            "send it again, once the cause is mended",
        ));
        steps.push((
            format!("storybus outbox drop {word}{flags}"),
            "never send it; its group goes on",
        ));
    }
    if let Some(first) = before {
        steps.push((
            format!("storybus outbox show {}{flags}", quoted(&first)),
            "what it waits behind",
        ));
    }
    let known = |rule: &&str| {
        entry.state != State::Delivered && (rule::about(rule).is_some() || rules::page(rule).is_some())
    };
    if let Some(rule) = entry.last.rule.as_deref().filter(known) {
        steps.push((
            format!("storybus explain {}", quoted(rule)),
            "what the last answer means",
        ));
    }
    steps.push((
        format!("storybus outbox show --payload {word}{flags}"),
        "the message itself",
    ));
    out::next(&steps)?;
    Ok(exit::DONE)
}

/// Nobody has this key here: perhaps another target has.
async fn elsewhere(outbox: &Outbox, key: &Key, error: &OperatorError) -> Failure {
    let names: BTreeSet<String> = match outbox.stats().await {
        Ok(stats) => stats.counts.into_iter().map(|count| count.target).collect(),
        Err(_) => BTreeSet::new(),
    };
    for name in names {
        let Ok(target) = Target::new(name.as_str()) else {
            continue;
        };
        if outbox.show(&target, key).await.is_ok() {
            let name = quoted(&name);
            return Failure::new(
                exit::REFUSED,
                anyhow!("{error}, but the target {name} has it: storybus outbox show {key} --target {name}"),
            );
        }
    }
    not_done(outbox, error)
}

/// The first of the line in which a pending message waits, when that is another.
async fn before(outbox: &Outbox, entry: &Entry) -> Result<Option<String>, Failure> {
    let (State::Pending, Some(_)) = (entry.state, &entry.order_group) else {
        return Ok(None);
    };
    let filter = Filter {
        target: Some(entry.target.clone()),
        group: entry.order_group.clone(),
        ..Filter::default()
    };
    let line = outbox
        .list(&filter, 1)
        .await
        .map_err(|error| failed(outbox, &error))?;
    Ok(line
        .into_iter()
        .map(|first| first.key)
        .find(|first| *first != entry.key))
}

fn fields(entry: &Entry, waits: bool) -> Vec<(&'static str, Cell)> {
    let mut fields = vec![
        ("key", Cell::new(&entry.key)),
        ("target", Cell::new(&entry.target)),
        ("state", state(entry, waits)),
        ("group", Cell::new(entry.order_group.as_deref().unwrap_or("-"))),
        ("size", Cell::new(format!("{} bytes", entry.size))),
        ("sha-256", Cell::new(entry.payload_hash.as_deref().unwrap_or("-"))),
        ("attempts", Cell::new(entry.attempts.to_string())),
        ("enqueued", Cell::new(time(entry.enqueued_at))),
    ];
    for (name, ms) in [
        ("first attempt", entry.first_attempt_at),
        ("last attempt", entry.last_attempt_at),
        ("due", entry.due_at),
        (
            "may have it since",
            entry.unsure_since.filter(|_| !entry.state.is_final()),
        ),
        ("finished", entry.finished_at),
    ] {
        if let Some(ms) = ms {
            fields.push((name, Cell::new(time(ms))));
        }
    }
    let answer = last_answer(entry);
    if !answer.is_empty() {
        fields.push(("last answer", Cell::new(answer)));
    }
    if let Some(detail) = &entry.last.detail {
        fields.push(("detail", Cell::new(detail)));
    }
    fields
}
