//! Puts dead letters back into their queue.

use std::process::ExitCode;

fn main() -> ExitCode {
    storybus_lambda::run("redrive", storybus_lambda::functions::redrive)
}
