//! The binary `storybus`.

use std::io::Write;
use std::process::ExitCode;

/// glibc's own keeps what hashing a secret took (19 MiB each time) and scatters everything else around it: twice the memory
/// at load, measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
