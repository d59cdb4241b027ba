//! A bus that the tool starts itself.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};
use storybus_cli::serve::credentials::{self, Credentials};
use tempfile::TempDir;
use tokio::time::Instant;

/// A bus of our own.
pub(crate) struct Served {
    process: Child,
    folder: TempDir,
}

impl Served {
    pub(crate) fn start(program: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let process = Command::new(program)
            .args([
                "serve",
                "--demo",
                "--addr",
                "127.0.0.1:0",
                "--log",
                "warn",
                "--data",
            ])
            .arg(folder.path().join("data"))
            .arg("--credentials-file")
            .arg(folder.path().join("demo.json"))
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { process, folder })
    }

    pub(crate) async fn credentials(&mut self) -> Result<Credentials> {
        loop {
            if let Some(credentials) = credentials::read(&self.folder.path().join("demo.json"))? {
                return Ok(credentials);
            }
            if let Some(status) = self.process.try_wait()? {
                bail!("the bus ended with {status}");
            }
            tokio::time::sleep_until(Instant::now() + Duration::from_millis(20)).await;
        }
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Stops it; what it has used.
    pub(crate) fn stop(mut self) -> Result<String> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        let peak = status
            .lines()
            .find_map(|l| l.strip_prefix("VmHWM:"))
            .unwrap_or(" unknown")
            .trim()
            .to_owned();
        rustix::process::kill_process(Pid::from_child(&self.process), Signal::TERM)?;
        let status = self.process.wait()?;
        let disk =
            std::fs::metadata(self.folder.path().join("data/bus.db")).map_or(0, |m| m.len() / 1_000_000);
        Ok(format!(
            "the bus ended with {status}; its memory was at most {peak}, its database is {disk} MB"
        ))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
