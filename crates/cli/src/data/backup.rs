//! `storybus backup`.

use std::path::PathBuf;

use clap::Args;

use super::BESIDE;
use crate::exit::Failure;

/// `storybus backup`.
#[derive(Debug, Args)]
#[command(
    after_help = "The bus may run, and goes on while the backup is taken; run this on the machine that has the data directory, as the user
that runs the bus. A backup is the bus as it was at one instant: every message whose acceptance was answered before, every queue,
and the keys that sign access tokens. It is read back before it gets its name, and on disk when this returns.

It holds SECRETS: the keys, and credentials.json if that lies in the data directory. Its files are for their owner alone (mode 600):
keep it so where you take it.

Exit codes: 0 done; 1 failed, and there is no DEST; 2 a directory cannot be used."
)]
pub struct BackupArgs {
    /// The data directory of the bus
    #[arg(value_name = "DATA-DIR")]
    data: PathBuf,
    /// The directory to make; its parent is there, it is not. On another disk, for choice
    #[arg(value_name = "DEST")]
    destination: PathBuf,
    /// Say what was done as one line of JSON: from, to, files, bytes, seconds
    #[arg(long)]
    json: bool,
}

/// Runs it.
///
/// # Errors
///
/// The copy could not be made.
pub fn run(args: &BackupArgs) -> Result<u8, Failure> {
    super::copied(
        &args.data,
        &args.destination,
        args.json,
        || storybus_sqlite::backup(&args.data, &args.destination, BESIDE),
        "backed up to",
        |copied| {
            let secrets = if copied.files.iter().any(|file| file == "credentials.json") {
                "the keys that sign tokens, and clients' secrets in credentials.json"
            } else {
                "the keys that sign tokens"
            };
            format!(
                "It holds secrets ({secrets}): keep it where only you can read it. Back with it: storybus restore"
            )
        },
    )
}
