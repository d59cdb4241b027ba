//! Keeps what the publish function's log says of refused messages.

use std::process::ExitCode;

fn main() -> ExitCode {
    storybus_lambda::run("activity", storybus_lambda::functions::activity)
}
