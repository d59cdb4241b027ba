//! The idempotent sender's verbs: `storybus send`, `storybus outbox`, `storybus relay`.
//!
//! - `settings`: which outbox, which bus, how often an attempt is repeated. `partners`: REST partners beside the bus.
//! - `send`: enqueue files, send them, end. `relay`: send for as long as it runs. `spool`: the directory that a relay watches.
//! - `outbox`: the operator's verbs on an outbox.
//! - `rules`: what `storybus explain` says of the sender's own rules.
//! - `events`: one line of JSON an attempt. `stop`: how a signal ends it.
//!
//! All of them are a shell over [`storybus_sender`]: what is promised is kept there.

mod events;
mod outbox;
mod partners;
mod relay;
pub(crate) mod rules;
mod send;
mod settings;
mod spool;
mod stop;

pub use outbox::{OutboxNoun, run as outbox};
pub use relay::{RelayArgs, run as relay};
pub use send::{SendArgs, run as send};

use std::future::Future;

use anyhow::Context;

use crate::exit::Failure;

/// Threads that run a sender. A database on SQLite has its own.
const WORKERS: usize = 2;

/// Runs a piece of work to its end.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("storybus")
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let result = runtime.block_on(work);
    // A read of the standard input that waits would never come back.
    runtime.shutdown_background();
    result
}
