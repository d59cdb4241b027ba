//! The sender measured from outside: `storybus relay` between an outbox and the embedded bus, all on this machine.
//!
//! ```sh
//! cargo build --release -p storybus-cli
//! cargo run --release -p storybus-cli --example bench_sender -- --storybus target/release/storybus
//! ```
//!
//! Prints what was measured beside its bar, and ends with 1 when one is missed. PostgreSQL is one of its own, with every commit synced.

#![expect(clippy::print_stdout, reason = "a tool for the terminal")]

mod database;
mod machine;
mod measure;
#[path = "../load/served.rs"]
mod served;
#[path = "../load/story.rs"]
mod story;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use crate::database::Place;
use crate::table::Table;

/// The sender measured from outside.
#[derive(Debug, Parser)]
struct Args {
    /// The program
    #[arg(long, value_name = "PATH", default_value = "target/release/storybus")]
    storybus: PathBuf,
    /// Messages of each measurement
    #[arg(long, default_value_t = 20_000)]
    messages: u64,
    /// Stories that they are of
    #[arg(long, default_value_t = 2_000)]
    stories: usize,
    /// Messages that wait in the outbox while its memory and rate are measured
    #[arg(long, default_value_t = 1_000_000)]
    backlog: u64,
    /// Messages behind one that is parked
    #[arg(long, default_value_t = 100_000)]
    stuck: u64,
    /// Only this database
    #[arg(long)]
    only: Option<Which>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    Sqlite,
    Postgres,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<ExitCode> {
    let args = Args::parse();
    println!("{}", machine::load());
    let mut table = Table::default();
    for which in [Which::Sqlite, Which::Postgres] {
        if args.only.is_some_and(|only| only != which) {
            continue;
        }
        // Half of what SQLite has to do, where a server has to be asked.
        let (name, rate) = match which {
            Which::Sqlite => ("SQLite", 1_500.0),
            Which::Postgres => ("PostgreSQL", 750.0),
        };
        let place = async || match which {
            Which::Sqlite => Place::sqlite(),
            Which::Postgres => Place::postgres().await,
        };
        table.begin(name);
        let plain = measure::drained(&args, &place().await?).await?;
        table.at_least("messages a second from a full outbox", plain.rate, rate);
        table.worked(&plain);
        let beside = measure::beside(&args, &place().await?).await?;
        table.at_least("messages a second while they are enqueued", beside, rate);
        let enqueued = measure::enqueued(&args, &place().await?).await?;
        table.at_most("enqueue, median, µs", enqueued.median, 100.0);
        table.told("enqueue, p99, µs", enqueued.p99);
        table.told("the shortest statement, median, µs", enqueued.least);
        let stuck = measure::stuck(&args, &place().await?).await?;
        table.told("messages a second beside a story that is stuck", stuck.rate);
        table.at_least("of the rate without", stuck.rate / plain.rate, 0.8);
        table.worked(&stuck);
        let backlog = measure::backlog(&args, &place().await?).await?;
        table.told("messages a second with a backlog", backlog.rate);
        table.at_least("of the rate without", backlog.rate / plain.rate, 0.8);
        table.at_most("the relay's memory with a backlog, MiB", backlog.memory, 60.0);
        table.worked(&backlog);
    }
    println!("{}", machine::load());
    Ok(if table.all_met() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
