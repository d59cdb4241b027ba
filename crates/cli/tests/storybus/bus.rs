//! A bus that runs as a process of its own, and ends with the test.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::client::Client;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_storybus");

/// Waits for real time: the test waits for a process.
#[expect(
    clippy::disallowed_methods,
    reason = "a process is waited for, which knows no clock of ours"
)]
pub(crate) fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Asks every 10 ms, for at most 10 s.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1000 {
        if let Some(answer) = ask() {
            return answer;
        }
        pause(10);
    }
    panic!("no {what} within 10 s");
}

/// A data directory, and what was written beside it.
pub(crate) struct Home {
    pub(crate) folder: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// `storybus serve` on a port that the system chooses, with these flags too.
    pub(crate) fn serve_command(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command
            .args(["serve", "--addr", "127.0.0.1:0", "--data"])
            .arg(self.path("data"))
            .args(flags);
        self.logged(&mut command);
        command
    }

    pub(crate) fn logged(&self, command: &mut Command) {
        let open = |name| {
            File::options()
                .create(true)
                .append(true)
                .open(self.path(name))
                .unwrap()
        };
        command
            .stdout(open("out"))
            .stderr(open("err"))
            .stdin(Stdio::null())
            .env_remove("STORYBUS_CREDENTIALS");
    }

    /// Starts a demo bus and waits until it is there.
    pub(crate) fn serve(&self) -> Bus {
        self.serve_with(&["--demo"])
    }

    pub(crate) fn serve_with(&self, flags: &[&str]) -> Bus {
        let file = self.path("given.json");
        let _ = std::fs::remove_file(&file);
        let mut command = self.serve_command(flags);
        command.arg("--credentials-file").arg(&file);
        self.started(command)
    }

    pub(crate) fn started(&self, mut command: Command) -> Bus {
        let mut bus = Bus {
            child: command.spawn().unwrap(),
            credentials: Value::Null,
        };
        let credentials = wait_for("credentials file", || {
            if let Some(status) = bus.child.try_wait().unwrap() {
                panic!("the bus ended with {status}: {}", self.read("err"));
            }
            serde_json::from_str(&self.read("given.json")).ok()
        });
        bus.credentials = credentials;
        bus
    }
}

/// A bus that runs.
pub(crate) struct Bus {
    pub(crate) child: Child,
    pub(crate) credentials: Value,
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Bus {
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.credentials
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("no {pointer}"))
    }

    pub(crate) fn address(&self) -> &str {
        self.text("/base_url")
            .trim_start_matches("http://")
            .trim_end_matches("/v1/")
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// A client with the token of `who`, whose secret is in the credentials of the first start.
    pub(crate) fn log_in(&self, first: &Value, who: &str) -> Client {
        let part = |name: &str| {
            first
                .pointer(&format!("/{who}/{name}"))
                .and_then(Value::as_str)
                .unwrap()
        };
        let mut client = self.connect();
        client.log_in(part("client_id"), part("client_secret"));
        client
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        wait_for("end of the bus", || self.child.try_wait().unwrap())
    }

    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.end()
    }
}
