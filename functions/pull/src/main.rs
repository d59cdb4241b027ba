//! Hands out a consumer's messages and takes its acknowledgements.

use std::process::ExitCode;

fn main() -> ExitCode {
    storybus_lambda::run("pull", storybus_lambda::functions::pull)
}
