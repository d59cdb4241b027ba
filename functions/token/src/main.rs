//! Makes access tokens, and shows the keys that they can be checked with.

use std::process::ExitCode;

fn main() -> ExitCode {
    storybus_lambda::run("token", storybus_lambda::functions::token)
}
