//! The binary `storybus`.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match storybus_cli::run() {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            // Nobody is left to tell when stderr is gone.
            let _ = writeln!(std::io::stderr(), "storybus: {:#}", failure.error);
            failure.exit_code()
        }
    }
}
