//! The operator API.

use std::process::ExitCode;

fn main() -> ExitCode {
    storybus_lambda::run("admin", storybus_lambda::functions::admin)
}
