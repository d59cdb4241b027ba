//! Moves dead letters from their queue into the table.

use std::process::ExitCode;

fn main() -> ExitCode {
    storybus_lambda::run("dead-letters", storybus_lambda::functions::dead_letters)
}
