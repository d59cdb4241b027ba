//! The bus and the relays, as processes that can be killed at any instant and started again.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{SOON, pause, until};

const BINARY: &str = env!("CARGO_BIN_EXE_storybus");
/// How many bytes of a log are shown when a test fails.
const SHOWN: usize = 4_000;

/// The directory of a test. What was logged is shown when the test fails.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for entry in std::fs::read_dir(self.0.path()).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.ends_with(".log") {
                    let text = std::fs::read(entry.path()).unwrap_or_default();
                    let from = text.len().saturating_sub(SHOWN);
                    println!(
                        "--- the end of {name}\n{}",
                        String::from_utf8_lossy(&text[from..])
                    );
                }
            }
        }
    }
}

/// A process that ends with the test.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Process {
    fn start(command: &mut Command, log: &Path) -> Self {
        let log = File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("a log");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .env_remove("STORYBUS_CREDENTIALS")
            .env_remove("STORYBUS_URL")
            .env_remove("STORYBUS_OUTBOX");
        Self(command.spawn().expect("the process starts"))
    }

    /// Ends it as a power cut does. It does not matter if it is stopped, or has ended.
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("a child of ours")
    }

    /// Asks it to end, and waits until it has.
    pub(crate) async fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        until("its end", SOON, async || self.ended()).await
    }
}

/// The embedded bus, always on the same data and the same port.
pub(crate) struct Bus {
    process: Process,
    pub(crate) address: String,
    /// What the first start handed out.
    credentials: Value,
    data: PathBuf,
    given: PathBuf,
    log: PathBuf,
}

impl Bus {
    pub(crate) async fn first(home: &Home) -> Self {
        let mut bus = Self {
            process: Process(Command::new("true").spawn().expect("a process")),
            address: String::from("127.0.0.1:0"),
            credentials: Value::Null,
            data: home.path("data"),
            given: home.path("given.json"),
            log: home.path("bus.log"),
        };
        bus.credentials = bus.start().await;
        bus.address = bus
            .text("/base_url")
            .trim_start_matches("http://")
            .trim_end_matches("/v1/")
            .to_owned();
        bus
    }

    /// Starts it. What it hands out.
    async fn start(&mut self) -> Value {
        let _ = std::fs::remove_file(&self.given);
        self.process.kill();
        self.process = Process::start(
            Command::new(BINARY)
                .args([
                    "serve",
                    "--demo",
                    "--in-flight-seconds",
                    "1",
                    "--addr",
                    &self.address,
                ])
                .arg("--data")
                .arg(&self.data)
                .arg("--credentials-file")
                .arg(&self.given),
            &self.log,
        );
        until("a bus", SOON, async || {
            let ended = self.process.ended();
            assert_eq!(ended, None, "the bus ended");
            std::fs::read(&self.given)
                .ok()
                .and_then(|given| serde_json::from_slice(&given).ok())
        })
        .await
    }

    /// Kills it, and starts it again after so long.
    pub(crate) async fn kill(&mut self, rest: Duration) {
        self.process.kill();
        pause(rest).await;
        self.start().await;
    }

    pub(crate) fn text(&self, pointer: &str) -> &str {
        let text = self.credentials.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("no {pointer}"))
    }
}

/// A relay as it is started: whom it works for, and how patiently.
#[derive(Debug, Clone)]
pub(crate) struct RelaySetup {
    outbox: String,
    url: String,
    client_id: String,
    client_secret: String,
    log: PathBuf,
}

/// So long an attempt may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// So long a message rests whose relay died: twice an attempt's time and ten seconds, the shortest there is.
pub(crate) const LEASE: Duration = Duration::from_secs(12);

impl RelaySetup {
    pub(crate) fn new(home: &Home, name: &str, outbox: &str, url: String, bus: &Bus) -> Self {
        Self {
            outbox: outbox.to_owned(),
            url,
            client_id: bus.text("/producer/client_id").to_owned(),
            client_secret: bus.text("/producer/client_secret").to_owned(),
            log: home.path(&format!("{name}.log")),
        }
    }

    /// Starts it. Its rounds do not end: after one it would rest for a minute.
    pub(crate) fn start(&self) -> Process {
        Process::start(
            Command::new(BINARY)
                .args(["relay", "--outbox", &self.outbox, "--url", &self.url])
                .args(["--client-id", &self.client_id])
                .args(["--timeout-ms", &PATIENCE.as_millis().to_string()])
                .args([
                    "--max-attempts",
                    "1000",
                    "--base-delay-ms",
                    "20",
                    "--max-delay-ms",
                    "250",
                ])
                .args(["--listen", "127.0.0.1:0"])
                .env("STORYBUS_CLIENT_SECRET", &self.client_secret),
            &self.log,
        )
    }
}
