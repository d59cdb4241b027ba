//! Makes the first signing key with the stack, removes queues and topics with it, and sweeps every five minutes.

use std::process::ExitCode;

fn main() -> ExitCode {
    storybus_lambda::run("setup", storybus_lambda::functions::setup)
}
