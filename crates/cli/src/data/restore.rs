//! `storybus restore`.

use std::path::PathBuf;

use clap::Args;

use super::BESIDE;
use crate::exit::Failure;

/// `storybus restore`.
#[derive(Debug, Args)]
#[command(
    after_help = "All of the backup is read before anything is written. DATA-DIR gets its database last: a restore that was broken off leaves a
directory with which no bus starts; empty it and restore again.

A restored bus is as it was when the backup was taken. What was accepted since is not in it: producers send it again if they still
have it, and get 202 for it. What was acknowledged since waits again. Stop the old bus for good before the restored one starts.

Exit codes: 0 done; 1 failed; 2 a directory cannot be used."
)]
pub struct RestoreArgs {
    /// What `storybus backup` made
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// The data directory to make: not there, or empty
    #[arg(value_name = "DATA-DIR")]
    data: PathBuf,
    /// Say what was done as one line of JSON: from, to, files, bytes, seconds
    #[arg(long)]
    json: bool,
}

/// Runs it.
///
/// # Errors
///
/// The backup is not whole, or could not be put there.
pub fn run(args: &RestoreArgs) -> Result<u8, Failure> {
    super::copied(
        &args.backup,
        &args.data,
        args.json,
        || storybus_sqlite::restore(&args.backup, &args.data, BESIDE),
        "restored to",
        |_| {
            "Not in it: everything that was accepted or acknowledged since the backup was taken. Start the bus with: storybus serve --data"
                .to_owned()
        },
    )
}
