//! A process of a function.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::fault::Plan;
use crate::proxy::{Journal, Proxy, locked};
use crate::runtime::{Invocation, Runtime};
use crate::stack::now;

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With an answer.
    Answered(String),
    /// The function said that it failed.
    Failed(String),
    /// The process ended.
    Died,
    /// The function was ended at its time limit.
    OverTime,
}

/// A process of a function in a runtime of its own, behind a proxy of its own. It is killed with this.
pub struct Function {
    child: Mutex<Child>,
    process: Pid,
    runtime: Runtime,
    proxy: Proxy,
    log: PathBuf,
}

impl Drop for Function {
    fn drop(&mut self) {
        self.kill();
        let _ = locked(&self.child).wait();
    }
}

static INVOCATIONS: AtomicU64 = AtomicU64::new(1);

impl Function {
    /// Starts one. `environment` is all that it is told beside what Lambda tells every function.
    pub async fn start(
        binary: &Path,
        environment: &[(String, String)],
        upstream: &str,
        plan: Plan,
        journal: Journal,
        logs: &Path,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let runtime = Runtime::start().await;
        let proxy = Proxy::start(upstream, plan, journal).await;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let log = logs.join(format!("{number}.log"));
        let output = File::create(&log).unwrap();
        let child = Command::new(binary)
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", &runtime.address)
            .env("AWS_LAMBDA_FUNCTION_NAME", "proof")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
            .env("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/proof")
            .env("AWS_LAMBDA_LOG_STREAM_NAME", "proof")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_ENDPOINT_URL", &proxy.address)
            .envs(environment.iter().cloned())
            .stdin(Stdio::null())
            .stderr(output.try_clone().unwrap())
            .stdout(output)
            .spawn()
            .unwrap();
        let process = Pid::from_child(&child);
        proxy.of(process);
        Self {
            child: Mutex::new(child),
            process,
            runtime,
            proxy,
            log,
        }
    }

    /// Gives it an event and waits until the invocation has ended, at `limit` at the latest.
    pub async fn invoke(&self, event: String, limit: Duration) -> Ended {
        self.invoke_telling(event, limit).await.1
    }

    /// The same, with the invocation's number in the journal.
    pub async fn invoke_telling(&self, event: String, limit: Duration) -> (u64, Ended) {
        let number = INVOCATIONS.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.proxy.begin(number);
        let invocation = Invocation {
            id: format!("00000000-0000-4000-8000-{number:012}"),
            event,
            deadline: now() + i64::try_from(limit.as_millis()).unwrap(),
            answer,
        };
        if self.runtime.invocations.send(invocation).await.is_err() {
            return (number, Ended::Died);
        }
        let ended = tokio::select! {
            said = timeout(limit, answered) => match said {
                Ok(Ok(Ok(answer))) => Ended::Answered(answer),
                Ok(Ok(Err(error))) => Ended::Failed(error),
                Ok(Err(_)) => Ended::Died,
                Err(_) => {
                    self.kill();
                    Ended::OverTime
                }
            },
            _ = self.exit() => Ended::Died,
        };
        (number, ended)
    }

    /// Waits until the process has ended by itself.
    pub async fn exit(&self) -> ExitStatus {
        loop {
            if let Ok(Some(status)) = locked(&self.child).try_wait() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Kills it, frozen or not.
    pub fn kill(&self) {
        // until it has been waited for, its number is its own
        if let Ok(None) = locked(&self.child).try_wait() {
            let _ = kill_process(self.process, Signal::KILL);
        }
    }

    /// The calls of AWS since the plan was made, by name.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        self.proxy.names()
    }

    /// Another plan from now on; calls are counted anew.
    pub fn plan(&self, plan: Plan) {
        self.proxy.plan(plan);
    }

    /// Becomes true when the plan's one fault has struck.
    #[must_use]
    pub fn struck(&self) -> watch::Receiver<bool> {
        self.proxy.struck()
    }

    /// What the function said when it could not start.
    #[must_use]
    pub fn init_error(&self) -> Option<String> {
        locked(&self.runtime.init_error).clone()
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}
