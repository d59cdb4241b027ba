//! Writes what was published into the archive.

use std::process::ExitCode;

fn main() -> ExitCode {
    storybus_lambda::run("archive", storybus_lambda::functions::archive)
}
