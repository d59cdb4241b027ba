//! Publishes messages, and answers every path that no other function has.

use std::process::ExitCode;

fn main() -> ExitCode {
    storybus_lambda::run("publish", storybus_lambda::functions::publish)
}
