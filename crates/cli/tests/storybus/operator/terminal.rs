//! A terminal, so that the binary can be watched as people do.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Runs a command on a terminal on which this is typed: its code, and what the terminal shows.
pub(crate) fn on_terminal(command: &mut Command, typed: &str) -> (i32, String) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = || File::options().read(true).write(true).open(&name).unwrap();
    let mut child = command
        .env("TERM", "xterm")
        .stdin(Stdio::from(side()))
        .stdout(Stdio::from(side()))
        .stderr(Stdio::from(side()))
        .spawn()
        .unwrap();
    // The command's own ends of the terminal: else it would never be closed.
    *command = Command::new("true");
    let mut terminal = File::from(terminal);
    terminal.write_all(typed.as_bytes()).unwrap();
    let mut shown = Vec::new();
    let mut part = [0; 4096];
    // A terminal that nobody writes to any more ends with an error.
    while let Ok(read @ 1..) = terminal.read(&mut part) {
        shown.extend_from_slice(&part[..read]);
    }
    let code = child.wait().unwrap().code().unwrap();
    (code, String::from_utf8_lossy(&shown).into_owned())
}
