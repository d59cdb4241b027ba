//! Delivers archived messages to a queue again.

use std::process::ExitCode;

fn main() -> ExitCode {
    storybus_lambda::run("replay", storybus_lambda::functions::replay)
}
