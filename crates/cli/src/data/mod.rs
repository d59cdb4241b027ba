//! A data directory in an operator's hands, on the machine it lies on: `backup`, `restore`, `check`. They work on the files; a bus
//! that runs on them is not asked and not disturbed.

mod backup;
mod check;
mod restore;

use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use storybus_sqlite::{BackupError, Copied};

pub use backup::BackupArgs;
pub use check::CheckArgs;
pub use restore::RestoreArgs;

pub use backup::run as backup;
pub use check::run as check;
pub use restore::run as restore;

use crate::exit::{self, Failure};

/// What lies beside the database and belongs to it: the keys that sign tokens, and secrets that were not handed out elsewhere.
const BESIDE: &[&str] = &["keys.json", "credentials.json", "first-start.json"];

/// What was copied, and how long that took.
#[derive(Serialize)]
struct Report<'a> {
    from: &'a Path,
    to: &'a Path,
    files: &'a [String],
    bytes: u64,
    seconds: f64,
}

/// Copies, and says what was copied: a line of JSON, or a text that ends with `then`.
fn copied(
    from: &Path,
    to: &Path,
    json: bool,
    copy: impl FnOnce() -> Result<Copied, BackupError>,
    verb: &str,
    then: impl FnOnce(&Copied) -> String,
) -> Result<u8, Failure> {
    let (result, seconds) = timed(copy);
    let copied = result.map_err(|error| Failure::new(code(&error), error))?;
    if json {
        return say_json(&Report {
            from,
            to,
            files: &copied.files,
            bytes: copied.bytes,
            seconds,
        });
    }
    say(&format!(
        "{verb} {} ({:.1} MB in {seconds:.1} s: {})\n{}\n",
        to.display(),
        megabytes(copied.bytes),
        copied.files.join(", "),
        then(&copied)
    ))
}

fn code(error: &BackupError) -> u8 {
    match error {
        BackupError::Unreadable { .. }
        | BackupError::Exists(_)
        | BackupError::NotEmpty(_)
        | BackupError::NotABackup(_) => exit::UNUSABLE,
        _ => exit::FAILED,
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    #[expect(
        clippy::disallowed_methods,
        reason = "told to people, and nothing hangs on it"
    )]
    let begun = std::time::Instant::now();
    let result = work();
    // to the millisecond
    (result, (begun.elapsed().as_secs_f64() * 1000.0).round() / 1000.0)
}

#[expect(clippy::cast_precision_loss, reason = "rounded, for people")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1_000_000.0
}

fn say(text: &str) -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to the standard output")?;
    Ok(exit::DONE)
}

fn say_json(value: &impl Serialize) -> Result<u8, Failure> {
    let line = serde_json::to_string(value).context("cannot write JSON")?;
    say(&format!("{line}\n"))
}
