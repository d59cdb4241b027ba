//! `storybus outbox stats`, `purge`, `migrate`, `schema`.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;
use storybus_sender::outbox::{Database, MEMORY, Migrated, Outbox, State, schema as sql};

use crate::exit::{self, Failure};
use crate::operator::out::{self, Cell, Table, Tone};
use crate::operator::times::Span;
use crate::sender::settings::{OutboxArgs, failed};

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// For PostgreSQL
    #[arg(long, conflicts_with = "sqlite")]
    postgres: bool,
    /// For SQLite [default: for the kind of database that --outbox is]
    #[arg(long)]
    sqlite: bool,
}

pub(super) fn schema(args: &SchemaArgs, outbox: &Outbox) -> Result<(), Failure> {
    let postgres = args.postgres || (!args.sqlite && outbox.file().is_none());
    out::text(&sql(if postgres {
        Database::Postgres
    } else {
        Database::Sqlite
    }))
}

pub(super) async fn migrate(args: &OutboxArgs, outbox: &Outbox, json: bool) -> Result<u8, Failure> {
    let (word, text) = match args.migrate(outbox).await? {
        Migrated::Made => ("made", "is made"),
        Migrated::Updated => ("updated", "is brought up to date"),
        Migrated::UpToDate => ("up_to_date", "is up to date"),
    };
    let at = outbox.address();
    if json {
        out::value(&json!({"outbox": at, "migrated": word}))?;
    } else {
        out::text(&format!("{at}  {text}\n"))?;
    }
    Ok(exit::DONE)
}

pub(super) async fn purge(older_than: Span, outbox: &Outbox, json: bool) -> Result<u8, Failure> {
    if older_than.duration() < MEMORY {
        return Err(Failure::unusable(format_args!(
            "--older-than is at least {} d: so long a bus knows a message, and a key that comes again has to be recognised here, too",
            MEMORY.as_secs() / 86_400
        )));
    }
    let purged = outbox
        .purge(older_than.duration())
        .await
        .map_err(|error| failed(outbox, &error))?;
    if json {
        out::value(&json!({"purged": purged}))?;
    } else {
        out::text(&format!(
            "{} deleted\n",
            out::count(purged, "message", "messages")
        ))?;
    }
    Ok(exit::DONE)
}

pub(super) async fn stats(outbox: &Outbox, json: bool) -> Result<u8, Failure> {
    let stats = outbox.stats().await.map_err(|error| failed(outbox, &error))?;
    if json {
        out::value(&json!(stats))?;
        return Ok(exit::DONE);
    }
    let mut targets: BTreeMap<&str, BTreeMap<State, u64>> = BTreeMap::new();
    for count in &stats.counts {
        targets
            .entry(&count.target)
            .or_default()
            .insert(count.state, count.count);
    }
    let mut table = Table::new(&["TARGET", "PENDING", "PARKED", "REFUSED", "DELIVERED"]);
    for (target, counts) in &targets {
        let of = |state| counts.get(&state).copied().unwrap_or(0);
        let cell = |state, tone| {
            let cell = Cell::new(of(state).to_string());
            if of(state) > 0 { cell.toned(tone) } else { cell }
        };
        table.row(vec![
            Cell::new(target),
            cell(State::Pending, Tone::Plain),
            cell(State::Parked, Tone::Warn),
            cell(State::Refused, Tone::Bad),
            cell(State::Delivered, Tone::Plain),
        ]);
    }
    table.print("the outbox is empty")?;
    if let Some(age) = stats.oldest_pending_ms {
        out::text(&format!("oldest pending  {}\n", out::span(age / 1000)))?;
    }
    if stats.held_groups > 0 {
        out::text(&format!(
            "{} by a parked message\n",
            out::count(stats.held_groups, "order group is held", "order groups are held")
        ))?;
    }
    Ok(exit::DONE)
}
