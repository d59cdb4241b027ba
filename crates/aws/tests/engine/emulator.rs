//! One emulator for the whole test process, which ends with it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;

struct Emulator {
    address: String,
    /// It stops when this ends, and so never outlives the process.
    _until: ChildStdin,
}

/// Its address.
pub(crate) fn address() -> &'static str {
    static EMULATOR: OnceLock<Emulator> = OnceLock::new();
    &EMULATOR.get_or_init(start).address
}

#[expect(clippy::zombie_processes, reason = "it ends with this process, not before")]
fn start() -> Emulator {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../local-aws/ministack");
    let mut child = Command::new(script)
        .arg("--until-eof")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let until = child.stdin.take().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut address)
        .unwrap();
    let address = address.trim().to_owned();
    assert!(
        address.starts_with("http://127.0.0.1:"),
        "the emulator did not start"
    );
    Emulator {
        address,
        _until: until,
    }
}
