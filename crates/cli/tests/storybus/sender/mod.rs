//! The idempotent sender's verbs against a real bus: what is sent, what is kept, what a kill or a lost answer changes (nothing).

mod kill;
mod outbox;
mod partners;
mod postgres;
mod proxy;
mod relay;
mod send;
mod settings;
mod spool;

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::bus::{BINARY, Bus, Home, pause, wait_for};
use crate::verbs::{told, write};

/// Attempts that follow each other quickly.
pub(super) const QUICK: [&str; 4] = ["--base-delay-ms", "20", "--max-delay-ms", "100"];

/// A command in the home's directory, which finds nothing in the environment.
pub(super) fn bare(home: &Home, words: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(words).current_dir(home.folder.path());
    for name in [
        "STORYBUS_URL",
        "STORYBUS_CLIENT_ID",
        "STORYBUS_CLIENT_SECRET",
        "STORYBUS_CREDENTIALS",
        "STORYBUS_PROFILE",
        "STORYBUS_CONFIG",
        "STORYBUS_WORKSPACE",
        "STORYBUS_OUTBOX",
        "STORYBUS_LOG",
        "PGPASSWORD",
    ] {
        command.env_remove(name);
    }
    command
}

/// The same, as the demo bus's producer, with quick attempts.
pub(super) fn as_producer(home: &Home, words: &[&str]) -> Command {
    let mut command = bare(home, words);
    command.arg("--credentials-file").arg(home.path("kept.json"));
    command.args(QUICK);
    command
}

/// Runs `storybus send`: code, stdout, stderr.
pub(super) fn send(home: &Home, words: &[&str]) -> (i32, String, String) {
    told(&as_producer(home, &["send"]).args(words).output().unwrap())
}

/// Runs `storybus outbox … --json`: its document.
pub(super) fn outbox(home: &Home, words: &[&str]) -> Value {
    let output = bare(home, &["outbox", "--json"]).args(words).output().unwrap();
    let (code, out, err) = told(&output);
    assert_eq!(code, 0, "{out}{err}");
    serde_json::from_str(&out).unwrap()
}

/// The states of all messages, in their order.
pub(super) fn states(home: &Home) -> Vec<String> {
    let list = outbox(home, &["list", "--limit", "10000"]);
    let messages = list["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|m| m["state"].as_str().unwrap().to_owned())
        .collect()
}

pub(super) fn id(envelope: &Value) -> String {
    envelope["message_id"].as_str().unwrap().to_owned()
}

/// Writes envelopes to `0.json`, `1.json`…; the names.
pub(super) fn files(home: &Home, envelopes: &[Value]) -> Vec<String> {
    let names: Vec<String> = (0..envelopes.len()).map(|n| format!("{n}.json")).collect();
    for (name, envelope) in names.iter().zip(envelopes) {
        write(home, name, envelope);
    }
    names
}

/// What the demo bus's consumer has got since it was asked last.
pub(super) fn consumed(home: &Home, bus: &Bus) -> Vec<String> {
    let first = serde_json::from_str(&home.read("kept.json")).unwrap();
    bus.log_in(&first, "consumer")
        .drain(bus.text("/tenant"), bus.text("/consumer/client_id"))
}

/// Asks every 50 ms for at most 40 s: for what has to wait until the lease of a killed process is over, 11 s or more.
pub(super) fn wait_long(what: &str, mut ask: impl FnMut() -> bool) {
    for _ in 0..800 {
        if ask() {
            return;
        }
        pause(50);
    }
    panic!("no {what} within 40 s");
}

/// A service that runs, and ends with the test.
pub(super) struct Running {
    pub(super) child: Child,
}

impl Running {
    /// `storybus relay` with these flags; its log is the file `log` of the home, its lines of JSON are in `events`.
    pub(super) fn relay(home: &Home, words: &[&str]) -> Self {
        let mut command = as_producer(home, &["relay", "--listen", "127.0.0.1:0", "--json"]);
        command.args(words);
        Self::start(home, command)
    }

    pub(super) fn start(home: &Home, mut command: Command) -> Self {
        let open = |name| {
            std::fs::File::options()
                .create(true)
                .append(true)
                .open(home.path(name))
                .unwrap()
        };
        command
            .stdin(Stdio::null())
            .stdout(open("events"))
            .stderr(open("log"));
        Self {
            child: command.spawn().unwrap(),
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops it in good order: its code.
    pub(super) fn stop(&mut self) -> i32 {
        self.signal(Signal::TERM);
        self.end()
    }

    pub(super) fn end(&mut self) -> i32 {
        wait_for("end", || self.child.try_wait().unwrap()).code().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the last relay of the home listens.
pub(super) fn address(home: &Home) -> String {
    wait_for("address in the log", || {
        home.read("log").lines().rev().find_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            let listens = line["message"].as_str()?.starts_with("listening for /healthz");
            listens.then(|| line["address"].as_str().unwrap().to_owned())
        })
    })
}
