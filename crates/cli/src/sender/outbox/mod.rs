//! `storybus outbox`: what operators do with an outbox.

mod change;
mod list;
mod show;
mod upkeep;

pub(super) use list::time;

use clap::{Args, Subcommand};

use super::block_on;
use super::settings::{BUS, OutboxArgs};
use crate::exit::{self, Failure};
use crate::operator::flags::Yes;
use crate::operator::out;
use crate::operator::times::Span;

/// `storybus outbox`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct OutboxNoun {
    #[command(subcommand)]
    verb: OutboxVerb,
    /// Print JSON, one document, instead of text for people; a failure's too
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    outbox: OutboxArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OutboxVerb {
    /// The messages, oldest first
    #[command(after_help = "Examples:\n  storybus outbox list\n  storybus outbox list --state parked")]
    List(list::ListArgs),
    /// One message: its state, its attempts, the last answer, what it waits for
    #[command(after_help = "Example:\n  storybus outbox show 0199b3d0-7a2e-7b31-8c55-4d2f9e6a1b07")]
    Show(show::ShowArgs),
    /// Send parked messages again, with the same bytes and keys
    #[command(after_help = RESEND_HELP)]
    Resend(change::ResendArgs),
    /// Refuse messages in your own name: they are not sent any more, and their groups go on
    #[command(after_help = DROP_HELP)]
    Drop(change::DropArgs),
    /// How many messages there are in which state, and how long the oldest waits
    #[command(after_help = "Example:\n  storybus outbox stats")]
    Stats,
    /// Delete what was delivered or refused long ago; a key that was deleted is not recognised any more
    #[command(
        after_help = "Nothing is deleted earlier than 7 days after it was delivered or refused: so long a bus knows it, too.

Example:
  storybus outbox purge --older-than 30d"
    )]
    Purge {
        /// Delivered or refused longer ago than this, at least 7d
        #[arg(long, value_name = "SPAN")]
        older_than: Span,
    },
    /// Make the outbox's table, or bring it up to date; on SQLite the file too
    #[command(
        after_help = "`send` does it by itself on SQLite. On PostgreSQL it needs a role that may create tables, which `send` and `relay` need not have: where the table is up to date,
it changes nothing and needs no such role.

Example:
  storybus outbox migrate"
    )]
    Migrate,
    /// The SQL that makes the table, for where no program may do so
    #[command(
        after_help = "Run once, in a database without an outbox, it does what `storybus outbox migrate` does. Its comments say how any program enqueues, and what the roles need.

Example:
  storybus outbox schema --postgres > outbox.sql"
    )]
    Schema(upkeep::SchemaArgs),
}

const RESEND_HELP: &str = "Only parked messages are resent: they become pending, before all later ones of their groups, and a relay that runs (or `storybus send`) sends them.
What may have arrived longer ago than the partner remembers keys (a bus: 7 days) could be taken there a second time: it is resent only after a question, or with --yes.

Exit codes: 0 all of them are pending again; 3 some are not, and the message says why; 2 nothing was done.

Examples:
  storybus outbox resend 0199b3d0-7a2e-7b31-8c55-4d2f9e6a1b07
  storybus outbox resend --all-parked";

const DROP_HELP: &str = "A parked or pending message becomes refused, with the rule operator.dropped. Its bytes and its key stay in the outbox. It cannot be undone: the
same key is never sent again.

Example:
  storybus outbox drop 0199b3d0-7a2e-7b31-8c55-4d2f9e6a1b07";

/// Which target's messages are named.
#[derive(Debug, Clone, Args)]
pub(crate) struct TargetArgs {
    /// Whom they are for
    #[arg(long, value_name = "NAME", default_value = BUS)]
    target: String,
}

/// For what a person has to confirm.
pub(crate) type Confirmation = Yes;

/// Runs it. With `--json` a failure is a document, too.
pub fn run(noun: &OutboxNoun) -> Result<u8, Failure> {
    let ran = block_on(ran(noun));
    if let Err(failure) = &ran
        && noun.json
    {
        out::value(&serde_json::json!({
            "error": {"exit_code": failure.code, "message": format!("{:#}", failure.error)}
        }))?;
    }
    ran
}

async fn ran(noun: &OutboxNoun) -> Result<u8, Failure> {
    let json = noun.json;
    let outbox = match &noun.verb {
        OutboxVerb::Schema(args) => {
            upkeep::schema(args, &noun.outbox.place()?)?;
            return Ok(exit::DONE);
        }
        OutboxVerb::Migrate => noun.outbox.place()?,
        _ => noun.outbox.open().await?,
    };
    let carried = noun.outbox.carried();
    let code = match &noun.verb {
        OutboxVerb::List(args) => list::run(args, &outbox, &carried, json).await,
        OutboxVerb::Show(args) => show::run(args, &outbox, &carried, json).await,
        OutboxVerb::Resend(args) => change::resend(args, &outbox, &carried, json).await,
        OutboxVerb::Drop(args) => change::drop(args, &outbox, json).await,
        OutboxVerb::Stats => upkeep::stats(&outbox, json).await,
        OutboxVerb::Purge { older_than } => upkeep::purge(*older_than, &outbox, json).await,
        OutboxVerb::Migrate => upkeep::migrate(&noun.outbox, &outbox, json).await,
        OutboxVerb::Schema(_) => Ok(exit::DONE),
    };
    outbox.close().await;
    code
}
